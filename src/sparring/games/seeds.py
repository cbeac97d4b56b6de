"""Seeds: whole numbers of 64 bits, with or without a sign; environments of others take 31."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from sparring.errors import ConfigError

MIN_SEED, MAX_SEED = -(2**63), 2**64 - 1
ENV_SEED_LIMIT = 2**31
"""Seeds below this one, and not below 0, are taken by any environment."""


def seed_bits(seed: Any) -> int:
    """Return a seed as the native core takes it; a negative one counts down from 2**64."""
    return check_seed(seed) % 2**64


def check_seed(seed: Any) -> int:
    """Return a seed that fits, as it was given."""
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
    """A seed that depends on all of these; any environment takes 31 bits."""
    words = [number % 2**64 for number in numbers]
    return int(np.random.SeedSequence(words).generate_state(1)[0]) >> 1
