"""What a user wants to have looked at: a game, an environment of their own, or a run."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.tools import ProfileConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.flags import read_pair
from sparring.games.rules import game_names
from sparring.store.lookup import locate, unknown_name_error
from sparring.training.planning.custom import require_code
from sparring.training.planning.settings import merged, read_config
from sparring.training.records.overview import Overview, is_run
from sparring.training.records.run import LOCK, is_held
from sparring.training.train import check_given, complete
from sparring.usage import running

OF_TRAINING = ("config", "algo", "threads", "device", "set", "change")
"""Options that say how to train."""


@dataclass(frozen=True)
class Target:
    """Something to look at."""

    name: str
    """For titles and folders."""
    config: TrainConfig
    run: Path | None = None
    """The run that is going on; None: its settings are trained anew."""
    pid: int = 0
    """Who trains it."""


def find_target(config: ProfileConfig) -> Target:
    """Return what is meant; whatever is wrong with it is said before anything begins."""
    word = config.target
    if word in game_names() or (is_factory(word) and locate(word) is None):
        return Target(word, trained(word, config))
    if config.config and locate(word) is None:
        raise ConfigError(f"--config goes with a game or an environment, and {word!r} is none")
    folder = locate(word)
    if folder is None:
        raise unknown_name_error(word, what="game or run")
    if not is_run(folder):
        raise ConfigError(f"{folder} is not a run; give the folder that `sparring train` named")
    overview = Overview(folder)
    trusted.admit(folder, overview.config)
    settings = read_config(overview.config, str(folder))
    require_code(settings)
    if not is_held(folder / LOCK):
        return Target(overview.name, changed(settings, config))
    given = [f"--{name}" for name in OF_TRAINING if getattr(config, name) != usual(name)]
    if given:
        raise ConfigError(
            f"{', '.join(given)}: {folder} is going on with settings of its own; leave that out, "
            "or wait until it has ended"
        )
    return Target(overview.name, settings, folder, holder(folder))


def usual(name: str) -> Any:
    return getattr(ProfileConfig(), name)


def trained(game: str, config: ProfileConfig) -> TrainConfig:
    """Return the settings that `sparring train` would have."""
    changes = asked(config)
    found = complete(game, config.config, changes)
    if config.set:
        changes["set"] = (*found.set, *config.set)
        found = complete(game, config.config, changes)
    check_given(found, changes)
    return found


def changed(settings: TrainConfig, config: ProfileConfig) -> TrainConfig:
    """Return the settings of a run that has ended, with what is to be another."""
    changes = asked(config)
    if config.config or config.algo:
        raise ConfigError("--config and --algo: a run has its own; name its game instead")
    if config.set:
        changes["set"] = (*settings.set, *config.set)
    found: TrainConfig = merged(settings, changes, "profile")
    check_given(found, changes)
    return found


def asked(config: ProfileConfig) -> dict[str, Any]:
    """Return the settings that options give, without flags of the game."""
    changes: dict[str, Any] = {}
    for word in config.change:
        keys, value = read_change(word)
        place(changes, keys, value)
    if config.algo:
        changes["algo"] = config.algo
    if config.threads:
        changes["threads"] = config.threads
    if config.device != usual("device"):
        changes["device"] = config.device
    return changes


def read_change(word: str) -> tuple[list[str], Any]:
    """Turn ppo.minibatch=64 into its keys and its value; what is no TOML is text."""
    name, text = read_pair(word, "change")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    keys = name.replace("-", "_").split(".")
    return keys, tuple(value) if isinstance(value, list) else value


def place(changes: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    inner: Any = changes
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, Mapping):
            raise ConfigError(f"change: {'.'.join(keys)} is given twice in different ways")
    inner[keys[-1]] = value


def holder(folder: Path) -> int:
    try:
        number, _, host = (folder / LOCK).read_text().strip().partition(" ")
        pid = int(number)
    except (OSError, ValueError):
        raise ConfigError(
            f"{folder} is being trained, and its lock does not say by whom: it was begun by an "
            "older version, or is about to begin; try again, or start it anew"
        ) from None
    if host and host != platform.node():
        raise ConfigError(f"{folder} is being trained on {host}; run sparring profile there")
    if not running(pid):
        raise ConfigError(
            f"{folder} is being trained by process {pid}, which cannot be seen from here, as in a "
            "container; run sparring profile beside it"
        )
    return pid
