"""What policies remember of their seats, written on a GPU: nothing waits, a graph can hold it."""

from __future__ import annotations

import torch
from torch import Tensor


def room_for(seats: int, memory: int) -> Tensor:
    """Return the memory of so many seats, and one place more for what nobody remembers."""
    return torch.zeros(seats + 1, memory, dtype=torch.uint8)


def put_memory(
    memories: Tensor, written: Tensor, seat: Tensor, policy: Tensor, *, rows: int, seats: int
) -> None:
    """Write what was made of rows to the memory of their games and seats.

    memories: uint8 [games * seats + 1, bytes], see `room_for`. written: float32 [all rows,
        bytes / 4]. seat, policy: of the rows; those that no policy decides write nothing.
    rows, seats: of a game.
    """
    game = torch.arange(len(written), device=written.device) // rows
    nobody = len(memories) - 1
    at = torch.where(policy >= 0, game * seats + seat, nobody)
    memories.view(torch.float32).index_copy_(0, at, written)
