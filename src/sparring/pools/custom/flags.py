"""Flags of custom environments that change during a run.

An env takes them by a method `set_config(**flags)`, or has attributes of these names; they take
effect at its next reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparring.errors import ConfigError

METHOD = "set_config"


def set_on_envs(name: str, envs: Sequence[Any], flags: Mapping[str, Any]) -> None:
    """Set flags of env objects, all of them or none."""
    base = [env.unwrapped for env in envs]
    if check_of_envs(name, envs, flags):
        for env in base:
            take(name, env.set_config, flags)
        return
    for env in base:
        for flag, value in flags.items():
            setattr(env, flag, value)


def check_of_envs(name: str, envs: Sequence[Any], flags: Iterable[str]) -> bool:
    """Refuse flags that env objects do not have; return whether a method takes them."""
    base = [env.unwrapped for env in envs]
    if all(callable(getattr(env, METHOD, None)) for env in base):
        return True
    missing = [flag for flag in flags if not all(hasattr(env, flag) for env in base)]
    if missing:
        raise no_such(name, missing)
    return False


def set_on_vector(name: str, env: Any, flags: Mapping[str, Any]) -> None:
    """Set flags of the envs of a Gymnasium vector, or of a vector that takes them itself."""
    base, by_method = env.unwrapped, check_of_vector(name, env, flags)
    if callable(getattr(base, METHOD, None)):
        take(name, base.set_config, flags)
    elif by_method:
        take(name, lambda **given: base.call(METHOD, **given), flags)
    else:
        for flag, value in flags.items():
            base.set_attr(flag, value)


def check_of_vector(name: str, env: Any, flags: Iterable[str]) -> bool:
    """Refuse flags that a vector does not have; return whether a method takes them."""
    base = env.unwrapped

    def has(what: str) -> bool:
        # Checked first: a worker process dies if a missing method is called.
        return hasattr(base, "call") and all(base.call("has_wrapper_attr", what))

    if callable(getattr(base, METHOD, None)) or has(METHOD):
        return True
    missing = [flag for flag in flags if not has(flag)]
    if missing:
        raise no_such(name, missing)
    return False


def take(name: str, method: Any, flags: Mapping[str, Any]) -> None:
    """Call the env's method; its refusal becomes a `ConfigError`."""
    try:
        method(**flags)
    except (TypeError, ValueError) as wrong:
        raise ConfigError(f"{name} refuses the flags {dict(flags)}: {wrong}") from wrong


def no_such(name: str, missing: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"{name} has no flags {', '.join(missing)}; give the env a method {METHOD}(**flags), or "
        "attributes of these names that its reset reads"
    )
