"""Decisions seen in hindsight: whose goal came to what, examples, and samples out of a replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from learn.batches import batch_of
from learn.hindsight_helpers import REWARDS, ByLot, make_collector, right_bids
from sparring import Pool, _native
from sparring.config import (
    CollectConfig,
    DQNConfig,
    HindsightConfig,
    NetConfig,
    PPOConfig,
    ReplayConfig,
)
from sparring.learn.collect import Collector
from sparring.learn.dqn import DQN
from sparring.learn.hindsight import ExamplesTerm, Hindsight
from sparring.learn.minibatches import ExtraRowsSampler, Minibatch, extra_rows_of
from sparring.learn.ppo import PPO
from sparring.learn.replay import ReplayBatch, ReplayBuffer
from sparring.phases import Timing
from sparring.schedule import Moment, Schedule

ON = HindsightConfig(on=True, share=1.0)
NET = NetConfig(hidden=(16,))
TABLE, SEAT = 74 * 5 + 14 * 4, 74 * 5 + 14 * 4 + 32
"""Where rows of the usual table have the round, and the observer's own line."""


def shown_bid(obs: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return obs[..., SEAT + 1]


@pytest.mark.parametrize("by_role", [False, True])
def test_every_decision_gets_the_record_of_its_own_round(by_role: bool) -> None:
    collector = make_collector(8, 13, by_role=by_role)
    goals = _native.Goals(collector.pool.rules.native)
    settled = max_pending = 0
    for number in range(12):
        collector.collect(number)
        samples = collector.link(1.0, required=False)
        rollout = collector.rollout
        assert rollout.of_place is not None
        for place in samples[rollout.of_place[samples] != 0]:
            row, record = rollout.obs[place], int(rollout.of_place[place])
            assert record & 15 == row[TABLE + 18]  # cards of the round
            made = rollout.action[place] if goals.decision(row)[2] else shown_bid(row)
            assert goals.desired_goal(record) == made
            settled += 1
            max_pending += place < collector.transitions.max_pending
        collector.keep_pending()
    assert settled > 60
    assert max_pending > 5


def test_saved_without_records_nothing_is_said_about_open_decisions() -> None:
    collector = make_collector(4, 20)
    collector.collect(0)
    collector.link(1.0)
    collector.keep_pending()
    rows, opened = collector.pending_state()
    del rows["record"]
    other = make_collector(4, 20)
    other.load_pending_rows(rows, opened)
    other.collect(1)
    other.link(1.0)
    assert other.rollout.of_place is not None
    assert (
        other.rollout.of_place[: other.transitions.max_pending] == _native.UNKNOWN_GOAL_RESULT
    ).all()


def filled(collector: Collector, rollouts: int, n_step: int, hindsight: bool) -> ReplayBuffer:
    assert isinstance(collector.pool, Pool)
    seen = [Hindsight(collector.pool, ON, 1)] if hindsight else []
    replay = ReplayBuffer(
        collector.pool.rules,
        ReplayConfig(batch=256, capacity=2048, n_step=n_step),
        row_bytes=collector.pool.row_bytes,
        max_pending=collector.transitions.max_pending,
        seed=1,
        relabeling=seen,
    )
    for number in range(rollouts):
        collector.collect(number)
        collector.link(0.9, required=False)
        replay.push(collector.rollout, collector.transitions)
        collector.keep_pending()
    return replay


def sampled_twice(rollouts: int, n_step: int, **options: Any) -> tuple[ReplayBatch, ReplayBatch]:
    """Samples in hindsight, and those of games in which the bids that came true had been made."""
    bids = right_bids(make_collector(6, 16, **options), rollouts)
    assert len(bids) > 10
    seen = filled(make_collector(6, 16, **options), rollouts, n_step, hindsight=True)
    other = filled(make_collector(6, 16, bids=bids, **options), rollouts, n_step, hindsight=False)
    return seen.sample(0), other.sample(0)


@pytest.mark.few(2)
@pytest.mark.parametrize("skip_forced", [0, 1])
@pytest.mark.parametrize("by_role", [False, True])
def test_samples_are_those_of_the_other_bid(by_role: bool, skip_forced: int) -> None:
    flags = {"episode": "ROUND", "skip_forced": skip_forced}
    seen, other = sampled_twice(10, 3, by_role=by_role, **flags)
    for name in ("obs", "mask", "action", "discount", "next_obs", "next_mask"):
        assert torch.equal(getattr(seen, name), getattr(other, name)), name
    torch.testing.assert_close(seen.reward, other.reward, rtol=0, atol=1e-5)


@pytest.mark.parametrize("by_role", [False, True])
def test_samples_reach_into_the_next_round(by_role: bool) -> None:
    """Later bids and scores are those that were; nothing else differs."""
    seen, other = sampled_twice(12, 1, by_role=by_role)
    assert torch.equal(seen.action, other.action)
    torch.testing.assert_close(seen.reward, other.reward, rtol=0, atol=1e-5)
    assert torch.equal(seen.discount, other.discount)
    rounds = slice(TABLE + 8, TABLE + 18)
    same = (seen.obs[:, rounds] == seen.next_obs[:, rounds]).all(1)
    assert 0 < same.sum() < len(same)
    assert torch.equal(without_past(seen.obs), without_past(other.obs))
    assert torch.equal(without_past(seen.next_obs[same]), without_past(other.next_obs[same]))


def without_past(obs: torch.Tensor) -> torch.Tensor:
    """Rows without what rounds before brought: own bids and errors, and scores."""
    rows = obs.clone()
    rows[:, SEAT + 14 : SEAT + 16] = 0
    rows[:, SEAT + 64 + 5 :] = 0
    return rows


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("by_role", [False, True])
def test_any_game_with_goals_can_be_seen_in_hindsight(by_role: bool, n_step: int) -> None:
    """Stairs: every sample is what it would have been, had the height reached been the goal."""
    paid = {"reached": (1.0, 0.5), "step": (0.0, 0.25)}
    flags = {"flights": 1, "steps": 3}
    pool = Pool("stairs", 8, seed=1, threads=1, config=flags, rewards=paid, records=True)
    collector = Collector(
        pool, CollectConfig(games=8, steps=10), ByLot(), (), Timing(), by_role=by_role
    )
    found = filled(collector, 6, n_step, hindsight=True).sample(0)
    climbing, obs = found.obs[:, 3] == 1, found.obs
    assert climbing.any() and not climbing.all()
    last = climbing & (found.discount == 0) & (obs[:, 1] == 2)
    assert last.any()
    # The last step reaches the goal, and was right: up if there was a way to go, else a rest.
    climbs = obs[:, 4] > obs[:, 2]
    assert torch.equal(found.action[last] == 9, climbs[last])
    assert (found.reward[last] == 0.5 + 0.25).all()
    chosen = ~climbing & (found.discount == 0)
    if by_role:
        assert (found.reward[chosen] == 1.0).all()


def learner(
    algo: str, hindsight: HindsightConfig | None, *, steps: int = 24, **settings: Any
) -> Any:
    sees = hindsight is not None and hindsight.relabels
    pool = Pool("skull_king", 8, seed=2, threads=1, rewards=REWARDS, records=sees)
    collect = CollectConfig(games=8, steps=steps)
    if algo == "ppo":
        config = PPOConfig(epochs=2, minibatch=64, **settings)
        return PPO(pool, collect, config, NET, seed=1, by_role=True, hindsight=hindsight)
    replay = ReplayConfig(batch=32, capacity=4096, warmup=64, ratio=1.0, prioritized=True)
    config = DQNConfig(**settings)
    dqn = DQN(pool, collect, config, replay, NET, seed=1, by_role=True, hindsight=hindsight)
    dqn.experience.rounds = 1
    return dqn


def weights(one: Any) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in one.net.parameters()])


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_share_of_nothing_changes_nothing(algo: str) -> None:
    off = learner(algo, None)
    none = learner(algo, HindsightConfig(on=True, share=0.0))
    half = learner(algo, HindsightConfig(on=True, share=0.5))
    for _ in range(3):
        for one in (off, none, half):
            (report,) = one.iterate(0.0)
    assert torch.equal(weights(off), weights(none))
    assert not torch.equal(weights(off), weights(half))
    if algo == "ppo":
        assert report.stats["learning/examples"] > 20
        assert report.stats["losses/hindsight"] > 0


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_resumed_run_goes_on_to_the_bit(algo: str) -> None:
    one, other = (learner(algo, HindsightConfig(on=True, share=0.5)) for _ in range(2))
    for _ in range(2):
        one.iterate(0.0)
    other.restore(one.snapshot())
    for _ in range(2):
        one.iterate(0.5)
        other.iterate(0.5)
    assert torch.equal(weights(one), weights(other))


