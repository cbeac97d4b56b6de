"""Data augmentation of rows from a rollout or a replay buffer: mirror images and hindsight.

Mirroring changes rows in place. Hindsight (`learn.hindsight`) adds relabeled rows: a replay buffer
samples them like others, learners from rollouts have a loss term for them.

A game that declares a symmetry can be learned from in mirror images. A random bit per sample
decides whether the sample or its image is used. Games are not played in the mirror, so that
collecting costs no more.

- **Replay.** Every time a transition is sampled, a new bit decides: observations, masks and action
  are mirrored together. Reward and discount stay.
- **PPO.** A row is plain in one epoch and mirrored in the next; a bit decides which comes first.
  Advantage, return and old log-probability stay: the mirrored policy would have made the mirrored
  decision with the same probability. The ratio starts near 1 if the policy is nearly symmetric, and
  the loss pulls the policy towards symmetry. approx_kl and clipfrac are of plain rows only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, HindsightConfig
from sparring.errors import ConfigError
from sparring.games.mirror import Mirror
from sparring.games.rules import Rules
from sparring.learn.demonstrations import TARGET
from sparring.learn.hindsight import Hindsight
from sparring.learn.replay import ReplayBatch
from sparring.pools.protocol import GamePool

MIRRORED = "mirrored"
"""Column that marks mirrored rows."""
IMPROVED = "improved"
"""Column with a probability per action: the improved policy that a search found."""
STREAM = 7
"""`Stream::kMirrors` of csrc/core/rng.hpp."""
BLOCK = 128
"""Bits of one Philox block."""
ROUNDS, TURNS, KEYS = 10, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
"""Constants of Philox4x32, as in csrc/core/rng.hpp."""


class Mirroring:
    """Mirrors rows, masks and actions, without GPU synchronization."""

    def __init__(
        self, rules: Rules, mirror: Mirror, device: torch.device | str = "cpu", *, seed: int = 0
    ) -> None:
        """Copy the tables of the symmetry to a device. seed: of the random bits."""
        self.seed, self.device = seed, torch.device(device)
        source, flipped = mirror.bytes_of(rules.features, rules.obs_bytes)
        self.bytes = BlockPermutation(source, device)
        self.flipped = torch.from_numpy(flipped).to(device)
        """XOR mask of every byte."""
        self.legal = BlockPermutation(np.array(mirror.actions), device)
        self.places = torch.tensor(mirror.actions, device=device)
        self.signs = torch.tensor(mirror.action_signs, dtype=torch.float32, device=device)

    def epoch(self, update: int, number: int, samples: int) -> dict[str, Tensor]:
        """Return which samples an epoch mirrors: all that the previous one left plain."""
        coin = random_bits(self.seed, update, samples).to(self.device)
        return {MIRRORED: coin ^ bool(number % 2)}

    def apply(self, rows: dict[str, Tensor]) -> None:
        """Mirror the marked rows of a minibatch."""
        self.reflect(rows, rows[MIRRORED])

    def apply_to_batch(self, samples: ReplayBatch, step: int) -> ReplayBatch:
        """Mirror samples of a replay buffer by random bits of the optimizer step."""
        return self.mirror_batch(samples, random_bits(self.seed, step, len(samples.reward)))

    def mirror_batch(self, samples: ReplayBatch, coin: Tensor) -> ReplayBatch:
        """Mirror the samples whose bit is 1, next observations included."""
        return replace(
            samples,
            obs=self.rows(samples.obs, coin),
            mask=self.masks(samples.mask, coin),
            action=self.actions(samples.action, coin),
            next_obs=self.rows(samples.next_obs, coin),
            next_mask=self.masks(samples.next_mask, coin),
        )

    def reflect(self, minibatch: dict[str, Tensor], coin: Tensor) -> None:
        """Mirror the rows of a minibatch in place: "obs", "mask", "action", and outputs."""
        for name, image in (("obs", self.rows), ("mask", self.masks), ("action", self.actions)):
            minibatch[name] = image(minibatch[name], coin)
        for name in minibatch.keys() & {IMPROVED, TARGET}:
            minibatch[name] = self.by_head(minibatch[name], coin)

    def rows(self, obs: Tensor, coin: Tensor) -> Tensor:
        """Mirror observation bytes [batch, obs_bytes] where the bit [batch] is 1."""
        if self.bytes.source_blocks is None:
            return obs ^ (self.flipped * coin.to(torch.uint8).unsqueeze(1))
        return chosen(coin, self.bytes(obs) ^ self.flipped, obs)

    def masks(self, mask: Tensor, coin: Tensor) -> Tensor:
        """Mirror masks [batch, actions] of bytes."""
        return chosen(coin, self.legal(mask), mask) if mask.shape[1] else mask

    def by_action(self, numbers: Tensor, coin: Tensor) -> Tensor:
        """Mirror a number per action [batch, actions]."""
        image = numbers.index_select(1, self.places)
        return torch.where(coin.bool().unsqueeze(1), image, numbers)

    def by_head(self, head: Tensor, coin: Tensor) -> Tensor:
        """Mirror numbers per action, or means and log standard deviations of Gaussians."""
        if head.shape[1] == len(self.places):
            return self.by_action(head, coin)
        mean, log_std = head.chunk(2, dim=-1)
        return torch.cat([self.actions(mean, coin), self.by_action(log_std, coin)], -1)

    def actions(self, action: Tensor, coin: Tensor) -> Tensor:
        """Mirror actions [batch], or [batch, box] before or after squashing."""
        if action.is_floating_point():
            image = action.index_select(1, self.places) * self.signs
            return torch.where(coin.bool().unsqueeze(1), image, action)
        image = self.places[action.long()].to(action.dtype)
        return torch.where(coin.bool(), image, action)


class BlockPermutation:
    """A permutation of bytes [batch, bytes], applied to blocks of equal length.

    Files of a board move as blocks: byte by byte would take eight times as long.
    """

    def __init__(self, source: npt.NDArray[np.int64], device: torch.device | str) -> None:
        """Find the largest blocks; bytes after the last block stay."""
        moved = np.flatnonzero(source != np.arange(len(source)))
        self.source_blocks: Tensor | None = None
        """Source block of each block; None: nothing moves."""
        self.block = self.end = 0
        last = int(moved[-1]) + 1 if len(moved) else 0
        for block in range(last, 0, -1):
            end = -(-last // block) * block
            if end > len(source):
                continue
            places = source[:end].reshape(-1, block)
            if not (places[:, 0] % block).any() and (np.diff(places, axis=1) == 1).all():
                self.block, self.end = block, end
                self.source_blocks = torch.from_numpy(places[:, 0] // block).to(device)
                return

    def __call__(self, given: Tensor) -> Tensor:
        if self.source_blocks is None:
            return given
        head = given[:, : self.end].view(len(given), -1, self.block)
        moved = head.index_select(1, self.source_blocks).flatten(1)
        return moved if self.end == given.shape[1] else torch.cat([moved, given[:, self.end :]], 1)


def chosen(coin: Tensor, image: Tensor, plain: Tensor) -> Tensor:
    """`torch.where(coin, image, plain)`, which is slow for bytes on a CPU."""
    select = (coin.to(torch.uint8) * 255).unsqueeze(1)
    return plain ^ ((plain ^ image) & select)


def random_bits(seed: int, number: int, count: int) -> Tensor:
    """Return a random bit per sample of an optimizer step, or per row of an update, [count] bool.

    Bit i is bit i % 32 of random number i / 32 of game 0, episode `number`, of a separate stream: a
    function of (seed, number, i), which a kernel can compute for each sample.
    """
    words = [w for block in range(-(-count // BLOCK)) for w in philox(block, number, seed)]
    bits = np.unpackbits(np.array(words, "<u4").view(np.uint8), bitorder="little")
    return torch.from_numpy(bits[:count].astype(np.bool_))


def philox(block: int, episode: int, seed: int) -> tuple[int, int, int, int]:
    """Return the four random numbers of a block of the stream."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = block, STREAM, episode & low, 0
    k0, k1 = seed & low, seed >> 32 & low
    for _ in range(ROUNDS):
        p0, p1 = c0 * TURNS[0], c2 * TURNS[1]
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & low, p0 >> 32 ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + KEYS[0]) & low, (k1 + KEYS[1]) & low
    return c0, c1, c2, c3


