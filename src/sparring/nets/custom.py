"""Custom networks: any torch module that returns a policy and a value.

Its class is called with a description of its inputs (`NetInputs`) and the arguments of net.set. The
module is checked once, on two rows of zeros, before training.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.errors import ConfigError, UntrustedError
from sparring.factories import (
    describe_error,
    is_allowed_here,
    load_factory,
    read_keywords,
    register_factory,
    register_object,
)
from sparring.games.rules import Rules
from sparring.nets.custom_inputs import (
    BYTES,
    FLOATS,
    READS,
    InputReader,
    NetInputs,
    describe_inputs,
)
from sparring.nets.heads import POLICY, SCORE, VALUE, head_width
from sparring.nets.net import HeadOutputs, Net, NetOptions

MODULE_PREFIX = "module."
"""Prefix of the custom module's tensors."""
PROBE_ROWS = 2
"""Rows of zeros that a module is checked with."""


class CustomNet(Net):
    """A custom torch module, `module`, which receives rows in the format of its `reads`.

    If the last value layer is linear with a single output, values are in units of `value_scale` and
    that layer is rescaled, as in built-in networks. Any other value, such as a bounded one, is in
    units of the rewards.
    """

    def __init__(self, rules: Rules, config: NetConfig, **options: Unpack[NetOptions]) -> None:
        super().__init__(rules, config, **options)
        self.setting = f"net.kind {config.kind}"
        inputs = describe_inputs(self.inputs, self.heads, head_width(rules))
        self.module = make_module(config, inputs)
        self.reads = str(getattr(self.module, "reads", FLOATS))
        if self.reads not in READS:
            raise ConfigError(
                f"{self.setting}: reads is {self.reads!r}; it may be {', '.join(READS)}"
            )
        if self.reads == BYTES and config.inputs:
            raise ConfigError(
                f"net.inputs {' '.join(config.inputs)}: {config.kind} reads whole rows of bytes; "
                f"leave net.inputs out, or have it read {FLOATS}"
            )
        self.reader = InputReader(self.inputs, self.reads)
        self.has_convolutions = any(isinstance(part, nn.Conv2d) for part in self.module.modules())
        self._probe()

    def forward(self, obs: Tensor) -> HeadOutputs:
        returned = self.module(self.reader(obs))
        if not isinstance(returned, Mapping):
            returned = {POLICY: returned[0], VALUE: returned[1]}
        outputs: HeadOutputs = {name: returned[name] for name in self.heads}
        if VALUE in outputs:
            value = outputs[VALUE]
            value = value.squeeze(-1) if value.dim() == 2 else value
            outputs[VALUE] = value if self.value_parameters else value / self.value_scale
        if SCORE in outputs and not self.score_parameters:
            outputs[SCORE] = outputs[SCORE] / self.score_scale
        return outputs

    def _probe(self) -> None:
        """Run the module on rows of zeros, and raise if it cannot be trained."""
        for name, parameter in self.module.named_parameters():
            if isinstance(parameter, nn.parameter.UninitializedParameter):
                continue  # a lazy module: the rows below decide its shape
            if not parameter.requires_grad:
                raise ConfigError(
                    f"{self.setting}: its {name} takes no gradient; use register_buffer for "
                    "tensors that are not learned"
                )
            if parameter.dtype != torch.float32:
                raise ConfigError(f"{self.setting}: its {name} is {parameter.dtype}, need float32")
        for name, part in self.module.named_modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                raise ConfigError(
                    f"{self.setting}: its {name or 'module'} is a {type(part).__name__}, which "
                    "makes rows depend on the rest of their batch; use LayerNorm or GroupNorm"
                )
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            outputs = self._checked_outputs()
            before = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
            second = self._checked_outputs()
        for name, buffer in self.module.named_buffers():
            if not torch.equal(buffer, before[name]):
                raise ConfigError(
                    f"{self.setting}: its forward changes its buffer {name}; a network may keep "
                    "nothing from one batch to the next"
                )
        for name, output in outputs.items():
            if not torch.equal(output, second[name]):
                raise ConfigError(
                    f"{self.setting}: its {name} differs between two calls with the same rows; "
                    "leave out random layers, such as dropout"
                )
        named = {f"module.{name}": p for name, p in self.module.named_parameters()}
        if not named:
            raise ConfigError(
                f"{self.setting}: it has no parameters, so that there is nothing to learn"
            )
        self.value_parameters = find_last_layer(outputs, named, VALUE)
        self.score_parameters = find_last_layer(outputs, named, SCORE)

    def _checked_outputs(self) -> HeadOutputs:
        obs = torch.zeros(PROBE_ROWS, self.inputs.row_bytes, dtype=torch.uint8)
        try:
            outputs = self.module(self.reader(obs))
        except Exception as error:
            raise ConfigError(
                f"{self.setting}: its forward fails for {PROBE_ROWS} rows of zeros: "
                f"{describe_error(error)}"
            ) from error
        return check_outputs(outputs, self.heads, self.setting)


