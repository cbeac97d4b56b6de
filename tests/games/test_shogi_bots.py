"""Shogi's scripted players: each beats the one before."""

from __future__ import annotations

import json
import random

import pytest

import sparring
from reference.shogi import balance
from sparring.cli import main
from sparring.errors import ConfigError
from sparring.games import shogi


def points(first: str, second: str, games: int) -> float:
    """Wins of the first, draws as half, over games with both colors."""
    total = 0.0
    for seed in range(games):
        state = sparring.new_state("shogi", seed=seed)
        seats = [first, second] if seed % 2 == 0 else [second, first]
        while not state.over:
            state.apply(state.ask(seats[state.seat]))
        total += (1 + state.scores[seats.index(first)]) / 2
    return total


@pytest.mark.parametrize(
    ("stronger", "weaker"), [("greedy", "random"), ("ab2", "greedy"), ("ab3", "ab2")]
)
def test_the_ladder(stronger: str, weaker: str) -> None:
    assert points(stronger, weaker, 10) >= 9


@pytest.mark.parametrize("bot", ["greedy", "ab2", "ab3"])
def test_a_win_is_played(bot: str) -> None:
    state = shogi.load_sfen("7nk/9/7G1/9/9/9/9/9/K8 b GR 1")
    state.apply(state.ask(bot))
    assert state.scores == [1, -1]


@pytest.mark.parametrize("bot", ["greedy", "ab2", "ab3"])
def test_a_free_rook_is_taken(bot: str) -> None:
    state = shogi.load_sfen("4k4/9/9/4r4/4G4/9/9/9/4K4 b - 1")
    assert shogi.usi(state, state.ask(bot)) == "5e5d"


def one_ply_value(state: sparring.State, action: int) -> int:
    side = shogi.read_sfen(state).split()[1]
    after = state.clone()
    after.apply(action)
    mates = after.end in ("checkmate", "no legal move")
    worth = balance(shogi.read_sfen(after))
    return 1_000_000 if mates else worth if side == "b" else -worth


@pytest.mark.parametrize("name", ["greedy", "ab1", "greedy1"])
def test_one_ply_of_alpha_beta_is_the_greedy_bot(name: str) -> None:
    state = sparring.new_state("shogi", seed=5)
    draw = random.Random(5)
    for ply in range(160):
        if state.over:
            state = sparring.new_state("shogi", seed=ply)
        if ply % 4 == 0:
            values = {action: one_ply_value(state, action) for action in state.legal()}
            assert values[state.ask(name)] == max(values.values())
        state.apply(draw.choice(state.legal()))


def test_other_names_of_bots_are_taken_and_not_listed() -> None:
    rules = sparring.Rules("shogi")
    assert rules.bots == ("random", "greedy", "ab2", "ab3")
    assert "ab1" in rules.bots
    assert "ab4" not in rules.bots
    assert "ab1" not in sparring.Rules("tic_tac_toe").bots
    assert rules.bot("ab1") == rules.bot("greedy1") == rules.bot("greedy")
    with pytest.raises(ConfigError, match="has no bot 'ab4'"):
        rules.bot("ab4")


def test_commands_take_other_names_of_bots(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ab1", "--game", "shogi", "--against", "greedy1", "--games", "2", "--json"]
    assert main(["eval", *words, "--set", "max_plies=20"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["greedy1"]["games"] == 2


def test_who_looks_ahead_leaves_a_guarded_pawn() -> None:
    sfen = "4k4/9/4l4/4p4/9/4R4/9/9/4K4 b - 1"
    greedy, careful = (shogi.load_sfen(sfen) for _ in range(2))
    assert shogi.usi(greedy, greedy.ask("greedy")) == "5f5d"
    assert not shogi.usi(careful, careful.ask("ab2")).startswith("5f5d")
