"""Flags that may change in a running pool: no running game notices, each follows at its reset."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sparring.errors import ConfigError
from sparring.games.rules import Field, Rules, game_names
from sparring.pools.native import Pool

GAMES, STEPS = 4, 320

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "skull_king": [{}, {"episode": "ROUND"}, {"episode": "ROUND", "start_round": 2}],
    "laser_hockey": [{"mode": "MIXTURE", "clear_keep_on_reset": 0}],
    "laser_hockey_discrete": [{"mode": "MIXTURE"}],
    "cage2": [{"red": "MIX", "orders": "FIXED", "max_steps": 60}],
}
"""Flags with which the live ones of a game matter; none where a game has no live flag."""


def values_of(field: Field) -> list[Any]:
    """Return some values that are not the present one."""
    if field.count > 1:
        shown = list(field.show())
        return [
            value for value in (shown[::-1], [1.0] + [0.0] * (field.count - 1)) if value != shown
        ]
    words = list(field.words) or [int(field.low), int(field.high)]
    return [word for word in words if word != field.show()]


def changes(rules: Rules) -> list[dict[str, Any]]:
    """Return what may be set in a running pool of these rules: each live flag, and all of them."""
    live = {name: values_of(f) for name, f in rules.fields.items() if f.live}
    found = [{name: value} for name, values in live.items() for value in values[:2]]
    found += [dict(zip(live, together, strict=True)) for together in product(*live.values())][:1]
    return [change for change in found if is_valid(rules, change)]


def is_valid(rules: Rules, change: dict[str, Any]) -> bool:
    """Whether the flags go together."""
    try:
        rules.changed(change)
    except ConfigError:
        return False
    return True


def test_every_game_with_live_flags_is_tried() -> None:
    """The table above names every game that has a live flag, and no other."""
    live = {name for name in game_names() if any(f.live for f in Rules(name).fields.values())}
    assert live == set(VARIANTS)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", VARIANTS)
def test_running_games_do_not_notice_a_live_flag(name: str) -> None:
    """Whatever is set, every running game goes on as in a pool where nothing was changed."""
    followed = 0
    for variant in VARIANTS[name]:
        for change in changes(Rules(name, variant)):
            still, moved = (Pool(name, GAMES, seed=3, threads=1, config=variant) for _ in range(2))
            for pool in (still, moved):
                pool.reset()
                pool.run_random(9)
            moved.set_config(**change)
            followed += differences_begin_at_resets(still, moved)
    assert followed, "no flag of this game ever made a difference"


def differences_begin_at_resets(still: Pool, moved: Pool) -> int:
    """Hold the pools equal until each game's end; return how many new games differ."""
    running, differ = np.ones(GAMES, bool), 0
    rows = still.rules.rows
    for _ in range(STEPS):
        a, b = still.step(still.sample_actions()), moved.step(moved.sample_actions())
        for array in ("reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(a, array)[running], getattr(b, array)[running])
        ended = running & (a.terminated | a.truncated)
        for array in ("final_obs", "final_score"):
            first, second = (
                getattr(batch, array)[np.isin(batch.final_game, np.flatnonzero(ended))]
                for batch in (a, b)
            )
            np.testing.assert_array_equal(first, second)
        running &= ~ended
        of_rows = np.repeat(running, rows)
        for array in ("obs", "mask", "seat", "role", "policy"):
            np.testing.assert_array_equal(getattr(a, array)[of_rows], getattr(b, array)[of_rows])
        for game in np.flatnonzero(ended):
            mine = slice(game * rows, (game + 1) * rows)
            differ += not np.array_equal(a.obs[mine], b.obs[mine])
        if not running.any():
            break
    assert not running.all(), "no game ended; the test looked at nothing"
    return differ


def test_what_an_episode_is_stays_until_its_end() -> None:
    """Skull King: games go on for ten rounds, those that begin later are single rounds."""
    pool = Pool("skull_king", 16, seed=1, threads=1)
    pool.reset()
    pool.run_random(30)
    pool.set_config(episode="ROUND", start_round=10)
    lengths = []
    for _ in range(600):
        batch = pool.step(pool.sample_actions())
        lengths += batch.final_length.tolist()
    assert min(lengths[:16]) > 200
    assert max(lengths[16:]) < 60
