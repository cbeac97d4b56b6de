"""Frozen networks of one shape on a GPU: room for them, and rows sorted by network.

A group is one network of one member of a population. How many rows each has is known on the device
alone: nothing waits, and shapes never change, so that a CUDA graph can hold all of it. Only what
actions are drawn from is computed. csrc/cuda/grouped.cuh has the kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.kernels import Module, build
from sparring.kernels.views import View
from sparring.nets.flat import rounded_up, row_constants, widened_width
from sparring.nets.grouped import check_shapes
from sparring.nets.inputs import Inputs
from sparring.nets.make import make_net
from sparring.nets.net import head_width

SOURCE = '#include "cuda/grouped.cuh"\n'
MOST_SLOTS = 255
"""The sort has a thread for each."""
SORT_ROWS, TILE = 1024, 64
"""Rows of a block of the sort; rows and columns of a block of a product."""
MOST_LIBRARY_GROUPS = 1023
"""More than so many matrices the library refuses."""
KINDS = {"": 0, "relu": 1, "tanh": 2, "silu": 3}
"""Activations, as the kernels count them."""


class GroupedFlat(ABC):
    """The weights of all frozen networks: `slots` for each member."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        members: int,
        slots: int,
        *,
        bf16: bool,
        device: torch.device,
        memory: int = 0,
    ) -> None:
        if not 1 <= slots <= MOST_SLOTS:
            raise ConfigError(f"{slots} slots; a GPU takes 1 to {MOST_SLOTS}")
        self.rules, self.config, self.device = rules, config, device
        self.members, self.slots, self.groups = members, slots, members * slots
        self.dtype = torch.bfloat16 if bf16 else torch.float32
        self.inputs = Inputs(rules, memory)
        self.width, self.action_width = widened_width(self.inputs), rounded_up(head_width(rules))
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
            net = make_net(rules, config, memory=memory)
        self._shapes = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
        self.constants = row_constants(self.inputs, bf16=bf16)
        self.kernels: Module = build(
            SOURCE, self.constants, exact=False, device=device, what=rules.name
        )
        self.weights = {name: self.room(*shape) for name, shape in self.shapes().items()}
        """What products take [groups, ...]."""
        self.policy_bias = torch.zeros(self.groups, self.action_width, device=device)
        """What the kernels add to the logits, for each group."""
        self.bias_stride = self.action_width
        # Below, the library's product falls back on a loop that waits for the device.
        hopper = torch.cuda.get_device_capability(device) >= (9, 0)
        self.uses_library = bf16 and hopper and self.groups <= MOST_LIBRARY_GROUPS
        """Whether plain products are the library's; a test compares them with ours."""

    def room(self, *shape: int) -> Tensor:
        """Return zeros of every group."""
        return torch.zeros(self.groups, *shape, dtype=self.dtype, device=self.device)

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What products take of one network, by name."""

    @abstractmethod
    def laid_out(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A network's tensors as products take them, and its `policy_bias`; may be smaller."""

    @abstractmethod
    def passing(self, rows: int) -> GroupedPass:
        """Return room for passes over batches of so many rows, all members together."""

    def load(self, member: int, slot: int, state: Mapping[str, Tensor]) -> None:
        """Put a frozen network into a member's slot, 1 to `slots`."""
        if not 1 <= slot <= self.slots:
            raise ConfigError(f"slot {slot}; there are 1 to {self.slots}")
        check_shapes(self._shapes, state)
        group = member * self.slots + slot - 1
        made = self.laid_out({name: t.detach().float().cpu() for name, t in state.items()})
        for name, tensor in made.items():
            to = (self.policy_bias if name == "policy_bias" else self.weights[name])[group]
            whole = torch.zeros(to.shape)
            whole[tuple(slice(0, n) for n in tensor.shape)] = tensor
            to.copy_(whole)

    def read_threads(self) -> int:
        """Threads that widen a row."""
        eights = self.constants["SPARRING_U8S"] // 8
        return eights + self.width - 8 * eights


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
    ) -> View:
        """What happens to a product before it is kept: sums, then an activation."""
        return self.flat.kernels.view(
            "FinishView", bias=bias, shift=shift, onto=onto, kind=KINDS[kind]
        )

    def product(
        self,
        x: Tensor,
        weight: Tensor,
        out: Tensor | None,
        finish: View,
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
