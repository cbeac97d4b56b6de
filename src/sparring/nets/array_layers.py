"""Passes of networks over arrays: numpy's products and the native core, without torch.

A class per kind declares its weights by the names and shapes of its twin in torch, and computes the
same outputs up to rounding; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from sparring import _native
from sparring.config import NetConfig
from sparring.nets.board import (
    CHANNEL_STEP,
    POLICY_CHANNELS,
    VALUE_CHANNELS,
    VALUE_HIDDEN,
    board_layout,
)
from sparring.nets.heads import (
    MEMORY,
    POLICY,
    QUANTILES,
    SCORE,
    VALUE,
    WDL,
    Floats,
    towers_of_heads,
)
from sparring.nets.inputs import Inputs

Bytes = npt.NDArray[np.uint8]
Weights = dict[str, npt.NDArray[Any]]
Shapes = dict[str, tuple[int, ...]]

CLIP, EPS, NORM_EPS = 10.0, 1e-8, 1e-5
"""Of `nets.layers.Normalizer`, and of torch's LayerNorm."""
BOARDS = 16
"""Boards that go through a tower together: what they need fits a cache."""
LAYERS_OF = {
    **dict.fromkeys((POLICY, QUANTILES), ("policy_layers", "policy_hidden")),
    **dict.fromkeys((VALUE, WDL, SCORE), ("value_layers", "value_hidden")),
}
"""Layers between a head and its tower, and the setting with their widths."""


class Linear(NamedTuple):
    """Names and widths of a linear layer and of the norm behind it, "" without one."""

    name: str
    norm: str
    inputs: int
    outputs: int