def test_examples_show_the_goal_that_came_true() -> None:
    ppo = learner("ppo", ON)
    ppo.collector.collect(0)
    samples = ppo.collector.link(1.0)
    (hindsight,) = ppo.transforms.relabeling
    rollout, goals = ppo.collector.rollout, hindsight.goals
    found = hindsight.examples(rollout, samples, 0)
    settled = samples[rollout.of_place[samples] != 0]
    assert len(found["obs"]) == len(settled) > 50
    for place, obs, action in zip(settled, found["obs"], found["action"], strict=True):
        goal = goals.achieved_goal(int(rollout.of_place[place]))
        if rollout.mask[place, 0]:
            assert action == goal
            assert np.array_equal(obs, rollout.obs[place])
        else:
            assert shown_bid(obs) == goal
            assert action == rollout.action[place]


def test_lots_are_those_of_seed_update_and_place() -> None:
    ppo = learner("ppo", HindsightConfig(on=True, share=0.3))
    ppo.collector.collect(0)
    samples = ppo.collector.link(1.0)
    see = ppo.transforms.relabeling[0].examples
    few = see(ppo.collector.rollout, samples, 0)
    all_of_them = (ppo.collector.rollout.of_place[samples] != 0).sum()
    assert 0.15 * all_of_them < len(few["obs"]) < 0.45 * all_of_them
    halves = [see(ppo.collector.rollout, part, 0)["obs"] for part in np.array_split(samples, 2)]
    assert np.array_equal(np.concatenate(halves), few["obs"])
    assert not np.array_equal(see(ppo.collector.rollout, samples, 1)["obs"], few["obs"])


