"""Copies of environments, in which a search plays on."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from sparring.errors import USER_CODE_ERRORS, ConfigError
from sparring.factories import describe_error
from sparring.pools.custom.encoding import library

CLONE, RESEED = "clone", "reseed"
"""Methods that an environment may offer: clone() returns a copy of it in its current state;
reseed(seed) draws all coming chance, and what its players cannot know, anew."""
ADVICE = "offer clone() in it, a copy in its current state, or leave the search out"


def clone_env(env: Any, name: str) -> Any:
    """Return a copy of an environment in its current state.

    The innermost environments are copied by their clone(), if they offer it; wrappers, and
    environments without it, by copy.deepcopy. name: for errors.
    """
    memo: dict[int, Any] = {}
    try:
        inner = env
        while not offers_clone(inner) and getattr(inner, "env", inner) is not inner:
            inner = inner.env
        if offers_clone(inner):
            memo[id(inner)] = inner.clone()
        twin = copy.deepcopy(env, memo)
    except USER_CODE_ERRORS as wrong:
        how = CLONE if offers_clone(inner) else "copy.deepcopy"
        raise ConfigError(
            f"search copies {name}, and {how} fails: {describe_error(wrong)}; {ADVICE}"
        ) from wrong
    if twin is env or type(twin) is not type(env):
        returned = "itself" if twin is env else f"a {type(twin).__name__}"
        raise ConfigError(f"search copies {name}, and its clone() returns {returned}; {ADVICE}")
    return twin


def offers_clone(env: Any) -> bool:
    """Whether this very environment has the method; PettingZoo's wrappers show inner ones."""
    return callable(getattr(type(env), CLONE, None))


def reseed_env(env: Any, seed: int) -> None:
    """Draw the chance ahead of a copy anew, so that no simulation foresees it.

    By reseed(seed), where the environment offers it; otherwise Gymnasium's `np_random` is replaced.
    """
    base, gymnasium = getattr(env, "unwrapped", env), library("gymnasium")
    if callable(getattr(type(base), RESEED, None)):
        base.reseed(seed)
    elif gymnasium and isinstance(base, gymnasium.Env):
        base.np_random = np.random.default_rng(seed)