class ArrayPerceptron:
    """Linear layers over all features, and a GRU cell behind them for a recurrent network."""

    def __init__(self, inputs: Inputs, config: NetConfig, heads: dict[str, int], threads: int):
        self.inputs, self.config, self.heads = inputs, config, heads
        rules, width = inputs.rules, config.hidden[0]
        self.seen = Inputs(rules, 0, config.inputs) if config.recurrent else inputs
        """What the first layer reads: not the state of a cell."""
        self.native = _native.FirstLayer(self.seen.runs, threads)
        shared = dict.fromkeys(heads, 0)
        self.tower_of = shared if config.recurrent else towers_of_heads(heads, config)
        self.width, self.count = width, max(self.tower_of.values()) + 1
        norm = config.norm
        if config.recurrent:
            self.first_norms = ["trunk.0"] if norm else []
            self.towers = [stack("trunk", config.hidden, norm=norm, first=1 + norm)]
        else:
            self.first_norms = [f"first_norms.{i}" for i in range(self.count)] if norm else []
            self.towers = [
                stack(f"towers.{i}", config.hidden, norm=norm) for i in range(self.count)
            ]
        self.own: dict[str, list[Linear]] = {}
        """Layers between heads and towers, by the name of their module."""
        for name, setting in () if config.recurrent else set(LAYERS_OF.values()):
            if widths := getattr(config, setting):
                self.own[name] = stack(name, (config.hidden[-1], *widths), norm=norm)

    def shapes(self) -> Shapes:
        """Return the shapes of the weights by name."""
        config, width = self.config, self.width * self.count
        shapes: Shapes = {"first.weight": (len(self.seen.features), width), "first.bias": (width,)}
        if config.normalize:
            numbers = (len(self.seen.rules.features),)
            shapes |= {"first.normalizer.mean": numbers, "first.normalizer.variance": numbers}
            shapes["first.normalizer.count"] = ()
        for name in self.first_norms:
            shapes |= {f"{name}.weight": (self.width,), f"{name}.bias": (self.width,)}
        used = {name: self.own[name] for name in map(self.own_layers, self.heads) if name}
        for layer in chain(*self.towers, *used.values()):
            shapes |= linear_shapes(layer.name, layer.inputs, layer.outputs)
            if layer.norm:
                shapes |= {f"{layer.norm}.{part}": (layer.outputs,) for part in ("weight", "bias")}
        if config.recurrent:
            state = config.memory_width
            for part, reads in (("ih", config.hidden[-1]), ("hh", state)):
                shapes |= {f"cell.weight_{part}": (3 * state, reads)}
                shapes |= {f"cell.bias_{part}": (3 * state,)}
        for name, outputs in self.heads.items():
            shapes |= linear_shapes(f"{name}_head", self.width_before(name), outputs)
        return shapes

    def own_layers(self, head: str) -> str:
        """Return the module of the layers between a head and its tower; "": there is none."""
        name, _ = LAYERS_OF.get(head, ("", ""))
        return name if name in self.own else ""

    def width_before(self, head: str) -> int:
        """Return the number of inputs of a head."""
        if self.config.recurrent:
            return self.config.memory_width
        own = self.own_layers(head)
        return self.own[own][-1].outputs if own else self.config.hidden[-1]

    def run(self, weights: Weights, rows: Bytes) -> dict[str, Floats]:
        """Return the outputs of all heads for byte rows."""
        parts = np.split(self.first(weights, rows), self.count, axis=1)
        for i, norm in enumerate(self.first_norms):
            parts[i] = layer_norm(parts[i], weights, norm)
        hidden = [
            self.through(weights, tower, self.activate(part))
            for tower, part in zip(self.towers, parts, strict=True)
        ]
        outputs: dict[str, Floats] = {}
        if self.config.recurrent:
            hidden = [self.next_state(weights, hidden[0], rows)]
            padding = self.inputs.memory // 4 - hidden[0].shape[1]
            outputs[MEMORY] = np.pad(hidden[0], ((0, 0), (0, padding)))
        by_layers: dict[str, Floats] = {}
        for name in self.heads:
            x = hidden[self.tower_of[name]]
            if own := self.own_layers(name):
                if own not in by_layers:
                    by_layers[own] = self.through(weights, self.own[own], x)
                x = by_layers[own]
            outputs[name] = self.head(weights, name, x)
        return outputs

    def first(self, weights: Weights, rows: Bytes) -> Floats:
        """Return the first layer [rows, width], which skips zeros unless it normalizes."""
        weight, bias = weights["first.weight"], weights["first.bias"]
        if not self.config.normalize:
            out = np.empty((len(rows), len(bias)), np.float32)
            seen = np.ascontiguousarray(rows[:, : self.seen.row_bytes])
            self.native.forward(seen, weight, bias, out)
            return out
        numbers, order = widen(self.seen, rows)
        return normalized(weights, numbers) @ weight[order] + bias

    def next_state(self, weights: Weights, x: Floats, rows: Bytes) -> Floats:
        """Return the states of the cell behind this decision, as `nn.GRUCell` computes them."""
        width = self.config.memory_width
        state = memory_of(self.inputs, rows)[:, :width]
        given = x @ weights["cell.weight_ih"].T + weights["cell.bias_ih"]
        before = state @ weights["cell.weight_hh"].T + weights["cell.bias_hh"]
        reset, update = np.split(sigmoid(given[:, : 2 * width] + before[:, : 2 * width]), 2, axis=1)
        new = np.tanh(given[:, 2 * width :] + reset * before[:, 2 * width :])
        after: Floats = new + update * (state - new)
        return after

    def head(self, weights: Weights, name: str, x: Floats) -> Floats:
        out: Floats = x @ self.head_weight(weights, name).T + weights[f"{name}_head.bias"]
        return out[:, 0] if name == VALUE else out

    def head_weight(self, weights: Weights, name: str) -> Floats:
        """Return the weights of a head; a std shared by all rows is its bias alone."""
        weight, box = weights[f"{name}_head.weight"], self.inputs.rules.box
        if name == POLICY and box and self.config.std == "shared":
            weight = weight.copy()
            weight[box:] = 0
        return weight

    def through(self, weights: Weights, layers: Sequence[Linear], x: Floats) -> Floats:
        """Return the activations behind layers."""
        for layer in layers:
            x = x @ weights[f"{layer.name}.weight"].T + weights[f"{layer.name}.bias"]
            x = self.activate(layer_norm(x, weights, layer.norm) if layer.norm else x)
        return x

    def activate(self, x: Floats) -> Floats:
        return ACTIVATIONS[self.config.activation](x)


