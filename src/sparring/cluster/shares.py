"""What holds wherever processes share the games of a run."""

from __future__ import annotations

import tempfile
from dataclasses import replace

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.training.planning.casting import GIVEN


def demand_equal_shares(config: TrainConfig, name: str, count: int) -> None:
    """Refuse games that cannot be shared out equally, and players that only one process has.

    name: the setting that says how many processes there are.
    """
    given = [word.removeprefix(GIVEN) for word in config.opponents if word.startswith(GIVEN)]
    if given:
        raise ConfigError(
            f"{name} {count}: opponents {', '.join(given)} are objects of this program, which "
            f"other processes do not have; save them and name the file, or leave {name} out"
        )
    games = config.collect.games
    if games % count:
        near = max(games // count, 1) * count
        raise ConfigError(
            f"{name} {count}: collect.games {games} cannot be shared out equally; nearest: {near}"
        )


def part_of(config: TrainConfig, games: int, threads: int) -> TrainConfig:
    """The settings of a run for one process with a share of its games, which leaves nothing behind:
    folders and curves are the learner's.
    """
    return replace(
        config,
        collect=replace(config.collect, games=games),
        cluster="",
        replicas=1,
        threads=threads,
        runs=tempfile.gettempdir(),
        name="",
        init="",
        wandb=False,
    )
