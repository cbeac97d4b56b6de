"""A network for every role on the GPU, held against the learner step by step."""

from __future__ import annotations

from dataclasses import replace

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
from sparring.config import NetConfig
from sparring.learn.advantages import discounts_of
from sparring.learn.fused import DeviceGames
from sparring.learn.fused.ppo import FusedPPO
from sparring.learn.fused.rollout import mask_of
from sparring.learn.plan import RolePlan, Turns
from sparring.learn.ppo import PPO
from sparring.learn.transitions import Transitions
from sparring.nets.distribution import evaluate_actions
from sparring.nets.heads import role_tensors
from sparring.nets.net import Net
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool


def learner(
    seeds: tuple[int, ...] = (0,), *, turns: Turns | None = None, graphs: bool = False
) -> FusedPPO:
    games = COLLECT.games * len(seeds)
    pool = CudaPool("skull_king", games, seeds=seeds, lineups=TABLES, rewards=REWARDS)
    plans = roles(len(seeds))
    return FusedPPO(
        DeviceGames(pool), COLLECT, (), plans[-1].net, roles=plans, turns=turns, graphs=graphs
    )


def test_every_role_is_answered_by_its_own_network() -> None:
    fused = learner()
    for _ in range(2):
        fused.iterate(0.0)
    ready(fused)
    rollout, net = fused.rollout, network(fused)
    for step in (0, 11, 23):
        at = rollout.at(step)
        mine = rollout.policy[step].cpu() == 0
        obs, mask = rollout.obs[at].cpu()[mine], mask_of(rollout.legal[at].cpu()[mine], fused.rules)
        told = fused.rules.role_of(obs.numpy())
        assert np.array_equal(told, rollout.role[step].cpu().numpy()[mine.numpy()])
        with torch.no_grad():
            heads = net(obs)
        action = rollout.action[at].cpu()[mine]
        log_prob, _ = evaluate_actions(heads["policy"], mask, action)
        assert torch.allclose(rollout.log_prob[at].cpu()[mine], log_prob, atol=1e-4)
        assert torch.allclose(rollout.value[at].cpu()[mine], heads["value"], atol=1e-4)


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel"])
def test_links_and_samples_are_those_of_the_cpu(game: str) -> None:
    if game == "skull_king":
        fused = learner()
    else:  # games that are cut: the worth of a seat belongs to the role that was to move
        pool = CudaPool(game, 64, seed=2, config={"max_decisions": 50})
        nets = {role: NetConfig(hidden=(32,)) for role in pool.rules.roles}
        plans = [RolePlan(role, net, (WORKER,)) for role, net in nets.items()]
        collect, net = replace(COLLECT, steps=120), plans[-1].net
        fused = FusedPPO(DeviceGames(pool), collect, (), net, roles=plans, graphs=False)
    rules, rollout = fused.rules, fused.rollout
    transitions = Transitions(rules, 64, rollout.steps, by_role=True)
    cut = 0
    for _ in range(3):
        (hparams,) = ready(fused)
        played = {name: getattr(rollout, name).cpu().numpy() for name in NAMES}
        played["final_value"] = rollout.final_value.cpu().numpy()
        value, role = rollout.value.cpu().numpy(), rollout.role.cpu().numpy()
        transitions.load_pending(rollout.open.cpu().numpy().tobytes())
        fused.begin()
        terms = discounts_of(fused.roles, hparams)
        assert fused.discounts is not None
        transitions.link(
            **played,
            final_role=fused.discounts.final_role.cpu().numpy(),
            gamma=1.0,
            gamma_into=terms.gamma_into,
            gamma_of=terms.gamma_of,
            ended_by=terms.ended_by,
        )
        advantage = transitions.advantages(value, 1.0, lambda_of=terms.lambda_of, role=role)
        assert np.array_equal(transitions.end, rollout.end.cpu().numpy())
        assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-4)
        cut += int((transitions.end == 3).sum())
        samples = transitions.samples()
        max_pending = np.arange(transitions.max_pending) % len(rules.roles)
        of_place = np.concatenate([max_pending, role.reshape(-1)])
        for number, part in enumerate(fused.learners.values()):
            listed = part.list[0, : int(part.sample_counts[0])].cpu().numpy()
            assert np.array_equal(np.sort(listed), samples[of_place[samples] == number])
            assert len(listed) > 50
        fused.end()
        fused.playing.updates += 1
    assert cut > 50 or game == "skull_king"


