"""Frozen residual nets on a GPU, answered together.

Boards lie channels last, so a convolution is a product of our own whose rows are gathered from the
squares around each one. A test holds the answers equal to those of `ResidualNet`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.flat import rounded_up
from sparring.nets.grouped_pass import GroupedFlat, GroupedPass
from sparring.nets.residual import layout_of

TAPS = 9


class GroupedResidual(GroupedFlat):
    """Stem, blocks and the policy's map."""

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
        self.layout = layout_of(rules)
        self.planes, self.numbers = rounded_up(self.layout.planes), rounded_up(self.layout.numbers)
        super().__init__(rules, config, members, slots, bf16=bf16, device=device, memory=memory)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Kernels [taps * inputs, outputs], biases, and the other weights [inputs, outputs]."""
        channels = self.config.channels
        found: dict[str, tuple[int, ...]] = {
            "stem.weight": (TAPS * self.planes, channels),
            "stem.bias": (channels,),
        }
        if self.numbers:
            found["numbers"] = (self.numbers, channels)
        for block in range(self.config.blocks):
            for part in ("first", "second"):
                found[f"{block}.{part}.weight"] = (TAPS * channels, channels)
                found[f"{block}.{part}.bias"] = (channels,)
        return {**found, "head": (channels, rounded_up(self.layout.actions))}

    def laid_out(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Divisors are part of the weights that the input meets."""
        at = self.layout
        divisor = torch.tensor(at.divisors)
        stem = state["stem.weight"] / divisor[None, : at.planes, None, None]
        made = {
            "stem.weight": taps_of(stem, self.planes),
            "stem.bias": state["stem.bias"],
            "head": state["policy_head.weight"].flatten(1).T,
            "policy_bias": state["policy_bias"],
        }
        if self.numbers:
            made["numbers"] = (state["numbers.weight"] / divisor[None, at.planes :]).T
        for block in range(self.config.blocks):
            for part in ("first", "second"):
                name = f"blocks.{block}.{part}"
                weight = taps_of(state[f"{name}.weight"], self.config.channels)
                made[f"{block}.{part}.weight"] = weight
                made[f"{block}.{part}.bias"] = state[f"{name}.bias"]
        return made

    def passing(self, rows: int) -> BoardsPass:
        """Return room for passes over batches of so many rows, all members together."""
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
        """Compute the logits."""
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


def taps_of(weight: Tensor, inputs: int) -> Tensor:
    """torch's kernel [out, in, 3, 3] as [taps * inputs, out], inputs filled up with zeros."""
    out, given = weight.shape[:2]
    taps = torch.zeros(TAPS, inputs, out)
    taps[:, :given] = weight.permute(2, 3, 1, 0).reshape(TAPS, given, out)
    return taps.reshape(TAPS * inputs, out)
