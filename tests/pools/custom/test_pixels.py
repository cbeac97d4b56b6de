"""Pixels in rows: bytes as environments give them, in any kind of pool."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from own_envs import Screen, make_screen, make_small_screen
from sparring import SparringError
from sparring.pools.custom import CustomRules, make_pool, pool_of
from sparring.pools.workers import WorkerPool
from sparring.store.policy_schema import check_custom

STEPS = 20


class Given(Screen):
    """Shows what it is told to."""

    shown: Any = None

    def _seen(self) -> Any:
        return super()._seen() if self.shown is None else self.shown


def test_rows_are_the_pixels() -> None:
    """Steps and last observations, as an environment beside the pool gives them."""
    pool, env = make_pool(make_screen, 1), make_screen()
    seen, _ = env.reset(seed=0)
    batch, ends = pool.reset(0), 0
    for _ in range(STEPS):
        assert np.array_equal(batch.obs[0, : seen.size], seen.ravel())
        batch = pool.step([1])
        seen, _, terminated, truncated, _ = env.step(1)
        if terminated or truncated:
            assert np.array_equal(batch.final_obs[0, 0, : seen.size], seen.ravel())
            seen, _ = env.reset()
            ends += 1
    assert ends > 2
    assert np.array_equal(pool.rules.widen(batch.obs)[0], (seen / 255).ravel().astype(np.float32))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_gives_the_same_rows(mode: AutoresetMode) -> None:
    vector = pool_of(SyncVectorEnv([make_small_screen] * 2, autoreset_mode=mode))
    one = make_pool(make_small_screen, 2)
    lasts: list[list[Any]] = [[], []]
    for pool, found in zip((vector, one), lasts, strict=True):
        batch = pool.reset(3)
        found.append(batch.obs.copy())
        for _ in range(STEPS):
            batch = pool.step([1, 1])
            ended = zip(batch.final_game, batch.final_obs[:, 0].copy(), strict=True)
            found += list(ended)
    (first, *mine), (other, *theirs) = lasts
    assert np.array_equal(first, other)
    for game in range(2):
        sides = [[one[1] for one in side if one[0] == game] for side in (mine, theirs)]
        count = min(map(len, sides))
        assert count > 1
        assert all(np.array_equal(sides[0][at], sides[1][at]) for at in range(count))


def test_workers_give_the_same_rows() -> None:
    rows = []
    with_workers = WorkerPool("own_envs:make_small_screen", 4, workers=2)
    for pool in (with_workers, make_pool("own_envs:make_small_screen", 4)):
        batch = pool.reset(5)
        seen = [batch.obs.copy()]
        for _ in range(STEPS):
            batch = pool.step([1] * 4)
            seen += [batch.obs.copy(), batch.final_obs.copy()]
        rows.append(seen)
        pool.close()
    assert all(np.array_equal(*pair) for pair in zip(*rows, strict=True))


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_pixels_of_another_dtype_are_taken_if_they_are_bytes(dtype: Any) -> None:
    env = Given(8, 8)
    env.shown = np.full((8, 8), 200, dtype)
    pool = pool_of([env])
    assert (pool.reset(0).obs[0] == 200).all()
    for wrong in (256, -1, *((0.5, np.nan) if dtype == np.float32 else ())):
        env.shown = np.full((8, 8), wrong, dtype)
        with pytest.raises(SparringError, match=r"obs\[0\] is not an integer within 0\.\.255"):
            pool.reset()


def test_pixels_of_another_shape_are_refused() -> None:
    env = Given(8, 8)
    env.shown = np.zeros((8, 9), np.uint8)
    with pytest.raises(SparringError, match=r"has shape \(8, 9\), its space .* says \(8, 8\)"):
        pool_of([env]).reset()


def test_a_checkpoint_has_the_shape() -> None:
    plain = make_pool(make_small_screen, 1).rules.plain()
    again = CustomRules(**plain)
    assert again.plain() == plain and again.pixels is not None
    assert (again.pixels.size, again.pixels.channels) == ((10, 12), 3)
    check_custom(plain)
    for wrong in ([3, 10, 13], [360], [0, 10], [3, -10, -12], 5, [3, 10, "12"]):
        plain["parts"][0][4] = wrong
        with pytest.raises(ValueError, match=r"foreign\.parts\[0\]"):
            check_custom(plain)


def test_an_id_of_gymnasium_has_no_pixels_by_chance() -> None:
    assert pool_of([gymnasium.make("CartPole-v1")]).rules.pixels is None
