"""Small files that are there whole or not at all. `store` has what runs need beyond that."""

from __future__ import annotations

import secrets
from pathlib import Path


def replace_file(target: Path, raw: bytes) -> None:
    """Write under another name first, so that nobody ever finds half a file."""
    unfinished = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        unfinished.write_bytes(raw)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def os_error_text(error: Exception) -> str:
    """Return why a file could not be opened."""
    return getattr(error, "strerror", None) or str(error)
