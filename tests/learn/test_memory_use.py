"""How many games fit on a GPU; no GPU is needed to count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.learn.memory import MemoryUse, memory_uses
from sparring.learn.plan import Plan
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import merged


def on_a_gpu(members: int = 1, **changes: Any) -> Plan:
    config = {
        "game": "skull_king",
        "device": "cpu",
        "opponents": ("self=1",),
        "collect": {"games": 64, "steps": 16},
        **changes,
    }
    plan = resolve([merged(TrainConfig(), config, "test")])
    return replace(plan, fused=True, games_on="cuda", device="cuda", seeds=tuple(range(members)))


def test_the_most_games_that_fit_do_and_one_more_is_refused() -> None:
    room = MemoryUse(per_game=1000, fixed=500)
    most = room.games_in(10_499)
    assert most == 9
    room.check(most, "games", free=10_499)
    with pytest.raises(ConfigError, match=r"collect\.games=10: .* at most 9 games fit"):
        room.check(most + 1, "games", free=10_499)
    assert room.games_in(499) == 0


def test_what_a_game_takes_grows_with_steps_networks_and_opponents() -> None:
    """Networks keep room for a row of every game, which a rollout's arrays do not show."""

    def each(**changes: Any) -> int:
        return memory_uses(on_a_gpu(**changes))[1].per_game

    usual = each(net={"hidden": (256, 256)})
    assert each(net={"hidden": (256, 256)}, collect={"games": 64, "steps": 32}) > 1.5 * usual
    # A pass over 512 more numbers of two bytes in each of two towers.
    wider = each(net={"hidden": (512, 512), "shared": False})
    assert wider - each(net={"hidden": (256, 256), "shared": False}) == 2 * 2 * 512
    exact = {"games": 64, "steps": 16, "bf16": False}
    assert each(net={"hidden": (256, 256)}, collect=exact) > usual


def test_members_share_the_memory_and_minibatches_lie_besides() -> None:
    one, eight = memory_uses(on_a_gpu())[1], memory_uses(on_a_gpu(8))[1]
    assert eight.per_game == 8 * one.per_game
    assert eight.fixed > one.fixed
    larger = memory_uses(on_a_gpu(ppo={"minibatch": 512}))[1]
    assert larger.per_game == one.per_game
    assert larger.fixed != one.fixed
