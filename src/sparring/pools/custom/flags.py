"""Flags of somebody else's environments that change while they run.

An env takes them by a method `set_config(**flags)`, or has attributes of these names; its own reset
makes them effective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparring.errors import ConfigError

METHOD = "set_config"


def set_on_envs(name: str, envs: Sequence[Any], flags: Mapping[str, Any]) -> None:
    """Hand flags to env objects; all of them take them or none does."""
    base = [env.unwrapped for env in envs]
    if check_of_envs(name, envs, flags):
        for env in base:
            take(name, env.set_config, flags)
        return
    for env in base:
        for flag, value in flags.items():
            setattr(env, flag, value)


def check_of_envs(name: str, envs: Sequence[Any], flags: Iterable[str]) -> bool:
    """Refuse flags that env objects have no place for; return whether a method takes them."""
    base = [env.unwrapped for env in envs]
    if all(callable(getattr(env, METHOD, None)) for env in base):
        return True
    missing = [flag for flag in flags if not all(hasattr(env, flag) for env in base)]
    if missing:
        raise no_such(name, missing)
    return False


def set_on_vector(name: str, env: Any, flags: Mapping[str, Any]) -> None:
    """Hand flags to the envs of a Gymnasium vector, or to a vector that takes them itself."""
    base, by_method = env.unwrapped, check_of_vector(name, env, flags)
    if callable(getattr(base, METHOD, None)):
        take(name, base.set_config, flags)
    elif by_method:
        take(name, lambda **given: base.call(METHOD, **given), flags)
    else:
        for flag, value in flags.items():
            base.set_attr(flag, value)


def check_of_vector(name: str, env: Any, flags: Iterable[str]) -> bool:
    """Refuse flags that a vector has no place for; return whether a method takes them."""
    base = env.unwrapped

    def has(what: str) -> bool:
        # Asked for first: a worker process that is called for something missing dies.
        return hasattr(base, "call") and all(base.call("has_wrapper_attr", what))

    if callable(getattr(base, METHOD, None)) or has(METHOD):
        return True
    missing = [flag for flag in flags if not has(flag)]
    if missing:
        raise no_such(name, missing)
    return False


def take(name: str, method: Any, flags: Mapping[str, Any]) -> None:
    """Call somebody's method; what it refuses is refused."""
    try:
        method(**flags)
    except (TypeError, ValueError) as wrong:
        raise ConfigError(f"{name} refuses the flags {dict(flags)}: {wrong}") from wrong


def no_such(name: str, missing: Sequence[str]) -> ConfigError:
    """What to say where nobody knows a flag."""
    return ConfigError(
        f"{name} has no flags {', '.join(missing)}; give the env a method {METHOD}(**flags), or "
        "attributes of these names that its reset reads"
    )