def test_gradients_of_every_role_are_those_of_autograd() -> None:
    fused = learner((1, 2))
    for _ in range(3):
        fused.iterate(0.0)
    hparams = ready(fused)
    fused.begin()
    for role, part in fused.learners.items():
        part.fit()
        part.shuffle(0)
        before = [network(fused, member) for member in range(2)]
        part.step(0)
        for member in range(2):
            net: Net = before[member].net_of(role)
            places = part.picked[0, member]
            places = places[places >= 0].long()
            loss_of(fused, role, member, net, hparams[member][role], places).backward()
            check_gradients(fused, role, member, net)


def test_members_learn_as_if_they_were_alone_and_graphs_change_nothing() -> None:
    together = learner((5, 6), graphs=True)
    alone = [learner((seed,)) for seed in (5, 6)]
    for _ in range(4):
        reports = together.iterate(0.0)
        for member, one in enumerate(alone):
            (report,) = one.iterate(0.0)
            assert report.decisions == reports[member].decisions
            for name, value in report.stats.items():
                if name.startswith("losses"):
                    assert reports[member].stats[name] == pytest.approx(value, rel=1e-2, abs=1e-3)
    for member, one in enumerate(alone):
        for name, tensor in one.net.state(0).items():
            assert torch.allclose(tensor, together.net.state(member)[name], atol=2e-3), name


def test_a_snapshot_goes_on_to_the_bit() -> None:
    first = learner(graphs=True)
    for _ in range(3):
        first.iterate(0.0)
    saved = first.snapshot()
    second = learner(graphs=True)
    second.restore(saved)
    for _ in range(2):
        (mine,), (theirs,) = first.iterate(0.5), second.iterate(0.5)
        for name, value in mine.stats.items():
            if name != "charts/gpu_busy":
                assert theirs.stats[name] == value, name
    for name, tensor in first.net.state(0).items():
        assert torch.equal(tensor, second.net.state(0)[name]), name


def test_the_learner_step_by_step_goes_on_from_a_snapshot() -> None:
    fused = learner()
    for _ in range(2):
        fused.iterate(0.0)
    pool = Pool("skull_king", 64, threads=1, lineups=TABLES, rewards=REWARDS)
    host = PPO(pool, COLLECT, roles())
    host.restore(fused.snapshot())
    (report,) = host.iterate(0.0)
    (other,) = fused.iterate(0.0)
    assert report.decisions == other.decisions
    again = learner()
    again.restore(host.snapshot())
    again.iterate(0.0)


@pytest.mark.parametrize("learn", ["manager", "worker"])
def test_a_role_that_does_not_learn_stays_as_it_is(learn: str) -> None:
    fused = learner(turns=Turns(learn), graphs=True)
    before = fused.net.state(0)
    for _ in range(3):
        (report,) = fused.iterate(0.0)
        told = [name for name in report.stats if name.startswith("losses/policy_loss")]
        assert told == [f"losses/policy_loss/{learn}"]
    for role in fused.learners:
        now, then = role_tensors(fused.net.state(0), role), role_tensors(before, role)
        same = all(torch.equal(tensor, then[name]) for name, tensor in now.items())
        assert same == (role != learn)


def test_roles_take_turns() -> None:
    fused = learner(turns=Turns("alternately", 2), graphs=True)
    learned = []
    for _ in range(6):
        (report,) = fused.iterate(0.0)
        learned += [role for role in fused.learners if f"losses/policy_loss/{role}" in report.stats]
    assert learned == ["manager", "manager", "worker", "worker", "manager", "manager"]
