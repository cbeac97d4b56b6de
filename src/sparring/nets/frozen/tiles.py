"""Frozen networks of any kind on a GPU, which share a batch: tiles of rows, each of one network.

For networks without hand-written grouped passes. Rows are sorted by network (`nets.frozen.gpu`)
and cut into tiles of one size; a network's last tile is padded. Every tile reads a copy of its
network's weights, and all tiles run at once (`torch.func.vmap`), or one after the other if an
operation has no batched form. The maximum number of tiles is known before; only the device knows
the network of each tile: nothing synchronizes, so that a CUDA graph can capture all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import torch
from torch import Tensor
from torch.func import vmap

from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.frozen.gpu import GroupedFlat, GroupedPass, GroupedPerceptron, GroupedResidual
from sparring.nets.heads import MEMORY, POLICY
from sparring.nets.make import make_net
from sparring.nets.net import HeadOutputs, Net
from sparring.nets.run.captured import VALUE_SCALE, CapturedNet
from sparring.nets.run.flat import FlatOptions, round_up
from sparring.nets.run.trace import perceptron_config

MAX_TILES_EACH = 4
"""Tiles per network if all have equally many rows: more tiles pad fewer rows, copy more weights."""
MAX_COPIED_BYTES = 256 << 20
"""Maximum bytes of weights copied per pass, unless one tile per network needs more."""


class FrozenNets(CapturedNet):
    """Weights of frozen networks, one for every group."""

    def make_arrays(self) -> None:
        """Allocate weights without gradients."""
        with torch.device(self.device):
            self.weight = torch.zeros(self.members, self.size)
            self.value_scale = torch.ones(self.members)

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        self.weight[member] = self.pack(state).to(self.device)
        self.value_scale[member] = float(state[VALUE_SCALE])
        for name, buffer in self.buffers.items():
            buffer[member].copy_(state[name])

    def copies(self, groups: Tensor) -> dict[str, Tensor]:
        """Return stacked parameters and buffers of the tiles' networks. groups: [tiles]."""
        flat = self.weight.index_select(0, groups)
        named = {name: self.view(flat, name) for name in self.layout}
        buffers = {**self.buffers, VALUE_SCALE: self.value_scale}
        return named | {name: tensor.index_select(0, groups) for name, tensor in buffers.items()}


