"""Detects perceptrons among custom modules by a symbolic trace (`torch.fx`).

A custom module that is a perceptron uses the native passes on a CPU and the kernels on a GPU, with
its own weights. All other custom modules are run by torch.
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
from sparring.nets.heads import POLICY, SCORE, VALUE
from sparring.nets.inputs import Inputs
from sparring.nets.net import HeadOutputs, Net

ACTIVATIONS: dict[Any, str] = {
    **{nn.ReLU: "relu", nn.Tanh: "tanh", nn.SiLU: "silu"},
    **{torch.relu: "relu", torch.relu_: "relu", functional.relu: "relu"},
    **{torch.tanh: "tanh", functional.tanh: "tanh", functional.silu: "silu"},
    **{"relu": "relu", "relu_": "relu", "tanh": "tanh", "tanh_": "tanh"},
}
"""Activations by node target: a class of modules, a function, or the name of a method."""
RESHAPES = ("squeeze", "flatten", "view", "reshape", "float", "contiguous")
"""Methods that do not change the values of rows."""
COMPARED_ROWS = 64
"""Rows for which passes are compared with the module."""
TOLERANCE = {False: 1e-5, True: 2e-2}
"""Maximum difference, relative to the largest output: in float32, in bfloat16."""


class NotAPerceptronError(Exception):
    """A module is no perceptron; the message says why."""


@dataclass(frozen=True)
class TracedPerceptron:
    """Linear layers of a custom perceptron by name, in the order of the forward pass."""

    towers: tuple[tuple[str, ...], ...]
    """Hidden layers: one tower for all heads, or one for each."""
    heads: dict[str, str]
    """Last layer of every head."""
    activation: str
    widths: dict[str, tuple[int, int]]
    """Inputs and outputs of every layer."""

    def tower_of(self, head: str) -> int:
        return list(self.heads).index(head) if len(self.towers) > 1 else 0

    def hidden(self, tower: int) -> tuple[int, ...]:
        """Return the widths of a tower's layers."""
        return tuple(self.widths[name][1] for name in self.towers[tower])


def trace_perceptron(net: Net) -> TracedPerceptron | str:
    """Return the layers of a custom network, or why it is no perceptron."""
    if not isinstance(net, CustomNet):
        return f"{type(net).__name__} is no custom network"
    if "traced" not in net.__dict__:
        try:
            net.__dict__["traced"] = read_layers(net)
        except NotAPerceptronError as error:
            net.__dict__["traced"] = f"{net.setting} is run by torch: {error}"
    traced: TracedPerceptron | str = net.__dict__["traced"]
    return traced


def read_layers(net: CustomNet) -> TracedPerceptron:
    """Trace every head back to the row; raise if the module is no perceptron."""
    if net.reads != FLOATS:
        raise NotAPerceptronError(f"it reads {net.reads}")
    if hooked := next(hooks_of(net.module), ""):
        raise NotAPerceptronError(f"{hooked} has hooks")
    try:
        graph = fx.symbolic_trace(net.module).graph
    except Exception as error:
        raise NotAPerceptronError(
            f"its forward depends on more than shapes ({type(error).__name__})"
        ) from None
    modules = dict(net.module.named_modules())
    chains, kinds = {}, set[str]()
    for name, node in output_nodes(graph, net.heads).items():
        chain, used = trace_head(node, modules)
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
        raise NotAPerceptronError("its value or score has no separate last layer")
    widths = {
        layer: (modules[layer].in_features, modules[layer].out_features) for layer in used_once
    }
    return TracedPerceptron(towers, heads, kinds.pop(), widths)


def output_nodes(graph: fx.Graph, heads: Mapping[str, int]) -> dict[str, Any]:
    """Return the node of every head's output."""
    (output,) = next(node for node in graph.nodes if node.op == "output").args
    if not isinstance(output, Mapping):
        output = dict(zip((POLICY, VALUE), output, strict=False))
    return {name: output[name] for name in heads}


