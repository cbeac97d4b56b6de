"""Multi-layer perceptrons as flat arrays on a GPU, forward and backward written out.

Same networks as `Perceptron`, for the fast path: static buffers, one matrix product per layer for
all members, bias and relu inside the product where the library can, bf16 products from float32
weights. A test holds it equal to `Perceptron` and autograd.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Unpack

import torch
from torch import Tensor

from sparring.capabilities.ways import why_not
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.flat import VALUE_WIDTH, Room, Spot, WidenedNet, WidenedPass
from sparring.nets.mlp import head_mask
from sparring.nets.net import POLICY, VALUE, Net, head_width
from sparring.nets.recognised import (
    COMPARED,
    Layers,
    as_perceptron,
    differs,
    from_perceptron,
    recognise,
    some_rows,
)

SUM_BLOCKS = 256
"""Most blocks of rows whose column sums are added up separately."""
KINDS = {"relu": 1, "tanh": 2}
"""Activations, as the kernels count them."""


class Activations(WidenedPass):
    """What a pass writes, and the gradients behind it."""

    flat: FusedPerceptron

    def __init__(self, net: FusedPerceptron, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        hidden, towers = net.config.hidden, net.towers
        self.first = self.make(hidden[0] * towers)
        self.hidden = [[self.make(width) for width in hidden[1:]] for _ in range(towers)]
        if not learn:
            return
        self.first_grad = self.make(hidden[0] * towers)
        self.hidden_grad = [[self.make(width) for width in hidden[1:]] for _ in range(towers)]
        self.sum_blocks = min(SUM_BLOCKS, -(-rows // 64))
        self.sums = torch.zeros(net.members, self.sum_blocks, len(net.bias_at), device=net.device)

    def forward(self) -> None:
        self.flat.forward(self)

    def backward(self) -> None:
        self.flat.backward(self)


class FusedPerceptron(WidenedNet):
    """Weights, gradients and layers of all members."""

    def __init__(self, rules: Rules, config: NetConfig, members: int, **room: Unpack[Room]) -> None:
        assert not (why := why_not("kernels", config)), why
        super().__init__(rules, config, members, **room)
        device = self.device
        self.kind = KINDS[config.activation]
        self.towers = 1 if config.shared else 2
        self.pieces: dict[str, Spot] = self._lay_out()
        self.size = sum(piece.size for piece in self.pieces.values())
        biases = [piece for name, piece in self.pieces.items() if name.endswith("bias")]
        places = [torch.arange(b.offset, b.offset + b.size, dtype=torch.int32) for b in biases]
        self.bias_at = torch.cat(places).to(device)
        """Where the biases lie, side by side."""
        ends = accumulate(b.size for b in biases)
        self._bias_column = {b.name: end - b.size for b, end in zip(biases, ends, strict=True)}
        self.make_arrays()
        _, order, divisors = self.inputs.stretches()
        self._order = torch.tensor(order)
        """The feature of every column of a widened row."""
        scale = self.view(self.scale[None], "first.weight")[0]
        scale[: len(order)] = 1 / torch.tensor(divisors, device=device)[:, None]
        self.view(self.scale[None], "policy_head.weight")[0, :, : head_width(rules)] *= head_mask(
            rules, config
        ).T.to(device)

    def _lay_out(self) -> dict[str, Spot]:
        """Place every matrix; the value head last, weight and bias together."""
        hidden, towers, actions = self.config.hidden, self.towers, head_width(self.rules)
        first = hidden[0] * towers
        layers = [("first", self.width, first, (len(self.inputs.features), first))]
        """Name, rows and columns here, and the shape of the weight in the network."""
        for t in range(towers):
            for layer, (width, following) in enumerate(pairwise(hidden)):
                layers.append((f"towers.{t}.{2 * layer}", width, following, (following, width)))
        layers.append(("policy_head", hidden[-1], self.action_width, (actions, hidden[-1])))
        layers.append(("value_head", hidden[-1], VALUE_WIDTH, (1, hidden[-1])))
        pieces, offset = dict[str, Spot](), 0
        for name, rows, columns, theirs in layers:
            # torch's linear layers keep their weights the other way round.
            axes, outputs = ((0, 1), theirs[1]) if name == "first" else ((1, 0), theirs[0])
            weight = Spot(f"{name}.weight", offset, (rows, columns), axes, theirs)
            bias = Spot(f"{name}.bias", offset + weight.size, (columns,), (0,), (outputs,))
            pieces |= {weight.name: weight, bias.name: bias}
            offset += weight.size + bias.size
        return pieces

    def passing(self, rows: int, *, learn: bool) -> Activations:
        return Activations(self, rows, learn=learn)

    # Exchange with Perceptron

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        first = named["first.weight"].cpu()[self._order]
        return super().pack({**named, "first.weight": first})

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        found = super().unpack(flat)
        return {**found, "first.weight": found["first.weight"][self._order.argsort()]}

    # Passes

    def forward(self, to: Activations) -> None:
        """Compute logits and values of the rows in `to.x`."""
        self._layer("first", to.x, to.first)
        width = self.config.hidden[0]
        ends = []
        for t in range(self.towers):
            below = to.first[..., t * width : (t + 1) * width]
            for layer, out in enumerate(to.hidden[t]):
                self._layer(f"towers.{t}.{2 * layer}", below, out)
                below = out
            ends.append(below)
        self._product(ends[0], self.view(self.compute, "policy_head.weight"), to.logits)
        self._product(ends[-1], self.view(self.compute, "value_head.weight"), to.value)

    def _layer(self, name: str, x: Tensor, out: Tensor) -> None:
        weight = self.view(self.compute, f"{name}.weight")
        bias = self.view(self.compute, f"{name}.bias")
        if self.members == 1 and self.kind == KINDS["relu"]:
            torch.ops.aten._addmm_activation.out(bias[0], x[0], weight[0], out=out[0])
            return
        self._product(x, weight, out)
        rows, columns = out.shape[1], out.shape[2]
        self.kernels.activate(
            -(-out.numel() // (8 * 256)),
            256,
            self.kernels.view(
                "LayerView",
                x=out,
                bias=bias,
                bias_stride=self.size,
                members=self.members,
                rows=rows,
                columns=columns,
                tanh=int(self.kind == KINDS["tanh"]),
            ),
        )

    def _product(self, a: Tensor, b: Tensor, out: Tensor, *, add: bool = False) -> None:
        """out = a @ b for every member; `add` adds to what is there."""
        if add:
            if self.members == 1:
                out[0].addmm_(a[0], b[0])
            else:
                out.baddbmm_(a, b)
        elif out.dtype == a.dtype:
            if self.members == 1:
                torch.mm(a[0], b[0], out=out[0])
            else:
                torch.bmm(a, b, out=out)
        elif self.members == 1:
            torch.ops.aten.mm.dtype_out(a[0], b[0], out.dtype, out=out[0])
        else:
            torch.ops.aten.bmm.dtype_out(a, b, out.dtype, out=out)

    def backward(self, at: Activations) -> None:
        """Fill `grad` from the gradients of logits and values in `at`."""
        towers = self.towers
        heads = [("policy_head", at.logits_grad, 0), ("value_head", at.value_grad, towers - 1)]
        met: set[int] = set()
        for name, grad, t in heads:
            end = self._layers_of(at.first, at.hidden, t)[-1]
            end_grad = self._layers_of(at.first_grad, at.hidden_grad, t)[-1]
            self._weight_grad(name, end, grad)
            self._bias_grad(at, name, grad, None)
            weight = self.view(self.compute, f"{name}.weight")
            self._product(grad, weight.transpose(1, 2), end_grad, add=t in met)
            met.add(t)
        for t in range(towers):
            made, grads = at.hidden[t], at.hidden_grad[t]
            below = self._layers_of(at.first, at.hidden, t)
            below_grad = self._layers_of(at.first_grad, at.hidden_grad, t)
            for layer in reversed(range(len(made))):
                name = f"towers.{t}.{2 * layer}"
                self._bias_grad(at, name, grads[layer], made[layer])
                self._weight_grad(name, below[layer], grads[layer])
                weight = self.view(self.compute, f"{name}.weight")
                self._product(grads[layer], weight.transpose(1, 2), below_grad[layer])
        self._bias_grad(at, "first", at.first_grad, at.first)
        self._weight_grad("first", at.x, at.first_grad)
        columns = len(self.bias_at)
        self.kernels.sum_columns(
            (-(-columns // 32), self.members),
            256,
            self.kernels.view(
                "BiasesView",
                sums=at.sums,
                blocks=at.sum_blocks,
                columns=columns,
                to=self.bias_at,
                grad=self.grad,
                grad_stride=self.size,
            ),
        )

    def _layers_of(self, first: Tensor, hidden: list[list[Tensor]], t: int) -> list[Tensor]:
        """Return a tower's layers from its share of the first one upwards."""
        width = self.config.hidden[0]
        return [first[..., t * width : (t + 1) * width], *hidden[t]]

    def _weight_grad(self, name: str, x: Tensor, grad: Tensor) -> None:
        self._product(x.transpose(1, 2), grad, self.view(self.grad, f"{name}.weight"))

    def _bias_grad(self, at: Activations, name: str, grad: Tensor, made: Tensor | None) -> None:
        """Take the gradient through an activation, if any, and sum its columns by blocks."""
        rows, columns = grad.shape[1], grad.shape[2]
        self.kernels.backward_activation(
            (-(-columns // 256), at.sum_blocks, self.members),
            256,
            self.kernels.view(
                "ColumnsView",
                grad=grad,
                out=made,
                rows=rows,
                columns=columns,
                rows_per_block=-(-rows // at.sum_blocks),
                kind=self.kind if made is not None else 0,
                sums=at.sums,
                all_columns=len(self.bias_at),
                first_column=self._bias_column[f"{name}.bias"],
            ),
        )


class OwnPerceptron(FusedPerceptron):
    """A perceptron whose tensors are named and shaped as in a module of somebody's own."""

    def __init__(self, net: Net, config: NetConfig, members: int, **room: Unpack[Room]) -> None:
        """Make room for networks like this one. config: with which ours is the same."""
        super().__init__(net.inputs.rules, config, members, **room)
        layers = recognise(net)
        assert isinstance(layers, Layers)
        self.like, self.names, self.made_of = net, layers, net.config

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        return super().pack(as_perceptron(self.names, named))

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        found = from_perceptron(self.names, super().unpack(flat))
        return {name: found[name] for name in self.parameter_names()}

    def parameter_names(self) -> list[str]:
        return [name for name, _ in self.like.named_parameters()]

    @torch.no_grad()
    def differs(self) -> str:
        """Hold the kernels against the module; what lies in the arrays of the first is lost."""
        rows = some_rows(self.inputs, COMPARED)
        self.load(0, self.like.state_dict())
        passing = self.passing(COMPARED, learn=False)
        passing.read(rows.repeat(self.members, 1).to(self.device))
        passing.forward()
        width = self.like.heads[POLICY]
        logits = passing.logits[0, :, :width] + self.policy_bias[0, :width]
        value = passing.value[0, :, 0] + self.value_bias[0, 0]
        said = {POLICY: logits.cpu(), VALUE: value.cpu()}
        return differs(self.like, said, rows, rounded=self.bf16)
