"""Actions of GPU pools: conversion, errors of frozen games, and audits of saved games."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from sparring.errors import ConfigError, IllegalActionError, RulesError, SparringError
from sparring.games.rules import Rules, describe_illegal_action
from sparring.pools.cuda.batch import CudaBatch
from sparring.pools.native import Pool

NEVER_ASKED = 255
"""Code in `frozen`: the game has not asked a policy for too long; csrc/cuda/pool.cuh."""
RULES_FAILED = 254
"""Code in `frozen`: the game's rules in Python failed."""


def as_given(action: Any, rows: int, box: int, device: torch.device) -> Tensor:
    """Convert actions to the kernels' dtype and check their shape."""
    wanted = (rows, box) if box else (rows,)
    given = torch.as_tensor(action, device=device)
    if tuple(given.shape) != wanted:
        raise IllegalActionError(f"actions have shape {tuple(given.shape)}, need {wanted}")
    if box:
        return given.float().contiguous()
    if given.is_floating_point() or given.dtype == torch.bool:
        raise IllegalActionError(f"actions are {given.dtype}, need integers")
    if given.dtype != torch.int32:
        given = given.clamp(-(2**31), 2**31 - 1).int()
    return given.contiguous()


def why_frozen(
    rules: Rules, where: tuple[int, int], code: int, batch: CudaBatch, refused: Tensor
) -> SparringError:
    """Return the error of a frozen game.

    where: its index and its first row. code: its entry in `frozen`. refused: actions by row.
    """
    number, first = where
    if code == NEVER_ASKED:
        return ConfigError(
            f"{rules.name} game {number}: no policy decides any more; change the line-up or the "
            "flags so that one has a choice, and reset"
        )
    if code == RULES_FAILED:
        return RulesError(
            f"{rules.name} game {number}: the rules failed on the GPU; the same run with "
            "--device cpu plays the same games and says in which line"
        )
    row = first + code - 1
    action, legal = refused[row].cpu(), batch.legal[row].cpu().numpy()
    options = [a for a in range(rules.actions) if int(legal[a // 64]) >> (a % 64) & 1]
    asked = (number, row, int(batch.seat[row]))
    if rules.box:
        component = int(torch.isfinite(action).logical_not().nonzero()[0])
        wrong: tuple[Any, ...] = (*asked, -1, component, float(action[component]), [])
    else:
        wrong = (*asked, int(action), -1, 0.0, options)
    return IllegalActionError(
        f"{describe_illegal_action(rules, wrong)}; the game has been frozen since then, load "
        "an earlier state or reset"
    )


def audit_copies(states: Iterable[tuple[Rules, bytes]], games: int, **options: Any) -> str:
    """Audit saved games in CPU pools; return the first error, "" if there is none."""
    for rules, state in states:
        copied = Pool(rules, games, threads=1, **options)
        copied.load_state(state)
        if wrong := copied.audit():
            return wrong
    return ""