class Tiles:
    """Sorted rows cut into tiles of one size, each of one group."""

    def __init__(self, rows: int, groups: int, each: int, device: torch.device) -> None:
        """Choose the size of tiles. each: tiles of a group, if all groups have as many rows."""
        self.rows, self.groups = rows, groups
        self.size = min(round_up(-(-rows // (groups * each))), rows)
        """Rows of a tile."""
        self.count = -(-rows // self.size) + groups
        """Maximum number of tiles: one of every group may be almost empty."""
        with torch.device(device):
            self._numbers = torch.arange(self.count)
            self._within = torch.arange(self.size)

    def cut(self, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Return the group of every tile [count] and the sorted indices of its rows [count, size].

        ends: end of every group in the sorted order. An index of `rows` is padding.
        """
        end = ends.long()
        begin = torch.cat([end.new_zeros(1), end[:-1]])
        last_tile = ((end - begin + self.size - 1) // self.size).cumsum(0)
        group = torch.searchsorted(last_tile, self._numbers, right=True)
        is_empty, group = group >= self.groups, group.clamp(max=self.groups - 1)
        first_tile = torch.cat([last_tile.new_zeros(1), last_tile[:-1]])
        first = begin[group] + (self._numbers - first_tile[group]) * self.size
        index = first[:, None] + self._within
        is_row = (index < end[group][:, None]) & ~is_empty[:, None]
        return group, torch.where(is_row, index, self.rows)


class TiledNets:
    """Runs frozen networks on tiles of rows."""

    def __init__(self, nets: FrozenNets, rows: int) -> None:
        self.nets, self.rows = nets, rows
        net_bytes = 4 * max(nets.size, 1)
        fit = MAX_COPIED_BYTES // (net_bytes * nets.members) - 1
        each = max(1, min(MAX_TILES_EACH, fit))
        self.tiles = Tiles(rows, nets.members, each, nets.device)
        self.sequential_reason = ""
        """Why tiles run one after the other, "" if they run at once."""
        self._try_vmap()

    @torch.no_grad()
    def forward(self, obs: Tensor, order: Tensor, ends: Tensor) -> tuple[Tensor, HeadOutputs]:
        """Return sorted indices [tiles * size], `rows` for padding, and outputs at these indices.

        order: row at an index of the sorted order. ends: end of every group in it.
        """
        group, index = self.tiles.cut(ends)
        row = order.index_select(0, index.flatten().clamp(max=self.rows - 1)).clamp(min=0)
        tiles = obs.index_select(0, row).view(*index.shape, -1)
        outputs = self._run(self.nets.copies(group), tiles)
        return index.flatten(), {name: head.flatten(0, 1) for name, head in outputs.items()}

    def _run(self, named: dict[str, Tensor], obs: Tensor) -> HeadOutputs:
        if not self.sequential_reason:
            batched: HeadOutputs = vmap(self.nets.run)(named, obs)
            return batched
        outputs = [
            self.nets.run({name: tensor[tile] for name, tensor in named.items()}, obs[tile])
            for tile in range(len(obs))
        ]
        return {name: torch.stack([each[name] for each in outputs]) for name in outputs[0]}

    @torch.no_grad()
    def _try_vmap(self) -> None:
        groups = torch.zeros(2, dtype=torch.long, device=self.nets.device)
        shape = (2, self.tiles.size, self.nets.inputs.row_bytes)
        obs = torch.zeros(shape, dtype=torch.uint8, device=self.nets.device)
        try:
            self._run(self.nets.copies(groups), obs)
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
            self.sequential_reason = (str(error).splitlines() or [""])[0]


class GroupedCaptured(GroupedFlat):
    """Networks of any kind, run by torch."""

    def __init__(
        self, net: Net, config: NetConfig, members: int, slots: int, **options: Unpack[FlatOptions]
    ) -> None:
        super().__init__(net, config, members, slots, **options)
        with torch.random.fork_rng(devices=[]):  # the initial weights are not used
            self.nets = FrozenNets(self.rules, config, self.groups, **options)

    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {}  # `nets` has the weights

    def load(self, member: int, slot: int, state: Mapping[str, Tensor]) -> None:
        super().load(member, slot, state)  # checks names and shapes
        self.nets.load(member * self.slots + slot - 1, state)

    def make_pass(self, rows: int) -> GroupedCapturedPass:
        return GroupedCapturedPass(self, rows)


class GroupedCapturedPass(GroupedPass):
    """Outputs of networks that read byte rows."""

    flat: GroupedCaptured

    def __init__(self, net: GroupedCaptured, rows: int) -> None:
        super().__init__(net, rows)
        self.tiled = TiledNets(net.nets, rows)
        # One row more: the padding of tiles is written there.
        self._logits = torch.zeros(rows + 1, net.action_width, device=net.device)
        self.logits = self._logits[:rows]
        self._memory: Tensor | None = None
        if net.config.recurrent:
            self._memory = torch.zeros(rows + 1, net.inputs.memory // 4, device=net.device)
            self.memory = self._memory[:rows]
        self._obs: Tensor | None = None

    def read(self, obs: Tensor) -> None:
        self._obs = obs.view(self.rows, -1)

    def forward(self) -> None:
        assert self._obs is not None
        index, outputs = self.tiled.forward(self._obs, self.order, self.ends)
        logits = outputs[POLICY].float()
        self._logits[:, : logits.shape[1]].index_copy_(0, index, logits)
        if self._memory is not None:
            self._memory.index_copy_(0, index, outputs[MEMORY].float())


def make_grouped(
    rules: Rules, config: NetConfig, members: int, slots: int, **options: Unpack[FlatOptions]
) -> GroupedFlat:
    """Allocate the frozen networks of all members."""
    memory = options.get("memory", 0)
    assert not (why := unsupported_reason("captured", config, memory=memory)), why
    with torch.random.fork_rng(devices=[]):  # the initial weights are not used
        net = make_net(rules, config, memory=memory)
    equivalent = perceptron_config(net, config) if is_factory(config.kind) else ""
    if isinstance(equivalent, NetConfig) and not unsupported_reason("grouped", equivalent):
        return GroupedPerceptron(net, equivalent, members, slots, **options)
    if unsupported_reason("grouped", config, memory=memory):
        return GroupedCaptured(net, config, members, slots, **options)
    kernel_net = GroupedResidual if config.kind == "residual" else GroupedPerceptron
    return kernel_net(net, config, members, slots, **options)
