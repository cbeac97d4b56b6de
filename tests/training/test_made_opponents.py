"""Opponents that a function of the program makes anew whenever a game begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparring
from sparring.errors import ConfigError
from sparring.training.train import resume

Array = npt.NDArray[Any]
GAMES = 4
MAX_MOVES = 5
"""Decisions of one seat in a game of tic-tac-toe."""


class Lowest:
    """Takes the lowest legal action, and counts what it was asked."""

    made: list[Lowest] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.asked = 0
        Lowest.made.append(self)

    def act(self, obs: Array, mask: Array) -> Array:
        self.asked += len(obs)
        return mask.argmax(axis=1)


def lowest(obs: Array, mask: Array, rng: np.random.Generator) -> Array:
    return mask.argmax(axis=1)


def trained(root: Path, *opponents: Any) -> sparring.Agent:
    return sparring.train(
        "tic_tac_toe",
        updates=1,
        opponents=list(opponents),
        quiet=True,
        runs=str(root),
        tensorboard=False,
        threads=1,
        net={"hidden": (8,)},
        collect={"games": GAMES, "steps": 16},
        eval={"off": True},
    )


def test_every_game_has_a_player_of_its_own(tmp_path: Path) -> None:
    Lowest.made.clear()
    agent = trained(tmp_path, Lowest)
    assert len(Lowest.made) > GAMES
    assert 1 <= max(player.asked for player in Lowest.made) <= MAX_MOVES
    with pytest.raises(ConfigError, match=r"Lowest came from the program that began this run"):
        resume(str(agent.run), updates=2, quiet=True)
    before = len(Lowest.made)
    resume(str(agent.run), updates=2, opponents=[Lowest], quiet=True)
    assert len(Lowest.made) > before


def test_a_factory_is_told_the_game_and_may_share_players(tmp_path: Path) -> None:
    told: list[tuple[int, str, int]] = []

    def make(seats: int, game: Any) -> Any:
        told.append((seats, game.rules.name, game.index))
        return lowest

    trained(tmp_path, "self", (make, 3.0))
    assert {(seats, name) for seats, name, _ in told} == {(1, "tic_tac_toe")}
    assert {index for *_, index in told} <= set(range(GAMES))


def test_an_object_with_act_is_a_player(tmp_path: Path) -> None:
    player = Lowest()
    trained(tmp_path, player)
    assert player.asked > MAX_MOVES


def fails() -> Any:
    raise KeyError("engine")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: "careful", "returned the bot careful; name bots as well"),
        (lambda: [lowest], "returned list; return one player"),
        (lambda: 7, "7 is no player; give a name"),
        (lambda: Lowest, "returned type; return one player"),
        (fails, r"opponents: fails failed: KeyError: 'engine' \(test_made_opponents"),
        (
            lambda obs: obs,
            r"takes 1 arguments; a player takes \(obs, mask, rng\), a player factory",
        ),
    ],
)
def test_what_makes_no_player_is_refused_in_a_line(made: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        trained(tmp_path, made)


def test_a_match_takes_players_not_what_makes_them(tmp_path: Path) -> None:
    from sparring.league.arena import play_match

    with pytest.raises(
        ConfigError, match=r"Lowest is a player factory.*give one of its players: Lowest\(\)"
    ):
        play_match(sparring.Rules("tic_tac_toe"), [Lowest, "random"], games=2)
