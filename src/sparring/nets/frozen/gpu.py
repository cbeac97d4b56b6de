"""Frozen networks of one shape on a GPU, which share a batch: rows are sorted by network.

A group is one network of one member of a population. Only the device knows how many rows each has:
nothing synchronizes and shapes never change, so that a CUDA graph can capture all of it. Only the
policy head is computed. csrc/cuda/grouped.cuh has the kernels.

Hidden layers of perceptrons are grouped products of torch where it has them (bf16, Hopper and
later), of csrc elsewhere. Heads always use csrc: their logits stay float32. A test compares the
outputs with those of each network alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.kernels import KernelModule, build
from sparring.kernels.views import KernelView
from sparring.nets.board import POLICY_CHANNELS, BoardLayout, board_layout
from sparring.nets.frozen.cpu import check_shapes, policy_layers, shapes_of
from sparring.nets.heads import head_width
from sparring.nets.inputs import Inputs
from sparring.nets.net import Net
from sparring.nets.run.flat import (
    KINDS,
    FlatOptions,
    round_up,
    row_constants,
    widened_width,
    widening_threads,
)
from sparring.nets.run.trace import TracedPerceptron, to_perceptron_tensors, trace_perceptron

SOURCE = '#include "cuda/grouped.cuh"\n'
MAX_SLOTS = 255
"""The sort has a thread for each."""
SORT_ROWS, TILE = 1024, 64
"""Rows per block of the sort; rows and columns per block of a product."""
MAX_LIBRARY_GROUPS = 1023
"""Maximum number of matrices in torch's grouped product."""
FINISH_BLOCKS = 2048
"""Maximum number of blocks after a product: enough for every GPU, each loops."""
TAPS = 9
BIAS = "policy_bias"


class GroupedFlat(ABC):
    """Weights of all frozen networks: `slots` for each member."""

    def __init__(
        self, net: Net, config: NetConfig, members: int, slots: int, **options: Unpack[FlatOptions]
    ) -> None:
        """Allocate networks of this shape. config: of the equivalent built-in network."""
        if not 1 <= slots <= MAX_SLOTS:
            raise ConfigError(f"{slots} slots; a GPU takes 1 to {MAX_SLOTS}")
        bf16, device, memory = options["bf16"], options["device"], options.get("memory", 0)
        self.template, self.config, self.device = net, config, device
        self.rules = rules = net.inputs.rules
        self.members, self.slots, self.groups = members, slots, members * slots
        self.dtype = torch.bfloat16 if bf16 else torch.float32
        self.inputs = Inputs(rules, memory)
        self.width, self.action_width = widened_width(self.inputs), round_up(head_width(rules))
        self.constants = row_constants(self.inputs, bf16=bf16)
        self.kernels: KernelModule = build(
            SOURCE, self.constants, exact=False, device=device, what=rules.name
        )
        packed = self.pack_tensors(net.state_dict())
        self.weights = {
            name: torch.zeros(self.groups, *tensor.shape, dtype=self.dtype, device=device)
            for name, tensor in packed.items()
            if name != BIAS
        }
        """Operands of products [groups, ...]."""
        self.policy_bias = torch.zeros(self.groups, self.action_width, device=device)
        """Bias that the kernels add to the logits, for each group."""
        self.bias_stride = self.action_width
        # On older GPUs torch's grouped product falls back to a loop that synchronizes.
        hopper = torch.cuda.get_device_capability(device) >= (9, 0)
        self.uses_library = bf16 and hopper and self.groups <= MAX_LIBRARY_GROUPS
        """Whether plain products are torch's; a test compares them with those of csrc."""

    @abstractmethod
    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a network's tensors as operands of products, and its `BIAS`, maybe smaller."""

    @abstractmethod
    def make_pass(self, rows: int) -> GroupedPass:
        """Allocate a pass over batches of this many rows, all members together."""

    def load(self, member: int, slot: int, state: Mapping[str, Tensor]) -> None:
        """Load a state dict into a member's slot, 1 to `slots`."""
        if not 1 <= slot <= self.slots:
            raise ConfigError(f"slot {slot}; there are 1 to {self.slots}")
        check_shapes(shapes_of(self.template), state)
        group = member * self.slots + slot - 1
        packed = self.pack_tensors({name: t.detach().float().cpu() for name, t in state.items()})
        for name, tensor in packed.items():
            to = self.policy_bias if name == BIAS else self.weights[name]
            to[group, : len(tensor)].copy_(tensor)


