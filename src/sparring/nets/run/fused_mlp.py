"""Perceptrons as flat arrays on a GPU, with hand-written forward and backward passes.

Same networks as `Perceptron`, for the fast path: static buffers, one matrix product per layer for
all members, bias and relu inside the product where the library can, bf16 products from float32
weights. A test compares it with `Perceptron` and autograd.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Unpack

import torch
from torch import Tensor

from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.heads import POLICY, VALUE, head_width
from sparring.nets.mlp import head_mask
from sparring.nets.net import Net
from sparring.nets.run.flat import (
    KINDS,
    VALUE_WIDTH,
    FlatOptions,
    FlatTensor,
    WidenedNet,
    WidenedPass,
)
from sparring.nets.run.trace import (
    COMPARED_ROWS,
    TracedPerceptron,
    describe_difference,
    from_perceptron_tensors,
    sample_rows,
    to_perceptron_tensors,
    trace_perceptron,
)

SUM_BLOCKS = 256
"""Maximum number of row blocks with separate column sums."""


class PerceptronPass(WidenedPass):
    """Activations of all layers, and their gradients."""

    flat: FusedPerceptron

    def __init__(self, net: FusedPerceptron, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.first, self.layers = self._make_layers()
        if not learn:
            return
        self.first_grad, self.grads = self._make_layers()
        self.sum_blocks = min(SUM_BLOCKS, -(-rows // 64))
        self.sums = torch.zeros(net.members, self.sum_blocks, len(net.bias_at), device=net.device)

    def _make_layers(self) -> tuple[Tensor, list[list[Tensor]]]:
        """Return buffers of the first layer, and by tower of its part of that and later layers."""
        (width, *hidden), towers = self.flat.config.hidden, self.flat.towers
        first = self.make(width * towers)
        parts = [first[..., t * width : (t + 1) * width] for t in range(towers)]
        return first, [[part, *(self.make(width) for width in hidden)] for part in parts]

    def forward(self) -> None:
        net = self.flat
        self._layer("first", self.x, self.first)
        for t, layers in enumerate(self.layers):
            for layer, (below, out) in enumerate(pairwise(layers)):
                self._layer(f"towers.{t}.{2 * layer}", below, out)
        outputs = {VALUE: (self.layers[-1][-1], self.value)}
        if net.has_policy:
            outputs[POLICY] = (self.layers[0][-1], self.logits)
        for name, (below, out) in outputs.items():
            self._product(below, net.view(net.compute, f"{name}_head.weight"), out)

    def _layer(self, name: str, x: Tensor, out: Tensor) -> None:
        net = self.flat
        weight, bias = (net.view(net.compute, f"{name}.{part}") for part in ("weight", "bias"))
        if net.members == 1 and net.kind == KINDS["relu"]:
            torch.ops.aten._addmm_activation.out(bias[0], x[0], weight[0], out=out[0])
            return
        self._product(x, weight, out)
        rows, columns = out.shape[1], out.shape[2]
        net.kernels.activate(
            -(-out.numel() // (8 * 256)),
            256,
            net.kernels.view(
                "LayerView",
                x=out,
                bias=bias,
                bias_stride=net.size,
                members=net.members,
                rows=rows,
                columns=columns,
                tanh=int(net.kind == KINDS["tanh"]),
            ),
        )

    def _product(self, a: Tensor, b: Tensor, out: Tensor, *, add: bool = False) -> None:
        """Compute out = a @ b for every member; `add`: out += a @ b."""
        alone = self.flat.members == 1
        if add:
            if alone:
                out[0].addmm_(a[0], b[0])
            else:
                out.baddbmm_(a, b)
        elif out.dtype == a.dtype:
            if alone:
                torch.mm(a[0], b[0], out=out[0])
            else:
                torch.bmm(a, b, out=out)
        elif alone:
            torch.ops.aten.mm.dtype_out(a[0], b[0], out.dtype, out=out[0])
        else:
            torch.ops.aten.bmm.dtype_out(a, b, out.dtype, out=out)

    def backward(self) -> None:
        net, last = self.flat, self.flat.towers - 1
        written: set[int] = set()
        heads = [("policy_head", self.logits_grad, 0), ("value_head", self.value_grad, last)]
        for name, grad, t in heads[not net.has_policy :]:
            self._weight_grad(name, self.layers[t][-1], grad)
            self._bias_grad(name, grad, None)
            self._input_grad(name, grad, self.grads[t][-1], add=t in written)
            written.add(t)
        for t, (layers, grads) in enumerate(zip(self.layers, self.grads, strict=True)):
            for layer in reversed(range(len(layers) - 1)):
                name = f"towers.{t}.{2 * layer}"
                self._bias_grad(name, grads[layer + 1], layers[layer + 1])
                self._weight_grad(name, layers[layer], grads[layer + 1])
                self._input_grad(name, grads[layer + 1], grads[layer])
        self._bias_grad("first", self.first_grad, self.first)
        self._weight_grad("first", self.x, self.first_grad)
        columns = len(net.bias_at)
        net.kernels.sum_columns(
            (-(-columns // 32), net.members),
            256,
            net.kernels.view(
                "BiasesView",
                sums=self.sums,
                blocks=self.sum_blocks,
                columns=columns,
                to=net.bias_at,
                grad=net.grad,
                grad_stride=net.size,
            ),
        )

    def _input_grad(self, name: str, grad: Tensor, out: Tensor, *, add: bool = False) -> None:
        weight = self.flat.view(self.flat.compute, f"{name}.weight")
        self._product(grad, weight.transpose(1, 2), out, add=add)

    def _weight_grad(self, name: str, x: Tensor, grad: Tensor) -> None:
        to = self.flat.view(self.flat.grad, f"{name}.weight")
        self._product(x.transpose(1, 2), grad, to)

    def _bias_grad(self, name: str, grad: Tensor, activation: Tensor | None) -> None:
        """Backpropagate through the activation, if any, and sum columns by blocks of rows."""
        net, rows, columns = self.flat, grad.shape[1], grad.shape[2]
        net.kernels.backward_activation(
            (-(-columns // 256), self.sum_blocks, net.members),
            256,
            net.kernels.view(
                "ColumnsView",
                grad=grad,
                out=activation,
                rows=rows,
                columns=columns,
                rows_per_block=-(-rows // self.sum_blocks),
                kind=net.kind if activation is not None else 0,
                sums=self.sums,
                all_columns=len(net.bias_at),
                first_column=net.bias_column[f"{name}.bias"],
            ),
        )


class FusedPerceptron(WidenedNet):
    """Weights, gradients and layers of all members."""

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **options: Unpack[FlatOptions]
    ) -> None:
        assert not (why := unsupported_reason("kernels", config)), why
        super().__init__(rules, config, members, **options)
        device = self.device
        self.kind = KINDS[config.activation]
        self.towers = 1 if config.shared else 2
        self.layout: dict[str, FlatTensor] = self._make_layout()
        self.size = sum(tensor.size for tensor in self.layout.values())
        biases = [tensor for name, tensor in self.layout.items() if name.endswith("bias")]
        offsets = [torch.arange(b.offset, b.offset + b.size, dtype=torch.int32) for b in biases]
        self.bias_at = torch.cat(offsets).to(device)
        """Offsets of all biases."""
        ends = accumulate(b.size for b in biases)
        self.bias_column = {b.name: end - b.size for b, end in zip(biases, ends, strict=True)}
        self.make_arrays()
        _, order, divisors = self.inputs.byte_ranges()
        self._order = torch.tensor(order)
        """Feature of every column of a converted row."""
        scale = self.view(self.scale[None], "first.weight")[0]
        scale[: len(order)] = 1 / torch.tensor(divisors, device=device)[:, None]
        if self.has_policy:
            policy = self.view(self.scale[None], "policy_head.weight")[0, :, : head_width(rules)]
            policy *= head_mask(rules, config).T.to(device)

    def _make_layout(self) -> dict[str, FlatTensor]:
        """Place all tensors, weight and bias of the value head at the end."""
        hidden, towers, actions = self.config.hidden, self.towers, head_width(self.rules)
        first = hidden[0] * towers
        layers = [("first", self.width, first, (len(self.inputs.features), first))]
        """Name, rows and columns in the flat array, and the weight's shape in the network."""
        for t in range(towers):
            for layer, (width, next_width) in enumerate(pairwise(hidden)):
                layers.append((f"towers.{t}.{2 * layer}", width, next_width, (next_width, width)))
        if self.has_policy:
            layers.append(("policy_head", hidden[-1], self.action_width, (actions, hidden[-1])))
        layers.append(("value_head", hidden[-1], VALUE_WIDTH, (1, hidden[-1])))
        layout, offset = dict[str, FlatTensor](), 0
        for name, rows, columns, net_shape in layers:
            # torch's linear layers have transposed weights.
            axes, outputs = ((0, 1), net_shape[1]) if name == "first" else ((1, 0), net_shape[0])
            weight = FlatTensor(f"{name}.weight", offset, (rows, columns), axes, net_shape)
            bias = FlatTensor(f"{name}.bias", offset + weight.size, (columns,), (0,), (outputs,))
            layout |= {weight.name: weight, bias.name: bias}
            offset += weight.size + bias.size
        return layout

    def make_pass(self, rows: int, *, learn: bool) -> PerceptronPass:
        return PerceptronPass(self, rows, learn=learn)

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        first = named["first.weight"].cpu()[self._order]
        return super().pack({**named, "first.weight": first})

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        tensors = super().unpack(flat)
        return {**tensors, "first.weight": tensors["first.weight"][self._order.argsort()]}


