"""Memory on a GPU is index arithmetic: here it is held against loops, without one."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from sparring import Pool
from sparring.config import CollectConfig, NetConfig
from sparring.games.rules import Rules
from sparring.learn.fused.games import GameRecorder
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.fused.sequences import Cut, fresh_in, in_a_row, segments_of, spread
from sparring.learn.memory import minibatch_rows
from sparring.learn.sequences import FRESH, STEP, cut_segments
from sparring.learn.transitions import NOT_A_SAMPLE, TO_NEXT, Transitions
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet, UnrolledPass
from sparring.pools import Lineup
from sparring.pools.cuda.memory import make_memories, put_memory

GAMES, STEPS = 6, 40


def linked(game: str, lineups: list[Lineup], rollouts: int = 2, **flags: object) -> FusedRollout:
    """A rollout with random actions, linked as on a CPU; decisions are carried into it."""
    rules = Rules(game, flags)
    pool = Pool(rules, GAMES, seed=5, threads=1, lineups=lineups)
    transitions = Transitions(rules, GAMES, STEPS)
    rollout = FusedRollout(
        *(rules, GAMES, STEPS),
        members=2,
        row_bytes=rules.obs_bytes,
        squash=False,
        device=torch.device("cpu"),
    )
    batch = pool.reset()
    names = ("seat", "role", "policy", "reward", "terminated", "truncated", "skipped")
    arrays = {name: getattr(rollout, name).numpy() for name in names}
    for _ in range(rollouts):
        for step in range(STEPS):
            for name in ("seat", "role", "policy"):
                arrays[name][step] = getattr(batch, name)
            batch = pool.step(pool.sample_actions())
            for name in ("reward", "terminated", "truncated", "skipped"):
                arrays[name][step] = getattr(batch, name)
        transitions.link(**arrays, gamma=0.9)
    for name in ("end", "next"):
        getattr(rollout, name).copy_(torch.from_numpy(getattr(transitions, name)))
    return rollout


def followed(rollout: FusedRollout, length: int) -> list[list[tuple[list[int], list[bool]]]]:
    """By member, the segments as a loop over rows finds them, and where games begin in them."""
    rules, found = rollout.rules, []
    seat = rollout.seat.numpy()
    for game in range(rollout.games):
        for mine in range(rules.seats):
            places = [game * rules.seats + mine]
            for step in range(rollout.steps):
                for row in range(game * rules.rows, (game + 1) * rules.rows):
                    if seat[step, row] == mine:
                        places.append(rollout.max_pending + step * rollout.rows + row)
            samples = [at for at in places if rollout.end[at] != NOT_A_SAMPLE]
            for first in range(0, len(samples), length):
                part = samples[first : first + length]
                fresh = [True]
                for before, at in pairwise(part):
                    goes_on = rollout.end[before] == TO_NEXT and rollout.next[before] == at
                    fresh.append(not goes_on)
                found.append((game, part, fresh))
    each = rollout.games // rollout.members
    return [
        [(part, fresh) for game, part, fresh in found if game // each == member]
        for member in range(rollout.members)
    ]


SELF = [Lineup((0, 0, 0, 0)), Lineup((0, "captain", 0, "random"))]
PLAYED = {
    "turns": lambda: linked("skull_king", SELF),
    "first": lambda: linked("skull_king", SELF, rollouts=1),
    "cuts": lambda: linked("kuhhandel", [Lineup((0, 0, 0))], max_decisions=12),
    "short games": lambda: linked("kuhn_poker", [Lineup((0, 0))]),
}


@pytest.mark.parametrize("length", [1, 3, 16, 100])
@pytest.mark.parametrize("kind", PLAYED)
def test_segments_are_those_of_a_loop(kind: str, length: int) -> None:
    rollout = PLAYED[kind]()
    cut = Cut.of(rollout, length)
    table, counts = segments_of(in_a_row(rollout), cut)
    fresh = fresh_in(table, rollout.end, rollout.next)
    wanted = followed(rollout, cut.length)
    assert counts.tolist() == [len(mine) for mine in wanted]
    assert sum(map(len, wanted)) > 0
    for member, mine in enumerate(wanted):
        for number, (places, begins) in enumerate(mine):
            row = table[member, number]
            assert row[row >= 0].tolist() == places
            assert fresh[member, number, : len(places)].tolist() == begins
        assert (table[member, len(mine) :] == -1).all()
    samples = int((rollout.end != NOT_A_SAMPLE).sum())
    assert int((table >= 0).sum()) == samples


@pytest.mark.parametrize("kind", PLAYED)
def test_segments_are_those_of_the_learner_on_a_cpu(kind: str) -> None:
    rollout = PLAYED[kind]()
    table, counts = segments_of(in_a_row(rollout), Cut.of(rollout, 5))
    transitions = Transitions(rollout.rules, GAMES, STEPS)
    transitions.end[:], transitions.next[:] = rollout.end, rollout.next
    seat, samples = rollout.seat.numpy(), transitions.samples()
    ordered, columns = cut_segments(transitions, seat, samples, 5)
    there = table >= 0
    assert table[there].tolist() == ordered.tolist()
    step = torch.arange(5).expand(table.shape)[there]
    assert step.tolist() == columns[STEP].tolist()
    fresh = fresh_in(table, rollout.end, rollout.next)
    first = columns[STEP] == 0
    assert np.array_equal(fresh[there].numpy() & ~first, columns[FRESH] & ~first)
    assert int(counts.sum()) == np.count_nonzero(first)


def test_minibatches_hold_whole_segments() -> None:
    rollout = PLAYED["turns"]()
    cut = Cut.of(rollout, 4)
    table, counts = segments_of(in_a_row(rollout), cut)
    minibatches = 3
    room = -(-cut.most // minibatches)
    dealt = torch.full((minibatches, 2, room), -1, dtype=torch.int32)
    for member in range(2):
        order = torch.randperm(int(counts[member]), dtype=torch.int32)
        for number, part in enumerate(order.tensor_split(minibatches)):
            dealt[number, member, : len(part)] = part
    places = spread(dealt, table)
    for member in range(2):
        found = places[:, member].reshape(-1, 4)
        found = found[found[:, 0] >= 0]
        mine = table[member, : counts[member]]
        assert torch.equal(sorted_rows(found), sorted_rows(mine))
    assert (places[dealt < 0] == -1).all()
    flags = fresh_in(table, rollout.end, rollout.next)
    assert torch.equal(
        spread(dealt, flags)[dealt >= 0], fresh_in(places, rollout.end, rollout.next)[dealt >= 0]
    )


@pytest.mark.parametrize("samples", [50, 10_000])
def test_the_room_of_minibatches_is_known_before(samples: int) -> None:
    rollout = FusedRollout(
        *(Rules("skull_king"), GAMES, STEPS),
        members=1,
        row_bytes=1,
        squash=False,
        device=torch.device("meta"),
    )
    cut = Cut.of(rollout, 16)
    wanted = cut.room(max(1, round(STEPS * GAMES / samples))) * 16
    collect = CollectConfig(games=GAMES, steps=STEPS)
    plan = SimpleNamespace(rules=rollout.rules, collect=collect)
    assert minibatch_rows(plan, NetConfig(memory="gru"), samples) == wanted
    assert minibatch_rows(plan, NetConfig(), samples) == samples


def sorted_rows(rows: Tensor) -> Tensor:
    return rows[rows[:, 0].argsort()]


def test_memory_goes_to_game_and_seat() -> None:
    rules = Rules("skull_king")
    pool = Pool(rules, GAMES, seed=1, threads=1, lineups=SELF, memory=32)
    memories = make_memories(GAMES * rules.seats, 32)
    record = GameRecorder.__new__(GameRecorder)
    record.rules, record.seat = rules, np.zeros((1, GAMES * rules.rows), np.int8)
    batch = pool.reset()
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        written = torch.randn(len(batch.seat), 8, generator=generator)
        wanted = memories[:-1].clone().view(torch.float32)
        for row in np.flatnonzero(batch.policy >= 0):
            wanted[row // rules.rows * rules.seats + batch.seat[row]] = written[row]
        put_memory(
            memories,
            written,
            torch.from_numpy(batch.seat.copy()),
            torch.from_numpy(batch.policy.copy()),
            rows=rules.rows,
            seats=rules.seats,
        )
        assert torch.equal(memories[:-1].view(torch.float32), wanted)
        # The same from the host, where the games are on CPU threads.
        record.seat[0], record.remembered = batch.seat, written
        pool.memory[:] = 0
        record.remember(pool, 0, slice(0, len(batch.seat)))
        asked = np.flatnonzero(batch.policy >= 0)
        here = pool.memory.view(np.float32)
        assert np.array_equal(here[asked // rules.rows, batch.seat[asked]], written.numpy()[asked])
        assert np.count_nonzero(here.any(-1)) == len(asked)
        batch = pool.step(pool.sample_actions())


def test_rows_of_nobody_change_no_gradient() -> None:
    rules, config = Rules("kuhn_poker"), NetConfig(hidden=(16,), memory="gru", memory_width=8)
    net = CapturedNet(rules, config, 2, bf16=False, device=torch.device("cpu"), memory=32)
    torch.manual_seed(3)
    for member in range(2):
        torch.nn.init.normal_(net.weight[member], std=0.3)
    rows, memory = torch.randint(0, 2, (30, rules.obs_bytes), dtype=torch.uint8), torch.randn(30, 8)
    obs = torch.cat((rows, memory.view(torch.uint8)), 1)
    # Segments of 4, 2 and no decisions; in the first a game ends behind the second decision.
    places = torch.tensor([[4, 9, 2, 7], [11, 3, -1, -1], [-1, -1, -1, -1]], dtype=torch.int32)
    places = torch.stack((places, torch.where(places >= 0, places + 12, -1)))
    at = UnrolledPass(net, 3, 4)
    at.fresh[:] = torch.tensor([[1, 0, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1]], dtype=torch.bool)
    at.read(obs, places)
    at.forward()
    real = (places >= 0).view(2, 12, 1)
    at.logits_grad.copy_(torch.randn(at.logits_grad.shape) * real)
    at.value_grad.copy_(torch.randn(at.value_grad.shape) * real)
    at.backward()
    for member in range(2):
        module = make_net(rules, config)
        module.load_state_dict(net.state(member))
        for number, count in enumerate((4, 2)):
            mine = slice(4 * number, 4 * number + count)
            given = obs[places[member, number, :count].long()][None]
            heads = module.unroll(given, at.fresh[member, number, None, :count])
            assert torch.allclose(
                heads["policy"], at.logits[member, mine, : rules.actions], atol=1e-5
            )
            assert torch.allclose(heads["value"], at.value[member, mine, 0], atol=1e-5)
            assert torch.allclose(heads["memory"], at.memory[member, mine], atol=1e-5)
            to_policy = at.logits_grad[member, mine, : rules.actions]
            torch.autograd.backward(
                [heads["policy"], heads["value"]], [to_policy, at.value_grad[member, mine, 0]]
            )
        found = net.unpack(net.grad[member])
        for name, parameter in module.named_parameters():
            assert torch.allclose(found[name], parameter.grad, atol=1e-5), name
