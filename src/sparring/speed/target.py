"""Target of `sparring profile`: a game, a custom environment, or a run."""

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
from sparring.training.records.run import LOCK, is_locked
from sparring.training.train import check_given, complete
from sparring.usage import is_running

TRAINING_OPTIONS = ("config", "algo", "threads", "device", "set", "change")
"""Options that change the settings of the training."""


@dataclass(frozen=True)
class ProfileTarget:
    """A training to profile."""

    name: str
    """Name in titles and folders."""
    config: TrainConfig
    run: Path | None = None
    """A run that is training now; None: start a training with these settings."""
    pid: int = 0
    """Process that trains the run."""


def find_profile_target(config: ProfileConfig) -> ProfileTarget:
    """Return the training that the options name; refuse mistakes before anything starts."""
    word = config.target
    if word in game_names() or (is_factory(word) and locate(word) is None):
        return ProfileTarget(word, settings_of_game(word, config))
    if config.config and locate(word) is None:
        raise ConfigError(f"--config needs a game or an environment; {word!r} is neither")
    folder = locate(word)
    if folder is None:
        raise unknown_name_error(word, what="game or run")
    if not is_run(folder):
        raise ConfigError(f"{folder} is not a run; give the folder that `sparring train` printed")
    overview = Overview(folder)
    trusted.allow_remembered(folder, overview.config)
    settings = read_config(overview.config, str(folder))
    require_code(settings)
    if not is_locked(folder / LOCK):
        return ProfileTarget(overview.name, settings_of_run(settings, config))
    given = [f"--{name}" for name in TRAINING_OPTIONS if getattr(config, name) != default(name)]
    if given:
        raise ConfigError(
            f"{', '.join(given)}: {folder} is training with its settings; leave the option out, "
            "or wait until the run has ended"
        )
    return ProfileTarget(overview.name, settings, folder, holder(folder))


def default(name: str) -> Any:
    return getattr(ProfileConfig(), name)


def settings_of_game(game: str, config: ProfileConfig) -> TrainConfig:
    """Return the settings that `sparring train` would use."""
    changes = changes_of(config)
    found = complete(game, config.config, changes)
    if config.set:
        changes["set"] = (*found.set, *config.set)
        found = complete(game, config.config, changes)
    check_given(found, changes)
    return found


def settings_of_run(settings: TrainConfig, config: ProfileConfig) -> TrainConfig:
    """Return the settings of a run that has ended, with the changes of options."""
    changes = changes_of(config)
    if config.config or config.algo:
        raise ConfigError("--config and --algo: a run has its settings; name its game instead")
    if config.set:
        changes["set"] = (*settings.set, *config.set)
    found: TrainConfig = merged(settings, changes, "profile")
    check_given(found, changes)
    return found


def changes_of(config: ProfileConfig) -> dict[str, Any]:
    """Return the settings that options give, without game flags."""
    changes: dict[str, Any] = {}
    for word in config.change:
        keys, value = read_change(word)
        put(changes, keys, value)
    if config.algo:
        changes["algo"] = config.algo
    if config.threads:
        changes["threads"] = config.threads
    if config.device != default("device"):
        changes["device"] = config.device
    return changes


def read_change(word: str) -> tuple[list[str], Any]:
    """Split ppo.minibatch=64 into keys and value; a value that is no TOML is a string."""
    name, text = read_pair(word, "change")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    keys = name.replace("-", "_").split(".")
    return keys, tuple(value) if isinstance(value, list) else value


def put(changes: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    inner: Any = changes
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, Mapping):
            raise ConfigError(f"--change {'.'.join(keys)}: {key} is given as a value already")
    inner[keys[-1]] = value


def holder(folder: Path) -> int:
    try:
        number, _, host = (folder / LOCK).read_text().strip().partition(" ")
        pid = int(number)
    except (OSError, ValueError):
        raise ConfigError(
            f"{folder} is being trained, but its lock names no process: the run was started by an "
            "older version, or is just starting; try again, or restart it"
        ) from None
    if host and host != platform.node():
        raise ConfigError(f"{folder} is being trained on {host}; run sparring profile there")
    if not is_running(pid):
        raise ConfigError(
            f"{folder} is being trained by process {pid}, which is not visible here, as in a "
            "container; run sparring profile where it runs"
        )
    return pid
