"""What a network of somebody's own is told about a game, and how its rows are shown to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from sparring.games.rules import Rules
from sparring.nets.critics import Widen
from sparring.nets.inputs import Inputs
from sparring.nets.net import POLICY

FLOATS, BLOCKS, BYTES = "floats", "blocks", "bytes"
READS = (FLOATS, BLOCKS, BYTES)
"""How a module may want its rows."""
MEMORY_BLOCK = "memory"
"""What blocks call the numbers behind the observation."""

Shown = Tensor | dict[str, Tensor]
"""What a module is called with."""


@dataclass(frozen=True)
class NetInputs:
    """What the class of a network is told first: what it will see, and what it has to say."""

    game: str
    """The name of the game."""
    width: int
    """Numbers of a row: features of the observation, then those of the memory."""
    policy: int
    """Numbers that the policy has to say: a logit per action, or means and then logarithms of
    spreads for continuous ones."""
    actions: int
    """Actions to choose from, 0 where they are continuous."""
    box: int
    """Numbers of a continuous action, 0 where there is a choice."""
    blocks: dict[str, tuple[int, int]]
    """The named parts of the observation: rows and columns of each."""
    columns: dict[str, tuple[str, ...]]
    """What the columns of each are called."""
    board: tuple[int, ...]
    """Height and width of the board, () where there is none."""
    memory: int
    """Numbers of the memory behind the observation."""
    row_bytes: int
    """Bytes of a row, memory included."""
    heads: dict[str, int]
    """Everything that has to be said: widths by name."""
    rules: Rules = field(repr=False)
    """Everything else about the game."""


def describe_inputs(inputs: Inputs, heads: Mapping[str, int], policy: int) -> NetInputs:
    """Tell a class what its network will see and say."""
    rules = inputs.rules
    return NetInputs(
        game=rules.name,
        width=len(inputs.features),
        policy=heads.get(POLICY, policy),
        actions=rules.actions,
        box=rules.box,
        blocks={block.name: (block.rows, len(block.columns)) for block in inputs.blocks},
        columns={block.name: block.columns for block in inputs.blocks},
        board=tuple(rules.board),
        memory=inputs.memory // 4,
        row_bytes=inputs.row_bytes,
        heads=dict(heads),
        rules=rules,
    )


class Reader(nn.Module):
    """Byte rows as a module wants them: [rows, width] numbers, blocks by name, or the bytes."""

    order: Tensor

    def __init__(self, inputs: Inputs, reads: str) -> None:
        super().__init__()
        self.reads, self.numbers, self.game = reads, inputs.memory // 4, len(inputs.rules.features)
        self.blocks = [(b.name, b.first, b.rows, len(b.columns)) for b in inputs.blocks]
        if reads == BYTES:
            return
        self.widen: nn.Module = Widen(inputs)
        _, order, _ = inputs.byte_ranges()
        self.sorted = order == sorted(order)
        """Whether bytes lie in the order of the features."""
        self.register_buffer("order", torch.tensor(order).argsort(), persistent=False)

    def forward(self, obs: Tensor) -> Shown:
        """Show byte rows [rows, row_bytes]; numbers are divided and in the order of features."""
        if self.reads == BYTES:
            return obs
        numbers: Tensor = self.widen(obs)
        if not self.sorted:
            numbers = numbers.index_select(1, self.order)
        if self.reads == FLOATS:
            return numbers
        shown = {
            name: numbers[:, first : first + rows * columns].reshape(-1, rows, columns)
            for name, first, rows, columns in self.blocks
        }
        if self.numbers:
            shown[MEMORY_BLOCK] = numbers[:, self.game :]
        return shown
