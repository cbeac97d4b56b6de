"""What actors are told between rollouts: who plays, what is paid, where games begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.cluster.messages import Message
from sparring.games.rules import Rules
from sparring.games.starts import Position, Start, position_of
from sparring.pools.lineups import Lineup, Pot, Pots

TABLES, FLAGS, REWARDS, STARTS, PUT = "tables", "flags", "rewards", "starts", "put"
BEGIN = "begin_anew"
"""What is said to all of them."""
SEATED, STATE, LOAD = "seated", "state", "load"
"""What one of them is asked."""


def tables(lineups: Sequence[Lineup], pots: Sequence[str], filled: Pots) -> Message:
    """Who plays from now on: line-ups, the names of all pots, and who is in them."""
    return Message(
        TABLES,
        {
            "lineups": [[plain_players(one), one.weight, one.shuffle] for one in lineups],
            "pots": list(pots),
            "filled": [[name, list(inside.items())] for name, inside in filled.items()],
        },
    )


def plain_players(lineup: Lineup) -> list[Any]:
    """The players of a line-up as JSON has them: a pot is a list with its name."""
    return [[player.name] if isinstance(player, Pot) else player for player in lineup.players]


def hear_tables(pool: Any, facts: Mapping[str, Any]) -> None:
    """Let a pool have them."""
    lineups = [
        Lineup(tuple(Pot(p[0]) if isinstance(p, list) else p for p in players), weight, shuffle)
        for players, weight, shuffle in facts["lineups"]
    ]
    pool.set_lineups(lineups, facts["pots"])
    if facts["filled"]:
        pool.set_pots({name: dict(map(tuple, inside)) for name, inside in facts["filled"]})


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
    positions = [position_of(rules, start) for start in given]
    arrays = {}
    for number, position in enumerate(positions):
        if position is not None:
            arrays[f"{number}.game"] = np.frombuffer(position.game, np.uint8)
            arrays[f"{number}.side"] = np.frombuffer(position.side, np.uint8)
    return Message(STARTS, {"given": [[one.weight, one.name] for one in given]}, arrays)


def heard_starts(message: Message) -> list[Start]:
    """The same as a pool takes them."""
    arrays = message.arrays

    def position(number: int) -> Position | None:
        if f"{number}.game" not in arrays:
            return None
        return Position(arrays[f"{number}.game"].tobytes(), arrays[f"{number}.side"].tobytes())

    given = enumerate(message.facts["given"])
    return [Start(position(number), weight, name) for number, (weight, name) in given]


def put(slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> Message:
    """A frozen network for a slot."""
    arrays = {name: value.detach().cpu().contiguous().numpy() for name, value in weights.items()}
    return Message(PUT, {"key": slot, "greedy": greedy}, arrays)


def heard_weights(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    """The same as a learner takes them."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
