"""What a network reads of a row: the game's observation, and memory behind it if there is any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import NetConfig
from sparring.errors import ConfigError, suggestion
from sparring.games.features import Feature, FeatureBlock, runs_of
from sparring.games.rules import Rules

MEMORY_STEP = 16
"""Memory comes in so many bytes, so that rows stay aligned."""


class Inputs:
    """The numbers of a row. Memory is float32: a goal, or the state of a recurrent network."""

    def __init__(self, rules: Rules, memory: int = 0, seen: Sequence[str] = ()) -> None:
        """Describe the rows of a pool with so many bytes of memory per seat.

        seen: the blocks that are read, `NAME?` for one that not every set of flags has; left out,
        all of them. What is not seen counts as 0 and keeps its place, memory is always seen.
        """
        if memory < 0 or memory % MEMORY_STEP:
            raise ConfigError(f"memory {memory} must be a multiple of {MEMORY_STEP} bytes")
        self.rules, self.memory = rules, memory
        self.row_bytes = rules.obs_bytes + memory
        self.blocks = select_blocks(rules, seen)
        """The blocks that are read."""
        self._order_of: dict[torch.device, tuple[Tensor | None, Tensor]] = {}

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The game's features, then those of the memory."""
        first = self.rules.obs_bytes
        held = (
            Feature(f"memory[{i}]", "float32", first + 4 * i, 1.0) for i in range(self.memory // 4)
        )
        return (*self.rules.features, *held)

    @cached_property
    def runs(self) -> list[tuple[int, int, int, int, float]]:
        """Neighboring features of one kind, as the native core takes them."""
        return runs_of(self.features, self.seen)

    @cached_property
    def seen(self) -> dict[int, None] | None:
        """The features that are read, in order; None: all of them."""
        if len(self.blocks) == len(self.rules.blocks):
            return None
        places = [range(b.first, b.first + b.rows * len(b.columns)) for b in self.blocks]
        memory = range(len(self.rules.features), len(self.features))
        return dict.fromkeys(at for part in (*places, memory) for at in part)

    def byte_ranges(self) -> tuple[list[tuple[torch.dtype, int, int]], list[int], list[float]]:
        """Split a row by type: (dtype, from, to) stretches, feature order and divisors in them.

        What is not seen is divided by infinity.
        """
        stretches, order, divisors = [], [], []
        types = {
            "uint8": torch.uint8,
            "int8": torch.int8,
            "int16": torch.int16,
            "float32": torch.float32,
        }
        game = len(self.rules.features)
        for among in (range(game), range(game, len(self.features))):
            for name, dtype in types.items():
                chosen = [i for i in among if self.features[i].dtype == name]
                if not chosen:
                    continue
                chosen.sort(key=lambda i: self.features[i].offset)
                first = self.features[chosen[0]].offset
                stretches.append((dtype, first, first + np.dtype(name).itemsize * len(chosen)))
                order += chosen
                divisors += [self.divisor(i) for i in chosen]
        return stretches, order, divisors

    def numbers(self, obs: Tensor, normalize: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """What byte rows hold before their memory, as numbers in the order of the features.

        normalize: what is done to them in the order of their bytes, as first layers do it.
        """
        order, divisors = self._order_on(obs.device)
        stretches = self.observation_ranges
        parts = [obs[:, a:b].contiguous().view(dtype).float() for dtype, a, b in stretches]
        numbers = torch.cat(parts, dim=1) / divisors
        if normalize is not None:
            numbers = normalize(numbers)
        return numbers if order is None else numbers[:, order]

    @cached_property
    def observation_ranges(self) -> list[tuple[torch.dtype, int, int]]:
        """Those of `stretches` that are not memory."""
        return [part for part in self.byte_ranges()[0] if part[1] < self.rules.obs_bytes]

    def _order_on(self, device: torch.device) -> tuple[Tensor | None, Tensor]:
        """Where features lie among numbers in the order of bytes, None: in order; their divisors.

        Kept: graphs on a GPU copy nothing from the host.
        """
        if device not in self._order_of:
            count = len(self.rules.features)
            _, found, divided = self.byte_ranges()
            places = np.argsort(found[:count])
            in_order = bool((places == np.arange(count)).all())
            divisors = torch.tensor(divided[:count], device=device)
            order = None if in_order else torch.from_numpy(places).to(device)
            self._order_of[device] = order, divisors
        return self._order_of[device]

    def divisor(self, feature: int) -> float:
        unseen = self.seen is not None and feature not in self.seen
        return math.inf if unseen else self.features[feature].divisor


def select_blocks(rules: Rules, seen: Sequence[str]) -> tuple[FeatureBlock, ...]:
    """Return the blocks that are meant, in the order of the observation."""
    known = {block.name for block in rules.blocks}
    for name in seen:
        if not name.endswith("?") and name not in known:
            raise ConfigError(
                f"net.inputs: {rules.name} has no block {name!r}{suggestion(name, known)}"
            )
    wanted = {name.removesuffix("?") for name in seen}
    found = tuple(block for block in rules.blocks if not seen or block.name in wanted)
    if not found:
        raise ConfigError(f"net.inputs {' '.join(seen)}: {rules.name} has none of them now")
    return found


def memory_bytes_of(rules: Rules, net: NetConfig) -> int:
    """Return the bytes per (game, seat) that a network needs: float32 numbers, 0 without memory."""
    if not net.memory:
        return 0
    stacked = (net.frames - 1) * len(rules.features)
    numbers = net.memory_width if net.recurrent else stacked
    return -(-4 * numbers // MEMORY_STEP) * MEMORY_STEP


def fit_memory_bytes(rules: Rules, net: NetConfig, memory: int) -> int:
    """Return the bytes behind the observations of a network, of which a pool has so many.

    A network that remembers has all of them for itself; 0: as many as it needs.
    """
    needed = memory_bytes_of(rules, net)
    if needed and memory not in (0, needed):
        raise ConfigError(
            f"rows have {memory} bytes of memory and net.memory {net.memory} needs {needed}; "
            f"make the pool with memory={needed}"
        )
    return needed or memory


def held(inputs: Inputs, obs: Tensor) -> Tensor:
    """The numbers that lie behind the observation of each row [rows, memory / 4]."""
    first = inputs.rules.obs_bytes
    return obs[:, first : inputs.row_bytes].contiguous().view(torch.float32)


def stacked(
    inputs: Inputs,
    obs: Tensor,
    frames: int,
    normalize: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """The features of each row, then those that its memory held before, without the oldest.

    Features are numbers as the first layer reads them, in the order of the rules; what was not
    seen yet in this game is 0, and so is what memory is filled up with.
    """
    before = held(inputs, obs)
    numbers = inputs.numbers(obs, normalize)
    features = numbers.shape[1]
    older = before[:, : (frames - 2) * features]
    filled = before.shape[1] - (frames - 1) * features
    return functional.pad(torch.cat((numbers, older), 1), (0, filled))
