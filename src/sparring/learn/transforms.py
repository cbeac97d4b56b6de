"""Row transforms: what is done to rows before they are learned from, out of a rollout or a replay.

Some change rows in place, as mirror images do, others make further rows of some
(`learn.hindsight`), which a replay samples like others and learners from rollouts have a term of
the loss for.

A game that declares a symmetry can be learned from in the mirror. A coin decides for every sample
whether it is learned from as it was or as its image. Nothing is played in the mirror, so that
collecting costs no more. (To play half of the games mirrored instead would change nothing at all in
a game whose starts are as likely as their images.)

- **Replay.** Each time that a decision is sampled, its coin is thrown anew: the row, what followed,
  masks and action are mirrored together. What was paid and how it is discounted stay.
- **PPO.** A row is seen plain in one epoch and mirrored in the next; a coin says which comes first.
  Advantage, return and the old log-probability stay: the image of a decision was made with the
  probability of that decision, by the image of the policy that played. So the ratio is that of two
  true probabilities. It begins as near to 1 as the policy is to its own image, and the clip pulls
  both together. How far the policy has moved is measured on plain rows alone.
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
from sparring.learn.hindsight import Hindsight
from sparring.learn.replay import ReplayBatch
from sparring.pools.protocol import GamePool

MIRRORED = "mirrored"
"""The column that says which rows are images of what was played."""
STREAM = 7
"""`Stream::kMirrors` of csrc/core/rng.hpp."""
BLOCK = 128
"""Coins in the four random numbers that are drawn at a time."""
ROUNDS, TURNS, KEYS = 10, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
"""Of Philox4x32, as in csrc/core/rng.hpp."""


class Mirroring:
    """Makes images of rows, masks and actions. Nothing waits for a GPU."""

    def __init__(
        self, rules: Rules, mirror: Mirror, device: torch.device | str = "cpu", *, seed: int = 0
    ) -> None:
        """Put the tables where the samples will be. seed: of the coins."""
        self.seed, self.device = seed, torch.device(device)
        source, flipped = mirror.bytes_of(rules.features, rules.obs_bytes)
        self.bytes = Moves(source, device)
        self.flipped = torch.from_numpy(flipped).to(device)
        """Bits of every byte that change."""
        self.legal = Moves(np.array(mirror.actions), device)
        self.places = torch.tensor(mirror.actions, device=device)
        self.signs = torch.tensor(mirror.action_signs, dtype=torch.float32, device=device)

    # As `learn.transforms.RowTransform`

    def epoch(self, update: int, number: int, samples: int) -> dict[str, Tensor]:
        """Which samples an epoch sees in the mirror: all that the one before saw plain."""
        coin = coins(self.seed, update, samples).to(self.device)
        return {MIRRORED: coin ^ bool(number % 2)}

    def apply(self, rows: dict[str, Tensor]) -> None:
        """See the rows of a minibatch in the mirror whose turn it is."""
        self.reflect(rows, rows[MIRRORED])

    def apply_to_batch(self, samples: ReplayBatch, step: int) -> ReplayBatch:
        """See samples of a replay in the mirror, by coins of the optimizer step."""
        return self.mirror_batch(samples, coins(self.seed, step, len(samples.paid)))

    # Images

    def mirror_batch(self, samples: ReplayBatch, coin: Tensor) -> ReplayBatch:
        """Mirror the samples of a replay whose coin is 1, what followed them included."""
        return replace(
            samples,
            obs=self.rows(samples.obs, coin),
            mask=self.masks(samples.mask, coin),
            action=self.actions(samples.action, coin),
            next_obs=self.rows(samples.next_obs, coin),
            next_mask=self.masks(samples.next_mask, coin),
        )

    def reflect(self, minibatch: dict[str, Tensor], coin: Tensor) -> None:
        """Mirror the rows of a minibatch in place: "obs", "mask" and "action"."""
        for name, image in (("obs", self.rows), ("mask", self.masks), ("action", self.actions)):
            minibatch[name] = image(minibatch[name], coin)

    def rows(self, obs: Tensor, coin: Tensor) -> Tensor:
        """Mirror observation bytes [batch, obs_bytes] where the coin [batch] is 1."""
        if self.bytes.units is None:
            return obs ^ (self.flipped * coin.to(torch.uint8).unsqueeze(1))
        return chosen(coin, self.bytes(obs) ^ self.flipped, obs)

    def masks(self, mask: Tensor, coin: Tensor) -> Tensor:
        """Mirror masks [batch, actions] of bytes."""
        return chosen(coin, self.legal(mask), mask) if mask.shape[1] else mask

    def actions(self, action: Tensor, coin: Tensor) -> Tensor:
        """Mirror actions [batch], or [batch, box] before or behind their bounds."""
        if action.is_floating_point():
            image = action.index_select(1, self.places) * self.signs
            return torch.where(coin.bool().unsqueeze(1), image, action)
        image = self.places[action.long()].to(action.dtype)
        return torch.where(coin.bool(), image, action)


class Moves:
    """A table of places, applied to bytes [batch, places] by whole stretches of equal length.

    Files of a board stay together; one by one their squares would take eight times as long.
    """

    def __init__(self, source: npt.NDArray[np.int64], device: torch.device | str) -> None:
        """Find the longest stretches that move as one; what lies behind the last of them stays."""
        moved = np.flatnonzero(source != np.arange(len(source)))
        self.units: Tensor | None = None
        """Which stretch each one takes; None: all stay."""
        self.unit = self.end = 0
        last = int(moved[-1]) + 1 if len(moved) else 0
        for unit in range(last, 0, -1):
            end = -(-last // unit) * unit
            if end > len(source):
                continue
            places = source[:end].reshape(-1, unit)
            if not (places[:, 0] % unit).any() and (np.diff(places, axis=1) == 1).all():
                self.unit, self.end = unit, end
                self.units = torch.from_numpy(places[:, 0] // unit).to(device)
                return

    def __call__(self, given: Tensor) -> Tensor:
        if self.units is None:
            return given
        head = given[:, : self.end].view(len(given), -1, self.unit)
        moved = head.index_select(1, self.units).flatten(1)
        return moved if self.end == given.shape[1] else torch.cat([moved, given[:, self.end :]], 1)


def chosen(coin: Tensor, image: Tensor, plain: Tensor) -> Tensor:
    """Bytes of the image where the coin is 1: `torch.where`, which is slow for bytes on a CPU."""
    wanted = (coin.to(torch.uint8) * 255).unsqueeze(1)
    return plain ^ ((plain ^ image) & wanted)


def coins(seed: int, number: int, count: int) -> Tensor:
    """Throw a coin [count] of bool for every sample of an optimizer step, or row of an update.

    Coin i is bit i % 32 of the random number i / 32 of game 0, episode `number`, in a stream of
    their own: a function of (seed, number, i), which a kernel can compute for each by itself.
    """
    words = [w for block in range(-(-count // BLOCK)) for w in philox(block, number, seed)]
    bits = np.unpackbits(np.array(words, "<u4").view(np.uint8), bitorder="little")
    return torch.from_numpy(bits[:count].astype(np.bool_))


def philox(block: int, episode: int, seed: int) -> tuple[int, int, int, int]:
    """Four numbers of the stream of coins."""
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
    """What a learner needs, nothing if it is not asked for. memory: bytes of it per seat."""
    if not collect.mirror:
        return []
    mirror = rules.mirror
    assert mirror is not None, "the plan refuses games without one"
    if memory:
        raise ConfigError(
            "collect.mirror: nobody knows the mirror image of memory, and the pool has "
            f"{memory} bytes of it per seat; leave one of them out"
        )
    return [Mirroring(rules, mirror, device, seed=seed)]


class RowTransform(Protocol):
    """Changes rows in place."""

    def epoch(self, update: int, number: int, samples: int) -> Mapping[str, Tensor]:
        """What an epoch of an update knows of each of its samples besides: whom it changes."""

    def apply(self, rows: dict[str, Tensor]) -> None:
        """Change the rows of a minibatch; they have what `epoch` knew of them."""

    def apply_to_batch(self, samples: ReplayBatch, step: int) -> ReplayBatch:
        """Return what an optimizer step learns from in place of samples of a replay."""


@dataclass(frozen=True)
class Transforms:
    """Those of a run."""

    in_place: Sequence[RowTransform] = ()
    """Change rows in place, one after the other."""
    relabeling: Sequence[Hindsight] = ()
    """Make further rows."""


def transforms_of(
    pool: GamePool,
    collect: CollectConfig,
    hindsight: HindsightConfig | None,
    *,
    seed: int,
    device: torch.device,
) -> Transforms:
    """Make those that settings ask for. device: where rows are when they are learned from."""
    relabeling = [Hindsight(pool, hindsight, seed)] if hindsight and hindsight.relabels else []
    mirrors = mirrors_of(pool.rules, collect, device, memory=pool.memory_bytes, seed=seed)
    return Transforms(mirrors, relabeling)
