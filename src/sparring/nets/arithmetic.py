"""How networks on a CPU are computed: natively in float32 or bfloat16, or by torch."""

from __future__ import annotations

AUTO, BF16, FLOAT32, TORCH = "auto", "bf16", "float32", "torch"


def resolve_cpu(wanted: str) -> str:
    """Return what `collect.cpu` means on this machine."""
    return FLOAT32 if wanted == AUTO else wanted
