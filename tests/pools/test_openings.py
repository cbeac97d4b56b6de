"""Openings by lot and fingerprints of games: what matches without chance rely on."""

from __future__ import annotations

import numpy as np
import pytest

from sparring import ConfigError, Lineup, Pool, Rules

GAMES, SEED = 200, 3


def fingerprints(pool: Pool, answer: str = "random") -> np.ndarray:
    """Play the first game of every table; the fingerprint of each."""
    batch = pool.reset()
    found = np.zeros(pool.num_games, np.uint64)
    open_games = np.ones(pool.num_games, bool)
    while open_games.any():
        action = pool.sample_actions()
        if answer == "lowest":
            action = np.where(batch.policy >= 0, batch.mask.argmax(1), 0).astype(np.int32)
        batch = pool.step(action)
        new = batch.final_game[open_games[batch.final_game]]
        found[new] = batch.final_moves[open_games[batch.final_game]]
        open_games[new] = False
    return found


def test_the_same_moves_have_the_same_fingerprint_whoever_made_them() -> None:
    """Bots alone move once per step, beside a policy several times: that must not matter."""
    rules = Rules("tic_tac_toe")
    bots = Pool(rules, GAMES, seed=SEED, lineups=[Lineup(("careful", "careful"), shuffle=False)])
    alone = fingerprints(bots)
    assert len(np.unique(alone)) > GAMES / 2
    again = Pool(rules, GAMES, seed=SEED, lineups=[Lineup(("careful", "careful"), shuffle=False)])
    np.testing.assert_array_equal(fingerprints(again), alone)
    # A policy that always takes the first free square, from both seats and from one.
    both = Pool(rules, 1, seed=SEED)
    both_first = fingerprints(both, "lowest")
    copies = Pool(rules, GAMES, seed=SEED, every_game=True)
    assert set(fingerprints(copies, "lowest").tolist()) == set(both_first.tolist())


def test_forced_decisions_count_as_moves() -> None:
    """The last stone is forced: skipping it must not make another game of it."""
    plain = Pool("tic_tac_toe", 1, seed=SEED)
    skipping = Pool("tic_tac_toe", 1, seed=SEED, config={"skip_forced": 1})
    assert fingerprints(plain, "lowest")[0] == fingerprints(skipping, "lowest")[0]


@pytest.mark.parametrize("game", ["duel", "laser_hockey", "skull_king"])
def test_games_that_differ_have_other_fingerprints(game: str) -> None:
    rules = Rules(game)
    lineups = [Lineup(("random",) * rules.seats)]
    assert len(np.unique(fingerprints(Pool(rules, 50, lineups=lineups)))) == 50


def test_openings_do_not_depend_on_who_sits_where() -> None:
    rules = Rules("tic_tac_toe")
    seats = [(0, "careful"), ("careful", 0), (0, 0), ("random", "careful")]
    boards = []
    for players in seats:
        lineups = [Lineup(players, shuffle=False)]
        pool = Pool(
            rules, GAMES, seed=SEED, lineups=lineups, every_game=True, opening_plies=3, threads=2
        )
        pool.reset()
        boards.append(pool.tables[:, :4].copy())
    for board in boards[1:]:
        np.testing.assert_array_equal(board, boards[0])
    stones = np.unpackbits(boards[0], axis=1).sum(1)
    assert set(stones.tolist()) == {3}
    assert len(np.unique(boards[0], axis=0)) > 50


def test_openings_are_fair_lots() -> None:
    pool = Pool("tic_tac_toe", 9000, every_game=True, opening_plies=1)
    pool.reset()
    first = pool.tables[:, :2].copy().view(np.uint16).ravel()
    counts = np.bincount(np.log2(first).astype(int), minlength=9)
    assert ((counts - 1000) ** 2 / 1000).sum() < 26.1  # p = 0.001


def test_an_opening_that_ends_the_game_is_drawn_anew() -> None:
    pool = Pool("tic_tac_toe", GAMES, every_game=True, opening_plies=7)
    batch = pool.reset()
    assert (batch.seat == 1).all()
    assert set(batch.mask.sum(1).tolist()) == {2}


def test_a_new_game_waits_for_whoever_is_first() -> None:
    lineups = [Lineup(("careful", 0), shuffle=False)]
    waiting = Pool("tic_tac_toe", 4, lineups=lineups, every_game=True).reset()
    assert (waiting.policy == -1).all()
    assert (waiting.seat == 0).all()
    moved = Pool("tic_tac_toe", 4, lineups=lineups).reset()
    assert (moved.policy == 0).all()
    assert (moved.seat == 1).all()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("game", "plies", "told"),
    [
        ("tic_tac_toe", 9, "leaves no decision of tic_tac_toe to the players; give at most 8"),
        ("kuhn_poker", 50, "leaves no decision of kuhn_poker to the players; give at most 2"),
        ("shogi", 10**9, "opening_plies=1000000000 is outside 0..100"),
        ("corridor", 2**32 - 1, "is outside 0..100"),
    ],
)
def test_openings_longer_than_the_game_are_refused_at_once(
    game: str, plies: int, told: str
) -> None:
    """They were drawn anew a million times for every table, and `reset` seemed to hang."""
    with pytest.raises(ConfigError, match=told):
        Pool(game, 4096, opening_plies=plies)


def test_the_longest_opening_that_leaves_a_decision_is_taken() -> None:
    batch = Pool("tic_tac_toe", 64, every_game=True, opening_plies=8, threads=1).reset()
    assert set(batch.mask.sum(1).tolist()) == {1}


def test_a_negative_number_of_plies_is_refused() -> None:
    with pytest.raises(ConfigError, match="opening_plies=-1 must be at least 0"):
        Pool("tic_tac_toe", 1, opening_plies=-1)
