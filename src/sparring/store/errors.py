"""Errors of the store, in a module that does not import torch."""

from __future__ import annotations

from sparring.errors import SparringError


class CheckpointError(SparringError):
    """A checkpoint could not be written, or is damaged."""


class ArchiveError(CheckpointError):
    """Snapshots of a league, or their index, could not be written or read."""
