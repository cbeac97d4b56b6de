"""What a pool on a GPU shows after a step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sparring.errors import IllegalActionError
from sparring.games.rules import Rules, describe_refusal


class CudaBatch:
    """The rows that ask for a decision and what the last step brought, all on the device.

    The next step overwrites the arrays. `final_*` are those of a CPU pool; reading one waits for
    the step, because their length is how many games ended.
    """

    def __init__(
        self, rules: Rules, games: int, row_bytes: int, words: int, device: torch.device
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
        self.finals = {
            "obs": zeros(games, seats, row_bytes, dtype=torch.uint8),
            "legal": zeros(games, seats, words, dtype=torch.int64),
            "score": zeros(games, seats, dtype=torch.float32),
            "policy": zeros(games, seats, dtype=torch.int16),
            "length": zeros(games, dtype=torch.int32),
            "reason": zeros(games, dtype=torch.uint8),
        }
        """Last words of every game, by game; those of games that go on are old."""
        self._rules = rules
        self._actions = rules.actions

    def rows(self) -> dict[str, Tensor]:
        """What describes the decisions; `RowsView` in csrc/cuda/pool.cuh."""
        return {name: getattr(self, name) for name in ("obs", "legal", "seat", "role", "policy")}

    def outcome(self) -> dict[str, Tensor]:
        """What a step writes per game; `OutcomeView` in csrc/cuda/pool.cuh."""
        names = ("reward", "skipped", "terminated", "truncated")
        return {name: getattr(self, name) for name in names}

    @property
    def final_game(self) -> Tensor:
        """[E], the games that just ended, ascending."""
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

    def explain(self, row: int, game: int, action: Tensor) -> str:
        """Say why the action of a row could not be played."""
        rules, where = self._rules, (game, row, int(self.seat[row]))
        if rules.box:
            component = int(torch.isfinite(action.cpu()).logical_not().nonzero()[0])
            return describe_refusal(rules, (*where, -1, component, float(action[component]), []))
        legal = self.legal[row].cpu().numpy()
        options = [a for a in range(rules.actions) if int(legal[a // 64]) >> (a % 64) & 1]
        return describe_refusal(rules, (*where, int(action), -1, 0.0, options))


def as_actions(rules: Rules, action: Any, games: int, device: torch.device) -> Tensor:
    """Return the answers to all rows as the kernels read them."""
    rows = games * rules.rows
    wanted = (rows, rules.box) if rules.box else (rows,)
    given = torch.as_tensor(action, device=device)
    if tuple(given.shape) != wanted:
        raise IllegalActionError(f"actions have shape {tuple(given.shape)}, need {wanted}")
    if rules.box:
        return given.float().contiguous()
    if given.is_floating_point() or given.dtype == torch.bool:
        raise IllegalActionError(f"actions are {given.dtype}, need integers")
    if given.dtype != torch.int32:
        given = given.clamp(-(2**31), 2**31 - 1).int()
    return given.contiguous()
