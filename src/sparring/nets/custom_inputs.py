"""Inputs of custom networks: a description of the game, and rows in the format they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from sparring.games.rules import Rules
from sparring.nets.critics import Widen
from sparring.nets.heads import POLICY
from sparring.nets.inputs import Inputs

FLOATS, BLOCKS, BYTES = "floats", "blocks", "bytes"
READS = (FLOATS, BLOCKS, BYTES)
"""Formats in which a module may read its rows."""
MEMORY_BLOCK = "memory"
"""Name of the memory among the blocks."""

ModuleInput = Tensor | dict[str, Tensor]
"""Argument of a module's forward."""


@dataclass(frozen=True)
class NetInputs:
    """First argument of a custom network's class: its inputs and required outputs."""

    game: str
    """The name of the game."""
    width: int
    """Features of a row: those of the observation, then those of the memory."""
    policy: int
    """Width of the policy head: a logit per action, or means and then log standard deviations of
    continuous actions."""
    actions: int
    """Number of discrete actions, 0 if actions are continuous."""
    box: int
    """Dimensions of a continuous action, 0 if actions are discrete."""
    blocks: dict[str, tuple[int, int]]
    """Rows and columns of the observation's blocks, by name."""
    columns: dict[str, tuple[str, ...]]
    """Names of the columns of each block."""
    board: tuple[int, ...]
    """Height and width of the board, () without one."""
    memory: int
    """Features of the memory, which follow the observation."""
    row_bytes: int
    """Bytes of a row, memory included."""
    heads: dict[str, int]
    """Widths of all required outputs by name."""
    rules: Rules = field(repr=False)
    """Rules of the game, for anything else."""


def describe_inputs(inputs: Inputs, heads: Mapping[str, int], policy: int) -> NetInputs:
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


class InputReader(nn.Module):
    """Converts byte rows to a module's format: [rows, width] floats, blocks by name, or bytes."""

    order: Tensor

    def __init__(self, inputs: Inputs, reads: str) -> None:
        super().__init__()
        self.reads, self.memory = reads, inputs.memory // 4
        self.features = len(inputs.rules.features)
        self.blocks = [(b.name, b.first, b.rows, len(b.columns)) for b in inputs.blocks]
        if reads == BYTES:
            return
        self.widen: nn.Module = Widen(inputs)
        _, order, _ = inputs.byte_ranges()
        self.sorted = order == sorted(order)
        """Whether the bytes are in the order of the features."""
        self.register_buffer("order", torch.tensor(order).argsort(), persistent=False)

    def forward(self, obs: Tensor) -> ModuleInput:
        """Convert byte rows [rows, row_bytes]; floats are scaled and in the order of features."""
        if self.reads == BYTES:
            return obs
        numbers: Tensor = self.widen(obs)
        if not self.sorted:
            numbers = numbers.index_select(1, self.order)
        if self.reads == FLOATS:
            return numbers
        blocks = {
            name: numbers[:, first : first + rows * columns].reshape(-1, rows, columns)
            for name, first, rows, columns in self.blocks
        }
        if self.memory:
            blocks[MEMORY_BLOCK] = numbers[:, self.features :]
        return blocks
