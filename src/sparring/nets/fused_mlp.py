"""Multi-layer perceptrons as flat arrays on a GPU, forward and backward written out.

Same networks as `Perceptron`, for the fast path: static buffers, one matrix product per layer for
all members, bias and relu inside the product where the library can, bf16 products from float32
weights. A test holds it equal to `Perceptron` and autograd.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from sparring.capabilities.ways import why_not
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.flat import VALUE_WIDTH, WidenedNet, WidenedPass
from sparring.nets.mlp import head_mask
from sparring.nets.net import head_width

SUM_BLOCKS = 256
"""Most blocks of rows whose column sums are added up separately."""
KINDS = {"relu": 1, "tanh": 2}
"""Activations, as the kernels count them."""


@dataclass(frozen=True)
class Piece:
    """One matrix (or bias, with one row) in the flat arrays."""

    name: str
    """Its name in `Perceptron`."""
    offset: int
    rows: int
    columns: int
    turned: bool
    """torch's linear layers keep their weights the other way round."""

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self.rows * self.columns


class Activations(WidenedPass):
    """What a pass writes, and the gradients behind it."""

    def __init__(self, net: FusedPerceptron, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.net = net
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
        """Compute logits and values."""
        self.net.forward(self)

    def backward(self) -> None:
        """Fill the network's `grad` from the gradients of logits and values."""
        self.net.backward(self)


class FusedPerceptron(WidenedNet):
    """Weights, gradients and layers of all members."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        members: int,
        *,
        bf16: bool,
        device: torch.device,
        memory: int = 0,
    ) -> None:
        assert not (why := why_not("kernels", config)), why
        super().__init__(rules, config, members, bf16=bf16, device=device, memory=memory)
        self.kind = KINDS[config.activation]
        self.towers = 1 if config.shared else 2
        self.pieces: dict[str, Piece] = self._lay_out()
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
        first = self.pieces["first.weight"]
        scale = self.scale[: first.size].view(first.rows, first.columns)
        scale[: len(order)] = 1 / torch.tensor(divisors, device=device)[:, None]
        self.view(self.scale[None], "policy_head.weight")[0, :, : head_width(rules)] *= head_mask(
            rules, config
        ).T.to(device)

    def _lay_out(self) -> dict[str, Piece]:
        """Place every matrix; the value head last, weight and bias together."""
        hidden, towers = self.config.hidden, self.towers
        shapes: list[tuple[str, int, int]] = [("first", self.width, hidden[0] * towers)]
        for t in range(towers):
            for layer, (width, following) in enumerate(pairwise(hidden)):
                shapes.append((f"towers.{t}.{2 * layer}", width, following))
        shapes.append(("policy_head", hidden[-1], self.action_width))
        shapes.append(("value_head", hidden[-1], VALUE_WIDTH))
        pieces, offset = {}, 0
        for name, rows, columns in shapes:
            for kind, height in (("weight", rows), ("bias", 1)):
                turned = kind == "weight" and name != "first"
                piece = Piece(f"{name}.{kind}", offset, height, columns, turned)
                pieces[piece.name] = piece
                offset += piece.size
        return pieces

    def passing(self, rows: int, *, learn: bool) -> Activations:
        """Return room for passes over batches of so many rows."""
        return Activations(self, rows, learn=learn)

    @property
    def policy_bias(self) -> Tensor:
        """What the kernels add to the logits, for each member."""
        return self.view(self.weight, "policy_head.bias")

    def view(self, flat: Tensor, name: str) -> Tensor:
        """Return a matrix of all members [members, rows, columns]."""
        piece = self.pieces[name]
        stretch = flat[:, piece.offset : piece.offset + piece.size]
        return stretch.view(len(flat), piece.rows, piece.columns)

    # Exchange with Perceptron

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        """Return tensors named and shaped as in `Perceptron` as one flat array."""
        flat = torch.zeros(self.size)
        for name, piece in self.pieces.items():
            given = named[name].detach().float().cpu()
            if name == "first.weight":
                given = given[self._order]
            matrix = given.T if piece.turned else given
            matrix = matrix.reshape(-1, matrix.shape[-1])
            at = flat[piece.offset : piece.offset + piece.size].view(piece.rows, piece.columns)
            at[: matrix.shape[0], : matrix.shape[1]] = matrix
        return flat

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        """Return a flat array as tensors named and shaped as in `Perceptron`."""
        flat, named = flat.detach().float().cpu(), {}
        columns = {"policy_head": head_width(self.rules), "value_head": 1}
        for name, piece in self.pieces.items():
            matrix = flat[piece.offset : piece.offset + piece.size]
            matrix = matrix.view(piece.rows, piece.columns)
            matrix = matrix[:, : columns.get(name.split(".")[0], piece.columns)]
            if name == "first.weight":
                features = torch.empty(len(self._order), piece.columns)
                features[self._order] = matrix[: len(self._order)]
                matrix = features
            matrix = matrix.T if piece.turned else matrix
            named[name] = (matrix[0] if name.endswith("bias") else matrix).contiguous().clone()
        return named

    def parameter_names(self) -> list[str]:
        """The parameters in the order in which `Perceptron` has them."""
        order = ("first", "towers", "policy_head", "value_head")
        return sorted(self.pieces, key=lambda name: order.index(name.split(".")[0]))

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
            torch.ops.aten._addmm_activation.out(bias[0, 0], x[0], weight[0], out=out[0])
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
