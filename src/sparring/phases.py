"""Phases of training time, as a profile reports them.

A block `with self.phases("update")` is a phase whose seconds are counted. A function that is too
short to time, or that has no metric, is marked with `phase` instead, which costs nothing at run
time: the profile reads the mark in the source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def phase(name: str) -> Callable[[Function], Function]:
    """Mark a function: what it calls belongs to the phase, unless it is marked itself."""
    del name  # read from the source
    return lambda function: function
