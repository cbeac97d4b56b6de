"""Minibatches of all members of a population on a GPU, and what is seen of them in the mirror."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sparring.config import PPOConfig
from sparring.errors import ConfigError
from sparring.learn.fused.games import Games
from sparring.learn.fused.rollout import FusedRollout, legal_of, mask_of
from sparring.learn.plan import check_shared
from sparring.learn.transforms import (
    BLOCK,
    IMPROVED,
    KEYS,
    MIRRORED,
    ROUNDS,
    STREAM,
    TURNS,
    Mirroring,
)
from sparring.nets.run.flat import round_up

SPARE = 1.01
"""Factor of spare rows in a minibatch if the number of samples varies."""


@dataclass(frozen=True)
class FusedSamples:
    """The samples of an update of PPO, at fixed addresses."""

    list: Tensor
    """Their places [members, most]."""
    counts: Tensor
    """Samples of each member."""
    picked: Tensor
    """Places of minibatches [minibatches, members, stride], -1: padding."""
    room: int
    """Samples of a minibatch; extra rows of terms follow."""
    seeds: Tensor
    clock: Tensor
    """Index of the update."""


def check_configs(games: Games, configs: Sequence[PPOConfig]) -> None:
    """Raise if members cannot share the arrays."""
    if len(configs) != len(games.seeds):
        raise ConfigError(f"{len(configs)} configurations for {len(games.seeds)} seeds")
    check_shared("ppo", configs)
    roles = games.rules.roles
    if any(len(config.gamma_into) not in (0, len(roles)) for config in configs):
        raise ConfigError(f"gamma_into needs one discount per role: {', '.join(roles)}")


def minibatch_rows_of(samples: int, minibatches: int, minibatch: float, opponents: bool) -> int:
    """Return the rows of a minibatch. With opponents the number of samples varies.

    Spare rows then avoid a further minibatch for a few samples.
    """
    room = round_up(-(-samples // minibatches))
    return max(room, round_up(round(SPARE * minibatch))) if opponents else room


def restore_members(members: Tensor, before: Sequence[Tensor], now: Sequence[Tensor]) -> None:
    """Restore the marked members, without synchronization."""
    for old, tensor in zip(before, now, strict=True):
        marked = members.bool().view(-1, *[1] * (tensor.dim() - 1))
        tensor.copy_(torch.where(marked, old, tensor))


@contextmanager
def restored_after(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Restore the values of tensors at the end of the block."""
    before = [tensor.clone() for tensor in tensors]
    yield
    for tensor, old in zip(tensors, before, strict=True):
        tensor.copy_(old)


LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class FusedMinibatch:
    """Rows of a minibatch of all members."""

    places: Tensor
    """[members, stride]: index of each row in `rows`, -1: padding."""
    rows: Mapping[str, Tensor]
    """Arrays by place: obs, legal, action, old_log_prob, old_value, advantage."""
    known: Mapping[str, Tensor] = field(default_factory=dict)
    """[members, stride]: columns of transforms by name."""


class Images:
    """Mirrors each sample of an update in one of two epochs, as `learn.transforms` does.

    Random bits are computed for all members at once. Shapes are fixed, so that a graph can hold it.
    """

    def __init__(self, mirroring: Mirroring, rollout: FusedRollout, samples: FusedSamples) -> None:
        self.mirroring, self.rollout, self.samples = mirroring, rollout, samples
        picked, self.room = samples.picked, samples.room
        _, members, stride = picked.shape
        with torch.device(picked.device):
            self.coin = torch.zeros(rollout.places + 1, dtype=torch.bool)
            """Random bit by place; the last is unused."""
            self.mirrored = torch.zeros(picked.shape, dtype=torch.bool)
            """Mirrored rows of the current epoch."""
            self._order = torch.arange(members * stride, dtype=torch.int32).view(members, stride)
            self._ranks = torch.arange(samples.list.shape[1])

    def throw(self) -> None:
        """Compute the random bits of an update, after its samples are listed."""
        samples = self.samples
        coin = throw(samples.seeds, samples.clock, len(self._ranks))
        there = self._ranks < samples.counts[:, None]
        place = torch.where(there, samples.list, len(self.coin) - 1).long()
        self.coin.scatter_(0, place.view(-1), coin.view(-1))

    def choose(self, epoch: int) -> None:
        """Select the mirrored rows of a shuffled epoch: those that were plain before."""
        picked = self.samples.picked[..., : self.room]
        coin = self.coin[picked.clamp(min=0).long()]
        self.mirrored[..., : self.room].copy_((coin ^ bool(epoch % 2)) & (picked >= 0))

    def turn(self, number: int, minibatch: FusedMinibatch) -> FusedMinibatch:
        """Copy the rows of a minibatch, some of them mirrored."""
        rows, mirror, mirrored = minibatch.rows, self.mirroring, self.mirrored[number]
        coin, at = mirrored.view(-1), minibatch.places.clamp(min=0).view(-1).long()
        # Extra rows of terms follow all places; they have observations only.
        played = at.clamp(max=self.rollout.places - 1)
        found = {
            name: array.index_select(0, at if name == "obs" else played)
            for name, array in rows.items()
        }
        found["obs"] = mirror.rows(found["obs"], coin)
        found["action"] = mirror.actions(found["action"], coin)
        if IMPROVED in found:
            found[IMPROVED] = mirror.by_action(found[IMPROVED], coin)
        if self.rollout.rules.actions:
            masks = mirror.masks(mask_of(found["legal"], self.rollout.rules), coin)
            found["legal"] = legal_of(masks, self.rollout.rules.legal_words)
        places = torch.where(minibatch.places >= 0, self._order, -1)
        return FusedMinibatch(places, found, {**minibatch.known, MIRRORED: mirrored})

    def unmirrored_means(
        self, number: int, places: Tensor, means_of: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the means of a minibatch over unmirrored rows.

        means_of: sums over places of every member, divided by the number of all samples.
        """
        plain = torch.where(self.mirrored[number], -1, places)
        total, unmirrored = ((one[:, : self.room] >= 0).sum(1) for one in (places, plain))
        return means_of(plain) * (total / unmirrored.clamp(min=1))[:, None]


def throw(seeds: Tensor, number: Tensor, count: int) -> Tensor:
    """`learn.transforms.random_bits` of several seeds [seeds, count].

    seeds: the bits of unsigned 64-bit numbers. Products wrap around, so that their bits are right.
    """
    block = torch.arange(-(-count // BLOCK), device=seeds.device).expand(len(seeds), -1)
    c0, c1 = block, torch.full_like(block, STREAM)
    c2, c3 = torch.zeros_like(block) + (number.long() & LOW), torch.zeros_like(block)
    k0, k1 = (seeds & LOW)[:, None], (seeds >> 32 & LOW)[:, None]
    for _ in range(ROUNDS):
        p0, p1 = c0 * TURNS[0], c2 * TURNS[1]
        c0, c1, c2, c3 = p1 >> 32 & LOW ^ c1 ^ k0, p1 & LOW, p0 >> 32 & LOW ^ c3 ^ k1, p0 & LOW
        k0, k1 = k0 + KEYS[0] & LOW, k1 + KEYS[1] & LOW
    words = torch.stack([c0, c1, c2, c3], -1).view(len(seeds), -1, 1)
    bits = words >> torch.arange(32, device=seeds.device) & 1
    return bits.view(len(seeds), -1)[:, :count].bool()
