"""Messages to processes that play a share of a run's games: line-ups, flags, rewards, starts.

Also the checks and settings that hold for all such processes, actors and replicas.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
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
from sparring.training.planning.custom import check_vector
from sparring.training.planning.participants import GIVEN
from sparring.training.planning.settings import as_plain, merged

LINEUPS, FLAGS, REWARDS, STARTS, PUT = "lineups", "flags", "rewards", "starts", "put"
SETTINGS, ACTING, RESTART = "settings", "acting", "restart"
"""Messages to all processes."""
SEATED, STATE, LOAD = "seated", "state", "load"
"""Messages to a single process, which replies."""


def lineups_message(lineups: Sequence[Lineup], mixes: Sequence[str], filled: Mixes) -> Message:
    """Line-ups from the next reset on, the names of all mixes, and the players in them."""
    payload = {
        "lineups": [[plain_players(one), one.weight, one.shuffle] for one in lineups],
        "mixes": list(mixes),
        "filled": [[name, list(players.items())] for name, players in filled.items()],
    }
    return Message(LINEUPS, payload)


def plain_players(lineup: Lineup) -> list[Any]:
    """The players of a line-up as JSON values: a mix is a list with its name."""
    return [[player.name] if isinstance(player, Mix) else player for player in lineup.players]


def apply_lineups(pool: Any, payload: Mapping[str, Any]) -> None:
    lineups = [
        Lineup(tuple(Mix(p[0]) if isinstance(p, list) else p for p in players), weight, shuffle)
        for players, weight, shuffle in payload["lineups"]
    ]
    pool.set_lineups(lineups, payload["mixes"])
    if payload["filled"]:
        pool.set_mixes({name: dict(map(tuple, players)) for name, players in payload["filled"]})


def apply_message(pool: Any, message: Message) -> bool:
    """Change a pool as a message says; return whether the message was for the pool."""
    payload = message.payload
    if message.name == LINEUPS:
        apply_lineups(pool, payload)
    elif message.name == FLAGS:
        pool.set_config(**payload["flags"])
    elif message.name == REWARDS:
        pool.set_rewards(payload["rewards"])
    elif message.name == STARTS:
        pool.set_starts(read_starts(message))
    else:
        return False
    return True


def starts_message(rules: Rules, starts: Sequence[Start]) -> Message:
    """Start positions from the next reset on."""
    positions = [resolve_start(rules, start) for start in starts]
    arrays = {}
    for number, position in enumerate(positions):
        if position is not None:
            arrays[f"{number}.game"] = np.frombuffer(position.game, np.uint8)
            arrays[f"{number}.side"] = np.frombuffer(position.side, np.uint8)
    return Message(STARTS, {"starts": [[one.weight, one.name] for one in starts]}, arrays)


def read_starts(message: Message) -> list[Start]:
    """Read a `starts_message`."""
    arrays = message.arrays

    def position(number: int) -> SavedPosition | None:
        if f"{number}.game" not in arrays:
            return None
        return SavedPosition(arrays[f"{number}.game"].tobytes(), arrays[f"{number}.side"].tobytes())

    starts = enumerate(message.payload["starts"])
    return [Start(position(number), weight, name) for number, (weight, name) in starts]


def weights_message(slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> Message:
    """Weights of a frozen network for a slot."""
    arrays = {name: value.detach().cpu().contiguous().numpy() for name, value in weights.items()}
    return Message(PUT, {"key": slot, "greedy": greedy}, arrays)


def read_weights(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    """Read the arrays of a `weights_message`."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def settings_message(settings: Any) -> Message:
    """Settings of the algorithm, from the next rollout on."""
    plain = as_plain(asdict(settings))
    return Message(SETTINGS, {"settings": plain, "section": type(settings)._section})


def read_settings(message: Message) -> Any:
    """Read a `settings_message`."""
    usual = getattr(TrainConfig(), message.payload["section"].removesuffix("."))
    return merged(usual, message.payload["settings"], "the run's settings")


def check_equal_shares(config: TrainConfig, typed: str, count: int) -> None:
    """Refuse games that do not divide equally, and players that other processes cannot load.

    typed: the setting with the number of processes.
    """
    name = typed.partition(" ")[0]
    objects = [word.removeprefix(GIVEN) for word in config.opponents if word.startswith(GIVEN)]
    if objects:
        raise ConfigError(
            f"{typed}: opponents {', '.join(objects)} are objects of this program, which "
            f"other processes do not have; save them and name the file, or leave {name} out"
        )
    games = config.collect.games
    if games % count:
        near = max(games // count, 1) * count
        raise ConfigError(
            f"{typed}: collect.games {games} does not divide equally; nearest: {near}"
        )
    check_vector(config, typed, count)


def process_config(config: TrainConfig, games: int, threads: int) -> TrainConfig:
    """Settings of a process that plays a share of a run's games and writes no files."""
    return replace(
        config,
        collect=replace(config.collect, games=games),
        cluster="",
        replicas=1,
        devices="",
        threads=threads,
        runs=tempfile.gettempdir(),
        name="",
        init="",
        wandb=False,
    )
