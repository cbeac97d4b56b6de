"""Frozen networks of any kind on a GPU, answered together: tiles of rows, each with its network.

For networks that have no grouped passes of their own. Rows are sorted by network as everywhere
(`nets.frozen.gpu`); what a network has to answer is cut into tiles of one size, the last of them
with room to spare. Every tile reads a copy of its network's weights, and all tiles go through the
network at once (`torch.func.vmap`), or one after the other where an operation cannot be done for
many at once. How many tiles there may be is known before; which network each has is known on the
device alone: nothing waits, so that a CUDA graph can hold all of it.
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
from sparring.nets.make import make_net
from sparring.nets.net import MEMORY, POLICY, HeadOutputs, Net
from sparring.nets.run.captured import VALUE_SCALE, CapturedNet
from sparring.nets.run.flat import FlatOptions, rounded_up
from sparring.nets.run.trace import perceptron_config

MAX_TILES_EACH = 4
"""Tiles of a network if all had as many rows: more waste fewer rows and copy more weights."""
MAX_COPIED = 256 << 20
"""Bytes of weights that are copied for a pass at most, if one tile for each will do."""


class FrozenNets(CapturedNet):
    """The weights of networks that only answer: one for every group."""

    def make_arrays(self) -> None:
        """Make room for weights; nobody learns."""
        with torch.device(self.device):
            self.weight = torch.zeros(self.members, self.size)
            self.value_scale = torch.ones(self.members)

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        self.weight[member] = self.pack(state).to(self.device)
        self.value_scale[member] = float(state[VALUE_SCALE])
        for name, held in self.held.items():
            held[member].copy_(state[name])

    def copies(self, of: Tensor) -> dict[str, Tensor]:
        """Parameters and buffers of the networks `of` [tiles], one behind the other."""
        flat = self.weight.index_select(0, of)
        named = {name: self.view(flat, name) for name in self.pieces}
        held = {**self.held, VALUE_SCALE: self.value_scale}
        return named | {name: tensor.index_select(0, of) for name, tensor in held.items()}


class Tiles:
    """Sorted rows cut into tiles of one size, each of one group."""

    def __init__(self, rows: int, groups: int, each: int, device: torch.device) -> None:
        """Make room. each: tiles of a group, if all groups had as many rows."""
        self.rows, self.groups = rows, groups
        self.size = min(rounded_up(-(-rows // (groups * each))), rows)
        """Rows of a tile."""
        self.count = -(-rows // self.size) + groups
        """Tiles, as many as there can be: of every group one may be almost empty."""
        with torch.device(device):
            self._numbers = torch.arange(self.count)
            self._within = torch.arange(self.size)

    def cut(self, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Return the group of every tile [count] and the place of its rows [count, size].

        ends: the place behind the last row of every group. Where a tile has no row, the place is
        `rows`.
        """
        behind = ends.long()
        begin = torch.cat([behind.new_zeros(1), behind[:-1]])
        last = ((behind - begin + self.size - 1) // self.size).cumsum(0)
        group = torch.searchsorted(last, self._numbers, right=True)
        beyond, group = group >= self.groups, group.clamp(max=self.groups - 1)
        before = torch.cat([last.new_zeros(1), last[:-1]])
        first = begin[group] + (self._numbers - before[group]) * self.size
        place = first[:, None] + self._within
        there = (place < behind[group][:, None]) & ~beyond[:, None]
        return group, torch.where(there, place, self.rows)


class TiledNets:
    """Answers tiles of rows by frozen networks."""

    def __init__(self, nets: FrozenNets, rows: int) -> None:
        self.nets, self.rows = nets, rows
        numbers = 4 * max(nets.size, 1)
        fit = MAX_COPIED // (numbers * nets.members) - 1
        each = max(1, min(MAX_TILES_EACH, fit))
        self.tiles = Tiles(rows, nets.members, each, nets.device)
        self.apart = ""
        """Why tiles are answered one after the other, "" if they are not."""
        self._try()

    @torch.no_grad()
    def answer(self, obs: Tensor, order: Tensor, ends: Tensor) -> tuple[Tensor, HeadOutputs]:
        """Return the places of rows [tiles * size], `rows` for nobody's, and what heads say there.

        order: the row at a place. ends: the place behind the last row of every group.
        """
        group, place = self.tiles.cut(ends)
        row = order.index_select(0, place.flatten().clamp(max=self.rows - 1)).clamp(min=0)
        shown = obs.index_select(0, row).view(*place.shape, -1)
        said = self._say(self.nets.copies(group), shown)
        return place.flatten(), {name: head.flatten(0, 1) for name, head in said.items()}

    def _say(self, named: dict[str, Tensor], obs: Tensor) -> HeadOutputs:
        if not self.apart:
            together: HeadOutputs = vmap(self.nets.run)(named, obs)
            return together
        said = [
            self.nets.run({name: tensor[tile] for name, tensor in named.items()}, obs[tile])
            for tile in range(len(obs))
        ]
        return {name: torch.stack([each[name] for each in said]) for name in said[0]}

    @torch.no_grad()
    def _try(self) -> None:
        of = torch.zeros(2, dtype=torch.long, device=self.nets.device)
        shape = (2, self.tiles.size, self.nets.inputs.row_bytes)
        obs = torch.zeros(shape, dtype=torch.uint8, device=self.nets.device)
        try:
            self._say(self.nets.copies(of), obs)
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as wrong:
            self.apart = (str(wrong).splitlines() or [""])[0]


class GroupedCaptured(GroupedFlat):
    """Networks of any kind, as they are."""

    def __init__(
        self, net: Net, config: NetConfig, members: int, slots: int, **room: Unpack[FlatOptions]
    ) -> None:
        super().__init__(net, config, members, slots, **room)
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
            self.nets = FrozenNets(self.rules, config, self.groups, **room)

    def pack_tensors(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {}  # weights lie as the network has them

    def load(self, member: int, slot: int, state: Mapping[str, Tensor]) -> None:
        super().load(member, slot, state)  # refuses what does not fit
        self.nets.load(member * self.slots + slot - 1, state)

    def make_pass(self, rows: int) -> CapturedGroups:
        return CapturedGroups(self, rows)


class CapturedGroups(GroupedPass):
    """Byte rows, as they are."""

    flat: GroupedCaptured

    def __init__(self, net: GroupedCaptured, rows: int) -> None:
        super().__init__(net, rows)
        self.tiled = TiledNets(net.nets, rows)
        # One row more: what tiles have to spare goes there.
        self._logits = torch.zeros(rows + 1, net.action_width, device=net.device)
        self.logits = self._logits[:rows]
        self._memory: Tensor | None = None
        if net.config.recurrent:
            self._memory = torch.zeros(rows + 1, net.inputs.memory // 4, device=net.device)
            self.memory = self._memory[:rows]
        self._obs: Tensor | None = None

    def read(self, obs: Tensor) -> None:
        """Note where the byte rows lie; tiles take their own."""
        self._obs = obs.view(self.rows, -1)

    def forward(self) -> None:
        assert self._obs is not None
        place, said = self.tiled.answer(self._obs, self.order, self.ends)
        logits = said[POLICY].float()
        self._logits[:, : logits.shape[1]].index_copy_(0, place, logits)
        if self._memory is not None:
            self._memory.index_copy_(0, place, said[MEMORY].float())


def make_grouped(
    rules: Rules, config: NetConfig, members: int, slots: int, **room: Unpack[FlatOptions]
) -> GroupedFlat:
    """Return room for the frozen networks of all members."""
    memory = room.get("memory", 0)
    assert not (why := unsupported_reason("captured", config, memory=memory)), why
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
        net = make_net(rules, config, memory=memory)
    ours = perceptron_config(net, config) if is_factory(config.kind) else ""
    if isinstance(ours, NetConfig) and not unsupported_reason("grouped", ours):
        return GroupedPerceptron(net, ours, members, slots, **room)
    if unsupported_reason("grouped", config, memory=memory):
        return GroupedCaptured(net, config, members, slots, **room)
    by_kernels = GroupedResidual if config.kind == "residual" else GroupedPerceptron
    return by_kernels(net, config, members, slots, **room)
