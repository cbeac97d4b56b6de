"""Frozen networks of one shape on a GPU, answered together: rows are sorted by network.

A group is one network of one member of a population. How many rows each has is known on the device
alone: nothing waits, and shapes never change, so that a CUDA graph can hold all of it. Only what
actions are drawn from is computed. csrc/cuda/grouped.cuh has the kernels.

Hidden layers of perceptrons are grouped products of the library where it has them (bf16, Hopper
and later), of our own elsewhere. Heads are always our own: their logits stay float32. A test holds
the answers equal to those of the networks alone.
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
from sparring.nets.frozen.cpu import check_shapes, policy_layers, shapes_of
from sparring.nets.inputs import Inputs
from sparring.nets.net import Net, head_width
from sparring.nets.residual import Layout, layout_of
from sparring.nets.run.flat import (
    KINDS,
    FlatOptions,
    rounded_up,
    row_constants,
    widened_width,
    widening_threads,
)
from sparring.nets.run.trace import TracedPerceptron, to_perceptron_tensors, trace_perceptron

SOURCE = '#include "cuda/grouped.cuh"\n'
MAX_SLOTS = 255
"""The sort has a thread for each."""
SORT_ROWS, TILE = 1024, 64
"""Rows of a block of the sort; rows and columns of a block of a product."""
MAX_LIBRARY_GROUPS = 1023
"""More than so many matrices the library refuses."""
FINISH_BLOCKS = 2048
"""Most blocks behind a product: enough for every GPU, each takes turns."""
TAPS = 9
BIAS = "policy_bias"


class GroupedFlat(ABC):
    """The weights of all frozen networks: `slots` for each member."""

    def __init__(
        self, net: Net, config: NetConfig, members: int, slots: int, **room: Unpack[FlatOptions]
    ) -> None:
        """Make room for networks like this one. config: with which one of ours is the same."""
        if not 1 <= slots <= MAX_SLOTS:
            raise ConfigError(f"{slots} slots; a GPU takes 1 to {MAX_SLOTS}")
        bf16, device, memory = room["bf16"], room["device"], room.get("memory", 0)
        self.like, self.config, self.device = net, config, device
        self.rules = rules = net.inputs.rules
        self.members, self.slots, self.groups = members, slots, members * slots
        self.dtype = torch.bfloat16 if bf16 else torch.float32
        self.inputs = Inputs(rules, memory)
        self.width, self.action_width = widened_width(self.inputs), rounded_up(head_width(rules))
        self.constants = row_constants(self.inputs, bf16=bf16)
        self.kernels: KernelModule = build(
            SOURCE, self.constants, exact=False, device=device, what=rules.name
        )
        pack_tensors = {
            name: t for name, t in self.pack_tensors(net.state_dict()).items() if name != BIAS
        }
        self.weights = {name: self.room(*tensor.shape) for name, tensor in pack_tensors.items()}
        """What products take [groups, ...]."""
        self.policy_bias = torch.zeros(self.groups, self.action_width, device=device)
        """What the kernels add to the logits, for each group."""
        self.bias_stride = self.action_width
        # Below, the library's product falls back on a loop that waits for the device.
        hopper = torch.cuda.get_device_capability(device) >= (9, 0)
        self.uses_library = bf16 and hopper and self.groups <= MAX_LIBRARY_GROUPS
        """Whether plain products are the library's; a test compares them with ours."""

    def room(self, *shape: int) -> Tensor:
        """Return zeros of every group."""
        return torch.zeros(self.groups, *shape, dtype=self.dtype, device=self.device)

    @abstractmethod
    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A network's tensors as products take them, and its `BIAS`, which may be smaller."""

    @abstractmethod
    def make_pass(self, rows: int) -> GroupedPass:
        """Return room for passes over batches of so many rows, all members together."""

    def load(self, member: int, slot: int, state: Mapping[str, Tensor]) -> None:
        """Put a frozen network into a member's slot, 1 to `slots`."""
        if not 1 <= slot <= self.slots:
            raise ConfigError(f"slot {slot}; there are 1 to {self.slots}")
        check_shapes(shapes_of(self.like), state)
        group = member * self.slots + slot - 1
        made = self.pack_tensors({name: t.detach().float().cpu() for name, t in state.items()})
        for name, tensor in made.items():
            to = self.policy_bias if name == BIAS else self.weights[name]
            to[group, : len(tensor)].copy_(tensor)


