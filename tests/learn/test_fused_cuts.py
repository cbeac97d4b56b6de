"""Every cut of a game in a rollout is kept on a GPU, in an order that no thread decides."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring import Pool
from sparring.games.rules import Rules
from sparring.learn.fused.games import GameRecorder
from sparring.learn.fused.minibatches import restore_members
from sparring.learn.fused.rollout import CUT_EVERY, FusedRollout
from sparring.learn.rollout import Rollout, Truncations
from sparring.learn.transitions import Transitions

GAMES, STEPS = 8, 60


def short_game() -> Rules:
    return Rules("kuhhandel", {"max_decisions": 12})


def on_cpu(rules: Rules, steps: int) -> FusedRollout:
    return FusedRollout(
        *(rules, GAMES, steps),
        members=1,
        row_bytes=rules.obs_bytes,
        squash=False,
        device=torch.device("cpu"),
    )


def played(rules: Rules, rollout: FusedRollout) -> tuple[FusedRollout, Truncations]:
    """A rollout with games on CPU threads, and the cuts of the readable one."""
    pool = Pool(rules, GAMES, seed=3, threads=1, slots=2)
    pool.reset()
    steps = rollout.steps
    readable = Rollout(pool, Transitions(rules, GAMES, steps), steps, ())
    record, truncations = GameRecorder(rollout), Truncations()
    record.clear()
    for step in range(steps):
        for slot in range(2):
            pool.send(pool.sample_actions(slot), slot)
            batch = pool.recv(slot)
            record.keep(step, slot, batch)
            if batch.truncated.any():
                truncations.add(rules, step, slot * GAMES // 2, batch, readable)
    record.upload(rollout)
    return rollout, truncations


def kept(rollout: FusedRollout) -> dict[int, tuple[bool, bytes]]:
    """What is seen at every cut, by its place in `final_value`."""
    found = {}
    for layer in range(rollout.cut_layers()):
        here = (rollout.cut_count > layer).repeat_interleave(rollout.rules.rows)
        for row in torch.nonzero(here & (rollout.cut_at[layer] >= 0)).flatten().tolist():
            at = int(rollout.cut_at[layer, row])
            assert at >> 1 not in found
            found[at >> 1] = (bool(at & 1), rollout.cut_obs[layer, row].numpy().tobytes())
    return found


def test_several_cuts_of_a_game_are_all_kept() -> None:
    rules = short_game()
    rollout, truncations = played(rules, on_cpu(rules, STEPS))
    assert rollout.cut_count.tolist() == [STEPS // 12] * GAMES
    places, mirrored = (
        np.concatenate(x).tolist() for x in (truncations.where, truncations.mirrored)
    )
    seen = [row.tobytes() for row in np.concatenate(truncations.obs)]
    assert kept(rollout) == dict(zip(places, zip(mirrored, seen, strict=True), strict=True))
    assert not rollout.cuts_dropped().any()


def test_a_game_that_is_cut_more_often_than_there_is_room_is_counted() -> None:
    rules = Rules("kuhhandel", {"max_decisions": 12})
    rollout = on_cpu(rules, STEPS)
    rollout.cut_obs, rollout.cut_at = rollout.cut_obs[:2], rollout.cut_at[:2]
    played(rules, rollout)
    assert rollout.cut_layers() == 2
    assert rollout.cuts_dropped().tolist() == [STEPS // 12 - 2] * GAMES
    first = [at // rules.seats // GAMES for at in kept(rollout)]
    assert sorted(set(first)) == [11, 23]


@pytest.mark.parametrize("steps", [1, 4, 5, 64])
def test_there_is_room_for_games_that_are_cut_every_few_steps(steps: int) -> None:
    most = len(range(0, steps, CUT_EVERY))
    assert len(on_cpu(short_game(), steps).cut_at) == most


def test_members_that_diverged_get_back_what_they_had() -> None:
    now = [torch.randn(3, 5), torch.randn(3), torch.tensor([1, 2, 3], dtype=torch.int32)]
    now[0][1, 2] = torch.nan
    before = [torch.zeros_like(tensor) for tensor in now]
    wanted = [tensor.clone() for tensor in now]
    for tensor in wanted:
        tensor[1] = 0
    restore_members(torch.tensor([0, 1, 0], dtype=torch.uint8), before, now)
    for mine, other in zip(now, wanted, strict=True):
        assert torch.equal(mine, other)
