"""Perceptrons among the modules of somebody's own, told by a symbolic trace of what they do.

A perceptron is computed natively on a CPU and by kernels of its own on a GPU; a module that does
the same thing may have that too, with its own weights. What is not recognized is run by torch.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from sparring.config import NetConfig
from sparring.nets.custom import CustomNet
from sparring.nets.custom_inputs import FLOATS
from sparring.nets.inputs import Inputs
from sparring.nets.net import POLICY, SCORE, VALUE, HeadOutputs, Net

ACTIVATIONS: dict[Any, str] = {
    **{nn.ReLU: "relu", nn.Tanh: "tanh", nn.SiLU: "silu"},
    **{torch.relu: "relu", torch.relu_: "relu", functional.relu: "relu"},
    **{torch.tanh: "tanh", functional.tanh: "tanh", functional.silu: "silu"},
    **{"relu": "relu", "relu_": "relu", "tanh": "tanh", "tanh_": "tanh"},
}
"""By what a trace shows: a kind of module, a function, or the name of a method."""
LEAVING = ("squeeze", "flatten", "view", "reshape", "float", "contiguous")
"""Methods that leave the numbers of rows as they are."""
COMPARED = 64
"""Rows for which passes are held against the module itself."""
CLOSE = {False: 1e-5, True: 2e-2}
"""How far they may be from it, of its largest number: in float32, in bfloat16."""


class NotAPerceptronError(Exception):
    """A module is no perceptron; the message says why."""


@dataclass(frozen=True)
class TracedPerceptron:
    """A module as a perceptron: its linear layers by name, in the order in which rows meet them."""

    towers: tuple[tuple[str, ...], ...]
    """One for all heads, or one for each."""
    heads: dict[str, str]
    """The last layer of every head."""
    activation: str
    widths: dict[str, tuple[int, int]]
    """Inputs and outputs of every layer."""

    def tower_of(self, head: str) -> int:
        """The number of a head's tower."""
        return list(self.heads).index(head) if len(self.towers) > 1 else 0

    def hidden(self, tower: int) -> tuple[int, ...]:
        """Widths of a tower's layers."""
        return tuple(self.widths[name][1] for name in self.towers[tower])


def trace_perceptron(net: Net) -> TracedPerceptron | str:
    """Return what layers a network of somebody's own has, or why it is no perceptron."""
    if not isinstance(net, CustomNet):
        return f"{type(net).__name__} is no network of your own"
    if "recognized" not in net.__dict__:
        try:
            net.__dict__["recognized"] = read_layers(net)
        except NotAPerceptronError as unlike:
            net.__dict__["recognized"] = f"{net.what} is run by torch: {unlike}"
    found: TracedPerceptron | str = net.__dict__["recognized"]
    return found


def read_layers(net: CustomNet) -> TracedPerceptron:
    """Follow every head back to the row."""
    if net.reads != FLOATS:
        raise NotAPerceptronError(f"it reads {net.reads}")
    if hooked := next(hooks_of(net.module), ""):
        raise NotAPerceptronError(f"{hooked} has hooks")
    try:
        graph = fx.symbolic_trace(net.module).graph
    except Exception as wrong:
        raise NotAPerceptronError(
            f"its forward depends on more than shapes ({type(wrong).__name__})"
        ) from None
    modules = dict(net.module.named_modules())
    chains, kinds = {}, set[str]()
    for name, said in said_of(graph, net.heads).items():
        chain, used = follow(said, modules)
        chains[name], kinds = chain, kinds | used
    towers = tuple(dict.fromkeys(tuple(chain[:-1]) for chain in chains.values()))
    heads = {name: chain[-1] for name, chain in chains.items()}
    used_once = [layer for tower in towers for layer in tower] + list(heads.values())
    if len(towers) not in (1, len(heads)) or len(used_once) != len(set(used_once)):
        raise NotAPerceptronError("its heads share some of their layers and not others")
    if not all(towers):
        raise NotAPerceptronError("it has a head without a hidden layer")
    if len(kinds) != 1:
        raise NotAPerceptronError(f"it has the activations {', '.join(sorted(kinds))}")
    learned = {f"{layer}.{part}" for layer in used_once for part in ("weight", "bias")}
    if unused := {name for name, _ in net.module.named_parameters()} - learned:
        raise NotAPerceptronError(f"its {min(unused)} is in no layer")
    if (VALUE in heads and not net.value_parameters) or (
        SCORE in heads and not net.score_parameters
    ):
        raise NotAPerceptronError("its value or score has no layer of its own")
    widths = {
        layer: (modules[layer].in_features, modules[layer].out_features) for layer in used_once
    }
    return TracedPerceptron(towers, heads, kinds.pop(), widths)


def said_of(graph: fx.Graph, heads: Mapping[str, int]) -> dict[str, Any]:
    (given,) = next(node for node in graph.nodes if node.op == "output").args
    said = given if isinstance(given, Mapping) else dict(zip((POLICY, VALUE), given, strict=False))
    return {name: said[name] for name in heads}


