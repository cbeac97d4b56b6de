"""Frozen opponents inside the rollout on a GPU: they answer as on a CPU, results are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, PPO_
from sparring.config import NetConfig
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.fused.rollout import mask_of
from sparring.nets.make import make_net
from sparring.nets.sampling import ActionSampler
from sparring.pools import LEARNER, Lineup, Mix, Pool
from sparring.pools.cuda import CudaPool

SLOTS = 5
GAMES = {
    "kuhn_poker": ((LEARNER, Mix("past")), NetConfig(hidden=(64, 32))),
    "skull_king": ((LEARNER, Mix("past"), Mix("past"), "captain"), NetConfig(hidden=(64, 32))),
    "duel": ((LEARNER, Mix("past")), NetConfig(hidden=(64, 32))),
    "shogi": ((LEARNER, Mix("past")), NetConfig(kind="residual", channels=16, blocks=1)),
    "connect_four": ((LEARNER, Mix("past")), NetConfig(kind="residual", channels=16, blocks=1)),
    "tic_tac_toe": ((LEARNER, Mix("past")), NetConfig(kind="own_nets:Bytes")),
    "kuhhandel": ((LEARNER, Mix("past"), Mix("past")), NetConfig(kind="own_nets:Clamped")),
}


def frozen_nets(rules, config: NetConfig, count: int) -> list:
    nets = []
    for slot in range(count):
        torch.manual_seed(100 + slot)
        net = make_net(rules, config)
        for parameter in net.parameters():
            parameter.data += 0.05 * torch.randn_like(parameter)
        nets.append(net)
    return nets


def learner(
    game: str, *, bf16: bool, graphs: bool = False, on_host: bool = False, seeds=(3,), games=256
) -> tuple[FusedPPO, list]:
    seats, net = GAMES[game]
    lineups = [Lineup(seats), Lineup((LEARNER,) * len(seats), 0.3)]
    collect = replace(COLLECT, games=games, steps=12, bf16=bf16)
    if on_host:
        pool = Pool(game, games, seed=seeds[0], threads=2, lineups=lineups, slots=2)
        held = HostGames(pool, "cuda")
    else:
        pool = CudaPool(game, games * len(seeds), seeds=seeds, lineups=lineups)
        held = DeviceGames(pool)
    config = replace(PPO_, gamma_into=())
    ppo = FusedPPO(held, collect, config, net, slots=SLOTS, graphs=graphs)
    nets = frozen_nets(ppo.rules, net, SLOTS)
    for member in range(len(seeds)):
        for slot, one in enumerate(nets, start=1):
            ppo.put(slot, one.state_dict(), greedy=slot == 2, member=member)
        ppo.set_mixes({"past": {1: 5.0, 2: 1.0, 3: 0.2, 5: 1.0}}, member)
    ppo.games.reset()
    return ppo, nets


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("bf16", [False, True])
@torch.no_grad()
def test_frozen_opponents_answer_as_on_a_cpu(game: str, bf16: bool) -> None:
    ppo, nets = learner(game, bf16=bf16)
    ppo.update.clock.fill_(7)
    ppo.playing.play()
    rollout, met = ppo.rollout, 0
    same: list[np.ndarray] = []
    for step in (0, 5, 11):
        at = rollout.at(step)
        policy = rollout.policy[step].cpu().numpy()
        mask = mask_of(rollout.legal[at].cpu(), ppo.rules).numpy()
        drawn = rollout.action[at].cpu().numpy()
        for slot, net in enumerate(nets, start=1):
            rows = np.flatnonzero(policy == slot)
            assert slot != 4 or not len(rows)
            if not len(rows):
                continue
            met += len(rows)
            head = net(rollout.obs[at].cpu()[rows])["policy"]
            expected, _ = ActionSampler(3).draw(
                head, mask[rows], rollout=7, step=step, rows=rows, greedy=slot == 2
            )
            if ppo.rules.box:
                off = np.abs(expected - drawn[rows]).max(axis=1)
                same.append(off < (0.05 if bf16 else 1e-3))
            else:
                same.append(expected == drawn[rows])
    found = np.concatenate(same)
    assert met > 100 and found.mean() > (0.97 if bf16 else 0.999)


@pytest.mark.parametrize("on_host", [False, True])
def test_results_are_counted_for_those_who_are_met(on_host: bool) -> None:
    ppo, _ = learner("kuhn_poker", bf16=True, on_host=on_host)
    counted = np.zeros((SLOTS + 1 + len(ppo.rules.bots), 3), np.int64)
    slow = ppo.pool if on_host else None
    for _ in range(12):
        (report,) = ppo.iterate(0.0)
        assert report.met is not None
        counted += report.met
        assert report.opponent_rows > 0
    assert counted[[1, 2, 5]].any(axis=1).all() and not counted[4].any()
    assert not counted[LEARNER].any()
    assert slow is None or slow.seated(SLOTS + 1).sum() == ppo.seated().sum()


def test_results_of_games_on_the_gpu_are_those_on_the_cpu() -> None:
    device, _ = learner("kuhn_poker", bf16=False)
    host, _ = learner("kuhn_poker", bf16=False, on_host=True)
    (one,), (two,) = device.iterate(0.0), host.iterate(0.0)
    assert one.met is not None and two.met is not None
    off = np.abs(one.met - two.met).sum()
    # One action in thousands may fall the other way by rounding, and takes its game with it.
    assert off <= 0.01 * two.met.sum() and two.met[:, [0, 2]].any(axis=0).all()


def test_a_gpu_counts_seats_like_a_cpu() -> None:
    seats, _ = GAMES["skull_king"]
    lineups = [Lineup(seats)]
    mixes = {"past": {1: 5.0, 2: 1.0}}
    cpu = Pool("skull_king", 64, seed=5, threads=1, lineups=lineups)
    gpu = CudaPool("skull_king", 64, seed=5, lineups=lineups)
    cpu.set_mixes(mixes)
    gpu.set_mixes(mixes)
    one, two = cpu.reset(), gpu.reset()
    for step in range(300):
        assert np.array_equal(one.policy, two.policy.cpu().numpy())
        if step == 100:
            cpu.set_mixes({"past": {3: 1.0}})
            gpu.set_mixes({"past": {3: 1.0}})
        assert np.array_equal(cpu.seated(4), gpu.seated(4))
        actions = cpu.sample_actions()
        gpu.sample_actions()  # it moves the same streams on
        one, two = cpu.step(actions), gpu.step(torch.from_numpy(actions))
    assert cpu.state() == gpu.state()


def test_graphs_play_what_kernels_play_one_by_one_and_see_new_networks() -> None:
    eager, nets = learner("skull_king", bf16=True)
    graph, _ = learner("skull_king", bf16=True, graphs=True)
    for update in range(5):
        if update == 3:
            for ppo in (eager, graph):
                ppo.put(5, nets[0].state_dict())
                ppo.set_mixes({"past": {5: 1.0}})
        (one,), (two,) = eager.iterate(0.0), graph.iterate(0.0)
        assert np.array_equal(one.met, two.met)
        assert one.stats["losses/policy_loss"] == two.stats["losses/policy_loss"]
    assert torch.equal(eager.net.weight, graph.net.weight)


def test_members_have_opponents_of_their_own() -> None:
    ppo, nets = learner("kuhn_poker", bf16=False, seeds=(3, 4), games=128)
    alone, _ = learner("kuhn_poker", bf16=False, seeds=(4,), games=128)
    ppo.put(1, nets[2].state_dict(), member=0)  # the other member has nothing to do with it
    ppo.set_mixes({"past": {1: 1.0}}, member=0)
    for _ in range(2):
        first, second = ppo.iterate(0.0)
        (single,) = alone.iterate(0.0)
        assert np.array_equal(second.met, single.met)
    assert first.met[1].sum() > 0
    assert second.decisions == single.decisions