def mirrors_of(
    rules: Rules,
    collect: CollectConfig,
    device: torch.device | str,
    *,
    memory: int = 0,
    seed: int = 0,
) -> list[Mirroring]:
    """Return the mirroring if `collect.mirror` is set, else nothing. memory: bytes per seat."""
    if not collect.mirror:
        return []
    mirror = rules.mirror
    assert mirror is not None, "the plan refuses games without one"
    if memory:
        raise ConfigError(
            "collect.mirror: memory has no mirror image, and the pool has "
            f"{memory} bytes of it per seat; leave one of them out"
        )
    return [Mirroring(rules, mirror, device, seed=seed)]


class RowTransform(Protocol):
    """Changes rows in place."""

    def epoch(self, update: int, number: int, samples: int) -> Mapping[str, Tensor]:
        """Return columns of an epoch that `apply` needs, one entry per sample."""

    def apply(self, rows: dict[str, Tensor]) -> None:
        """Change the rows of a minibatch, which include the columns of `epoch`."""

    def apply_to_batch(self, samples: ReplayBatch, step: int) -> ReplayBatch:
        """Return changed samples of a replay buffer for an optimizer step."""


@dataclass(frozen=True)
class Transforms:
    """The transforms of a run."""

    in_place: Sequence[RowTransform] = ()
    """Change rows in place, in this order."""
    relabeling: Sequence[Hindsight] = ()
    """Add relabeled rows."""


def transforms_of(
    pool: GamePool,
    collect: CollectConfig,
    hindsight: HindsightConfig | None,
    *,
    seed: int,
    device: torch.device,
) -> Transforms:
    """Make the transforms that settings ask for. device: of the rows of minibatches."""
    relabeling = [Hindsight(pool, hindsight, seed)] if hindsight and hindsight.relabels else []
    mirrors = mirrors_of(pool.rules, collect, device, memory=pool.memory_bytes, seed=seed)
    return Transforms(mirrors, relabeling)
