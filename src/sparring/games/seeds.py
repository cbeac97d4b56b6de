"""Seeds: signed or unsigned integers of 64 bits; custom environments get 31 bits."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from sparring.errors import ConfigError

MIN_SEED, MAX_SEED = -(2**63), 2**64 - 1
ENV_SEED_LIMIT = 2**31
"""Seeds from 0 below this limit work with any environment."""


def seed_bits(seed: Any) -> int:
    """Return a seed as unsigned 64 bits for the native core."""
    return check_seed(seed) % 2**64


def check_seed(seed: Any) -> int:
    """Return a valid seed; raises ConfigError."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise ConfigError(f"seed={seed!r} must be a whole number") from None
    if not MIN_SEED <= number <= MAX_SEED:
        raise ConfigError(
            f"seed={number} does not fit into 64 bits; give one in {MIN_SEED}..{MAX_SEED}"
        )
    return number


def derive_seed(*numbers: int) -> int:
    """Return a seed of 31 bits derived from all numbers."""
    words = [number % 2**64 for number in numbers]
    return int(np.random.SeedSequence(words).generate_state(1)[0]) >> 1
