"""Decisions seen in hindsight on the GPU, held against the learner step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, NAMES
from learn.hierarchy_helpers import (
    REWARDS,
    TABLES,
    WORKER,
    check_gradients,
    loss_of,
    network,
    ready,
    roles,
)
from sparring import _native
from sparring.config import HindsightConfig
from sparring.learn.fused import DeviceGames
from sparring.learn.fused.examples import Examples
from sparring.learn.fused.ppo import FusedPPO
from sparring.learn.fused.rollout import mask_of
from sparring.learn.fused.update import Update
from sparring.learn.ppo import PPO
from sparring.nets.distribution import evaluate_actions
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool

HALF = HindsightConfig(on=True, share=0.5, weight=0.3)


def learner(
    seeds: tuple[int, ...] = (0,), hindsight: HindsightConfig = HALF, *, graphs: bool = False
) -> FusedPPO:
    games = COLLECT.games * len(seeds)
    pool = CudaPool("skull_king", games, seeds=seeds, lineups=TABLES, rewards=REWARDS)
    plans = roles(len(seeds))
    return FusedPPO(
        DeviceGames(pool),
        COLLECT,
        (),
        plans[-1].net,
        roles=plans,
        hindsight=hindsight,
        graphs=graphs,
    )


def examples_of(part: Update) -> Examples:
    (examples,) = part.terms.extra
    assert isinstance(examples, Examples)
    return examples


def records_of(fused: FusedPPO, before: np.ndarray) -> np.ndarray:
    """What came of every decision's goal, found on the CPU; before: of open decisions."""
    rollout = fused.rollout
    played = {name: getattr(rollout, name).cpu().numpy() for name in NAMES}
    out = np.zeros(rollout.places, np.uint32)
    out[: rollout.max_pending] = before
    assert rollout.record is not None
    _native.find_goal_results(
        seats=fused.rules.seats,
        chains=rollout.chains,
        seat=played["seat"].reshape(rollout.steps, rollout.games, -1),
        terminated=played["terminated"].view(np.uint8),
        truncated=played["truncated"].view(np.uint8),
        goal_result=rollout.record.cpu().numpy().view(np.uint32),
        out=out,
    )
    return out


def test_examples_are_those_of_the_cpu() -> None:
    fused = learner()
    rollout, goals = fused.rollout, _native.Goals(fused.rules.native)
    assert fused.records is not None
    made = 0
    for _ in range(3):
        ready(fused)
        before = fused.records.of_place[: rollout.max_pending].cpu().numpy().view(np.uint32)
        records = records_of(fused, before.copy())
        fused.begin()
        assert np.array_equal(fused.records.of_place.cpu().numpy().view(np.uint32), records)
        for part in fused.learners.values():
            examples = examples_of(part)
            examples.make()
            count = int(part.sample_counts[0])
            places = np.sort(part.list[0, :count].cpu().numpy()).astype(np.int64)
            drawn = np.zeros(count, np.uint8)
            _native.draw_hindsight(
                goal_result=records,
                among=places,
                seed=0,
                number=fused.updates,
                share=0.5,
                drawn=drawn,
            )
            chosen = places[drawn.view(np.bool_)]
            obs = rollout.obs[torch.from_numpy(chosen).to(fused.device)].cpu().numpy()
            mask = mask_of(rollout.legal[torch.from_numpy(chosen).to(fused.device)], fused.rules)
            action = rollout.action[torch.from_numpy(chosen).to(fused.device)].cpu().numpy()
            done = np.zeros(len(chosen), np.uint8)
            goals.relabel(
                goal_result=records[chosen],
                obs=obs,
                mask=mask.cpu().numpy(),
                action=action,
                done=done,
            )
            right = {
                int(place): (row.tobytes(), int(does))
                for place, row, does, seen in zip(chosen, obs, action, done, strict=True)
                if seen
            }
            found = int(examples.counts[0])
            of = examples.found[0, :found].long()
            mine = zip(
                examples.from_place[0, :found].tolist(),
                rollout.obs[of].cpu().numpy(),
                examples.right[0, :found].tolist(),
                strict=True,
            )
            assert {place: (row.tobytes(), does) for place, row, does in mine} == right
            made += found
        fused.end()
        fused.playing.updates += 1
    assert made > 300


