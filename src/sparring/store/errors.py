"""What can be wrong with what is stored. Apart from its readers, which load torch."""

from __future__ import annotations

from sparring.errors import SparringError


class CheckpointError(SparringError):
    """A checkpoint that could not be written, or is not whole."""


class ArchiveError(CheckpointError):
    """Snapshots of a league or what is known about them, not written or not to be read."""
