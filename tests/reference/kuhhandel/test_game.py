"""How a game of the slow Kuhhandel begins, goes on and ends, and what it scores."""

from __future__ import annotations

import random

import pytest

from reference.kuhhandel import vectors
from reference.kuhhandel.config import DEFAULTS, PRESETS, checked_config
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.helpers import (
    ACCEPT,
    COUNTER,
    deck_for,
    final_trades,
    lay,
    num,
    owned,
    play,
)
from reference.kuhhandel.observation import blocks
from reference.kuhhandel.rules import KINDS, score
from reference.kuhhandel.vectors import H, pile
from reference.philox import CHANCE, Philox


def test_configuration() -> None:
    assert checked_config(None) == DEFAULTS
    assert DEFAULTS["max_decisions"] == 4000
    assert checked_config(PRESETS["SEED"])["tie_rounds"] == 1
    assert checked_config(PRESETS["FAST"])["pass_mode"] == "HARD"
    assert checked_config(PRESETS["OFFICIAL"]) == DEFAULTS
    for wrong in (
        {"num_players": 2},
        {"num_players": 6},
        {"edition": 1},
        {"bluff": "NO"},
        {"tie_rounds": 3},
        {"max_decisions": 1},
        {"potential_gamma": 1.5},
        {"reward": "SCORE"},
        {"unknown": 1},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            checked_config(wrong)


def test_reset_draws_the_deck_and_then_the_first_player() -> None:
    for seed in range(20):
        chance = Philox(seed, 3, 1, CHANCE)
        game = Kuhhandel({"num_players": 5}, chance)
        game.reset()
        rng = Philox(seed, 3, 1, CHANCE)
        deck = sorted(list(range(KINDS)) * 4)
        for i in range(39):
            j = i + rng.below(40 - i)
            deck[i], deck[j] = deck[j], deck[i]
        assert game.deck == deck
        assert game.turn == game.seat == rng.below(5)
        assert chance.drawn == rng.drawn
    firsts = set()
    for seed in range(40):
        game = Kuhhandel({"num_players": 5}, Philox(seed, 0, 1, CHANCE))
        game.reset()
        firsts.add(game.turn)
    assert firsts == set(range(5))


@pytest.mark.parametrize(("name", "animals", "points"), vectors.SCORES)
def test_scores(name: str, animals: dict[str, int], points: int) -> None:
    assert score(owned(**animals)) == points


def test_f10_completing_a_quartet() -> None:
    before, after = owned(pig=4, rooster=4), owned(pig=4, rooster=4, dog=4)
    assert score(after) - score(before) == 660 + 3 * 160 == 1140
    assert score(after) == 2460


def test_m01_first_turn() -> None:
    game = Kuhhandel()
    game.reset()
    assert game.legal() == [0]


def test_m04_a_player_without_trades_is_skipped() -> None:
    game = final_trades((1, 0, 3))
    assert game.legal() == [20]
    play(game, (0, 20))
    lay(game, pile(10))
    play(game, (2, ACCEPT))
    assert game.seat == 2
    assert game.legal() == [10]


def test_m05_the_end() -> None:
    game = final_trades((1, 0, 3))
    play(game, (0, 20))
    lay(game, pile(0))
    game.step(COUNTER)
    terms = play(game, (2, num(0)), (2, num(1)), (2, num(0)))
    assert (game.phase, game.terminated, game.end, game.seat) == ("DONE", True, "quartets", -1)
    assert game.scores() == [16400, 800, 1000]
    assert terms["rank"] == [1, -1, 0]
    assert terms["win"] == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert terms["score_zs"] == pytest.approx([1.55, -0.79, -0.76])
    assert terms["potential"] == pytest.approx([0, 0, 0.1])
    assert terms["seed_final_win"] == [1, 0, 0]
    assert game.legal() == []


@pytest.mark.parametrize("at_limit", ["CUT", "SCORE"])
def test_the_limit_of_decisions(at_limit: str) -> None:
    config = {"max_decisions": 8, "at_limit": at_limit, "potential_gamma": 0.5}
    game = Kuhhandel(config, Philox(1, 0, 1, CHANCE))
    animals = [owned(pig=4), owned(cow=4), owned()]
    game.load(deck_for(animals), animals, [H, H, [1, 0, 0, 0, 0, 0]], 0)
    for decision in range(8):
        assert not game.over
        terms = game.step(game.legal()[0])
        assert game.decisions == decision + 1
    cut = at_limit == "CUT"
    assert (game.terminated, game.truncated, game.end) == (not cut, cut, "limit")
    assert game.phase == ("BID" if cut else "DONE")
    assert game.legal() == []
    assert terms["rank"] == ([0, 0, 0] if cut else [0, 1, -1])
    # Control returns to everybody, whatever becomes of the game.
    assert terms["seed_broke"] == [0, 0, 1]
    assert terms["potential"] == pytest.approx([-0.0325, -0.04, 0])
    for observer in range(3):
        shown = blocks(game, observer)
        for block in ("PHASE", "AUC", "AUCS"):
            assert any(shown[block]) == cut


def test_skip_forced_adds_the_rewards_up() -> None:
    for seed in range(2):
        slow = Kuhhandel({"pass_mode": "HARD"}, Philox(seed, 0, 0, CHANCE))
        fast = Kuhhandel({"pass_mode": "HARD", "skip_forced": 1}, Philox(seed, 0, 0, CHANCE))
        slow.reset()
        fast.reset()
        slow.step(0)  # the first turn has one action
        rng = random.Random(seed)
        while not fast.over:
            action = rng.choice(fast.legal())
            terms, summed = fast.step(action), slow.step(action)
            while not slow.over and len(slow.legal()) == 1:
                more = slow.step(slow.legal()[0])
                summed = {
                    n: [a + b for a, b in zip(summed[n], more[n], strict=True)] for n in summed
                }
            assert slow.state() == fast.state()
            for name, values in terms.items():
                assert values == pytest.approx(summed[name])


@pytest.mark.slow
def test_default_games_end_by_quartets() -> None:
    for players, typical in ((3, 660), (4, 1145), (5, 1459)):
        decisions = []
        for number in range(4):
            game = Kuhhandel({"num_players": players}, Philox(8, number, 0, CHANCE))
            game.reset()
            rng = random.Random(number)
            while not game.over:
                game.step(rng.choice(game.legal()))
            assert game.end == "quartets"
            decisions.append(game.decisions)
        assert 0.75 * typical < sum(decisions) / 4 < 1.3 * typical
