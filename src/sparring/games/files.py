"""Atomic writes of small files, without the dependencies of `store`."""

from __future__ import annotations

import secrets
from pathlib import Path


def replace_file(target: Path, raw: bytes) -> None:
    """Replace a file atomically: write under another name, then rename."""
    unfinished = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        unfinished.write_bytes(raw)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def os_error_text(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