class GroupedPass(ABC):
    """A batch on its way: sort, read, forward. Made once, so that graphs can replay it."""

    memory: Tensor | None = None
    """What networks that write their memory made of the rows [rows, numbers], in sorted order."""

    def __init__(self, net: GroupedFlat, rows: int) -> None:
        if rows % net.members:
            raise ConfigError(f"{rows} rows for {net.members} members; give each as many")
        self.flat, self.rows = net, rows
        self.rows_each = rows // net.members
        self.blocks = -(-self.rows_each // SORT_ROWS)
        with torch.device(net.device):
            self._starts = torch.zeros(net.groups * self.blocks, dtype=torch.int32)
            self.ends = torch.zeros(net.groups, dtype=torch.int32)
            """The place behind the last row of every group."""
            self.position = torch.full((rows,), -1, dtype=torch.int32)
            """A row's place in the sorted order, -1 if it is nobody's here."""
            self.order = torch.full((rows,), -1, dtype=torch.int32)
            """The row at a place, -1 behind the last one."""
            self.group_of = torch.full((rows,), -1, dtype=torch.int32)
            """The group at a place, -1 behind the last one."""
            self.logits = torch.zeros(rows, net.action_width)
            """In sorted order, without the bias that the kernels add; nothing behind the last."""

    def make(self, rows: int, columns: int) -> Tensor:
        """Return zeros for values inside the network."""
        return torch.zeros(rows, columns, dtype=self.flat.dtype, device=self.flat.device)

    def sort(self, policy: Tensor, rows_each: int) -> None:
        """Find the place of every row whose policy id is that of a slot.

        policy: int16 [rows], `rows_each` rows of every member after each other.
        """
        net = self.flat
        if policy.numel() != self.rows or rows_each != self.rows_each:
            raise ConfigError(
                f"{policy.numel()} rows, {rows_each} of each member; this pass is for "
                f"{self.rows}, {self.rows_each} of each"
            )
        if not policy.is_contiguous():
            raise ConfigError("the policy ids of a batch have to lie one behind the other")
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
        """Take the byte rows that were sorted, from all rows of the batch."""

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
        """What happens to a product before it is kept: sums, then an activation."""
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
        """Rows of every group times its weight [depth, columns], by our own kernel.

        out: left out, the logits; `used` columns are kept of them. squares: rows of a place.
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
    """The policy's tower alone, of our own perceptrons or somebody's."""

    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Inputs in the order of the bytes, their divisors part of the first weights."""
        own = trace_perceptron(self.like)
        if isinstance(own, TracedPerceptron):
            state = to_perceptron_tensors(own, state)
        *layers, (head, policy_bias) = policy_layers(state, self.rules, self.config)
        made: dict[str, Tensor] = {}
        for layer, (weight, bias) in enumerate(layers):
            made |= {f"{layer}.weight": weight, f"{layer}.bias": bias}
        _, order, divisors = self.inputs.byte_ranges()
        first = made["0.weight"][order] * (1 / torch.tensor(divisors)[:, None])
        made["0.weight"] = functional.pad(first, (0, 0, 0, self.width - len(first)))
        made["head"] = functional.pad(head, (0, self.action_width - head.shape[1]))
        return {**made, BIAS: policy_bias}

    def make_pass(self, rows: int) -> PerceptronPass:
        return PerceptronPass(self, rows)


class PerceptronPass(GroupedPass):
    """Rows whose bytes became numbers."""

    flat: GroupedPerceptron

    def __init__(self, net: GroupedPerceptron, rows: int) -> None:
        super().__init__(net, rows)
        self.x = self.make(rows, net.width)
        self.hidden = [
            self.make(0 if net.uses_library else rows, width) for width in net.config.hidden
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
                    "MadeView",
                    x=below,
                    group_of=self.group_of,
                    places=self.ends[-1:],
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
    """Residual nets: stem, blocks and the policy's map.

    Boards lie channels last, so a convolution is a product of our own whose rows are gathered from
    the squares around each one.
    """

    @cached_property
    def layout(self) -> Layout:
        return layout_of(self.rules)

    @property
    def planes(self) -> int:
        return rounded_up(self.layout.planes)

    @property
    def numbers(self) -> int:
        return rounded_up(self.layout.numbers)

    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Divisors are part of the weights that the input meets."""
        at = self.layout
        divisor = torch.tensor(at.divisors)
        stem = state["stem.weight"] / divisor[None, : at.planes, None, None]
        made = {"stem.weight": taps_of(stem, self.planes), "stem.bias": state["stem.bias"]}
        if self.numbers:
            numbers = (state["numbers.weight"] / divisor[None, at.planes :]).T
            made["numbers"] = functional.pad(numbers, (0, 0, 0, self.numbers - at.numbers))
        for block in range(self.config.blocks):
            for part in ("first", "second"):
                name = f"blocks.{block}.{part}"
                weight = taps_of(state[f"{name}.weight"], self.config.channels)
                made[f"{block}.{part}.weight"] = weight
                made[f"{block}.{part}.bias"] = state[f"{name}.bias"]
        head = state["policy_head.weight"].flatten(1).T
        made["head"] = functional.pad(head, (0, rounded_up(at.actions) - at.actions))
        return {**made, BIAS: state["policy_bias"]}

    def make_pass(self, rows: int) -> BoardsPass:
        return BoardsPass(self, rows)


class BoardsPass(GroupedPass):
    """Boards [rows * squares, channels]."""

    flat: GroupedResidual

    def __init__(self, net: GroupedResidual, rows: int) -> None:
        super().__init__(net, rows)
        channels, squares = net.config.channels, net.layout.squares
        self.planes = self.make(rows * squares, net.planes)
        self.beside = self.make(rows, net.numbers)
        self.shift = self.make(rows, channels)
        """What numbers of the whole board add on all squares, and the stem's bias."""
        self.boards = [self.make(rows * squares, channels) for _ in range(3)]

    def read(self, obs: Tensor) -> None:
        """Lay out the boards of the byte rows that were sorted."""
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
        net.kernels.lay_boards(-(-threads // 256), 256, view)

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
        self.product(x, w["head"], None, self.finish(), squares=at.squares, used=at.actions)


def grouped_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """The library's: stretches of rows of `x`, up to `ends`, each times its own weight."""
    public: Any = getattr(functional, "grouped_mm", None)
    product: Any = public or torch._grouped_mm
    out: Tensor = product(x, weight, offs=ends)
    return out


def taps_of(weight: Tensor, inputs: int) -> Tensor:
    """torch's kernel [out, in, 3, 3] as [taps * inputs, out], inputs filled up with zeros."""
    out, given = weight.shape[:2]
    taps = torch.zeros(TAPS, inputs, out)
    taps[:, :given] = weight.permute(2, 3, 1, 0).reshape(TAPS, given, out)
    return taps.reshape(TAPS * inputs, out)
