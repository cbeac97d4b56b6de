"""What holds wherever processes share the games of a run, and what they are told between rollouts:
who plays, what is paid, where games begin.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.starts import SavedPosition, Start, resolve_start
from sparring.messages import Message
from sparring.pools.lineups import Lineup, Mix, Mixes
from sparring.training.planning.participants import GIVEN

TABLES, FLAGS, REWARDS, STARTS, PUT = "tables", "flags", "rewards", "starts", "put"
BEGIN = "begin_anew"
"""What is said to all of them."""
SEATED, STATE, LOAD = "seated", "state", "load"
"""What one of them is asked."""


def tables(lineups: Sequence[Lineup], mixes: Sequence[str], filled: Mixes) -> Message:
    """Who plays from now on: line-ups, the names of all mixes, and who is in them."""
    return Message(
        TABLES,
        {
            "lineups": [[plain_players(one), one.weight, one.shuffle] for one in lineups],
            "mixes": list(mixes),
            "filled": [[name, list(inside.items())] for name, inside in filled.items()],
        },
    )


def plain_players(lineup: Lineup) -> list[Any]:
    """The players of a line-up as JSON has them: a mix is a list with its name."""
    return [[player.name] if isinstance(player, Mix) else player for player in lineup.players]


def hear_tables(pool: Any, facts: Mapping[str, Any]) -> None:
    lineups = [
        Lineup(tuple(Mix(p[0]) if isinstance(p, list) else p for p in players), weight, shuffle)
        for players, weight, shuffle in facts["lineups"]
    ]
    pool.set_lineups(lineups, facts["mixes"])
    if facts["filled"]:
        pool.set_mixes({name: dict(map(tuple, inside)) for name, inside in facts["filled"]})


def hear_games(pool: Any, message: Message) -> bool:
    """Have games go on under other terms; return whether the message was about them."""
    facts = message.facts
    if message.name == TABLES:
        hear_tables(pool, facts)
    elif message.name == FLAGS:
        pool.set_config(**facts["flags"])
    elif message.name == REWARDS:
        pool.set_rewards(facts["rewards"])
    elif message.name == STARTS:
        pool.set_starts(heard_starts(message))
    else:
        return False
    return True


def starts(rules: Rules, given: Sequence[Start]) -> Message:
    """Where games begin from now on."""
    positions = [resolve_start(rules, start) for start in given]
    arrays = {}
    for number, position in enumerate(positions):
        if position is not None:
            arrays[f"{number}.game"] = np.frombuffer(position.game, np.uint8)
            arrays[f"{number}.side"] = np.frombuffer(position.side, np.uint8)
    return Message(STARTS, {"given": [[one.weight, one.name] for one in given]}, arrays)


def heard_starts(message: Message) -> list[Start]:
    """The same as a pool takes them."""
    arrays = message.arrays

    def position(number: int) -> SavedPosition | None:
        if f"{number}.game" not in arrays:
            return None
        return SavedPosition(arrays[f"{number}.game"].tobytes(), arrays[f"{number}.side"].tobytes())

    given = enumerate(message.facts["given"])
    return [Start(position(number), weight, name) for number, (weight, name) in given]


def put(slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> Message:
    """A frozen network for a slot."""
    arrays = {name: value.detach().cpu().contiguous().numpy() for name, value in weights.items()}
    return Message(PUT, {"key": slot, "greedy": greedy}, arrays)


def heard_weights(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    """The same as a learner takes them."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def check_equal_shares(config: TrainConfig, name: str, count: int) -> None:
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
