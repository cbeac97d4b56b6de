"""The language of who plays: what words mean, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sparring import ConfigError, IllegalActionError, Policy, Rules
from sparring.config import NetConfig, TrainConfig
from sparring.league.arena import default_plies, evaluate, play_match
from sparring.league.players import CallablePlayer
from sparring.league.seating import (
    LineupSpec,
    PlayerSpec,
    load_player,
    read_lineups,
    read_player,
    resolve_spec,
)
from sparring.nets.mlp import Perceptron
from sparring.pools.lineups import Mix
from sparring.store.policies import save_policy
from sparring.store.styles import Style
from sparring.training.planning.participants import participants_of

FOUR = Rules("skull_king")
TWO = Rules("tic_tac_toe")
SELF = PlayerSpec("self", "self")


def fresh(game: str = "tic_tac_toe", seed: int = 0, **flags: int) -> Policy:
    torch.manual_seed(seed)
    rules = Rules(game, flags)
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.normal_(net.policy_head.weight)
    return Policy(rules, net)


def lowest(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mask.argmax(axis=1)


def kinds(table: LineupSpec) -> list[str]:
    return [who.kind for who in table.players]


def test_one_name_is_for_all_other_seats_and_self_for_all() -> None:
    captain, alone = read_lineups(FOUR, ["captain", "self=0.5"])
    assert captain.players == (SELF, *[PlayerSpec("bot", "captain", target="captain")] * 3)
    assert alone.players == (SELF,) * 4
    assert (captain.weight, alone.weight, captain.shuffle) == (1.0, 0.5, True)


def test_a_list_names_every_seat_with_self_and_the_others_without() -> None:
    whole, others = read_lineups(FOUR, ["self,captain,past,past:5=2", "captain,best,past"])
    assert kinds(whole) == ["self", "bot", "past", "past"]
    assert [who.newest for who in whole.players] == [0, 0, 0, 5]
    assert whole.weight == 2
    assert kinds(others) == ["self", "bot", "best", "past"]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("self,captain,past", "names 3 of the 4 seats of skull_king; a list with self names"),
        ("captain,captain", "names 2 of the 4 seats of skull_king; a list without self names"),
        ("random,random,random,random", "leaves the learner no seat"),
        ("captain,,random", "a name is missing"),
        ("captian", "did you mean 'captain'"),
        ("bot:captian", "did you mean 'captain'"),
        ("pasd", "did you mean 'past'"),
        ("past:0", "is not past:N"),
        ("past:x", "is not past:N"),
        ("captain=0", "must be above 0"),
        ("captain=nan", "must be above 0"),
        ("captain=much", "is not NAME=WEIGHT"),
        ("=2", "is not key=value"),
        ("captain@greedy", "captain is a bot, without a network to sample from or to search with"),
        ("captain@64", "to search with; write captain"),
        ("past@64", "past selves play without search"),
        ("self@64", "the learner always samples; write self"),
        ("self@greedy", "the learner always samples; write self"),
        (3, "3 is no player"),
        (["captain", "random"], "names 2 of the 4 seats"),
    ],
)
def test_what_cannot_be_seated_is_refused_in_words(word: object, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_lineups(FOUR, [word])
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_nobody_sits_beside_the_learner_in_a_game_of_one_seat() -> None:
    assert kinds(read_lineups(Rules("cage2"), ["self"])[0]) == ["self"]
    with pytest.raises(ConfigError, match="cage2 has one seat"):
        read_lineups(Rules("cage2"), ["random"])
    with pytest.raises(ConfigError, match="opponents is empty"):
        read_lineups(FOUR, [])


def test_python_gives_policies_functions_and_weights() -> None:
    policy = fresh("skull_king")
    tables = read_lineups(FOUR, [policy, (lowest, 2), ["self", policy, "captain", lowest]])
    assert kinds(tables[0]) == ["self"] + ["policy object"] * 3
    assert tables[0].players[1].player is policy
    assert (tables[1].players[1].name, tables[1].weight) == ("lowest", 2.0)
    assert kinds(tables[2]) == ["self", "policy object", "bot", "callable"]


def test_runs_checkpoints_and_saved_policies_have_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("careful", "good", "a@b"):
        save_policy(fresh(), tmp_path / "runs" / name)
    assert read_player(TWO, "good@greedy") == PlayerSpec(
        "policy", "good@greedy", target="good", style=Style(greedy=True)
    )
    assert read_player(TWO, "a@b").target == "a@b"
    assert read_player(TWO, "a@b@sampled").style.greedy is False
    assert str(read_player(TWO, "good@64@sampled").style) == "@sampled@64"
    # A bot goes before a run of its name; a path is a path.
    assert read_player(TWO, "careful").kind == "bot"
    assert read_player(TWO, "bot:careful").target == "careful"
    assert read_player(TWO, "runs/careful").kind == "policy"
    with pytest.raises(ConfigError, match="@gredy is unknown; did you mean 'greedy'"):
        read_player(TWO, "good@gredy")


def test_a_policy_of_another_game_is_refused_with_what_differs(tmp_path: Path) -> None:
    path = str(save_policy(fresh(), tmp_path / "ttt"))
    with pytest.raises(ConfigError, match="plays tic_tac_toe, not skull_king"):
        resolve_spec(read_player(FOUR, path), FOUR)
    three = fresh("skull_king", num_players=3)
    with pytest.raises(ConfigError, match="num_players=3"):
        resolve_spec(read_player(FOUR, three), FOUR)
    with pytest.raises(ConfigError, match="past exists only in a training run"):
        resolve_spec(read_player(FOUR, "past"), FOUR)


def test_training_takes_tables_of_all_kinds() -> None:
    config = TrainConfig(opponents=("self,self,captain,random=2", "self", "self,past,past:2,best"))
    mixed, alone, past = participants_of(FOUR, config, {"": config.net}).lineups
    assert mixed.players == (0, 0, "captain", "random")
    assert (mixed.weight, alone.players) == (2.0, (0, 0, 0, 0))
    assert past.players == (0, Mix("past"), Mix("past:2"), Mix("best"))


def test_a_style_is_kept_wherever_a_policy_sits(tmp_path: Path) -> None:
    path = str(save_policy(fresh(), tmp_path / "p"))
    greedy, drawn = (load_player(f"{path}@{how}", TWO) for how in ("greedy", "sampled"))
    assert isinstance(greedy, Policy)
    assert isinstance(drawn, Policy)
    assert (greedy.name, drawn.name) == (f"{path}@greedy", f"{path}@sampled")
    obs, mask = np.zeros((64, TWO.obs_bytes), np.uint8), np.ones((64, 9), np.uint8)
    assert len(set(greedy.act(obs, mask, greedy=False))) == 1
    assert len(set(drawn.act(obs, mask, greedy=True))) > 1
    # One that draws keeps games apart; without, they open by lot.
    assert default_plies(TWO, [greedy, drawn], greedy=True) == 0
    assert default_plies(TWO, [greedy, greedy], greedy=False) > 0


def test_functions_play_matches_like_policies() -> None:
    def any_legal(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        assert obs.dtype == mask.dtype == np.uint8
        return (rng.random(mask.shape) * mask).argmax(axis=1)

    asked: list[int] = []

    def counted(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        asked.append(len(obs))
        return any_legal(obs, mask, rng)

    first, again = (play_match(TWO, [counted, "careful"], games=400, seed=3) for _ in range(2))
    assert first.summary() == again.summary()
    assert [player.name for player in first.players] == ["counted", "careful"]
    assert max(asked) > 100, "games are answered together"
    random = play_match(TWO, ["random", "careful"], games=400, seed=3)
    assert abs(first.first.win_share - random.first.win_share) < 0.1
    policy = fresh()
    assert set(evaluate(policy, [lowest, "careful"], games=64)) == {"lowest", "careful"}
    with pytest.raises(ConfigError, match="'lowest' has no game; give rules="):
        evaluate(lowest, ["careful"])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            lambda obs, mask, rng: np.full(len(obs), 4),
            "row 1: action 4 is not legal; legal: [0, 8]",
        ),
        (lambda obs, mask, rng: np.full(len(obs), -1), "row 0: action -1 is not legal"),
        (lambda obs, mask, rng: np.full(len(obs), 9), "row 0: action 9 is not legal"),
        (lambda obs, mask, rng: np.zeros(len(obs)), "returned float64, need integers"),
        (lambda obs, mask, rng: mask, "returned shape (2, 9), need (2,)"),
        (lambda obs, mask, rng: None, "returned shape (), need (2,)"),
    ],
)
def test_a_function_that_cannot_play_is_named_with_its_row(answer: object, told: str) -> None:
    mask = np.ones((2, 9), np.uint8)
    mask[1, 1:8] = 0
    player = CallablePlayer(TWO, answer, "mine")  # type: ignore[arg-type]
    with pytest.raises(IllegalActionError) as refused:
        player.act(np.zeros((2, TWO.obs_bytes), np.uint8), mask)
    assert str(refused.value).startswith("mine")
    assert told in str(refused.value)


def test_chances_of_functions_depend_on_seed_and_step_alone() -> None:
    def roll(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(9, size=len(obs))

    player = CallablePlayer(TWO, roll)
    obs, mask = np.zeros((50, TWO.obs_bytes), np.uint8), np.ones((50, 9), np.uint8)
    plain = player.act(obs, mask, seed=1, step=2)
    np.testing.assert_array_equal(plain, player.act(obs, mask, seed=1, step=2))
    for other in ({"seed": 2, "step": 2}, {"seed": 1, "step": 3}):
        assert (player.act(obs, mask, **other) != plain).any()
