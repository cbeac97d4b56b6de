"""Residual nets as flat arrays on a GPU, with hand-written forward and backward passes.

Same networks as `ResidualNet`: bf16 convolutions in channels-last layout from float32 weights,
bias, sum and relu inside the convolution where the library can. Channels are padded with zeros
to sizes that tensor cores take. A test compares it with `ResidualNet` and autograd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.board import board_layout
from sparring.nets.residual import ResidualNet
from sparring.nets.run.flat import FlatOptions, FlatTensor, WidenedNet, WidenedPass, round_up

ALIGNED = 64
"""Every tensor starts at a multiple of this many numbers."""
KERNEL_SIZE = (3, 3)


@dataclass
class Activations:
    """Activations that the backward pass needs."""

    planes: Tensor
    numbers: Tensor
    tower: list[Tensor]
    """After the stem, then inside and after each block."""
    policy_map: Tensor
    """Input of a dense policy head; empty with one map for each action of a square."""
    value_map: Tensor
    hidden: Tensor


class BoardPass(WidenedPass):
    """A batch of boards; every forward pass allocates its activations."""

    flat: FusedResidual

    def __init__(self, net: FusedResidual, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.learn = learn
        self.activations: list[Activations] = []
        """Activations for the backward pass, by member."""

    def forward(self) -> None:
        self.activations.clear()
        for member in range(self.flat.members):
            activations = self.flat.forward(self, member)
            if self.learn:
                self.activations.append(activations)

    def backward(self) -> None:
        net = self.flat
        for member, activations in enumerate(self.activations):
            for name, grad in net.backward(self, member, activations).items():
                permuted = grad.permute(0, 2, 3, 1) if grad.dim() == 4 else grad
                net.view(net.grad, name)[member].copy_(permuted)


class FusedResidual(WidenedNet):
    """Weights, gradients and layers of all members."""

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **options: Unpack[FlatOptions]
    ) -> None:
        assert not (
            why := unsupported_reason("kernels", config, memory=options.get("memory", 0))
        ), why
        super().__init__(rules, config, members, **options)
        self.board = board_layout(rules)
        if self.board.actions:
            self.policy_bias_name = "policy_bias"
        self.planes = round_up(self.board.planes, 16)
        self.maps = round_up(self.board.actions)
        self.number_columns = self.width - self.board.planes * self.board.squares
        """Columns of a converted row after the planes: the numbers, and padding."""
        self.module = ResidualNet(rules, config)
        self.layout: dict[str, FlatTensor] = self._make_layout()
        last = self.layout["value_head.bias"]
        self.size = last.offset + last.size
        self.make_arrays()
        divisor = self.module.divisor
        self._fold_divisor("stem.weight", divisor[None, : self.board.planes, None, None])
        if self.board.numbers:
            self._fold_divisor("numbers.weight", divisor[None, self.board.planes :])

    def _fold_divisor(self, name: str, divisor: Tensor) -> None:
        """Make divisors of the input part of its weights."""
        at = self.layout[name]
        flat = torch.zeros(self.size)
        at.write(flat, (1 / divisor).expand(at.net_shape))
        part = slice(at.offset, at.offset + at.size)
        self.scale[part] = flat[part].to(self.device)

    def _make_layout(self) -> dict[str, FlatTensor]:
        """Place all tensors, weight and bias of the value head at the end."""
        shapes = {name: tuple(p.shape) for name, p in self.module.named_parameters()}
        heads = ("value_head.weight", "value_head.bias")
        layout, offset = {}, 0
        for name in [*(name for name in shapes if name not in heads), *heads]:
            net_shape = shapes[name]
            axes: tuple[int, ...]
            shape: tuple[int, ...]
            if net_shape[2:] == KERNEL_SIZE:
                axes = (0, 2, 3, 1)
                shape = (net_shape[0], *KERNEL_SIZE, round_up(net_shape[1]))
            elif len(net_shape) > 1:
                axes, shape = (1, 0), (net_shape[1], round_up(net_shape[0]))
            else:
                axes, shape = (0,), (round_up(net_shape[0]),)
            if name == "stem.weight":
                shape = (net_shape[0], *KERNEL_SIZE, self.planes)
            if name == "numbers.weight":
                shape = (self.number_columns, net_shape[0])
            layout[name] = FlatTensor(name, offset, shape, axes, net_shape)
            offset += layout[name].size
            if name != "value_head.weight":
                offset = round_up(offset, ALIGNED)
        return layout

    def make_pass(self, rows: int, *, learn: bool) -> BoardPass:
        return BoardPass(self, rows, learn=learn)

    def parameter_names(self) -> list[str]:
        return [name for name, _ in self.module.named_parameters()]

    # Passes

    def _weights(self, member: int) -> dict[str, Tensor]:
        """Return the tensors of a member; kernels have torch's shape."""
        views = {name: self.view(self.compute, name)[member] for name in self.layout}
        return {
            name: tensor.permute(0, 3, 1, 2) if tensor.dim() == 4 else tensor
            for name, tensor in views.items()
        }

    def forward(self, to: BoardPass, member: int) -> Activations:
        """Compute logits and values of one member's rows."""
        at, w, rows = self.board, self._weights(member), to.rows
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
        flat = to_matrix(tower[-1])
        policy_map = self._policy(to.logits[member], flat, w)
        value_map = map_squares(flat, w, "value_map").view(rows, -1)
        hidden = torch.addmm(w["value_hidden.bias"], value_map, w["value_hidden.weight"]).relu_()
        to.value[member].copy_(torch.mm(hidden, w["value_head.weight"]))
        return Activations(planes, numbers, tower, policy_map, value_map, hidden)

    def _policy(self, logits: Tensor, flat: Tensor, w: dict[str, Tensor]) -> Tensor:
        """Compute logits from the tower's squares; return what the backward pass needs besides."""
        at, rows = self.board, len(logits)
        if not at.actions:
            policy_map = map_squares(flat, w, "policy_map").view(rows, -1)
            logits.copy_(torch.mm(policy_map, w["policy_head.weight"]))
            return policy_map
        maps = torch.mm(flat, w["policy_head.weight"]).view(rows, at.squares, self.maps)
        by_map = logits[:, : self.rules.actions].view(rows, at.actions, at.squares)
        by_map.copy_(maps[:, :, : at.actions].transpose(1, 2))
        return flat[:0]

    def backward(self, at: BoardPass, member: int, made: Activations) -> dict[str, Tensor]:
        """Return the gradients of one member's tensors, shaped like `_weights`."""
        board, w, rows = self.board, self._weights(member), at.rows
        grads: dict[str, Tensor] = {}
        flat = to_matrix(made.tower[-1])
        # Value: head, hidden layer, map.
        value_grad = at.value_grad[member]
        grads["value_head.weight"] = made.hidden.T @ value_grad
        grads["value_head.bias"] = sum_rows(value_grad)
        hidden_grad = relu_backward(value_grad @ w["value_head.weight"].T, made.hidden)
        grads["value_hidden.weight"] = made.value_map.T @ hidden_grad
        grads["value_hidden.bias"] = sum_rows(hidden_grad)
        map_grad = relu_backward(hidden_grad @ w["value_hidden.weight"].T, made.value_map)
        map_grad = map_grad.view(rows * board.squares, -1)
        grads["value_map.weight"] = flat.T @ map_grad
        grads["value_map.bias"] = sum_rows(map_grad)
        onto = self._policy_backward(at.logits_grad[member], flat, made.policy_map, w, grads)
        onto.addmm_(map_grad, w["value_map.weight"].T)
        grad = onto.view(rows, board.height, board.width, -1).permute(0, 3, 1, 2)
        # Tower, from its end.
        for block in reversed(range(self.config.blocks)):
            name, below, inside, out = f"blocks.{block}", *made.tower[2 * block : 2 * block + 3]
            grad = relu_backward(grad, out)
            step = convolve_backward(grad, inside, w[f"{name}.second.weight"])
            grads[f"{name}.second.weight"], grads[f"{name}.second.bias"] = step[1], step[2]
            step = convolve_backward(
                relu_backward(step[0], inside), below, w[f"{name}.first.weight"]
            )
            grads[f"{name}.first.weight"], grads[f"{name}.first.bias"] = step[1], step[2]
            grad = step[0].add_(grad)
        grad = relu_backward(grad, made.tower[0])
        grads["stem.weight"] = convolve_backward(
            grad, made.planes, w["stem.weight"], inputs=False, bias=False
        )[1]
        shift_grad = grad.sum((2, 3))
        grads["stem.bias"] = sum_rows(shift_grad)
        if board.numbers:
            grads["numbers.weight"] = made.numbers.T @ shift_grad
        return grads

    def _policy_backward(
        self,
        logits_grad: Tensor,
        flat: Tensor,
        policy_map: Tensor,
        w: dict[str, Tensor],
        grads: dict[str, Tensor],
    ) -> Tensor:
        """Add the gradients of the policy head; return that of the tower's squares."""
        at, rows = self.board, len(logits_grad)
        grads[self.policy_bias_name] = sum_rows(logits_grad)
        if not at.actions:
            grads["policy_head.weight"] = policy_map.T @ logits_grad
            map_grad = relu_backward(logits_grad @ w["policy_head.weight"].T, policy_map)
            map_grad = map_grad.view(len(flat), -1)
            grads["policy_map.weight"] = flat.T @ map_grad
            grads["policy_map.bias"] = sum_rows(map_grad)
            return torch.mm(map_grad, w["policy_map.weight"].T)
        maps_grad = logits_grad.new_zeros(rows, at.squares, self.maps)
        by_map = logits_grad[:, : self.rules.actions].view(rows, at.actions, at.squares)
        maps_grad[:, :, : at.actions] = by_map.transpose(1, 2)
        maps_grad = maps_grad.view(rows * at.squares, self.maps)
        grads["policy_head.weight"] = flat.T @ maps_grad
        return torch.mm(maps_grad, w["policy_head.weight"].T)


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """3x3 convolution with zero padding."""
    out: Tensor = torch.ops.aten.cudnn_convolution(
        x, weight, (1, 1), (1, 1), (1, 1), 1, torch.backends.cudnn.benchmark, False,
        torch.backends.cudnn.allow_tf32,
    )  # fmt: skip
    return out


def convolve_relu(x: Tensor, weight: Tensor, bias: Tensor, onto: Tensor | None = None) -> Tensor:
    """Compute relu(conv(x) + bias + onto) in one kernel."""
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
    """Return the gradients of input, weight and bias."""
    grads: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        grad, x, weight, [weight.shape[0]], (1, 1), (1, 1), (1, 1), False, (0, 0), 1,
        (inputs, True, bias),
    )  # fmt: skip
    return grads


def map_squares(flat: Tensor, w: dict[str, Tensor], name: str) -> Tensor:
    """Return relu(1x1 convolution) of squares [rows * squares, channels]."""
    return torch.addmm(w[f"{name}.bias"], flat, w[f"{name}.weight"]).relu_()


def to_matrix(x: Tensor) -> Tensor:
    """Return channels-last boards as a matrix [rows * squares, channels]."""
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def relu_backward(grad: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of a relu's input, from that of its output `out`."""
    input_grad: Tensor = torch.ops.aten.threshold_backward(grad, out, 0)
    return input_grad


def sum_rows(grad: Tensor) -> Tensor:
    """Sum over rows in float32."""
    return grad.sum(0, dtype=torch.float32)
