"""The settings of a new run as its file is to have them, settled before anything is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sparring.config import TrainConfig
from sparring.factories import lasting_name
from sparring.games.starts import lasting as lasting_start
from sparring.learn.plan import CPU
from sparring.nets.run.native import resolve_cpu
from sparring.pools.protocol import GamePool
from sparring.training.planning.casting import pinned
from sparring.training.planning.curricula import lasting_phases, with_phases
from sparring.training.planning.own import rules_of
from sparring.training.planning.own_nets import is_perceptron, lasting_net
from sparring.training.planning.place import choose_device
from sparring.training.starting import found_init
from sparring.training.teaching.sources import lasting as lasting_source


def lasting(
    config: TrainConfig, pool: GamePool | None = None, opponents: Sequence[Any] = ()
) -> TrainConfig:
    """Return settings whose names stay what they are: `latest` is another run tomorrow.

    pool, opponents: what the program that begins the run brings along.
    """
    config = with_phases(config)
    rules = rules_of(config, pool)
    collect = config.collect
    if choose_device(config.device) == CPU:
        perceptron = is_perceptron(rules, config.net)
        collect = replace(collect, cpu=resolve_cpu(collect.cpu, perceptron=perceptron))
    return replace(
        config,
        collect=collect,
        game=lasting_name(config.game),
        net=lasting_net(config.net),
        init=found_init(config.init),
        opponents=config.opponents if opponents else pinned(rules, config.opponents),
        starts=tuple(map(lasting_start, config.starts)),
        teach=tuple(lasting_source(rules, word) for word in config.teach),
        phases=lasting_phases(config, rules),
    )