def trace_head(node: Any, modules: Mapping[str, nn.Module]) -> tuple[list[str], set[str]]:
    """Return the layers from the row to a head's output, and the activations between them.

    There has to be an activation between two layers, and none after the last.
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
        elif kind not in (nn.Identity, operator.getitem) and kind not in RESHAPES:
            raise NotAPerceptronError(f"it has {getattr(kind, '__name__', kind)}")
        if len(layers) - len(kinds) not in (0, 1):
            raise NotAPerceptronError("its layers and activations do not alternate")
        if not node.all_input_nodes:
            raise NotAPerceptronError("one of its outputs does not depend on the row")
        node = node.all_input_nodes[0]
    if len(layers) != len(kinds) + 1:
        raise NotAPerceptronError("its layers and activations do not alternate")
    return layers[::-1], set(kinds)


def hooks_of(module: nn.Module) -> Iterator[str]:
    """Yield the submodules and parameters with hooks."""
    for name, part in module.named_modules():
        kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        if any(getattr(part, kind) for kind in kinds):
            yield name or "it"
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks:
            yield name


def describe_difference(net: Net, outputs: HeadOutputs, obs: Tensor, *, bf16: bool) -> str:
    """Return how far the outputs of passes are from the module's, "" if they agree.

    outputs: of the passes for `obs`. bf16: the passes use bfloat16.
    """
    with torch.no_grad():
        expected = net(obs)
    for name, head in expected.items():
        error = float((head - outputs[name]).abs().max()) / max(1.0, float(head.abs().max()))
        if not error <= TOLERANCE[bf16]:
            return f"the {name} of its layers differs by {error:.2g} from its own"
    return ""


def sample_rows(inputs: Inputs, count: int = COMPARED_ROWS) -> Tensor:
    """Return random byte rows, always the same: small integers, and normal floats."""
    rng = torch.Generator().manual_seed(1)
    rows = torch.zeros(count, inputs.row_bytes, dtype=torch.uint8)
    for dtype, first, end in inputs.byte_ranges()[0]:
        shape = (count, (end - first) // dtype.itemsize)
        numbers = (
            torch.randint(0, 8, shape, generator=rng) * torch.rand(shape, generator=rng).round()
        )
        if dtype.is_floating_point:
            numbers = torch.randn(shape, generator=rng)
        rows[:, first:end] = numbers.to(dtype).view(torch.uint8)
    return rows


def to_perceptron_tensors(
    layers: TracedPerceptron, state: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Rename and reshape a module's tensors, gradients or moments to those of `Perceptron`."""
    named = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    firsts = [tower[0] for tower in layers.towers]
    tensors = {
        "first.weight": torch.cat([named[f"{first}.weight"] for first in firsts]).T.contiguous(),
        "first.bias": torch.cat([named[f"{first}.bias"] for first in firsts]),
    }
    for builtin, custom in layer_names(layers):
        for part in ("weight", "bias"):
            tensors[f"{builtin}.{part}"] = named[f"{custom}.{part}"]
    return tensors


def from_perceptron_tensors(
    layers: TracedPerceptron, state: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Invert `to_perceptron_tensors`."""
    tensors: dict[str, Tensor] = {}
    firsts = [tower[0] for tower in layers.towers]
    widths = [layers.widths[first][1] for first in firsts]
    weights = torch.split(state["first.weight"].T, widths)
    biases = torch.split(state["first.bias"], widths)
    for first, weight, bias in zip(firsts, weights, biases, strict=True):
        tensors[f"module.{first}.weight"] = weight.contiguous()
        tensors[f"module.{first}.bias"] = bias.clone()
    for builtin, custom in layer_names(layers):
        for part in ("weight", "bias"):
            tensors[f"module.{custom}.{part}"] = state[f"{builtin}.{part}"]
    return tensors


def layer_names(layers: TracedPerceptron) -> Sequence[tuple[str, str]]:
    """Return the names of later layers in `Perceptron` and in the module."""
    hidden = [
        (f"towers.{number}.{2 * at}", layer)
        for number, tower in enumerate(layers.towers)
        for at, layer in enumerate(tower[1:])
    ]
    return [*hidden, *((f"{name}_head", layer) for name, layer in layers.heads.items())]


def perceptron_config(net: Net, config: NetConfig) -> NetConfig | str:
    """Return the configuration of the equivalent `Perceptron`, or why there is none."""
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
