"""Residual nets as flat arrays on a GPU, forward and backward written out.

Same networks as `ResidualNet`: bf16 convolutions in channels-last layout from float32 weights,
bias, sum and relu inside the convolution where the library can. Channels are filled up with zeros
to sizes that tensor cores take. A test holds it equal to `ResidualNet` and autograd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.residual import ResidualNet, layout_of
from sparring.nets.run.flat import FlatOptions, FlatTensor, WidenedNet, WidenedPass, rounded_up

ALIGNED = 64
"""Every tensor begins at a multiple of this many numbers."""
ROUND = (3, 3)
"""The size of a kernel that looks around."""


@dataclass
class Made:
    """The values inside the network that a backward pass asks for."""

    planes: Tensor
    numbers: Tensor
    tower: list[Tensor]
    """Behind the stem, then inside and behind each block."""
    seen: Tensor
    hidden: Tensor


class BoardPass(WidenedPass):
    """A batch of boards; what is inside the network is made anew by every pass."""

    flat: FusedResidual

    def __init__(self, net: FusedResidual, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.learn = learn
        self.made: list[Made] = []
        """What the backward pass needs, by member."""

    def forward(self) -> None:
        self.made.clear()
        for member in range(self.flat.members):
            made = self.flat.forward(self, member)
            if self.learn:
                self.made.append(made)

    def backward(self) -> None:
        net = self.flat
        for member, made in enumerate(self.made):
            for name, grad in net.backward(self, member, made).items():
                stored = grad.permute(0, 2, 3, 1) if grad.dim() == 4 else grad
                net.view(net.grad, name)[member].copy_(stored)


class FusedResidual(WidenedNet):
    """Weights, gradients and layers of all members."""

    policy_bias_name = "policy_bias"

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **room: Unpack[FlatOptions]
    ) -> None:
        assert not (why := unsupported_reason("kernels", config, memory=room.get("memory", 0))), why
        super().__init__(rules, config, members, **room)
        self.layout = layout_of(rules)
        self.planes = rounded_up(self.layout.planes, 16)
        self.maps = rounded_up(self.layout.actions)
        self.behind = self.width - self.layout.planes * self.layout.squares
        """Columns of a widened row behind the planes: the numbers, and zeros."""
        self.module = ResidualNet(rules, config)
        self.pieces: dict[str, FlatTensor] = self._lay_out()
        last = self.pieces["value_head.bias"]
        self.size = last.offset + last.size
        self.make_arrays()
        divisor = self.module.divisor
        self._divide("stem.weight", divisor[None, : self.layout.planes, None, None])
        if self.layout.numbers:
            self._divide("numbers.weight", divisor[None, self.layout.planes :])

    def _divide(self, name: str, divisor: Tensor) -> None:
        """Make divisors part of the weights that the input meets."""
        spot = self.pieces[name]
        flat = torch.zeros(self.size)
        spot.fill(flat, (1 / divisor).expand(spot.theirs))
        at = slice(spot.offset, spot.offset + spot.size)
        self.scale[at] = flat[at].to(self.device)

    def _lay_out(self) -> dict[str, FlatTensor]:
        """Place every tensor; the value head last, weight and bias together."""
        shapes = {name: tuple(p.shape) for name, p in self.module.named_parameters()}
        heads = ("value_head.weight", "value_head.bias")
        spots, offset = {}, 0
        for name in [*(name for name in shapes if name not in heads), *heads]:
            theirs = shapes[name]
            axes: tuple[int, ...]
            shape: tuple[int, ...]
            if theirs[2:] == ROUND:
                axes, shape = (0, 2, 3, 1), (theirs[0], *ROUND, rounded_up(theirs[1]))
            elif len(theirs) > 1:
                axes, shape = (1, 0), (theirs[1], rounded_up(theirs[0]))
            else:
                axes, shape = (0,), (rounded_up(theirs[0]),)
            if name == "stem.weight":
                shape = (theirs[0], *ROUND, self.planes)
            if name == "numbers.weight":
                shape = (self.behind, theirs[0])
            spots[name] = FlatTensor(name, offset, shape, axes, theirs)
            offset += spots[name].size
            if name != "value_head.weight":
                offset = rounded_up(offset, ALIGNED)
        return spots

    def make_pass(self, rows: int, *, learn: bool) -> BoardPass:
        return BoardPass(self, rows, learn=learn)

    def parameter_names(self) -> list[str]:
        return [name for name, _ in self.module.named_parameters()]

    # Passes

    def _weights(self, member: int) -> dict[str, Tensor]:
        """The tensors of a member as the passes take them; kernels look like torch's."""
        found = {name: self.view(self.compute, name)[member] for name in self.pieces}
        return {
            name: tensor.permute(0, 3, 1, 2) if tensor.dim() == 4 else tensor
            for name, tensor in found.items()
        }

    def forward(self, to: BoardPass, member: int) -> Made:
        """Compute logits and values of one member's rows."""
        at, w, rows = self.layout, self._weights(member), to.rows
        used = at.planes * at.squares
        x = to.x[member]
        planes = x.new_zeros(rows, at.height, at.width, self.planes).permute(0, 3, 1, 2)
        planes[:, : at.planes] = x[:, :used].view(rows, at.planes, at.height, at.width)
        numbers = x[:, used:]
        shift = w["stem.bias"]
        if at.numbers:
            shift = torch.addmm(shift, numbers, w["numbers.weight"])[:, :, None, None]
        else:
            shift = shift[:, None, None]
        tower = [convolve(planes, w["stem.weight"]).add_(shift).relu_()]
        for block in range(self.config.blocks):
            name = f"blocks.{block}"
            inside = convolve_relu(tower[-1], w[f"{name}.first.weight"], w[f"{name}.first.bias"])
            onto = w[f"{name}.second.weight"], w[f"{name}.second.bias"], tower[-1]
            tower += [inside, convolve_relu(inside, *onto)]
        flat = flattened(tower[-1])
        maps = torch.mm(flat, w["policy_head.weight"]).view(rows, at.squares, self.maps)
        logits = to.logits[member, :, : self.rules.actions].view(rows, at.actions, at.squares)
        logits.copy_(maps[:, :, : at.actions].transpose(1, 2))
        seen = torch.addmm(w["value_map.bias"], flat, w["value_map.weight"]).relu_()
        seen = seen.view(rows, -1)
        hidden = torch.addmm(w["value_hidden.bias"], seen, w["value_hidden.weight"]).relu_()
        to.value[member].copy_(torch.mm(hidden, w["value_head.weight"]))
        return Made(planes, numbers, tower, seen, hidden)

    def backward(self, at: BoardPass, member: int, made: Made) -> dict[str, Tensor]:
        """Return the gradients of one member's tensors, as the passes take them."""
        board, w, rows = self.layout, self._weights(member), at.rows
        found: dict[str, Tensor] = {}
        flat = flattened(made.tower[-1])
        # Value: head, hidden layer, map.
        value_grad = at.value_grad[member]
        found["value_head.weight"] = made.hidden.T @ value_grad
        found["value_head.bias"] = summed(value_grad)
        hidden_grad = through_relu(value_grad @ w["value_head.weight"].T, made.hidden)
        found["value_hidden.weight"] = made.seen.T @ hidden_grad
        found["value_hidden.bias"] = summed(hidden_grad)
        seen_grad = through_relu(hidden_grad @ w["value_hidden.weight"].T, made.seen)
        seen_grad = seen_grad.view(rows * board.squares, -1)
        found["value_map.weight"] = flat.T @ seen_grad
        found["value_map.bias"] = summed(seen_grad)
        # Policy.
        logits_grad = at.logits_grad[member]
        found["policy_bias"] = summed(logits_grad)
        maps_grad = logits_grad.new_zeros(rows, board.squares, self.maps)
        by_map = logits_grad[:, : self.rules.actions].view(rows, board.actions, board.squares)
        maps_grad[:, :, : board.actions] = by_map.transpose(1, 2)
        maps_grad = maps_grad.view(rows * board.squares, self.maps)
        found["policy_head.weight"] = flat.T @ maps_grad
        onto = torch.mm(maps_grad, w["policy_head.weight"].T)
        onto.addmm_(seen_grad, w["value_map.weight"].T)
        grad = onto.view(rows, board.height, board.width, -1).permute(0, 3, 1, 2)
        # Tower, from its end.
        for block in reversed(range(self.config.blocks)):
            name, below, inside, out = f"blocks.{block}", *made.tower[2 * block : 2 * block + 3]
            grad = through_relu(grad, out)
            step = convolve_backward(grad, inside, w[f"{name}.second.weight"])
            found[f"{name}.second.weight"], found[f"{name}.second.bias"] = step[1], step[2]
            step = convolve_backward(
                through_relu(step[0], inside), below, w[f"{name}.first.weight"]
            )
            found[f"{name}.first.weight"], found[f"{name}.first.bias"] = step[1], step[2]
            grad = step[0].add_(grad)
        grad = through_relu(grad, made.tower[0])
        found["stem.weight"] = convolve_backward(
            grad, made.planes, w["stem.weight"], inputs=False, bias=False
        )[1]
        shift_grad = grad.sum((2, 3))
        found["stem.bias"] = summed(shift_grad)
        if board.numbers:
            found["numbers.weight"] = made.numbers.T @ shift_grad
        return found


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """3x3, the border filled with zeros."""
    out: Tensor = torch.ops.aten.cudnn_convolution(
        x, weight, (1, 1), (1, 1), (1, 1), 1, torch.backends.cudnn.benchmark, False,
        torch.backends.cudnn.allow_tf32,
    )  # fmt: skip
    return out


