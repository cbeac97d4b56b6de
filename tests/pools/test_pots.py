"""Seats that are drawn from mixes: the mixture is what was asked for, and nobody is exchanged."""

from __future__ import annotations

import numpy as np
import pytest

import sparring
from sparring.errors import ConfigError
from sparring.pools import LEARNER, Lineup, Mix, Pool
from sparring.pools.lineups import LineupDraw

PAST = Mix("past")


def drawn_seats(pool: Pool, games: int) -> np.ndarray:
    """Who sat where in so many finished games [games, seats]."""
    pool.reset()
    found: list[np.ndarray] = []
    while sum(map(len, found)) < games:
        batch = pool.step(pool.sample_actions())
        if len(batch.final_game):
            found.append(batch.final_policy.copy())
    return np.concatenate(found)[:games]


def chi_square(counts: np.ndarray, shares: np.ndarray) -> float:
    expected = shares / shares.sum() * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def test_every_seat_has_the_mixture_that_was_asked_for() -> None:
    mixes = {"past": {1: 3.0, 2: 1.0, 3: 2.0}}
    lineups = [Lineup((LEARNER, PAST), weight=3.0), Lineup((LEARNER, LEARNER), weight=1.0)]
    pool = Pool("tic_tac_toe", 2048, threads=1, lineups=lineups, observe=False)
    pool.set_mixes(mixes)
    seats = drawn_seats(pool, 100_000)
    # One seat of three games in four is drawn, and as often the first as the second.
    shares = np.array([1 - 0.375, 0.375 * 3 / 6, 0.375 * 1 / 6, 0.375 * 2 / 6])
    for seat in range(2):
        counts = np.bincount(seats[:, seat], minlength=4)
        assert chi_square(counts, shares) < 21.1  # 1 in 10,000 with 3 degrees of freedom
    assert not ((seats > 0).all(axis=1)).any(), "the learner sits at every table"


def test_an_empty_pot_is_the_learner() -> None:
    pool = Pool("tic_tac_toe", 64, threads=1, lineups=[Lineup((LEARNER, PAST))])
    pool.reset()
    assert pool.policies == {LEARNER}
    assert pool.seated(4).tolist() == [128, 0, 0, 0]


def test_nobody_is_exchanged_in_the_middle_of_a_game() -> None:
    pool = Pool("tic_tac_toe", 256, threads=2, lineups=[Lineup((LEARNER, PAST))])
    pool.set_mixes({"past": {1: 1.0}})
    pool.reset()
    for step in range(60):
        new = 1 + step % 5
        pool.set_mixes({"past": {new: 1.0}})
        before = pool.seated(8)
        batch = pool.step(pool.sample_actions())
        begun = len(batch.final_game)
        gone = np.bincount(batch.final_policy[batch.final_policy > 0], minlength=8)
        after = before - gone
        after[new] += begun
        assert pool.seated(8)[1:].tolist() == after[1:].tolist()


def test_pots_do_not_depend_on_threads_or_the_split() -> None:
    def digest(threads: int, first: int, games: int) -> int:
        lineups = [Lineup((LEARNER, PAST, "captain", PAST))]
        pool = Pool("skull_king", games, threads=threads, lineups=lineups, first_game=first)
        pool.set_mixes({"past": {1: 1.0, 2: 1.0}})
        pool.reset()
        for _ in range(40):
            pool.step(pool.sample_actions())
        return pool.digest()

    whole = digest(1, 0, 64)
    assert digest(2, 0, 64) == whole
    assert (digest(1, 0, 32) + digest(1, 32, 32)) % 2**64 == whole


@pytest.mark.parametrize(
    ("mixes", "words"),
    [
        ({"pest": {1: 1.0}}, "no line-up draws from a mix 'pest'.*past"),
        ({"past": {1: 0.0}}, "weight 0.0 of 1 must be above 0"),
        ({"past": {1: float("nan")}}, "must be above 0 and finite"),
        ({"past": {"capitan": 1.0}}, "capitan"),
        ({"past": dict.fromkeys(range(1, 300), 1.0)}, "299 players; it holds 256"),
    ],
)
def test_what_cannot_be_drawn_is_refused(mixes: dict, words: str) -> None:
    pool = Pool("skull_king", 8, threads=1, lineups=[Lineup((LEARNER, PAST, PAST, PAST))])
    pool.set_mixes({"past": {2: 1.0}})
    with pytest.raises(ConfigError, match=words):
        pool.set_mixes(mixes)
    assert pool.policies == {LEARNER, 2}, "nothing was changed"


def test_too_many_pots_are_refused() -> None:
    seats = [Lineup((LEARNER, Mix(f"mix {i}"))) for i in range(9)]
    with pytest.raises(ConfigError, match="9 mixes"):
        Pool("tic_tac_toe", 8, threads=1, lineups=seats)


def test_bots_may_be_in_a_mix() -> None:
    pool = Pool("skull_king", 512, threads=1, lineups=[Lineup((LEARNER, PAST, PAST, PAST))])
    pool.set_mixes({"past": {"captain": 1.0, 1: 1.0}})
    seats = drawn_seats(pool, 512)
    captain = pool.player_id("captain")
    assert set(np.unique(seats)) == {captain, LEARNER, 1}
    assert sparring.Rules("skull_king").bots[-2 - captain] == "captain"


def test_games_without_a_native_core_draw_from_pots_too() -> None:
    rules = sparring.Rules("tic_tac_toe")
    draw = LineupDraw(
        rules, [Lineup((LEARNER, PAST), shuffle=False), Lineup((3, Mix("best")))], seed=1
    )
    assert draw.policies == {LEARNER, 3}
    assert {int(p) for game in range(40) for p in draw.seats(game, 0)} == {LEARNER, 3}
    draw.mixes.fill(rules, {"past": {1: 3.0, 2: 1.0}})
    draw.mixes.fill(rules, {"best": {5: 1.0}})  # the other one stays as it is
    assert draw.policies == {LEARNER, 1, 2, 3, 5}
    seats = np.array([draw.seats(game, 7) for game in range(8000)])
    past = seats[seats[:, 0] == LEARNER, 1]
    assert len(past) == pytest.approx(4000, abs=200)
    assert (past == 1).mean() == pytest.approx(0.75, abs=0.03) and set(past.tolist()) == {1, 2}
    others = seats[seats[:, 0] != LEARNER]
    assert (np.sort(others, axis=1) == [3, 5]).all() and 0.45 < (others[:, 0] == 3).mean() < 0.55


def test_a_pot_names_the_learner_only_while_it_is_empty() -> None:
    pool = Pool("tic_tac_toe", 4, lineups=[Lineup((1, PAST))])
    assert pool.policies == {LEARNER, 1}
    pool.set_mixes({"past": {2: 1.0}})
    assert pool.policies == {1, 2}
