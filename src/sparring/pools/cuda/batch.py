"""Batch of a GPU pool."""

from __future__ import annotations

import torch
from torch import Tensor

from sparring.games.rules import Rules


class CudaBatch:
    """Rows that need an action and results of the last step, all on the device.

    The next step overwrites the arrays. `final_*` are as in a CPU pool; reading one waits for the
    step, because their length is the number of games that ended.
    """

    def __init__(
        self,
        rules: Rules,
        games: int,
        row_bytes: int,
        words: int,
        device: torch.device,
        *,
        records: bool = False,
    ) -> None:
        rows, seats = games * rules.rows, rules.seats

        def zeros(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.obs = zeros(rows, row_bytes, dtype=torch.uint8)
        """[R, row_bytes]"""
        self.mask = zeros(rows, rules.actions, dtype=torch.uint8)
        """[R, actions], 1 where legal."""
        self.legal = zeros(rows, words, dtype=torch.int64)
        """[R, words], the mask as bits."""
        self.seat = zeros(rows, dtype=torch.int8)
        self.role = zeros(rows, dtype=torch.int8)
        self.policy = zeros(rows, dtype=torch.int16)
        self.reward = zeros(games, seats, len(rules.roles), dtype=torch.float32)
        self.skipped = zeros(games, seats, dtype=torch.uint16)
        self.terminated = zeros(games, dtype=torch.bool)
        self.truncated = zeros(games, dtype=torch.bool)
        self.record = zeros(games, seats, dtype=torch.int32) if records else None
        """Encoded results of goals, 0 for none."""
        self.finals = {
            "obs": zeros(games, seats, row_bytes, dtype=torch.uint8),
            "legal": zeros(games, seats, words, dtype=torch.int64),
            "score": zeros(games, seats, dtype=torch.float32),
            "policy": zeros(games, seats, dtype=torch.int16),
            "length": zeros(games, dtype=torch.int32),
            "reason": zeros(games, dtype=torch.uint8),
        }
        """Results of every game's last end, by game; those of running games are old."""
        self._rules = rules
        self._actions = rules.actions

    def rows(self) -> dict[str, Tensor]:
        """Fields of `RowsView` in csrc/cuda/pool.cuh."""
        return {name: getattr(self, name) for name in ("obs", "legal", "seat", "role", "policy")}

    def outcome(self) -> dict[str, Tensor | None]:
        """Fields of `OutcomeView` in csrc/cuda/pool.cuh."""
        names = ("reward", "skipped", "terminated", "truncated")
        return {name: getattr(self, name) for name in names} | {"goal_result": self.record}

    @property
    def final_game(self) -> Tensor:
        """[E], games that have just ended, ascending."""
        return (self.terminated | self.truncated).nonzero().squeeze(1).int()

    def __getattr__(self, name: str) -> Tensor:
        """`final_obs`, `final_score`, `final_policy`, `final_length`, `final_reason`, by game."""
        kind = name.removeprefix("final_")
        if kind == name or kind not in self.__dict__.get("finals", {}):
            raise AttributeError(name)
        chosen: Tensor = self.finals[kind][self.final_game.long()]
        return chosen

    @property
    def final_mask(self) -> Tensor:
        """[E, seats, actions], legal actions where a seat was still to act (truncation)."""
        legal: Tensor = self.final_legal
        action = torch.arange(self._actions, device=legal.device)
        return (legal[..., action // 64] >> (action % 64) & 1).to(torch.uint8)