def follow(node: Any, modules: Mapping[str, nn.Module]) -> tuple[list[str], set[str]]:
    """Go from what a head says back to the row: its layers, the last one behind, and activations.

    Between two layers there has to be an activation, none behind the last.
    """
    layers: list[str] = []
    kinds: list[str] = []
    while node.op != "placeholder":
        if len(node.all_input_nodes) > 1:
            raise NotAPerceptronError(f"it has {getattr(node.target, '__name__', node.target)}")
        kind = type(modules[str(node.target)]) if node.op == "call_module" else node.target
        if kind is nn.Linear:
            layer = modules[str(node.target)]
            if not isinstance(layer.bias, Tensor):
                raise NotAPerceptronError(f"its layer {node.target} has no bias")
            layers.append(str(node.target))
        elif kind in ACTIVATIONS:
            kinds.append(ACTIVATIONS[kind])
        elif kind not in (nn.Identity, operator.getitem) and kind not in LEAVING:
            raise NotAPerceptronError(f"it has {getattr(kind, '__name__', kind)}")
        if len(layers) - len(kinds) not in (0, 1):
            raise NotAPerceptronError("its layers and activations do not take turns")
        if not node.all_input_nodes:
            raise NotAPerceptronError("it says something that does not come from the row")
        node = node.all_input_nodes[0]
    if len(layers) != len(kinds) + 1:
        raise NotAPerceptronError("its layers and activations do not take turns")
    return layers[::-1], set(kinds)


def hooks_of(module: nn.Module) -> Iterator[str]:
    """Parts of a module that somebody listens to, or changes."""
    for name, part in module.named_modules():
        kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        if any(getattr(part, kind) for kind in kinds):
            yield name or "it"
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks:
            yield name


def differs(net: Net, said: HeadOutputs, obs: Tensor, *, rounded: bool) -> str:
    """Say how far passes are from the module itself, "" if they are not.

    said: by the passes, about `obs`. rounded: they are in bfloat16.
    """
    with torch.no_grad():
        wanted = net(obs)
    for name, head in wanted.items():
        far = float((head - said[name]).abs().max()) / max(1.0, float(head.abs().max()))
        if not far <= CLOSE[rounded]:
            return f"its layers say a {name} that is {far:.2g} away from its own"
    return ""


def sample_rows(inputs: Inputs, count: int = COMPARED) -> Tensor:
    """Byte rows of any content, the same every time: small whole numbers and small fractions."""
    drawn = torch.Generator().manual_seed(1)
    rows = torch.zeros(count, inputs.row_bytes, dtype=torch.uint8)
    for dtype, first, end in inputs.byte_ranges()[0]:
        shape = (count, (end - first) // dtype.itemsize)
        numbers = (
            torch.randint(0, 8, shape, generator=drawn) * torch.rand(shape, generator=drawn).round()
        )
        if dtype.is_floating_point:
            numbers = torch.randn(shape, generator=drawn)
        rows[:, first:end] = numbers.to(dtype).view(torch.uint8)
    return rows


def to_perceptron_tensors(
    layers: TracedPerceptron, state: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Tensors of a module, or their gradients and moments, by the names and shapes of our own."""
    named = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    firsts = [tower[0] for tower in layers.towers]
    found = {
        "first.weight": torch.cat([named[f"{first}.weight"] for first in firsts]).T.contiguous(),
        "first.bias": torch.cat([named[f"{first}.bias"] for first in firsts]),
    }
    for ours, theirs in layer_names(layers):
        for part in ("weight", "bias"):
            found[f"{ours}.{part}"] = named[f"{theirs}.{part}"]
    return found


def from_perceptron_tensors(
    layers: TracedPerceptron, state: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The other way round."""
    found: dict[str, Tensor] = {}
    firsts = [tower[0] for tower in layers.towers]
    widths = [layers.widths[first][1] for first in firsts]
    weights = torch.split(state["first.weight"].T, widths)
    biases = torch.split(state["first.bias"], widths)
    for first, weight, bias in zip(firsts, weights, biases, strict=True):
        found[f"module.{first}.weight"] = weight.contiguous()
        found[f"module.{first}.bias"] = bias.clone()
    for ours, theirs in layer_names(layers):
        for part in ("weight", "bias"):
            found[f"module.{theirs}.{part}"] = state[f"{ours}.{part}"]
    return found


def layer_names(layers: TracedPerceptron) -> Sequence[tuple[str, str]]:
    """TracedPerceptron behind the first as our perceptron calls them, and as the module does."""
    hidden = [
        (f"towers.{number}.{2 * at}", layer)
        for number, tower in enumerate(layers.towers)
        for at, layer in enumerate(tower[1:])
    ]
    return [*hidden, *((f"{name}_head", layer) for name, layer in layers.heads.items())]


def perceptron_config(net: Net, config: NetConfig) -> NetConfig | str:
    """Return the settings with which our own perceptron is this network, or why it is none."""
    layers = trace_perceptron(net)
    if isinstance(layers, str):
        return layers
    hidden = {layers.hidden(tower) for tower in range(len(layers.towers))}
    if len(hidden) > 1 or list(net.heads) != [POLICY, VALUE]:
        return "its towers have different widths, or it has further heads"
    return replace(
        config,
        kind="mlp",
        set=(),
        hidden=hidden.pop(),
        shared=len(layers.towers) == 1,
        activation=layers.activation,
        std="predicted",
    )
