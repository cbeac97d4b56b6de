"""A slow environment beside the native game: where they first differ is shown, shortly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import own_envs
from proof import slow_games as slow
from sparring import Rules, State
from sparring.cli import main
from sparring.envs.pettingzoo import SparringAECEnv, Table, aec_env, parallel_env
from sparring.errors import ConfigError
from sparring.proof.port import PortDifference, PortReport, port

TIC_TAC_TOE, KUHN = Rules("tic_tac_toe"), Rules("kuhn_poker")


def compared(make: Callable[[], Any], rules: Rules, **options: Any) -> PortReport:
    return port(make, rules, **{"games": 30, **options})


def shown(make: Callable[[], Any], rules: Rules, **options: Any) -> PortDifference:
    found = compared(make, rules, **{"games": 500, "tries": 80, **options}).difference
    assert found is not None
    return found


@pytest.mark.parametrize("make", [slow.TicTacToe, slow.Mirrored, slow.OtherSeats, slow.Alone])
def test_the_same_rules_agree(make: Callable[[], Any]) -> None:
    report = compared(make, TIC_TAC_TOE)
    assert report.passed, report.difference
    assert report.games == 30
    assert report.decisions > 150
    assert report.compared["reward"] >= report.decisions
    assert report.compared["mask"] >= report.decisions
    assert (report.compared["obs"] > 0) == (make is not slow.Alone)


def test_a_line_that_is_not_known_is_shown_when_it_is_made() -> None:
    found = shown(slow.MissingLine, TIC_TAC_TOE)
    assert (found.what, found.native, found.env) == ("terminated", "True", "False")
    assert found.step == 5  # the quickest way to a line
    assert set(found.numbers[0::2]) == {2, 4, 6}
    assert found.env_rewards == {0: 0.0, 1: 0.0}
    assert found.native_rewards == [1.0, -1.0]
    assert found.env_after.count("x") == 3
    assert found.env_before.count("x") == 2
    assert found.native_after


def test_a_mask_after_the_end_is_shown_at_the_end() -> None:
    found = shown(slow.MaskAfterTheEnd, TIC_TAC_TOE)
    assert found.what.startswith("legal actions of seat")
    assert found.what.endswith("after the end")
    assert found.native == "[]"
    assert found.step == 5
    assert compared(slow.MaskAfterTheEnd, TIC_TAC_TOE, ignore=["final-mask"]).passed


def test_a_reward_of_the_wrong_sign_is_shown() -> None:
    found = shown(slow.WrongSign, TIC_TAC_TOE)
    assert (found.what, found.native, found.env) == ("reward of seat 0", "-1.0", "1.0")
    assert found.step == 6  # the second player's third stone


def test_an_observation_is_shown_by_the_name_of_its_feature() -> None:
    found = shown(slow.ForgetsTheCorner, TIC_TAC_TOE)
    assert found.what == f"observation of seat 0, {TIC_TAC_TOE.features[8].name}"
    assert (found.step, found.numbers[0]) == (2, 8)


def test_a_mask_that_offers_too_much_is_shown_at_once() -> None:
    found = shown(slow.TakenCell, TIC_TAC_TOE)
    assert (found.what, found.numbers) == ("legal actions of seat 1", (4,))
    assert found.env_legal is not None
    assert set(found.env_legal) - set(found.native_legal) == {4}


def test_an_env_that_raises_is_shown_with_its_error() -> None:
    found = shown(slow.Falls, TIC_TAC_TOE)
    assert "raised IndexError: no cell left" in found.env
    assert found.step == 9


@pytest.mark.parametrize("load", ["start", "step"])
def test_chance_comes_from_the_native_position(load: str) -> None:
    report = compared(slow.Kuhn, KUHN, load=load)
    assert report.passed, report.difference
    assert report.compared["score"] == 30
    found = shown(slow.CheapCall, KUHN, load=load)
    assert found.what == "reward of seat 0"
    assert found.actions == ("pass", "bet", "bet")
    assert found.env_after == f"cards {found.env_after[6:12]}, moves [0, 1, 1]"


def test_chance_without_a_way_to_share_it_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"kuhn_poker has chance, and .* no method load\(state\)"):
        port(slow.NoLoad, KUHN)
    with pytest.raises(ConfigError, match="load 'step'"):
        port(slow.TicTacToe, TIC_TAC_TOE, load="step")


def test_both_may_draw_the_same_from_a_seed() -> None:
    assert compared(lambda: aec_env("leduc_poker"), Rules("leduc_poker"), same_seed=True).passed
    hockey = Rules("laser_hockey")
    together = compared(lambda: parallel_env("laser_hockey"), hockey, same_seed=True, games=1)
    assert together.passed, together.difference
    assert together.compared["obs"] > 0


SHORT = Rules("skull_king", {"num_players": 2, "rounds": [1, 2]})


class Rounds(SparringAECEnv):
    """Deals the cards of the second round itself, unless it is told what comes."""

    def __init__(self, *, listens: bool) -> None:
        super().__init__(Table(SHORT, None, 0, None, None, opponents=None))
        if listens:
            self.chance = self.take_over

    def load(self, state: State) -> None:
        self._table.state = State(SHORT, state.seed + 1, state.weights)
        self._table.state.native.load(state.native.serialize())

    def take_over(self, after: State) -> None:
        self.coming = after

    def step(self, action: Any) -> None:
        super().step(action)
        if hasattr(self, "chance") and not self.coming.over:
            self._table.state = self.coming.clone()
            self.agent_selection = self.possible_agents[self.coming.seat]


def test_what_is_drawn_within_a_step_is_told_before_it() -> None:
    options = {"games": 3, "same_seed": True}
    heard = compared(lambda: Rounds(listens=True), SHORT, **options)
    assert heard.passed, heard.difference
    assert not compared(lambda: Rounds(listens=False), SHORT, **options).passed


def test_a_slow_env_plays_as_long_as_it_may() -> None:
    report = compared(slow.Slow, TIC_TAC_TOE, seconds=0.15)
    assert report.passed
    assert report.decisions < 9


def test_games_that_cannot_be_the_same_are_refused() -> None:
    with pytest.raises(ConfigError, match="has 9 actions, kuhn_poker has 2"):
        port(slow.TicTacToe, KUHN)
    with pytest.raises(ConfigError, match="has 2 possible_agents, skull_king has 4 seats"):
        port(slow.TicTacToe, Rules("skull_king"))
    with pytest.raises(ConfigError, match="makes a VectorEnv"):
        port(own_envs.make_vector, TIC_TAC_TOE)
    with pytest.raises(ConfigError, match="ignore 'masks'"):
        port(slow.TicTacToe, TIC_TAC_TOE, ignore=["masks"])


def test_the_command_shows_both_positions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["port", "proof.slow_games:TicTacToe", "tic_tac_toe", "--games", "5"]) == 0
    assert "agree" in capsys.readouterr().out
    assert main(["port", "proof.slow_games:MissingLine", "tic_tac_toe"]) == 3
    out = capsys.readouterr().out
    for words in ("DIFFER", "step 5: terminated", "native now:", "env now:", "rewards: native"):
        assert words in out
    words = "port proof.slow_games:WrongSign tic_tac_toe --ignore reward --games 20 --json"
    assert main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    assert main(["port", "proof.slow_games:Nothing", "tic_tac_toe"]) == 2
