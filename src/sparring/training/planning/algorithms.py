"""What belongs to which algorithm: its settings, and what it can do. All others are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sparring.config import DQNConfig, TrainConfig
from sparring.errors import ConfigError

SECTIONS: dict[str, tuple[str, ...]] = {
    "ppo": ("ppo",),
    "dqn": ("dqn", "replay"),
    "qrdqn": ("qrdqn", "replay"),
    "sac": ("sac", "replay"),
    "redq": ("redq", "replay"),
    "td3": ("td3", "replay"),
    "gumbel": ("gumbel",),
}
"""The tables of settings that each of ours has; a learner of somebody's own has none of them."""
OF_ALGORITHMS = tuple(dict.fromkeys(name for names in SECTIONS.values() for name in names))
REMEMBERS = frozenset(name for name, tables in SECTIONS.items() if "replay" in tables)
"""Those that learn from replay."""
BY_VALUE = frozenset({"dqn", "qrdqn"})
"""Those whose networks hold values of actions: frozen ones take the best."""
GREEDY = BY_VALUE | {"td3"}
"""Those whose policies always take the best action, without probabilities to draw from."""
ROLLOUTS = "rollouts"
"""The mode of DQN that has no replay."""
MODES = {
    "replay": ("double", "tau", "target_every", "win_bonus", "win_discount"),
    ROLLOUTS: ("q_lambda", "epochs", "minibatch"),
}
"""Settings of DQN that one of its modes has alone."""


def sections_of(algo: str, mode: str = "") -> tuple[str, ...]:
    """Return the tables of settings that an algorithm has. mode: of DQN."""
    own = SECTIONS.get(algo, ())
    return tuple(name for name in own if name != "replay") if mode == ROLLOUTS else own


def mode_of(settings: Mapping[str, Any]) -> str:
    """Return the mode of DQN that settings speak of, "" if they do not."""
    dqn = settings.get("dqn")
    if isinstance(dqn, DQNConfig):
        return dqn.mode
    return str(dqn.get("mode", "")) if isinstance(dqn, Mapping) else ""


def check_custom(algo: str, mode: str, names: Iterable[str]) -> None:
    """Refuse settings, as `ppo.lr`, that the algorithm does not have."""
    own = sections_of(algo, mode)
    for name in names:
        section, _, key = name.partition(".")
        if section in OF_ALGORITHMS and section not in own and key:
            raise ConfigError(whose(algo, mode, section, key))


def check_of_mode(mode: str, names: Iterable[str]) -> None:
    """Refuse settings of DQN's other mode. Files of runs have both, so that they are not asked."""
    mode = mode or DQNConfig.mode
    for name in names:
        section, _, key = name.partition(".")
        for other, keys in MODES.items():
            if section == "dqn" and other != mode and key in keys:
                raise ConfigError(f"{name}: of dqn.mode {other}; the mode is {mode}; leave it out")


def whose(algo: str, mode: str, section: str, key: str) -> str:
    """Say whose setting it is, and what the algorithm has instead."""
    owners = [name for name, sections in SECTIONS.items() if section in sections]
    names = [name.upper() for name in owners]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    of = f"{section}.{key}: of {listed}"
    if algo == "dqn" and section == "replay":
        return f"{of}; dqn.mode {mode} learns from fresh rollouts alone; leave it out"
    if algo not in SECTIONS:
        return f"{of}; {algo} is a custom learner, whose settings are --algo-set key=value"
    if section == "replay":
        return f"{of}; the algorithm is {algo}, which learns from fresh rollouts alone"
    there = {field.name for field in fields(getattr(TrainConfig(), algo))}
    has = f"{algo}.{key}" if key in there else " and ".join(f"{one}.*" for one in SECTIONS[algo])
    return f"{of}; the algorithm is {algo}, which has {has}"


def check_custom_settings(config: TrainConfig) -> None:
    """Refuse a configuration in which somebody has set what its algorithm does not have."""
    names = []
    for section in OF_ALGORITHMS:
        mine = getattr(config, section)
        usual = type(mine)()
        changed = [f.name for f in fields(mine) if getattr(mine, f.name) != getattr(usual, f.name)]
        names += [f"{section}.{name}" for name in changed]
    check_custom(config.algo, config.dqn.mode, names)
    check_of_mode(config.dqn.mode, names)


def named(settings: Mapping[str, Any], sections: Sequence[str] = OF_ALGORITHMS) -> list[str]:
    """Return the names of all settings of algorithms (or `sections`) in a table, as `ppo.lr`."""
    return [
        f"{section}.{key}"
        for section in sections
        if isinstance(table := settings.get(section), Mapping)
        for key in table
    ]


def typed(words: Sequence[str], sections: Sequence[str] = OF_ALGORITHMS) -> list[str]:
    """Return the names of all settings of algorithms (or `sections`) among the words typed."""
    options = [word.partition("=")[0][2:] for word in words if word.startswith("--")]
    parts = [option.replace("-", "_").partition(".") for option in options]
    return [
        f"{section}.{key.removeprefix('no_')}" for section, _, key in parts if section in sections
    ]
