"""What a training spends its time with, as its code names it; a profile reads the names there.

A block `with self.phases("update")` is a phase whose seconds are counted. A function that is too
quick for a clock, or that is in no curve, is marked instead, which costs nothing when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def phase(name: str) -> Callable[[Function], Function]:
    """Mark a function: whatever it calls is that phase, but for what has one of its own."""
    del name  # read in the source
    return lambda function: function
