"""Laser hockey as a user meets it: sizes, many games at once, seeds, bots."""

from __future__ import annotations

import numpy as np
import pytest

import sparring
from sparring import Lineup, Pool, Rules
from sparring.games import laser_hockey

GAMES = ("laser_hockey", "laser_hockey_discrete")


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("profile", ["EXACT", "FAST"])
def test_it_passes_the_check(game: str, profile: str) -> None:
    config = {"mode": "MIXTURE", "profile": profile}
    report = sparring.check(game, config=config, games=4)
    assert report.passed, report


def test_names_and_sizes() -> None:
    rules = Rules("laser_hockey")
    assert tuple(feature.name for feature in rules.features) == laser_hockey.FEATURE_NAMES
    assert (rules.rows, rules.seats, rules.box) == (2, 2, len(laser_hockey.ACTION_NAMES))
    bare = Rules("laser_hockey", {"keep_mode": 0})
    assert len(bare.features) == 16
    assert rules.bots == ("random", "idle", "weak", "strong")


@pytest.mark.parametrize("game", GAMES)
def test_threads_and_splits_play_the_same(game: str) -> None:
    def digest(threads: int, parts: int) -> int:
        total = 0
        for part in range(parts):
            size = 96 // parts
            pool = Pool(
                game,
                size,
                seed=7,
                threads=threads,
                first_game=part * size,
                config={"mode": "MIXTURE", "serve": "ALTERNATING", "clear_keep_on_reset": 0},
                lineups=[Lineup((0, "strong")), Lineup(("weak", "strong"))],
            )
            pool.reset()
            pool.run_random(400)
            total += pool.digest()
        return total % 2**64

    assert digest(1, 1) == digest(2, 1) == digest(1, 3) == digest(2, 2)


def test_a_seed_starts_over() -> None:
    """Although serves and the scripted players' swing go on from match to match."""
    config = {"serve": "ALTERNATING", "clear_keep_on_reset": 0}
    pool = Pool("laser_hockey", 8, config=config, lineups=[Lineup(("strong", "weak"))])
    digests = []
    for _ in range(2):
        pool.reset(seed=3)
        for _ in range(300):
            pool.step(np.zeros((16, 4), np.float32))
        digests.append(pool.digest())
    assert digests[0] == digests[1]


def test_strong_beats_weak_beats_random() -> None:
    for game in GAMES:
        for better, worse in (("strong", "weak"), ("weak", "random")):
            pool = Pool(game, 128, seed=3, lineups=[Lineup((better, worse))])
            pool.reset()
            balance = 0.0
            better_id = pool.player_id(better)
            rows = np.zeros((256, 4), np.float32) if pool.rules.box else np.zeros(256, np.int32)
            for _ in range(1500):
                batch = pool.step(rows)
                balance += float(batch.final_score[batch.final_policy == better_id].sum())
            assert balance > 50, (game, better, worse)
