"""Rows that also hold what is hidden from the seat, for critics and for responses that see it.

A row holds the hidden information that the game declares, relative to the seat, then the
observation. Nothing that plays reads such rows: a critic is thrown away after training, and a
response with `net.sees` measures what seeing is worth, in pools alone.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.features import Feature, FeatureBlock
from sparring.games.hidden import state_field
from sparring.games.rules import Rules
from sparring.nets.heads import HIDDEN, check_hidden
from sparring.nets.roots import Roots
from sparring.pools.native import Pool

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]

ALIGNED = 16
"""Hidden information fills a multiple of this many bytes: what follows keeps its alignment."""


class CriticRows:
    """Classes of hidden items, one byte each, then the observation."""

    def __init__(self, rules: Rules) -> None:
        self.hidden = hidden = check_hidden(rules)
        self.state_field = state_field(rules, hidden.field)
        self.classes = [i for i in range(len(hidden.classes)) if i != hidden.dull]
        """Those with a byte; the dull class has none."""
        self.used = len(hidden.items) * len(self.classes)
        self.width = -(-self.used // ALIGNED) * ALIGNED
        """Bytes in front of the observation."""
        self.obs_bytes = rules.obs_bytes
        self.rules = self._rules(rules)
        """Rules whose observations are these rows."""
        self.row_bytes = self.rules.obs_bytes
        self._kept: dict[torch.device, Tensor] = {}

    def _rules(self, rules: Rules) -> Rules:
        shown = [self.hidden.classes[i] for i in self.classes]
        names = [f"{item}: {one}" for item in self.hidden.items for one in shown]
        names += ["unused"] * (self.width - self.used)
        hidden = (Feature(name, "uint8", at, 1.0) for at, name in enumerate(names))
        seen = (replace(one, offset=one.offset + self.width) for one in rules.features)
        blocks = (replace(one, first=one.first + self.width) for one in rules.blocks)
        wider: Any = copy(rules)
        wider.obs_bytes += self.width
        wider.features = (*hidden, *seen)
        wider.blocks = (FeatureBlock(HIDDEN, 0, 1, tuple(names)), *blocks)
        wider.__dict__.pop("runs", None)
        found: Rules = wider
        return found

    def build(self, obs: Tensor, raw: Tensor, seat: Tensor) -> Tensor:
        """Return rows [n, row_bytes]. raw: the field of the game state. seat: of every row."""
        import torch

        if obs.device not in self._kept:  # a CUDA graph copies nothing from the host
            self._kept[obs.device] = torch.tensor(self.classes, device=obs.device)
        classes = self.hidden.read(torch, raw, seat)
        rows = torch.zeros(len(obs), self.row_bytes, dtype=torch.uint8, device=obs.device)
        is_class = classes.unsqueeze(-1) == self._kept[obs.device]
        rows[:, : self.used] = is_class.flatten(1)
        rows[:, self.width :] = obs[:, : self.obs_bytes]
        return rows

    def of_pool(self, pool: Any, rows: Indices, obs: Bytes, seat: npt.NDArray[np.int8]) -> Bytes:
        """Return rows of a native pool as it stands: `build` for few rows, which torch is slow for.

        obs, seat: of the pool's rows.
        """
        tables = pool.tables[rows // pool.rules.rows, self.state_field.byte_slice]
        classes = self.hidden.read(np, np.ascontiguousarray(tables), seat)
        found = np.zeros((len(obs), self.row_bytes), np.uint8)
        found[:, : self.used] = (classes[..., None] == self.classes).reshape(len(obs), -1)
        found[:, self.width :] = obs[:, : self.obs_bytes]
        return found

    def of_roots(self, roots: Roots | None, obs: Bytes, name: str) -> Bytes:
        """Return rows of the pools behind a batch; raise if a policy is asked without a pool.

        Positions of single games are those that people play. name: of the policy.
        """
        known = ((where, rows) for where, rows in roots or () if isinstance(where, Pool))
        pools = [(pool, rows) for pool, rows in known if len(rows)]
        counts = [len(rows) for _, rows in pools]
        if not pools or sum(counts) != len(obs):
            raise ConfigError(never_plays(name))
        parts = np.split(obs, np.cumsum(counts)[:-1])
        found = [
            self.of_pool(pool, rows, part, pool.batch().seat[rows])
            for (pool, rows), part in zip(pools, parts, strict=True)
        ]
        return np.concatenate(found)


def rules_read(rules: Rules, net: NetConfig) -> Rules:
    """Return the rules whose observations a network reads: with what is hidden, if it sees that."""
    return CriticRows(rules).rules if net.sees else rules


def never_plays(name: str) -> str:
    """Return the refusal of a policy that sees what is hidden."""
    return (
        f"{name} sees what is hidden from its seat: it is a yardstick of sparring exploit, and "
        "never plays; name another policy"
    )