def test_gradients_are_those_of_autograd() -> None:
    fused = learner((1, 2))
    for _ in range(3):
        fused.iterate(0.0)
    hparams = ready(fused)
    fused.begin()
    rollout = fused.rollout
    for role, part in fused.learners.items():
        examples = examples_of(part)
        part.fit()
        part.terms.make_rows()
        part.shuffle(0)
        before = [network(fused, member).net_of(role) for member in range(2)]
        part.step(0)
        for member, net in enumerate(before):
            picked = part.picked[0, member]
            places, seen = picked[: part.room], picked[part.room :]
            places, seen = places[places >= 0].long(), seen[seen >= 0].long()
            assert len(seen) > 5
            loss = loss_of(fused, role, member, net, hparams[member][role], places)
            example = seen - rollout.places
            origin = examples.from_place.flatten()[example].long()
            log_prob, _ = evaluate_actions(
                net(rollout.obs[seen].cpu())["policy"],
                mask_of(rollout.legal[origin].cpu(), fused.rules),
                examples.right.flatten()[example].cpu(),
            )
            missed = -log_prob.mean()
            (loss + 0.3 * missed).backward()
            found = float(part.terms.sums["hindsight"][member])
            assert found == pytest.approx(float(missed.detach()), rel=1e-3)
            check_gradients(fused, role, member, net)


def test_a_share_of_nothing_changes_nothing() -> None:
    off = learner(hindsight=HindsightConfig(), graphs=True)
    none = learner(hindsight=HindsightConfig(on=True, share=0.0), graphs=True)
    for _ in range(3):
        (mine,), (theirs,) = off.iterate(0.0), none.iterate(0.0)
        mine.stats.pop("charts/gpu_busy"), theirs.stats.pop("charts/gpu_busy")
        assert mine.stats == theirs.stats
    for name, tensor in off.net.state(0).items():
        assert torch.equal(tensor, none.net.state(0)[name]), name


def test_a_snapshot_goes_on_to_the_bit_and_step_by_step() -> None:
    first, second = learner(graphs=True), learner(graphs=True)
    for _ in range(3):
        first.iterate(0.0)
    second.restore(first.snapshot())
    for _ in range(2):
        (mine,), (theirs,) = first.iterate(0.5), second.iterate(0.5)
        for name, value in mine.stats.items():
            if name != "charts/gpu_busy":
                assert theirs.stats[name] == value, name
    pool = Pool("skull_king", 64, threads=1, lineups=TABLES, rewards=REWARDS, records=True)
    host = PPO(pool, COLLECT, roles(), hindsight=HALF)
    host.restore(first.snapshot())
    (report,), (other,) = host.iterate(0.0), first.iterate(0.0)
    assert report.stats["learning/examples/worker"] == other.stats["learning/examples/worker"]


def test_one_network_learns_from_examples_too() -> None:
    pool = CudaPool("skull_king", 64, lineups=TABLES, rewards={"worker": 1.0, "manager": 1.0})
    ppo = FusedPPO(DeviceGames(pool), COLLECT, WORKER, roles()[1].net, hindsight=HALF)
    for _ in range(4):
        (report,) = ppo.iterate(0.0)
        assert report.stats["learning/examples"] > 100
        assert np.isfinite(report.stats["losses/hindsight"])


def test_rehearsing_keeps_what_came_of_open_decisions() -> None:
    """Bench measures learners that go on afterwards."""
    first, second = learner(), learner()
    for fused in (first, second):
        fused.iterate(0.0)
    first.dry_run()
    for _ in range(2):
        (mine,), (theirs,) = first.iterate(0.0), second.iterate(0.0)
        assert mine.stats["learning/examples/worker"] == theirs.stats["learning/examples/worker"]
        assert mine.stats["learning/examples/manager"] == theirs.stats["learning/examples/manager"]


def test_open_decisions_of_a_run_without_records_are_left_alone() -> None:
    """Nobody knows whether their goals were settled before; the next record may be another's."""
    without, fused = learner(hindsight=HindsightConfig()), learner()
    without.iterate(0.0)
    fused.restore(without.snapshot())
    assert fused.records is not None
    max_pending = fused.records.of_place[: fused.rollout.max_pending].cpu().numpy().view(np.uint32)
    assert (max_pending == _native.UNKNOWN_GOAL_RESULT).all()