def test_examples_are_dealt_whole_and_anew_in_every_epoch() -> None:
    rows = {name: torch.arange(11) for name in ("obs", "mask", "action")}
    examples = ExtraRowsSampler("hindsight", rows, np.random.default_rng(0))
    first, second = examples.deal(4), examples.deal(4)
    for dealt in (first, second):
        assert [len(part["hindsight/obs"]) for part in dealt] == [2, 3, 3, 3]
        assert torch.equal(
            torch.cat([p["hindsight/obs"] for p in dealt]).sort().values, rows["obs"]
        )
    assert not torch.equal(first[1]["hindsight/obs"], second[1]["hindsight/obs"])


def test_the_loss_is_ppos_and_the_weighted_cross_entropy_of_examples() -> None:
    ppo = learner("ppo", ON)
    hparams = ppo.hparams_at(Moment(0, 0.0))[""]
    ppo.collector.collect(0)
    samples, arrays = batch_of(ppo, hparams)
    known = {name: torch.from_numpy(array) for name, array in arrays.items()}
    data = Minibatch(known, torch.arange(len(samples)), {}).rows()
    (part,) = extra_rows_of(ppo, ppo.terms, samples)["examples"].deal(1)
    (term,) = ppo.terms
    term.weight = 0.0
    plain, _ = ppo.loss(data, hparams)
    term.weight = 0.25
    both, shown = ppo.loss(data | part, hparams)
    logits = ppo.forward(part["hindsight/obs"])["policy"]
    legal = logits.masked_fill(part["hindsight/mask"] == 0, -torch.inf).log_softmax(-1)
    missed = -legal.gather(1, part["hindsight/action"].long()[:, None]).mean()
    torch.testing.assert_close(shown["hindsight"], missed)
    torch.testing.assert_close(both, plain + 0.25 * missed)


def test_values_learn_nothing_from_examples() -> None:
    ppo = learner("ppo", ON)
    heads = ppo.forward(torch.zeros(4, ppo.pool.row_bytes, dtype=torch.uint8))
    (term,) = ppo.terms
    assert isinstance(term, ExamplesTerm)
    rows = {"mask": torch.ones(4, ppo.rules.actions), "action": torch.zeros(4, dtype=torch.int64)}
    term.each(heads, rows).mean().backward()
    grads = {name: p.grad for name, p in ppo.net.named_parameters() if "value" in name}
    assert grads
    assert all(grad is None or not grad.any() for grad in grads.values())


def test_the_weight_follows_its_schedule() -> None:
    decays = HindsightConfig(on=True, share=1.0, weight=Schedule.line(1.0, 0.0))
    ppo = learner("ppo", decays)
    ppo.iterate(0.25)
    (term,) = ppo.terms
    assert term.weight == 0.75


def test_a_replay_without_records_is_taken_over_as_it_is() -> None:
    old, new = (filled(make_collector(4, 16), 4, 1, hindsight=seen) for seen in (False, True))
    tensors, segments, counts = old.state()
    new.load_state(tensors, {name: read() for name, read in segments.items()}, counts)
    assert not new.ring["record"][np.arange(new.first, new.head)].any()
    assert torch.equal(new.sample(0).obs, old.sample(0).obs)
