"""How networks on a CPU are computed: natively in float32 or bfloat16, or by torch."""

from __future__ import annotations

import os

from sparring import _native
from sparring.errors import ConfigError

AUTO, BF16, FLOAT32, TORCH = "auto", "bf16", "float32", "torch"
BEST_WITH_AMX = BF16
"""What `auto` means on a CPU with AMX, for perceptrons. Convolutions are torch's, whose bfloat16
moves what a network says by half a percent and its gradients by more: they have to be asked for."""
KERNELS = "SPARRING_KERNELS"
"""The environment variable that names the kernels of native code, for tests."""


def resolve_cpu(wanted: str, *, perceptron: bool = True) -> str:
    """Return what `collect.cpu` means on this machine; refuse what it has not.

    perceptron: the network is one, see `BEST_WITH_AMX`.
    """
    if wanted == AUTO:
        return BEST_WITH_AMX if perceptron and _native.has_amx() else FLOAT32
    if wanted == BF16 and not _native.has_amx():
        named = os.environ.get(KERNELS, "")
        why = f"{KERNELS}={named} leaves it out" if named else "this one has none"
        raise ConfigError(
            f"collect.cpu bf16 needs a CPU with AMX, and {why}; use --collect.cpu float32, or "
            'for a run that goes on collect.cpu = "float32" in its config.toml'
        )
    return wanted


def as_can_be(wanted: str) -> str:
    """The same where nothing is learned: another machine may lack what the learner's has."""
    return AUTO if wanted == BF16 and not _native.has_amx() else wanted
