"""What `sparring bench train` measures: a training's settings, changed where options say so."""

from __future__ import annotations

import os
from typing import Any

from sparring.config import TrainConfig
from sparring.config.commands import BenchTrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.speed.rounds import steady
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.place import uses_gpu
from sparring.training.planning.settings import merged, with_preset

LEARNING_OPTIONS = {True: ("epochs", "minibatch"), False: ("ratio", "batch")}
"""Those of algorithms that learn from fresh rollouts, and those of replay."""
NET_OPTIONS = {"mlp": ("hidden", "shared"), "residual": ("channels", "blocks")}
"""Those that one kind of network has alone."""


def read_settings(config: BenchTrainConfig) -> TrainConfig:
    """Return what `sparring train` would train with, changed where an option says so."""
    base = with_preset(config.game, config.config, gpu=uses_gpu(config.device), algo=config.algo)
    net = given_of_net(config, base.net.kind)
    changes: dict[str, Any] = {
        "game": config.game,
        "seed": config.seed,
        "threads": config.threads or base.threads or os.cpu_count() or 1,
        "device": config.device,
        "pool": config.pool,
        "population": config.population,
        "set": (*base.set, *config.set),
        "opponents": config.opponents or base.opponents,
        **given_of_learning(config, base),
        "collect": given_of(config, "games", "steps"),
        "league": given_of(config, "slots"),
        "net": net,
    }
    if base.hierarchy.on:  # an option goes before what roles have of their own
        own = {"net": net, base.algo: changes.get(base.algo, {})}
        changes["roles"] = dict.fromkeys(Rules(config.game).roles, own)
    settings: TrainConfig = merged(base, changes, "bench train")
    return steady(settings)


def given_of_learning(config: BenchTrainConfig, base: TrainConfig) -> dict[str, Any]:
    """Return the options of learning; one that the algorithm does not have is refused."""
    rollouts = learns_from_rollouts(base)
    names = LEARNING_OPTIONS[rollouts]
    for name in LEARNING_OPTIONS[not rollouts]:
        if getattr(config, name):
            raise ConfigError(
                f"--{name}: {base.algo} learns from {'fresh rollouts' if rollouts else 'replay'} "
                f"here; it has {', '.join(f'--{own}' for own in names)}"
            )
    given = given_of(config, *names)
    return {base.algo if rollouts else "replay": given}


def learns_from_rollouts(settings: TrainConfig) -> bool:
    """Whether each decision is learned from soon after it was made, and then no more."""
    return "replay" not in sections_of(settings.algo, settings.dqn.mode)


def learning_facts(settings: TrainConfig) -> dict[str, Any]:
    """Return the sizes of learning."""
    rollouts = learns_from_rollouts(settings)
    of = getattr(settings, settings.algo, None) if rollouts else settings.replay
    return {name: getattr(of, name) for name in LEARNING_OPTIONS[rollouts] if hasattr(of, name)}


def given_of(config: BenchTrainConfig, *names: str) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: getattr(config, name) for name in names if getattr(config, name)}


def given_of_net(config: BenchTrainConfig, kind: str) -> dict[str, Any]:
    """Return the options of the network; one that such a network does not have is refused."""
    usual = BenchTrainConfig(config.game)
    found: dict[str, Any] = {} if config.sparse is None else {"sparse": config.sparse}
    for of, names in NET_OPTIONS.items():
        for name in names:
            value = getattr(config, name)
            if value == getattr(usual, name):
                continue
            if of != kind:
                raise ConfigError(
                    f"--{name} is for nets of kind {of}; {config.game} is trained with kind {kind}"
                )
            found[name] = value
    return found