class CustomPerceptron(FusedPerceptron):
    """A perceptron with the tensor names and shapes of a custom module."""

    def __init__(
        self, net: Net, config: NetConfig, members: int, **options: Unpack[FlatOptions]
    ) -> None:
        """Allocate networks of this shape. config: of the equivalent built-in perceptron."""
        super().__init__(net.inputs.rules, config, members, **options)
        layers = trace_perceptron(net)
        assert isinstance(layers, TracedPerceptron)
        self.template, self.traced, self.net_config = net, layers, net.config

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        return super().pack(to_perceptron_tensors(self.traced, named))

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        tensors = from_perceptron_tensors(self.traced, super().unpack(flat))
        return {name: tensors[name] for name in self.parameter_names()}

    def parameter_names(self) -> list[str]:
        return [name for name, _ in self.template.named_parameters()]

    @torch.no_grad()
    def describe_difference(self) -> str:
        """Compare the kernels with the module, "" if they agree; overwrites member 0."""
        rows = sample_rows(self.inputs, COMPARED_ROWS)
        self.load(0, self.template.state_dict())
        probe = self.make_pass(COMPARED_ROWS, learn=False)
        probe.read(rows.repeat(self.members, 1).to(self.device))
        probe.forward()
        width = self.template.heads[POLICY]
        logits = probe.logits[0, :, :width] + self.policy_bias[0, :width]
        value = probe.value[0, :, 0] + self.value_bias[0, 0]
        outputs = {POLICY: logits.cpu(), VALUE: value.cpu()}
        return describe_difference(self.template, outputs, rows, bf16=self.bf16)