def check_outputs(outputs: Any, widths: Mapping[str, int], what: str) -> HeadOutputs:
    """Return a module's outputs by head; raise if one is missing or malformed."""
    if isinstance(outputs, tuple | list) and len(outputs) == 2:
        outputs = {POLICY: outputs[0], VALUE: outputs[1]}
    if not isinstance(outputs, Mapping):
        raise ConfigError(
            f"{what}: its forward returns {describe_type(outputs)}; return (policy, value), or "
            "heads by name"
        )
    for name, width in widths.items():
        if name not in outputs:
            raise ConfigError(
                f"{what}: its forward returns no {name!r}; return (policy, value), or a "
                f"dict with {', '.join(widths)}"
            )
        output = outputs[name]
        if not isinstance(output, Tensor):
            raise ConfigError(f"{what}: its {name} is {describe_type(output)}; return a tensor")
        shapes = [(PROBE_ROWS, width)] + ([(PROBE_ROWS,)] if name == VALUE else [])
        if tuple(output.shape) not in shapes:
            wanted = " or ".join(show_shape(shape[1:]) for shape in reversed(shapes))
            raise ConfigError(
                f"{what}: its {name} of {PROBE_ROWS} rows is {tuple(output.shape)}, need {wanted}"
            )
        if not output.is_floating_point() or not bool(torch.isfinite(output).all()):
            raise ConfigError(f"{what}: its {name} of rows of zeros is not finite numbers")
    return {name: outputs[name] for name in widths}


def make_module(config: NetConfig, inputs: NetInputs) -> nn.Module:
    """Call the class of a custom network, which runs its code."""
    what = f"net.kind {config.kind}"
    kind = load_factory(config.kind, "net.kind")
    arguments = read_keywords(config.set, "net.set")
    if isinstance(kind, type) and not issubclass(kind, nn.Module):
        raise ConfigError(f"{what} is no torch.nn.Module; have the class inherit from it")
    if not isinstance(kind, type) and not is_allowed_here(config.kind):
        raise UntrustedError(
            f"{what} is a function, which runs only if every command names it: --trust "
            f"{config.kind} (in Python: trust={config.kind!r}); a class of torch.nn.Module is "
            "named once"
        )
    try:
        module = kind(inputs, **arguments)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{what} cannot be made with {', '.join(['inputs', *config.set])}: "
            f"{describe_error(error)}"
        ) from error
    if not isinstance(module, nn.Module):
        raise ConfigError(
            f"{what} returns {describe_type(module)}; it has to return a torch.nn.Module"
        )
    return module.train()


def describe_type(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def show_shape(widths: tuple[int, ...]) -> str:
    return f"(rows{''.join(f', {width}' for width in widths)})"


def keep_net(net: Any, name: str = "") -> str:
    """Return the `net.kind` of a module, or of a class of modules.

    name: its earlier name, if a run is resumed.
    """
    if not isinstance(net, nn.Module) and not callable(net):
        raise ConfigError(f"net {net!r}: give a table of settings, a torch.nn.Module or its class")
    make = copy_factory(net) if isinstance(net, nn.Module) else net
    if name:
        return register_object(make, name)
    spec = "" if isinstance(net, nn.Module) else register_factory(make)
    kind = net if hasattr(net, "__name__") else type(net)
    return spec or register_object(make, str(kind.__name__).strip("<>"))


def copy_factory(module: nn.Module) -> Callable[..., nn.Module]:
    """Return a factory of copies of a module, weights included."""

    def make(inputs: NetInputs, **arguments: Any) -> nn.Module:
        if arguments:
            raise ConfigError(
                f"net.set {' '.join(arguments)}: the network exists already; give its class"
            )
        return copy.deepcopy(module)

    return make


RESHAPING = (
    "Squeeze",
    "Unsqueeze",
    "View",
    "UnsafeView",
    "ReshapeAlias",
    "Select",
    "Slice",
    "Alias",
)
"""Autograd nodes that leave a single column unchanged."""
PRODUCTS = ("Addmm", "Mm")
"""Autograd nodes of a linear layer, with and without a bias."""
LEAF = "AccumulateGrad"


def find_last_layer(
    outputs: HeadOutputs, named: Mapping[str, Tensor], head: str
) -> tuple[str, ...]:
    """Return the parameters of the linear layer that ends in a head of width 1, () if none does.

    outputs: of a forward pass with autograd. named: the network's parameters.
    """
    output = outputs.get(head)
    node = output.grad_fn if output is not None else None
    while node is not None and node_name(node) in RESHAPING:
        node = node.next_functions[0][0]
    if node is None or node_name(node) not in PRODUCTS:
        return ()
    inputs = [each for each, _ in node.next_functions]
    leaves = [leaf_of(inputs[-1])] + ([leaf_of(inputs[0])] if node_name(node) == "Addmm" else [])
    layer = [leaf for leaf in leaves if leaf is not None]
    if len(layer) < len(leaves) or layer[0].dim() != 2 or len(layer[0]) != 1:
        return ()
    # No other layer or head may use these parameters: they are rescaled.
    others = [inputs[-2]] + [h.grad_fn for name, h in outputs.items() if name != head]
    used = {id(tensor) for tensor in leaves_of(others)}
    if any(id(leaf) in used for leaf in layer):
        return ()
    names = {id(tensor): name for name, tensor in named.items()}
    return tuple(names[id(leaf)] for leaf in layer) if all(id(p) in names for p in layer) else ()


def node_name(node: Any) -> str:
    """Return the name of an autograd node without its number."""
    name: str = node.name()
    return name.partition("Backward")[0].removeprefix("torch::autograd::")


def leaf_of(node: Any) -> Tensor | None:
    """Return the parameter that a node reads, transposed or not; None for anything else."""
    while node is not None and node_name(node) in ("T", "Transpose"):
        node = node.next_functions[0][0]
    if node is None or node_name(node) != LEAF:
        return None
    leaf: Tensor = node.variable
    return leaf


def leaves_of(nodes: list[Any]) -> Iterator[Tensor]:
    """Yield all parameters that autograd nodes depend on."""
    visited: set[Any] = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if node_name(node) == LEAF:
            yield node.variable
        nodes += [each for each, _ in node.next_functions]