def convolve_relu(x: Tensor, weight: Tensor, bias: Tensor, onto: Tensor | None = None) -> Tensor:
    """relu(conv(x) + bias), or with `onto` added to it, in one kernel."""
    shape = (1, 1), (1, 1), (1, 1), 1
    out: Tensor
    if onto is None:
        out = torch.ops.aten.cudnn_convolution_relu(x, weight, bias, *shape)
    else:
        out = torch.ops.aten.cudnn_convolution_add_relu(x, weight, onto, 1.0, bias, *shape)
    return out


def convolve_backward(
    grad: Tensor, x: Tensor, weight: Tensor, *, inputs: bool = True, bias: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the input, the weight and the bias."""
    grads: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        grad, x, weight, [weight.shape[0]], (1, 1), (1, 1), (1, 1), False, (0, 0), 1,
        (inputs, True, bias),
    )  # fmt: skip
    return grads


def flattened(x: Tensor) -> Tensor:
    """Channels-last boards as a matrix [rows * squares, channels]."""
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def through_relu(grad: Tensor, out: Tensor) -> Tensor:
    """The gradient in front of a relu that gave `out`."""
    before: Tensor = torch.ops.aten.threshold_backward(grad, out, 0)
    return before


def summed(grad: Tensor) -> Tensor:
    """Sum over rows, in float32."""
    return grad.sum(0, dtype=torch.float32)
