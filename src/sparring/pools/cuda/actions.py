"""Actions on their way to games on a GPU, why a game did not take one, and the games at home."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sparring.errors import ConfigError, IllegalActionError, SparringError
from sparring.games.rules import describe_refusal
from sparring.pools.native import Pool

if TYPE_CHECKING:
    from sparring.pools.cuda.pool import CudaPool

GIVEN_UP = 255
"""In `frozen`: a table that asked no policy for so long that it never will; csrc/cuda/pool.cuh."""


def as_given(pool: CudaPool, action: Any) -> Tensor:
    """Return actions as the kernels take them."""
    rows, box = pool.num_games * pool.rules.rows, pool.rules.box
    wanted = (rows, box) if box else (rows,)
    given = torch.as_tensor(action, device=pool.device)
    if tuple(given.shape) != wanted:
        raise IllegalActionError(f"actions have shape {tuple(given.shape)}, need {wanted}")
    if box:
        return given.float().contiguous()
    if given.is_floating_point() or given.dtype == torch.bool:
        raise IllegalActionError(f"actions are {given.dtype}, need integers")
    if given.dtype != torch.int32:
        given = given.clamp(-(2**31), 2**31 - 1).int()
    return given.contiguous()


def why_frozen(pool: CudaPool, game: int) -> SparringError:
    """Say why a game stands still."""
    rules, number, code = pool.rules, pool.first_game + game % pool.each, int(pool.frozen[game])
    if code == GIVEN_UP:
        return ConfigError(
            f"{rules.name} game {number}: no policy is asked any more; change the line-up or the "
            "flags so that somebody has a choice, and reset"
        )
    batch, row = pool.batch(), game * rules.rows + code - 1
    action, legal = pool.refused[row].cpu(), batch.legal[row].cpu().numpy()
    options = [a for a in range(rules.actions) if int(legal[a // 64]) >> (a % 64) & 1]
    where = (number, row, int(batch.seat[row]))
    if rules.box:
        component = int(torch.isfinite(action).logical_not().nonzero()[0])
        refused: tuple[Any, ...] = (*where, -1, component, float(action[component]), [])
    else:
        refused = (*where, int(action), -1, 0.0, options)
    return IllegalActionError(
        f"{describe_refusal(rules, refused)}; the game stands still since then, load an earlier "
        "state or reset"
    )


def copies(pool: CudaPool) -> Iterator[Pool]:
    """The games of every seed as pools on the CPU, where they can be looked at."""
    for member in range(len(pool.seeds)):
        rules, memory = pool.rules_of(member), pool.memory_bytes
        copied = Pool(rules, pool.each, threads=1, first_game=pool.first_game, memory=memory)
        copied.load_state(pool.state(member))
        yield copied
