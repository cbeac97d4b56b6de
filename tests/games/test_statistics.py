"""What games count is what a slow look at the same games counts, to the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from games import recounted
from sparring import Pool, Rules
from sparring.games.rules import game_names
from sparring.games.stats import stat_values

SKULL_KINGS: list[dict[str, Any]] = [
    {},
    {"abilities": 1, "num_players": 3, "scoring": "RASCAL", "cannonball": 1},
    {"num_players": 2, "rounds": [5, 9, 2, 1]},
    {"episode": "ROUND", "num_players": 6},
]
KUHHANDELS: list[dict[str, Any]] = [
    {},
    {"num_players": 4, "bluff": "FORBID", "pay_mode": "AUTO", "empty_offer": 1},
    {"num_players": 5, "max_decisions": 150, "tie_rounds": 1},
    {"bluff": "CAP", "at_limit": "SCORE", "max_decisions": 300, "zeros_return": 1},
]
CAGES: list[dict[str, Any]] = [
    {"max_steps": 30},
    {"red": "MEANDER", "max_steps": 50, "mask": 1},
    {"red": "MIX", "actions": "WINNER", "green": 1, "orders": "DRAWN"},
]
HOCKEYS: list[dict[str, Any]] = [{}, {"keep_mode": 0, "mode": "TRAIN_SHOOTING"}]
DISCRETE: list[dict[str, Any]] = [{"mode": "MIXTURE", "fineness": 3}]
SHOGIS: list[dict[str, Any]] = [{"max_plies": 120}, {"max_plies": 60, "at_limit": "DRAW"}]
CASES: dict[str, tuple[list[dict[str, Any]], Callable[..., recounted.Counted], int]] = {
    "skull_king": (SKULL_KINGS, recounted.skull_king, 2),
    "kuhhandel": (KUHHANDELS, recounted.kuhhandel, 1),
    "cage2": (CAGES, recounted.cage2, 3),
    "laser_hockey": (HOCKEYS, recounted.laser_hockey, 3),
    "laser_hockey_discrete": (DISCRETE, recounted.laser_hockey, 3),
    "shogi": (SHOGIS, recounted.shogi_game, 1),
}
"""Flags, the slow look, and how many games of each kind are quick to look at."""
MANY = 300


def compare(game: str, config: dict[str, Any], games: int, seed: int) -> dict[str, int]:
    """Play games and hold the sums against a recount; return them."""
    rules = Rules(game, config)
    lineups = [recounted.mixed_lineup(rules.seats)] if rules.seats > 1 else None
    pool = Pool(rules, games, seed=seed, threads=1, lineups=lineups)
    played = recounted.play(pool)
    found = dict(zip(rules.counters, pool.counts().tolist(), strict=True))
    assert found == recounted.recount(pool, played, CASES[game][1]), f"{game} {config}"
    return found


@pytest.mark.parametrize("game", CASES)
def test_a_slow_look_counts_the_same(game: str) -> None:
    configs, _, games = CASES[game]
    for seed, config in enumerate(configs):
        compare(game, config, games, seed)


@pytest.mark.slow
@pytest.mark.parametrize("game", CASES)
def test_a_slow_look_at_many_games_counts_the_same(game: str) -> None:
    configs = CASES[game][0]
    for seed, config in enumerate(configs, 100):
        found = compare(game, config, -(-MANY // len(configs)), seed)
        assert any(found.values())


def test_every_game_says_what_its_statistics_are() -> None:
    for name in game_names():
        rules = Rules(name, {"orders": "DRAWN"} if name == "cage2" else None)
        names = [stat.name for stat in rules.stats]
        assert len(set(names)) == len(names)
        used = {at for stat in rules.stats for at in (*stat.above, *stat.below)}
        assert used == set(range(len(rules.counters))), f"{name} counts what nobody uses"
        assert all(stat.help and stat.above and stat.below for stat in rules.stats)
        assert stat_values(rules.stats, [0] * len(rules.counters)) == {}


def test_repairs_are_judged_where_there_is_an_order() -> None:
    assert "order_kept" not in {stat.name for stat in Rules("cage2").stats}
    rules = Rules("cage2", {"orders": "DRAWN"})
    pool = Pool(rules, 64, seed=1, threads=1)
    pool.reset()
    pool.run_random(100)
    kept = stat_values(rules.stats, pool.counts().tolist())["order_kept"]
    assert 0.1 < kept < 0.9
    assert rules.stats[0].name == "order_kept", "displays show the first few"


def test_skull_king_tells_stages_and_rounds_apart() -> None:
    rules = Rules("skull_king")
    counts = [0] * len(rules.counters)
    for number, played, kept in ((1, 10, 9), (3, 10, 5), (7, 4, 1)):
        counts[rules.counters.index(f"played {number}")] = played
        counts[rules.counters.index(f"kept {number}")] = kept
    found = stat_values(rules.stats, counts)
    assert found["bid_kept"] == 15 / 24
    assert found["bid_kept_early"] == 14 / 20
    assert found["bid_kept_late"] == 1 / 4
    assert found["bid_kept_round_3"] == 0.5
    assert "bid_kept_mid" not in found and "bid_kept_round_2" not in found


def test_a_short_game_has_no_rounds_that_it_does_not_play() -> None:
    names = [stat.name for stat in Rules("skull_king", {"rounds": [1, 2, 3]}).stats]
    assert "bid_kept_round_3" in names and "bid_kept_early" in names
    assert "bid_kept_round_4" not in names and "bid_kept_mid" not in names
