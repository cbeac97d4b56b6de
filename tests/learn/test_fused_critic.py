"""Critics on a GPU: values and gradients are those of autograd, on any device that torch has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring import Rules
from sparring.config import NetConfig
from sparring.games.hidden import hidden_of, state_field
from sparring.learn.critic import fresh_critic
from sparring.learn.fused.critic import FusedCritic
from sparring.learn.fused.rollout import FusedRollout
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import VALUE
from sparring.nets.run.captured import CapturedNet

MEMBERS, STEPS, GAMES, ROOM = 2, 12, 8, 24
SEEDS = (5, 11)
CPU = torch.device("cpu")
NET = NetConfig(hidden=(16,), activation="silu", critic="full", critic_hidden=(12, 6))
"""Autograd runs it: there are no kernels for SiLU."""


def rollout_of(rules: Rules) -> FusedRollout:
    """Rows of nothing that was played."""
    hidden = hidden_of(rules)
    assert hidden is not None
    rng = np.random.default_rng(1)
    rollout = FusedRollout(
        rules,
        GAMES,
        STEPS,
        members=MEMBERS,
        row_bytes=rules.obs_bytes,
        squash=False,
        device=CPU,
        truth=state_field(rules, hidden.field),
    )
    assert rollout.hidden is not None
    rollout.obs.copy_(torch.from_numpy(rng.integers(0, 3, rollout.obs.shape).astype(np.uint8)))
    cards = rng.integers(0, 6, rollout.hidden.shape).astype(np.uint8)
    rollout.hidden.copy_(torch.from_numpy(cards))
    seats = rng.integers(0, rules.seats, rollout.seat.shape).astype(np.int8)
    rollout.seat.copy_(torch.from_numpy(seats))
    for name in ("value", "advantage"):
        getattr(rollout, name).copy_(torch.from_numpy(rng.normal(size=rollout.places)))
    return rollout


def critic_of(rollout: FusedRollout) -> FusedCritic:
    policy = CapturedNet(rollout.rules, NET.played, MEMBERS, bf16=False, device=CPU)
    critic = FusedCritic(policy, NET, rollout, SEEDS, room=ROOM)
    critic.net.weight.normal_(std=0.2)
    policy.value_scale.copy_(torch.tensor([2.0, 0.5]))
    assert critic.net.value_scale is policy.value_scale
    return critic


def module_of(critic: FusedCritic, member: int) -> torch.nn.Module:
    module = fresh_critic(critic.rows, NET, 0)
    module.load_state_dict(critic.net.state(member))
    return module


def slow_rows(rollout: FusedRollout, place: torch.Tensor) -> torch.Tensor:
    """Rows of some places; those of pending transitions have the seat of their place."""
    pending, seats = rollout.max_pending, rollout.rules.seats
    played = rollout.seat.view(-1)[(place - pending).clamp(min=0)]
    seat = torch.where(place < pending, place % seats, played)
    assert rollout.hidden is not None
    return CriticRows(rollout.rules).build(rollout.obs[place], rollout.hidden[place], seat)


def member_of(rollout: FusedRollout) -> torch.Tensor:
    """The member of every place."""
    front = torch.arange(rollout.max_pending) * MEMBERS // rollout.max_pending
    step = torch.arange(rollout.rows) * MEMBERS // rollout.rows
    return torch.cat([front, step.repeat(STEPS)])


@pytest.mark.parametrize("game", ["leduc_poker", "kuhn_poker_3"])
def test_values_of_a_rollout_are_those_of_every_members_critic(game: str) -> None:
    rollout = rollout_of(Rules(game))
    critic = critic_of(rollout)
    critic.fill()
    member = member_of(rollout)
    for mine in range(MEMBERS):
        place = torch.nonzero(member == mine)[:, 0]
        rows = slow_rows(rollout, place)
        assert torch.equal(critic.obs[place], rows)
        with torch.no_grad():
            wanted = module_of(critic, mine)(rows)[VALUE] * critic.net.value_scale[mine]
        torch.testing.assert_close(rollout.value[place], wanted)


def test_gradients_are_those_of_autograd() -> None:
    rollout = rollout_of(Rules("leduc_poker"))
    critic = critic_of(rollout)
    critic.fill()
    member, rng = member_of(rollout), np.random.default_rng(3)
    picked = torch.full((MEMBERS, ROOM + 4), -1, dtype=torch.int32)  # terms have further rows
    for mine, count in enumerate((ROOM, ROOM - 7)):
        places = torch.nonzero(member == mine)[:, 0].numpy()
        picked[mine, :count] = torch.from_numpy(rng.permutation(places)[:count])
    picked[:, ROOM:] = 1
    for _ in range(2):
        critic.backward(picked, torch.tensor([0, 1], dtype=torch.uint8))
    for mine in range(MEMBERS):
        place = picked[mine, :ROOM][picked[mine, :ROOM] >= 0].long()
        module = module_of(critic, mine)
        returns = (rollout.advantage + rollout.value)[place] / critic.net.value_scale[mine]
        loss = ((module(slow_rows(rollout, place))[VALUE] - returns) ** 2).mean()
        loss.backward()
        wanted = 2 * loss.item() if mine == 0 else 0.0  # the other member has stopped
        assert float(critic.loss[mine]) == pytest.approx(wanted, rel=1e-4)
        for name, grad in critic.net.unpack(critic.net.grad[mine]).items():
            torch.testing.assert_close(grad, module.get_parameter(name).grad)


def test_a_members_state_is_that_of_a_network() -> None:
    critic = critic_of(rollout_of(Rules("leduc_poker")))
    state = critic.net.state(1)
    assert not any("policy" in name for name in state)
    other = critic_of(rollout_of(Rules("leduc_poker")))
    other.net.load(1, state)
    for name, tensor in other.net.state(1).items():
        assert torch.equal(tensor, state[name])
    assert not torch.equal(other.net.weight[0], critic.net.weight[0])