class ArrayResidual:
    """A tower of residual blocks: a native stem, which reads bytes, and products of numpy.

    Channels are padded with zeros to a multiple that the native core takes.
    """

    def __init__(self, inputs: Inputs, config: NetConfig, heads: dict[str, int], threads: int):
        self.heads, self.channels, self.blocks = heads, config.channels, config.blocks
        self.layout, self.rules = board_layout(inputs.rules), inputs.rules
        self.wide = -(-config.channels // CHANNEL_STEP) * CHANNEL_STEP
        at = self.layout
        self.native = _native.Convolutions(at.height, at.width, at.planes, self.rules.runs, threads)
        self._kernels: dict[str, Floats] = {}

    def shapes(self) -> Shapes:
        """Return the shapes of the weights by name."""
        at, channels = self.layout, self.channels
        shapes = convolution_shapes("stem", at.planes, channels)
        if at.numbers:
            shapes["numbers.weight"] = (channels, at.numbers)
        for block in range(self.blocks):
            for part in ("first", "second"):
                shapes |= convolution_shapes(f"blocks.{block}.{part}", channels, channels)
        if at.actions:
            shapes["policy_head.weight"] = (at.actions, channels, 1, 1)
            shapes["policy_bias"] = (self.rules.actions,)
        else:
            shapes |= convolution_shapes("policy_map", channels, POLICY_CHANNELS, 1)
            reads = POLICY_CHANNELS * at.squares
            shapes |= linear_shapes("policy_head", reads, self.rules.actions)
        if VALUE in self.heads:
            shapes |= convolution_shapes("value_map", channels, VALUE_CHANNELS, 1)
            shapes |= linear_shapes("value_hidden", VALUE_CHANNELS * at.squares, VALUE_HIDDEN)
        for name in (VALUE, WDL, SCORE):
            if name in self.heads:
                shapes |= linear_shapes(f"{name}_head", VALUE_HIDDEN, self.heads[name])
        return shapes

    def run(self, weights: Weights, rows: Bytes) -> dict[str, Floats]:
        """Return the outputs of all heads for byte rows, some boards at a time."""
        parts = [rows[at : at + BOARDS] for at in range(0, max(len(rows), 1), BOARDS)]
        outputs = [self._run(weights, part) for part in parts]
        return {name: np.concatenate([one[name] for one in outputs]) for name in outputs[0]}

    def _run(self, weights: Weights, rows: Bytes) -> dict[str, Floats]:
        x = self.stem(weights, rows)
        for block in range(self.blocks):
            first, second = f"blocks.{block}.first", f"blocks.{block}.second"
            inside = self.convolve(weights, first, x, None)
            x = self.convolve(weights, second, inside, x)
        x = x[..., : self.channels]
        outputs = {POLICY: self.logits(weights, x)}
        if VALUE in self.heads:
            seen = map_squares(weights, "value_map", x)
            hidden = np.maximum(linear(weights, "value_hidden", seen), 0)
            for name in (VALUE, WDL, SCORE):
                if name in self.heads:
                    outputs[name] = linear(weights, f"{name}_head", hidden)
            outputs[VALUE] = outputs[VALUE][:, 0]
        return outputs

    def stem(self, weights: Weights, rows: Bytes) -> Floats:
        at = self.layout
        numbers = np.zeros((0, self.wide), np.float32)
        if at.numbers:
            numbers = pad_last(weights["numbers.weight"].T, self.wide)
        out = np.empty((len(rows), at.height, at.width, self.wide), np.float32)
        kernel, bias = self.kernel(weights, "stem", at.planes)
        self.native.stem(np.ascontiguousarray(rows), kernel, numbers, bias, out)
        return out

    def convolve(self, weights: Weights, name: str, x: Floats, onto: Floats | None) -> Floats:
        """Return relu(conv(x) + onto)."""
        kernel, bias = self.kernel(weights, name, self.wide)
        out = neighborhoods(x) @ kernel.reshape(-1, self.wide) + bias
        if onto is not None:
            out += onto.reshape(out.shape)
        found: Floats = np.maximum(out, 0).reshape(x.shape)
        return found

    def kernel(self, weights: Weights, name: str, inputs: int) -> tuple[Floats, Floats]:
        """Return a kernel [3, 3, inputs, channels], padded with zeros, and its biases."""
        if name not in self._kernels:
            taps = weights[f"{name}.weight"].transpose(2, 3, 1, 0)
            padded = np.zeros((3, 3, inputs, self.wide), np.float32)
            padded[:, :, : taps.shape[2], : self.channels] = taps
            self._kernels[name] = padded
        return self._kernels[name], pad_last(weights[f"{name}.bias"], self.wide)

    def logits(self, weights: Weights, x: Floats) -> Floats:
        """Return a map for every action of a square, or a dense head."""
        if not self.layout.actions:
            return linear(weights, "policy_head", map_squares(weights, "policy_map", x))
        head = weights["policy_head.weight"]
        maps = x.reshape(len(x), self.layout.squares, -1) @ head.reshape(len(head), -1).T
        return maps.transpose(0, 2, 1).reshape(len(x), -1) + weights["policy_bias"]


def stack(name: str, widths: Sequence[int], *, norm: bool, first: int = 0) -> list[Linear]:
    """Return the layers behind the first width, as `nets.mlp.tower` numbers them."""
    each = 2 + norm
    return [
        Linear(f"{name}.{at}", f"{name}.{at + 1}" if norm else "", width, after)
        for at, (width, after) in zip(range(first, 10**6, each), pairwise(widths))  # noqa: B905
    ]


def linear_shapes(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def convolution_shapes(name: str, inputs: int, outputs: int, size: int = 3) -> Shapes:
    return {f"{name}.weight": (outputs, inputs, size, size), f"{name}.bias": (outputs,)}


def linear(weights: Weights, name: str, x: Floats) -> Floats:
    out: Floats = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return out


def map_squares(weights: Weights, name: str, x: Floats) -> Floats:
    """Return relu of a 1x1 convolution over [rows, height, width, channels], flat."""
    weight = weights[f"{name}.weight"]
    maps = x @ weight.reshape(len(weight), -1).T + weights[f"{name}.bias"]
    return np.maximum(maps, 0).reshape(len(x), -1)


def neighborhoods(x: Floats) -> Floats:
    """Return the 3x3 squares around every square [rows * squares, 9 * channels], 0 outside."""
    rows, height, width, channels = x.shape
    padded = np.zeros((rows, height + 2, width + 2, channels), np.float32)
    padded[:, 1:-1, 1:-1] = x
    row, line, square, number = padded.strides
    windows = as_strided(
        padded,
        (rows, height, width, 3, 3 * channels),
        (row, line, square, line, number),
        writeable=False,
    )
    return windows.reshape(rows * height * width, 9 * channels)


def pad_last(numbers: npt.NDArray[Any], width: int) -> Floats:
    """Return an array whose last axis is padded with zeros."""
    out = np.zeros((*numbers.shape[:-1], width), np.float32)
    out[..., : numbers.shape[-1]] = numbers
    return out


def widen(inputs: Inputs, rows: Bytes) -> tuple[Floats, list[int]]:
    """Return the features of rows in the order of their bytes, and which features they are."""
    ranges, order, divisors = inputs.typed_ranges()
    parts = [np.ascontiguousarray(rows[:, a:b]).view(dtype) for dtype, a, b in ranges]
    numbers = np.concatenate([part.astype(np.float32) for part in parts], axis=1)
    numbers /= np.array(divisors, np.float32)
    return numbers, order


def normalized(weights: Weights, numbers: Floats) -> Floats:
    """Return features [rows, features and memory], of which memory stays as it is."""
    mean, std = mean_and_std_of(weights)
    game = ((numbers[:, : len(mean)] - mean) / std).clip(-CLIP, CLIP)
    return np.concatenate([game, numbers[:, len(mean) :]], axis=1)


def mean_and_std_of(weights: Weights) -> tuple[Floats, Floats]:
    """Return what observations are normalized by, in float32."""
    std = np.sqrt(weights["first.normalizer.variance"] + EPS)
    return weights["first.normalizer.mean"].astype(np.float32), std.astype(np.float32)


def memory_of(inputs: Inputs, rows: Bytes) -> Floats:
    """Return the memory in rows [rows, memory / 4]."""
    part = np.ascontiguousarray(rows[:, inputs.rules.obs_bytes : inputs.row_bytes])
    return part.view(np.float32)


def layer_norm(x: Floats, weights: Weights, name: str) -> Floats:
    mean = x.mean(-1, keepdims=True)
    std = np.sqrt(x.var(-1, keepdims=True) + np.float32(NORM_EPS))
    out: Floats = (x - mean) / std * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return out


def sigmoid(x: Floats) -> Floats:
    out: Floats = 0.5 * np.tanh(0.5 * x) + 0.5  # which never overflows
    return out


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "silu": lambda x: x * sigmoid(x),
}
