"""States learn from decisions in a row: against a loop over seats, and in a game of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learn.batches import batch_of, data_of
from learn.memory_helpers import COLLECT, CUT, FIRST, GRU, STACK, TWO, make
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.ppo import PPO, ppo_loss
from sparring.learn.sequences import FRESH, STEP, shuffled_segments
from sparring.learn.transitions import TO_NEXT
from sparring.nets.recurrent import RecurrentNet
from sparring.schedule import Schedule


def step_by_step(ppo: PPO, targets: dict[int, dict[str, float]]) -> Tensor:
    """The loss over all samples, from a dictionary of states and torch's own cell.

    Decisions are gone through as they were played, those of the rollout before first. A seat's
    state is what its row shows at every fourth of its decisions and at the first of a game.
    """
    net, rollout, rules = ppo.net, ppo.collector.rollout, ppo.rules
    assert isinstance(net, RecurrentNet)
    max_pending, games, size = ppo.collector.transitions.max_pending, COLLECT.games, rules.obs_bytes
    state: dict[tuple[int, int], Tensor] = {}
    count: dict[tuple[int, int], int] = {}
    began = {(game, seat): True for game in range(games) for seat in range(rules.seats)}
    said: dict[str, list[Any]] = {name: [] for name in ("policy", "value", "place")}
    order = [(place, *divmod(place, rules.seats), -1) for place in range(max_pending)]
    for step in range(COLLECT.steps):
        for game in range(games):
            place = max_pending + step * games + game
            order.append((place, game, int(rollout.seat[step, game]), step))
    for place, game, seat, step in order:
        if place in targets:
            key, row = (game, seat), torch.from_numpy(rollout.obs[place][None])
            if count.get(key, 0) % net.config.bptt_steps == 0 or began[key]:
                held = row[:, size:].contiguous().view(torch.float32)
                state[key] = held[:, : net.config.memory_width]
            state[key] = net.cell(net.trunk(net.first(row)), state[key])
            said["policy"].append(net.get_submodule("policy_head")(state[key]))
            said["value"].append(net.get_submodule("value_head")(state[key]).squeeze(1))
            said["place"].append(place)
            count[key], began[key] = count.get(key, 0) + 1, False
        if step >= 0 and (rollout.terminated[step, game] or rollout.truncated[step, game]):
            began |= {(game, other): True for other in range(rules.seats)}
    places = np.array(said["place"])
    told = {
        name: torch.tensor([targets[place][name] for place in places])
        for name in ("old_value", "advantage", "returns")
    }
    losses = ppo_loss(
        torch.cat(said["policy"]),
        torch.cat(said["value"]),
        mask=torch.from_numpy(rollout.mask[places]),
        action=torch.from_numpy(rollout.action[places]),
        old_log_prob=torch.from_numpy(rollout.columns["log_prob"][places]),
        hparams=FIRST,
        **told,
    )
    return losses.total


@pytest.mark.parametrize("flags", [TWO, CUT, {"kinds": 3, "blanks": 9}], ids=["two", "cut", "one"])
def test_loss_and_gradients_are_those_of_a_loop_over_seats(flags: dict[str, Any]) -> None:
    ppo = make(GRU, flags)
    ppo.iterate(0.0)  # so that decisions are carried over, and weights are not those that played
    ppo.collector.collect(1)
    samples, arrays = batch_of(ppo, FIRST)
    with torch.no_grad():
        for weight in ppo.net.parameters():
            weight.add_(0.05 * torch.randn(weight.shape))
    assert (samples < ppo.collector.transitions.max_pending).any()
    assert arrays[FRESH].sum() > 1 and arrays[STEP].max() == 3
    data = {name: torch.from_numpy(array) for name, array in arrays.items()}
    total, _ = ppo.loss(data, FIRST)
    grad = torch.autograd.grad(total, list(ppo.net.parameters()))
    targets = {
        int(place): {
            "old_value": float(arrays["value"][at]),
            "advantage": float(arrays["advantage"][at]),
            "returns": float(arrays["returns"][at]),
        }
        for at, place in enumerate(samples)
    }
    slow = step_by_step(ppo, targets)
    torch.testing.assert_close(total, slow, atol=1e-5, rtol=1e-5)
    theirs = torch.autograd.grad(slow, list(ppo.net.parameters()))
    for name, mine, other in zip(dict(ppo.net.named_parameters()), grad, theirs, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5, msg=name)


def test_segments_are_whole_and_follow_the_links() -> None:
    ppo = make(GRU, CUT)
    ppo.collector.collect(0)
    samples, columns = batch_of(ppo, FIRST)
    transitions = ppo.collector.transitions
    assert sorted(samples) == sorted(transitions.samples())
    for at in range(1, len(samples)):
        goes_on = transitions.end[samples[at - 1]] == TO_NEXT
        linked = goes_on and transitions.next[samples[at - 1]] == samples[at]
        assert bool(columns[FRESH][at]) is not bool(linked)
        assert columns[STEP][at] in (0, columns[STEP][at - 1] + 1)
    step = columns[STEP]
    dealt = shuffled_segments(torch.from_numpy(step), 3, np.random.default_rng(0))
    assert len(dealt) == 3
    assert sorted(np.concatenate(dealt)) == list(range(len(samples)))
    for rows in dealt:
        assert step[rows[0]] == 0
        jumps = np.flatnonzero(np.diff(rows) != 1) + 1
        assert (step[rows[jumps]] == 0).all()
        ends = rows[np.append(jumps - 1, len(rows) - 1)]
        assert all(end + 1 == len(step) or step[end + 1] == 0 for end in ends)


def test_a_segment_of_one_decision_is_a_plain_sample() -> None:
    """The gradient then stays in each decision, with the state that it was played with."""
    ppo = make(replace(GRU, bptt_steps=1), TWO)
    ppo.collector.collect(0)
    data = data_of(ppo, FIRST)
    plain = {name: tensor for name, tensor in data.items() if name not in (STEP, FRESH)}
    mine, theirs = ppo.loss(data, FIRST)[0], ppo.loss(plain, FIRST)[0]
    torch.testing.assert_close(mine, theirs)
    assert float(data["log_prob"].std()) > 0


def test_what_was_played_is_what_the_network_says_in_a_row() -> None:
    """Before the first step nothing has moved: ratios are 1, however segments are cut."""
    ppo = make(replace(GRU, bptt_steps=6), CUT)
    ppo.collector.collect(0)
    data = data_of(ppo, FIRST)
    _, shown = ppo.loss(data, FIRST)
    assert abs(float(shown["approx_kl"])) < 1e-6 and float(shown["clipfrac"]) == 0


def learn(
    net: NetConfig, flags: dict[str, Any], updates: int, *, games: int = 48, lr: float = 1e-2
) -> float:
    """The share of signals that were right after some updates."""
    collect = CollectConfig(games=games, steps=16)
    settings = PPOConfig(minibatch=games * 4, epochs=4, lr=Schedule.constant(lr))
    ppo = make(net, flags, collect=collect, settings=settings)
    torch.manual_seed(0)
    with torch.no_grad():
        for name in ("policy_head", "value_head"):
            ppo.net.get_submodule(name).weight.mul_(0.01)  # type: ignore[operator]
    scores = [ppo.iterate(0.0)[0].stats.get("charts/score", 0.0) for _ in range(updates)]
    return float(np.mean(scores[-3:]))


def test_a_signal_is_remembered_by_those_with_memory_alone() -> None:
    flags = {"kinds": 3, "blanks": 1}
    assert learn(replace(STACK, memory=""), flags, 8) < 0.45
    assert learn(replace(STACK, frames=3), flags, 10) > 0.9
    assert learn(replace(GRU, memory_width=16), flags, 10) > 0.9


@pytest.mark.slow
def test_two_seats_remember_signals_of_their_own_over_eight_blanks() -> None:
    flags, terms = {"seats": 2, "kinds": 4, "blanks": 8}, {"games": 128, "lr": 2e-3}
    assert learn(NetConfig(hidden=(64,)), flags, 40, **terms) < 0.4
    assert learn(NetConfig(hidden=(64,), memory="stack", frames=10), flags, 80, **terms) > 0.95
    gru = NetConfig(hidden=(64,), memory="gru", memory_width=64, bptt_steps=10)
    assert learn(gru, flags, 80, **terms) > 0.95
