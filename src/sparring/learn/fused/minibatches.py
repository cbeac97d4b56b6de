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
from sparring.learn.transforms import BLOCK, KEYS, MIRRORED, ROUNDS, STREAM, TURNS, Mirroring
from sparring.nets.run.flat import round_up

SPARE = 1.01
"""Room in a minibatch per sample that is wanted there, where frozen opponents play."""


@dataclass(frozen=True)
class FusedSamples:
    """The decisions that an update of PPO learns from; the arrays never move."""

    list: Tensor
    """Their places [members, most]."""
    counts: Tensor
    """How many each member has."""
    picked: Tensor
    """Places of minibatches [minibatches, members, stride], -1: nobody's."""
    room: int
    """Samples of a minibatch; behind them come rows of terms."""
    seeds: Tensor
    clock: Tensor
    """The number of the update."""


def check_configs(games: Games, configs: Sequence[PPOConfig]) -> None:
    """Refuse what cannot be trained in one set of arrays."""
    if len(configs) != len(games.seeds):
        raise ConfigError(f"{len(configs)} configurations for {len(games.seeds)} seeds")
    check_shared("ppo", configs)
    roles = games.rules.roles
    if any(len(config.gamma_into) not in (0, len(roles)) for config in configs):
        raise ConfigError(f"gamma_into needs one discount per role: {', '.join(roles)}")


def room_of(samples: int, minibatches: int, config: PPOConfig, opponents: bool) -> int:
    """Rows of a minibatch if all samples are in some; with opponents, how many are samples varies.

    Then a few more than wanted fit in, so that a few more samples do not need one minibatch more.
    """
    room = round_up(-(-samples // minibatches))
    return max(room, round_up(round(SPARE * config.minibatch))) if opponents else room


def put_back(members: Tensor, before: Sequence[Tensor], now: Sequence[Tensor]) -> None:
    """Give the members that are marked what they had before; nothing waits for the device."""
    for old, tensor in zip(before, now, strict=True):
        marked = members.bool().view(-1, *[1] * (tensor.dim() - 1))
        tensor.copy_(torch.where(marked, old, tensor))


@contextmanager
def kept_as_they_are(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Give tensors what they had before, behind work that changes them."""
    before = [tensor.clone() for tensor in tensors]
    yield
    for tensor, old in zip(tensors, before, strict=True):
        tensor.copy_(old)


LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class FusedMinibatch:
    """Rows of all members as they are learned from."""

    places: Tensor
    """[members, stride]: where each of them lies in `rows`, or -1: nobody's."""
    rows: Mapping[str, Tensor]
    """Arrays by place: obs, legal, action, old_log_prob, old_value, advantage."""
    known: Mapping[str, Tensor] = field(default_factory=dict)
    """[members, stride]: what transforms know of every row, by name."""


class Images:
    """Sees the samples of an update plain in one epoch and in the mirror in the next.

    `learn.transforms` says what an image is and who is seen so; its coins are thrown here for all
    members at once. All of it is arithmetic of fixed shapes in torch, so that a graph can hold it.
    """

    def __init__(self, mirroring: Mirroring, rollout: FusedRollout, samples: FusedSamples) -> None:
        self.mirroring, self.rollout, self.samples = mirroring, rollout, samples
        picked, self.room = samples.picked, samples.room
        _, members, stride = picked.shape
        with torch.device(picked.device):
            self.coin = torch.zeros(rollout.places + 1, dtype=torch.bool)
            """By place; the last is nobody's."""
            self.mirrored = torch.zeros(picked.shape, dtype=torch.bool)
            """Which rows of the present epoch are images."""
            self._order = torch.arange(members * stride, dtype=torch.int32).view(members, stride)
            self._ranks = torch.arange(samples.list.shape[1])

    def throw(self) -> None:
        """Throw the coins of an update, once its samples are listed."""
        samples = self.samples
        coin = throw(samples.seeds, samples.clock, len(self._ranks))
        there = self._ranks < samples.counts[:, None]
        place = torch.where(there, samples.list, len(self.coin) - 1).long()
        self.coin.scatter_(0, place.view(-1), coin.view(-1))

    def choose(self, epoch: int) -> None:
        """Say who is seen in the mirror once an epoch is dealt: who was plain the time before."""
        picked = self.samples.picked[..., : self.room]
        coin = self.coin[picked.clamp(min=0).long()]
        self.mirrored[..., : self.room].copy_((coin ^ bool(epoch % 2)) & (picked >= 0))

    def turn(self, number: int, minibatch: FusedMinibatch) -> FusedMinibatch:
        """Copy the rows of a minibatch, some of them mirrored."""
        rows, mirror, mirrored = minibatch.rows, self.mirroring, self.mirrored[number]
        coin, at = mirrored.view(-1), minibatch.places.clamp(min=0).view(-1).long()
        # Rows that terms brought along lie behind all places; of them there are observations alone.
        played = at.clamp(max=self.rollout.places - 1)
        found = {
            name: array.index_select(0, at if name == "obs" else played)
            for name, array in rows.items()
        }
        found["obs"] = mirror.rows(found["obs"], coin)
        found["action"] = mirror.actions(found["action"], coin)
        if self.rollout.rules.actions:
            masks = mirror.masks(mask_of(found["legal"], self.rollout.rules), coin)
            found["legal"] = legal_of(masks, self.rollout.rules.legal_words)
        places = torch.where(minibatch.places >= 0, self._order, -1)
        return FusedMinibatch(places, found, {**minibatch.known, MIRRORED: mirrored})

    def plainly(self, number: int, places: Tensor, means_of: Callable[[Tensor], Tensor]) -> Tensor:
        """The means of a minibatch over rows as they were played.

        means_of: by places, sums over them for every member, divided by the samples of all.
        """
        plain = torch.where(self.mirrored[number], -1, places)
        every, own = ((one[:, : self.room] >= 0).sum(1) for one in (places, plain))
        return means_of(plain) * (every / own.clamp(min=1))[:, None]


def throw(seeds: Tensor, number: Tensor, count: int) -> Tensor:
    """`learn.transforms.coins` of several seeds [seeds, count].

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
