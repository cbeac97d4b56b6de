"""Networks that remember, inside the learner's graphs: rollouts, segments, checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, PPO_, check_gradients, losses_of, play, turn
from sparring.config import CollectConfig, EvaluationConfig, NetConfig, PPOConfig, TrainConfig
from sparring.games.rules import Rules
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.ppo import PPO
from sparring.learn.role_learners import PPO_METRICS
from sparring.learn.sequences import FRESH, STEP, cut_segments, forward_segments
from sparring.learn.transitions import Transitions
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.pools import LEARNER, Lineup, Mix, Pool
from sparring.pools.cuda import CudaPool
from sparring.pools.lineups import Mixes
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy
from sparring.training.train import resume, train_with

NETS = {
    "gru": NetConfig(hidden=(64, 32), memory="gru", memory_width=32, bptt_steps=4),
    "gru, odd sizes": NetConfig(
        hidden=(60,), activation="silu", memory="gru", memory_width=10, bptt_steps=5
    ),
    "stack": NetConfig(hidden=(64, 32), memory="stack", frames=3),
    "stack, odd widths": NetConfig(hidden=(60,), memory="stack", frames=2),
}
TWO = [Lineup((0, 0)), Lineup((0, "random"))]
GAMES: dict[str, tuple[str, dict[str, Any], list[Lineup]]] = {
    "skull_king": (
        "skull_king",
        {},
        [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))],
    ),
    "signal": ("signal", {"seats": 2}, TWO),
    # Every game is cut before its last decision. One seat is to move then; the decision of the
    # other, which alone is paid, is dropped.
    "cut signal": ("signal", {"seats": 2, "limit": 9}, TWO),
}
UNPAID = replace(PPO_, gamma_into=())


def learner(
    net: str,
    seeds: Sequence[int] = (0,),
    *,
    game: str = "skull_king",
    on_host: bool = False,
    graphs: bool = False,
    collect: CollectConfig = COLLECT,
    config: PPOConfig = UNPAID,
    slots: int = 0,
    lineups: list[Lineup] | None = None,
) -> FusedPPO:
    name, flags, usual = GAMES[game]
    rules, seated = Rules(name, flags), lineups or usual
    memory = memory_bytes_of(rules, NETS[net])
    held: HostGames | DeviceGames
    if on_host:
        pool = Pool(
            *(rules, collect.games),
            seed=seeds[0],
            threads=2,
            lineups=seated,
            slots=2,
            memory=memory,
        )
        held = HostGames(pool, "cuda")
    else:
        games = collect.games * len(seeds)
        made = CudaPool(rules, games, seeds=tuple(seeds), lineups=seated, memory=memory)
        held = DeviceGames(made)
    return FusedPPO(held, collect, config, NETS[net], slots=slots, graphs=graphs)


def shaken(ppo: FusedPPO) -> None:
    """Other weights than the first ones, which say hardly anything."""
    for member in range(ppo.members):
        torch.manual_seed(40 + member)
        state = ppo.net.state(member)
        names = set(ppo.net.parameter_names())
        moved = {n: t + 0.05 * torch.randn_like(t) if n in names else t for n, t in state.items()}
        ppo.net.load(member, moved)


@torch.no_grad()
def check_rollout(
    ppo: FusedPPO, lineups: list[Lineup], frozen: Sequence[Net] = (), mixes: Mixes | None = None
) -> tuple[int, int]:
    """Play a rollout's actions on a CPU, where the networks' twins write the memory.

    Returns how many rows remembered something, and how many cuts were seen.
    """
    rollout, rules, memory = ppo.rollout, ppo.rules, ppo.pool.memory_bytes
    each, first, met, cuts = rollout.games // rollout.members, rules.obs_bytes, 0, 0
    for member, seed in enumerate(ppo.games.seeds):
        pool = Pool(rules, each, seed=seed, threads=1, lineups=lineups, memory=memory)
        net = make_net(rules, ppo.net.config, memory=memory)
        net.load_state_dict(ppo.net.state(member))
        batch = pool.reset()
        if mixes is not None:
            pool.set_mixes(mixes)
            batch = pool.reset()
        mine = slice(member * each * rules.rows, (member + 1) * each * rules.rows)
        for step in range(rollout.steps):
            at = rollout.at(step, mine)
            shown, wanted = rollout.obs[at].cpu(), torch.from_numpy(batch.obs)
            assert torch.equal(shown[:, :first], wanted[:, :first]), step
            here, there = (
                rows[:, first:].contiguous().view(torch.float32) for rows in (shown, wanted)
            )
            assert torch.allclose(here, there, atol=1e-4), (step, (here - there).abs().max())
            met += int((there != 0).any(1).sum())
            for policy, one in enumerate((net, *frozen)):
                made = one.next_memory(wanted, one(wanted))
                assert made is not None
                asked = np.flatnonzero(batch.policy == policy)
                games, seats = asked // rules.rows, batch.seat[asked]
                pool.memory.view(np.float32)[games, seats] = made.numpy()[asked]
            batch = pool.step(rollout.action[at].cpu().numpy())
            cuts += check_cuts(ppo, batch, step, member * each)
    return met, cuts


def check_cuts(ppo: FusedPPO, batch: Any, step: int, first_game: int) -> int:
    """The rows of games that were cut carry the state behind the last decision."""
    rollout, rules, found = ppo.rollout, ppo.rules, 0
    for place, one in enumerate(batch.final_game):
        if not batch.truncated[one]:
            continue
        game = first_game + int(one)
        for seat in range(rules.seats):
            where = (step * rollout.games + game) * rules.seats + seat
            layer, row = (rollout.cut_at.cpu() >> 1 == where).nonzero(as_tuple=True)
            if not len(layer) or int(rollout.cut_at[layer[0], row[0]]) < 0:
                continue
            mine = rollout.cut_obs[layer[0], row[0]].cpu()
            theirs = torch.from_numpy(batch.final_obs[place, seat].copy())
            numbers = [one[rules.obs_bytes :].view(torch.float32) for one in (mine, theirs)]
            assert torch.equal(mine[: rules.obs_bytes], theirs[: rules.obs_bytes])
            assert torch.allclose(*numbers, atol=1e-4)
            found += 1
    return found


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("net", NETS)
def test_what_is_remembered_is_that_of_the_cpu(net: str, game: str, on_host: bool) -> None:
    collect = replace(COLLECT, games=32)
    ppo = learner(net, (3,) if on_host else (3, 4), game=game, on_host=on_host, collect=collect)
    shaken(ppo)
    turn(ppo)
    ppo.playing.play()
    torch.cuda.synchronize()
    met, cuts = check_rollout(ppo, GAMES[game][2])
    assert met > 100
    assert (cuts > 10) == (game == "cut signal")


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize("net", ["gru", "stack"])
def test_what_frozen_opponents_remember_is_that_of_the_cpu(net: str, on_host: bool) -> None:
    lineups = [Lineup((LEARNER, Mix("past"), Mix("past"), "captain")), Lineup((LEARNER,) * 4, 0.3)]
    collect = replace(COLLECT, games=32)
    ppo = learner(net, (3,), on_host=on_host, collect=collect, slots=2, lineups=lineups)
    shaken(ppo)
    frozen = []
    for slot in (1, 2):
        torch.manual_seed(slot)
        frozen.append(make_net(ppo.rules, NETS[net]))
        for parameter in frozen[-1].parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        ppo.put(slot, frozen[-1].state_dict())
    mixes = {"past": {1: 1.0, 2: 1.0}}
    ppo.set_mixes(mixes)
    ppo.games.reset()
    turn(ppo)
    ppo.playing.play()
    torch.cuda.synchronize()
    assert int((ppo.rollout.policy > 0).sum()) > 100
    met, _ = check_rollout(ppo, lineups, frozen, mixes)
    assert met > 100


@pytest.mark.parametrize("net", ["gru", "stack"])
def test_a_learner_with_memory_trains_against_its_past(net: str) -> None:
    lineups = [Lineup((LEARNER, 1, 2, LEARNER)), Lineup((LEARNER,) * 4)]
    ppo = learner(net, (3, 4), graphs=True, slots=2, lineups=lineups)
    for member in range(2):
        for slot in (1, 2):
            ppo.put(slot, ppo.net.state(member), member=member)
    for _ in range(4):
        reports = ppo.iterate(0.0)
    for report in reports:
        assert report.opponent_rows > 100
        assert report.stats["learning/left_out"] == 0
        assert all(np.isfinite(figure) for figure in report.stats.values())


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("net", ["gru", "gru, odd sizes"])
def test_every_epoch_meets_every_segment_once(net: str, game: str) -> None:
    ppo = learner(net, (1, 2), game=game)
    for _ in range(2):
        ppo.iterate(0.0)
    play(ppo)
    update, length = ppo.update, NETS[net].bptt_steps
    orders = []
    for epoch in range(2):
        update.shuffle(epoch)
        picked = update.picked.cpu().view(update.minibatches, 2, -1, length)
        for member in range(2):
            found = picked[:, member].reshape(-1, length)
            found = found[found[:, 0] >= 0]
            wanted = segments_of_cpu(ppo, member)
            assert sorted(row[row >= 0].tolist() for row in found) == sorted(wanted)
        filled = (picked >= 0).sum((2, 3))
        assert torch.equal(update.sequences.filled.cpu(), filled.int())
        orders.append(picked[0, 0])
    assert not torch.equal(*orders)


def columns_of_cpu(ppo: FusedPPO) -> dict[int, tuple[int, bool]]:
    """Where each sample is in its segment, and whether it is fresh, by place and in order."""
    rollout = ppo.rollout
    transitions = Transitions(ppo.rules, rollout.games, rollout.steps)
    transitions.end[:], transitions.next[:] = rollout.end.cpu(), rollout.next.cpu()
    samples, columns = cut_segments(
        transitions, rollout.seat.cpu().numpy(), transitions.samples(), ppo.net.config.bptt_steps
    )
    both = zip(columns[STEP].tolist(), columns[FRESH].tolist(), strict=True)
    return dict(zip(samples.tolist(), both, strict=True))


def segments_of_cpu(ppo: FusedPPO, member: int) -> list[list[int]]:
    """The segments of a member as the learner on a CPU cuts them."""
    rollout, found = ppo.rollout, []
    each, rows = rollout.max_pending // ppo.members, rollout.rows // ppo.members
    for place, (step, _) in columns_of_cpu(ppo).items():
        row = place - rollout.max_pending
        owner = place // each if row < 0 else row % rollout.rows // rows
        if owner != member:
            continue
        if step == 0:
            found.append([])
        found[-1].append(place)
    return found


@pytest.mark.parametrize("game", ["skull_king", "signal"])
@pytest.mark.parametrize("net", ["gru", "gru, odd sizes"])
def test_gradients_of_segments_are_those_of_the_cpu(net: str, game: str) -> None:
    config = replace(UNPAID, clip=0.02, value_clip=0.3)
    ppo = learner(net, (1, 2), game=game, config=config)
    for _ in range(3):  # away from the start, where ratios are 1 and gradients vanish
        ppo.iterate(0.0)
    hparams = turn(ppo)
    play(ppo)
    update, rollout = ppo.update, ppo.rollout
    update.shuffle(0)
    for number in range(update.minibatches - 1):
        update.step(number)
    before = [ppo.net.state(member) for member in range(2)]
    update.step(update.minibatches - 1)
    columns = columns_of_cpu(ppo)
    for member in range(2):
        module = make_net(ppo.rules, NETS[net])
        module.load_state_dict(before[member])
        picked = update.picked[-1, member]
        places = picked[picked >= 0].long()
        where = [columns[place] for place in places.tolist()]
        minibatch = {
            "obs": rollout.obs[places].cpu(),
            STEP: torch.tensor([step for step, _ in where]),
            FRESH: torch.tensor([fresh for _, fresh in where]),
        }
        heads = forward_segments(module, minibatch)
        losses = losses_of(ppo, member, heads, places, hparams[member])
        length = check_gradients(ppo, member, module, losses, within=1e-4)
        assert length > 1e-2  # what cancels out cannot be compared
        found = update.loss.means[update.minibatches - 1, member].tolist()
        for name, figure in zip(PPO_METRICS, found, strict=True):
            wanted = float(getattr(losses, name).detach())
            assert figure == pytest.approx(wanted, rel=1e-3, abs=2e-3), name


@pytest.mark.parametrize("net", ["gru", "stack"])
@pytest.mark.parametrize("bf16", [False, True])
def test_graphs_change_nothing(net: str, bf16: bool) -> None:
    collect = replace(COLLECT, bf16=bf16)
    runs = [learner(net, (1, 2), collect=collect, graphs=graphs) for graphs in (False, True)]
    for _ in range(4):
        reports = [ppo.iterate(0.3) for ppo in runs]
    for first, second in zip(*reports, strict=True):
        for key in ("learning/samples", "losses/policy_loss", "losses/value_loss"):
            assert first.stats[key] == pytest.approx(second.stats[key], rel=1e-6), key
        assert first.stats["learning/left_out"] == 0
    assert runs[0].games.state(0) == runs[1].games.state(0)
    assert torch.equal(runs[0].net.weight, runs[1].net.weight)


@pytest.mark.parametrize("net", ["gru", "stack"])
def test_a_restored_member_goes_on_bit_for_bit(net: str) -> None:
    first = learner(net, (1, 2), graphs=True)
    for _ in range(2):
        first.iterate(0.0)
    second = learner(net, (1, 2), graphs=True)
    for member in range(2):
        second.restore(first.snapshot(member), member)
    for _ in range(2):
        reports = [ppo.iterate(0.0) for ppo in (first, second)]
    for mine, other in zip(*reports, strict=True):
        assert (mine.decisions, mine.samples) == (other.decisions, other.samples)
    assert torch.equal(first.net.weight, second.net.weight)
    assert first.games.state(1) == second.games.state(1)


@pytest.mark.parametrize("net", ["gru", "stack"])
def test_games_on_the_cpu_go_on_bit_for_bit(net: str) -> None:
    first = learner(net, (1,), on_host=True, graphs=True)
    for _ in range(2):
        first.iterate(0.0)
    second = learner(net, (1,), on_host=True, graphs=True)
    second.restore(first.snapshot())
    for _ in range(2):
        reports = [ppo.iterate(0.0)[0] for ppo in (first, second)]
    assert reports[0].samples == reports[1].samples
    assert torch.equal(first.net.weight, second.net.weight)
    assert first.games.state() == second.games.state()


@pytest.mark.parametrize("net", ["gru", "stack"])
def test_members_learn_what_they_would_alone(net: str) -> None:
    both = learner(net, (3, 4))
    alone = [learner(net, (seed,)) for seed in (3, 4)]
    for _ in range(2):
        reports = both.iterate(0.0)
        for member, ppo in enumerate(alone):
            (other,) = ppo.iterate(0.0)
            mine, theirs = reports[member].stats, other.stats
            assert mine["learning/samples"] == theirs["learning/samples"]
            assert mine["losses/entropy"] == pytest.approx(theirs["losses/entropy"], rel=1e-3)


def test_a_member_that_diverges_leaves_the_others_alone() -> None:
    ppo = learner("gru", (3, 4), graphs=True)
    ppo.iterate(0.0)
    ppo.net.weight[0, 3] = ppo.net.compute[0, 3] = torch.inf
    for _ in range(3):
        reports = ppo.iterate(0.0)
        assert [bool(report.diverged) for report in reports] == [True, False]
        assert all(np.isfinite(figure) for figure in reports[1].stats.values())


@pytest.mark.parametrize("net", ["gru", "stack"])
def test_a_rehearsal_leaves_everything_as_it_was(net: str) -> None:
    ppo = learner(net, graphs=True)
    for _ in range(3):
        ppo.iterate(0.0)
    before = ppo.snapshot()
    for _ in range(3):
        ppo.dry_run()
    after = ppo.snapshot()
    assert after.blobs == before.blobs
    for group, tensors in before.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, after.tensors[group][name]), (group, name)


@pytest.mark.parametrize("net", ["gru", "stack"])
def test_a_snapshot_is_that_of_the_readable_learner(net: str) -> None:
    fused = learner(net)
    for _ in range(2):
        fused.iterate(0.0)
    taken, memory = fused.snapshot(), fused.pool.memory_bytes
    pool = Pool(fused.rules, 64, seed=0, threads=2, memory=memory, lineups=GAMES["skull_king"][2])
    readable = PPO(pool, COLLECT, UNPAID, NETS[net], seed=0)
    readable.restore(taken)
    again = readable.snapshot()
    assert again.blobs == taken.blobs
    readable.iterate(0.0)
    other = learner(net)
    other.restore(readable.snapshot())
    other.iterate(0.0)
    for name, tensor in again.tensors["net"].items():
        assert torch.equal(tensor, taken.tensors["net"][name]), name


SIGNAL = PPOConfig(minibatch=1024, epochs=4, lr=3e-3, gamma=0.95, entropy=0.01, target_kl=0.0)


@pytest.mark.parametrize(("memory", "solved"), [("gru", True), ("stack", True), ("", False)])
def test_a_signal_is_remembered(memory: str, solved: bool) -> None:
    rules = Rules("signal")
    net = NetConfig(
        hidden=(64, 64),
        **{
            "gru": {"memory": "gru", "memory_width": 32},
            "stack": {"memory": "stack", "frames": 5},
        }.get(memory, {}),
    )
    pool = CudaPool(rules, 2 * 256, seeds=(1, 2), memory=memory_bytes_of(rules, net))
    collect = CollectConfig(games=256, steps=20)
    ppo = FusedPPO(DeviceGames(pool), collect, SIGNAL, net)
    for _ in range(40):
        reports = ppo.iterate(0.0)
    scores = [report.stats["charts/score"] for report in reports]
    assert (min(scores) > 0.95) if solved else (max(scores) < 0.4), scores


@pytest.mark.parametrize("pool", ["auto", "cpu"])
@pytest.mark.parametrize("memory", ["gru", "stack"])
def test_a_run_with_memory_is_trained_on_the_gpu(tmp_path: Path, memory: str, pool: str) -> None:
    own: dict[str, Any] = {"memory_width": 32} if memory == "gru" else {"frames": 4}
    config = TrainConfig(
        game="signal",
        device="cuda",
        pool=pool,
        runs=str(tmp_path),
        updates=4,
        net=NetConfig(hidden=(64,), memory=memory, **own),
        collect=CollectConfig(games=64, steps=20),
        ppo=PPOConfig(minibatch=256),
        eval=EvaluationConfig(off=True),
        tensorboard=False,
    )
    agent = train_with(config, quiet=True)
    ended = resume(str(agent.run), updates=6, quiet=True)
    folder = checkpoints.newest_valid(ended.run / "checkpoints")
    assert folder is not None
    assert checkpoints.load(folder).meta["update"] == 6
    assert load_policy(ended.run).net.config.memory == memory