class GroupedPass(ABC):
    """Buffers of a batch: sort, read, forward. Allocated once, so that graphs can replay it."""

    memory: Tensor | None = None
    """Next memory of the rows [rows, numbers], in sorted order; None: the networks write none."""

    def __init__(self, net: GroupedFlat, rows: int) -> None:
        if rows % net.members:
            raise ConfigError(f"{rows} rows for {net.members} members; give each as many")
        self.flat, self.rows = net, rows
        self.rows_each = rows // net.members
        self.blocks = -(-self.rows_each // SORT_ROWS)
        with torch.device(net.device):
            self._starts = torch.zeros(net.groups * self.blocks, dtype=torch.int32)
            self.ends = torch.zeros(net.groups, dtype=torch.int32)
            """End of every group in the sorted order."""
            self.position = torch.full((rows,), -1, dtype=torch.int32)
            """Index of a row in the sorted order, -1 if no slot has its policy."""
            self.order = torch.full((rows,), -1, dtype=torch.int32)
            """Row at an index of the sorted order, -1 after the last one."""
            self.group_of = torch.full((rows,), -1, dtype=torch.int32)
            """Group at an index of the sorted order, -1 after the last one."""
            self.logits = torch.zeros(rows, net.action_width)
            """In sorted order, without the bias that the kernels add; undefined after the last."""

    def zeros(self, rows: int, columns: int) -> Tensor:
        """Return a buffer for activations."""
        return torch.zeros(rows, columns, dtype=self.flat.dtype, device=self.flat.device)

    def sort(self, policy: Tensor, rows_each: int) -> None:
        """Sort rows by slot.

        policy: policy id per row, int16 [rows]; `rows_each` rows of every member in turn.
        """
        net = self.flat
        if policy.numel() != self.rows or rows_each != self.rows_each:
            raise ConfigError(
                f"{policy.numel()} rows, {rows_each} of each member; this pass is for "
                f"{self.rows}, {self.rows_each} of each"
            )
        if not policy.is_contiguous():
            raise ConfigError("the policy ids of a batch must be contiguous")
        view = net.kernels.view(
            "SortView",
            policy=policy,
            members=net.members,
            rows_each=rows_each,
            slots=net.slots,
            blocks=self.blocks,
            starts=self._starts,
            ends=self.ends,
            position=self.position,
            order=self.order,
            group_of=self.group_of,
        )
        net.kernels.count_rows((self.blocks, net.members), 256, view)
        net.kernels.scan_rows(1, 1024, view)
        net.kernels.place_rows((self.blocks, net.members), 256, view)

    @abstractmethod
    def read(self, obs: Tensor) -> None:
        """Read the sorted rows from all byte rows of the batch."""

    @abstractmethod
    def forward(self) -> None:
        """Compute the logits."""

    def finish(
        self,
        bias: Tensor | None = None,
        *,
        shift: Tensor | None = None,
        onto: Tensor | None = None,
        kind: str = "",
    ) -> KernelView:
        """Return the epilogue of a product: sums, then an activation."""
        return self.flat.kernels.view(
            "FinishView", bias=bias, shift=shift, onto=onto, kind=KINDS[kind]
        )

    def product(
        self,
        x: Tensor,
        weight: Tensor,
        out: Tensor | None,
        finish: KernelView,
        *,
        squares: int = 1,
        board: tuple[int, int] = (0, 0),
        used: int = 0,
    ) -> None:
        """Multiply the rows of every group with its weight [depth, columns], by csrc's kernel.

        out: None for the logits, of which `used` columns are written.
        squares: rows of the product per row of the batch.
        board: height and width, for a 3x3 convolution; the depth has its nine taps.
        """
        net, (depth, columns) = self.flat, weight.shape[1:]
        tiles = -(-self.rows * squares // TILE) + net.groups
        net.kernels.grouped_product(
            (tiles, -(-columns // TILE)),
            128,
            net.kernels.view(
                "ProductView",
                x=x,
                weight=weight,
                ends=self.ends,
                groups=net.groups,
                depth=depth,
                columns=columns,
                squares=squares,
                board_height=board[0],
                board_width=board[1],
                finish=finish,
                out=out,
                logits=self.logits,
                logit_width=net.action_width,
                used=used,
            ),
        )


class GroupedPerceptron(GroupedFlat):
    """Policy towers of perceptrons, built-in or custom."""

    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Put inputs in byte order, with their divisors in the first weights."""
        traced = trace_perceptron(self.template)
        if isinstance(traced, TracedPerceptron):
            state = to_perceptron_tensors(traced, state)
        *layers, (head, policy_bias) = policy_layers(state, self.rules, self.config)
        packed: dict[str, Tensor] = {}
        for layer, (weight, bias) in enumerate(layers):
            packed |= {f"{layer}.weight": weight, f"{layer}.bias": bias}
        _, order, divisors = self.inputs.byte_ranges()
        first = packed["0.weight"][order] * (1 / torch.tensor(divisors)[:, None])
        packed["0.weight"] = functional.pad(first, (0, 0, 0, self.width - len(first)))
        packed["head"] = functional.pad(head, (0, self.action_width - head.shape[1]))
        return {**packed, BIAS: policy_bias}

    def make_pass(self, rows: int) -> GroupedPerceptronPass:
        return GroupedPerceptronPass(self, rows)


class GroupedPerceptronPass(GroupedPass):
    """Activations of perceptrons, from rows converted to numbers."""

    flat: GroupedPerceptron

    def __init__(self, net: GroupedPerceptron, rows: int) -> None:
        super().__init__(net, rows)
        self.x = self.zeros(rows, net.width)
        self.hidden = [
            self.zeros(0 if net.uses_library else rows, width) for width in net.config.hidden
        ]

    def read(self, obs: Tensor) -> None:
        """Widen the byte rows that were sorted."""
        threads = self.rows * widening_threads(self.flat.constants)
        self.flat.kernels.widen_sorted(-(-threads // 256), 256, obs, self.order, self.rows, self.x)

    def forward(self) -> None:
        net, below = self.flat, self.x
        for layer, out in enumerate(self.hidden):
            weight, bias = net.weights[f"{layer}.weight"], net.weights[f"{layer}.bias"]
            finish = self.finish(bias, kind=net.config.activation)
            if net.uses_library:
                below = grouped_product(below, weight, self.ends)
                made = net.kernels.view(
                    "LayerOutputView",
                    x=below,
                    group_of=self.group_of,
                    count=self.ends[-1:],
                    columns=below.shape[1],
                    finish=finish,
                )
                blocks = min(-(-below.numel() // (8 * 256)), FINISH_BLOCKS)
                net.kernels.finish_layer(blocks, 256, made)
            else:
                self.product(below, weight, out, finish)
                below = out
        head = net.weights["head"]
        self.product(below, head, None, self.finish(), used=net.action_width)


class GroupedResidual(GroupedFlat):
    """Residual nets: stem, blocks and the policy's maps.

    Boards are channels last: a convolution is a product whose rows are gathered from the squares
    around each one.
    """

    @cached_property
    def layout(self) -> BoardLayout:
        return board_layout(self.rules)

    @property
    def planes(self) -> int:
        return round_up(self.layout.planes)

    @property
    def numbers(self) -> int:
        return round_up(self.layout.numbers)

    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Fold divisors into the weights of the input."""
        at = self.layout
        divisor = torch.tensor(at.divisors)
        stem = state["stem.weight"] / divisor[None, : at.planes, None, None]
        packed = {"stem.weight": taps_of(stem, self.planes), "stem.bias": state["stem.bias"]}
        if self.numbers:
            numbers = (state["numbers.weight"] / divisor[None, at.planes :]).T
            packed["numbers"] = functional.pad(numbers, (0, 0, 0, self.numbers - at.numbers))
        for block in range(self.config.blocks):
            for part in ("first", "second"):
                name = f"blocks.{block}.{part}"
                weight = taps_of(state[f"{name}.weight"], self.config.channels)
                packed[f"{block}.{part}.weight"] = weight
                packed[f"{block}.{part}.bias"] = state[f"{name}.bias"]
        head = state["policy_head.weight"].flatten(1).T
        packed["head"] = functional.pad(head, (0, -head.shape[1] % 8))
        if at.actions:
            return {**packed, BIAS: state["policy_bias"]}
        packed["map.weight"] = state["policy_map.weight"].flatten(1).T
        packed["map.bias"] = state["policy_map.bias"]
        return {**packed, BIAS: state["policy_head.bias"]}

    def make_pass(self, rows: int) -> GroupedBoardPass:
        return GroupedBoardPass(self, rows)


class GroupedBoardPass(GroupedPass):
    """Activations of residual nets [rows * squares, channels]."""

    flat: GroupedResidual

    def __init__(self, net: GroupedResidual, rows: int) -> None:
        super().__init__(net, rows)
        channels, squares = net.config.channels, net.layout.squares
        self.planes = self.zeros(rows * squares, net.planes)
        self.beside = self.zeros(rows, net.numbers)
        self.shift = self.zeros(rows, channels)
        """Contribution of whole-board numbers to all squares, and the stem's bias."""
        self.boards = [self.zeros(rows * squares, channels) for _ in range(3)]
        dense = 0 if net.layout.actions else POLICY_CHANNELS
        self.policy_map = self.zeros(rows, squares * dense)

    def read(self, obs: Tensor) -> None:
        """Convert the sorted byte rows to boards."""
        net, at = self.flat, self.flat.layout
        threads = self.rows * (at.squares * net.planes + net.numbers) // 8
        view = net.kernels.view(
            "BoardsView",
            obs=obs,
            order=self.order,
            rows=self.rows,
            planes=at.planes,
            squares=at.squares,
            numbers=at.numbers,
            plane_width=net.planes,
            number_width=net.numbers,
            on_board=self.planes,
            beside=self.beside,
        )
        net.kernels.copy_boards(-(-threads // 256), 256, view)

    def forward(self) -> None:
        net, w, at = self.flat, self.flat.weights, self.flat.layout
        x, inside, out = self.boards
        if net.numbers:
            self.product(self.beside, w["numbers"], self.shift, self.finish(w["stem.bias"]))
            stem = self.finish(shift=self.shift, kind="relu")
        else:
            stem = self.finish(w["stem.bias"], kind="relu")
        convolve = partial(self.product, squares=at.squares, board=(at.height, at.width))
        convolve(self.planes, w["stem.weight"], x, stem)
        for block in range(net.config.blocks):
            first = self.finish(w[f"{block}.first.bias"], kind="relu")
            convolve(x, w[f"{block}.first.weight"], inside, first)
            second = self.finish(w[f"{block}.second.bias"], onto=x, kind="relu")
            convolve(inside, w[f"{block}.second.weight"], out, second)
            x, out = out, x
        if at.actions:
            self.product(x, w["head"], None, self.finish(), squares=at.squares, used=at.actions)
            return
        mapped = self.finish(w["map.bias"], kind="relu")
        self.product(x, w["map.weight"], self.policy_map, mapped, squares=at.squares)
        self.product(self.policy_map, w["head"], None, self.finish(), used=net.action_width)


def grouped_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Multiply groups of rows of `x`, which end at `ends`, with one weight each (torch)."""
    product: Any = getattr(functional, "grouped_mm", None) or torch._grouped_mm
    out: Tensor = product(x, weight, offs=ends)
    return out


def taps_of(weight: Tensor, inputs: int) -> Tensor:
    """Return torch's kernel [out, in, 3, 3] as [taps * inputs, out], inputs padded with 0."""
    out, used = weight.shape[:2]
    taps = torch.zeros(TAPS, inputs, out)
    taps[:, :used] = weight.permute(2, 3, 1, 0).reshape(TAPS, used, out)
    return taps.reshape(TAPS * inputs, out)
