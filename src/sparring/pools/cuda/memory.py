"""Memory of policies on a GPU, written without synchronization: a graph can capture it."""

from __future__ import annotations

import torch
from torch import Tensor


def make_memories(seats: int, memory: int) -> Tensor:
    """Allocate the memory of seats, and one entry more for rows without a policy."""
    return torch.zeros(seats + 1, memory, dtype=torch.uint8)


def put_memory(
    memories: Tensor, written: Tensor, seat: Tensor, policy: Tensor, *, rows: int, seats: int
) -> None:
    """Write new memory of rows to their games and seats.

    memories: uint8 [games * seats + 1, bytes], see `make_memories`. written: float32 [all rows,
        bytes / 4]. seat, policy: of the rows; those without a policy write nothing.
    rows, seats: per game.
    """
    game = torch.arange(len(written), device=written.device) // rows
    unused = len(memories) - 1
    index = torch.where(policy >= 0, game * seats + seat, unused)
    memories.view(torch.float32).index_copy_(0, index, written)
