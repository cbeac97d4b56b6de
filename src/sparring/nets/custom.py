"""A torch module of somebody's own as a network.

Its class is called with a description of what it will see (`NetInputs`) and the arguments of
net.set, and has to say a policy and a value about rows. That it does is tried once, on two rows of
zeros, before anything is trained.
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
from sparring.nets.custom_inputs import BYTES, FLOATS, READS, Reader, describe_inputs
from sparring.nets.net import POLICY, SCORE, VALUE, Asked, HeadOutputs, Net, head_width

OWN = "module."
"""In front of the names of its tensors."""
PROBED = 2
"""Rows that a module is tried with."""


class CustomNet(Net):
    """A torch module of somebody's own, `module`, which sees rows as its `reads` says.

    Values whose last layer is a linear one with a single output are in units of `value_scale`, and
    that layer changes with the unit, as in our own networks. Whatever else says a value, such as a
    bounded one, says it in units of the rewards.
    """

    def __init__(self, rules: Rules, config: NetConfig, **asked: Unpack[Asked]) -> None:
        super().__init__(rules, config, **asked)
        self.what = f"net.kind {config.kind}"
        given = describe_inputs(self.inputs, self.heads, head_width(rules))
        self.module = make_module(config, given)
        self.reads = str(getattr(self.module, "reads", FLOATS))
        if self.reads not in READS:
            raise ConfigError(f"{self.what}: reads is {self.reads!r}; it may be {', '.join(READS)}")
        if self.reads == BYTES and config.inputs:
            raise ConfigError(
                f"net.inputs {' '.join(config.inputs)}: {config.kind} reads whole rows of bytes; "
                f"leave net.inputs out, or have it read {FLOATS}"
            )
        self.reader = Reader(self.inputs, self.reads)
        self.convolves = any(isinstance(part, nn.Conv2d) for part in self.module.modules())
        self._probe()

    # What it says

    def forward(self, obs: Tensor) -> HeadOutputs:
        said = self.module(self.reader(obs))
        given = dict(said) if isinstance(said, Mapping) else {POLICY: said[0], VALUE: said[1]}
        heads: HeadOutputs = {name: given[name] for name in self.heads}
        if VALUE in heads:
            value = heads[VALUE]
            value = value.squeeze(-1) if value.dim() == 2 else value
            heads[VALUE] = value if self.value_parameters else value / self.value_scale
        if SCORE in heads and not self.score_parameters:
            heads[SCORE] = heads[SCORE] / self.score_scale
        return heads

    # What is demanded of the module

    def _probe(self) -> None:
        """Try it on rows of zeros, and refuse what could not be trained."""
        for name, parameter in self.module.named_parameters():
            if isinstance(parameter, nn.parameter.UninitializedParameter):
                continue  # takes its shape from the rows below
            if not parameter.requires_grad:
                raise ConfigError(
                    f"{self.what}: its {name} takes no gradient; what is not to be learned is "
                    "kept by register_buffer"
                )
            if parameter.dtype != torch.float32:
                raise ConfigError(f"{self.what}: its {name} is {parameter.dtype}, need float32")
        for name, part in self.module.named_modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                raise ConfigError(
                    f"{self.what}: its {name or 'module'} is a {type(part).__name__}, so that rows "
                    "depend on the others of their batch; use LayerNorm or GroupNorm"
                )
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            said = self._checked()
            before = {name: held.clone() for name, held in self.module.named_buffers()}
            again = self._checked()
        for name, held in self.module.named_buffers():
            if not torch.equal(held, before[name]):
                raise ConfigError(
                    f"{self.what}: its forward changes its buffer {name}; a network may keep "
                    "nothing from one batch to the next"
                )
        for name, head in said.items():
            if not torch.equal(head, again[name]):
                raise ConfigError(
                    f"{self.what}: its {name} is another one when it is asked again; leave out "
                    "what is random, such as dropout"
                )
        named = {f"module.{name}": p for name, p in self.module.named_parameters()}
        if not named:
            raise ConfigError(
                f"{self.what}: it has no parameters, so that there is nothing to learn"
            )
        self.value_parameters = find_last_layer(said, named, VALUE)
        self.score_parameters = find_last_layer(said, named, SCORE)

    def _checked(self) -> HeadOutputs:
        obs = torch.zeros(PROBED, self.inputs.row_bytes, dtype=torch.uint8)
        try:
            said = self.module(self.reader(obs))
        except Exception as wrong:
            raise ConfigError(
                f"{self.what}: its forward fails for {PROBED} rows of zeros: "
                f"{describe_error(wrong)}"
            ) from wrong
        return checked(said, self.heads, self.what)


def checked(said: Any, widths: Mapping[str, int], what: str) -> HeadOutputs:
    """Return what a module said by head; refuse what a policy or a value cannot be."""
    if isinstance(said, tuple | list) and len(said) == 2:
        said = {POLICY: said[0], VALUE: said[1]}
    if not isinstance(said, Mapping):
        raise ConfigError(
            f"{what}: its forward returns {a_kind(said)}; return (policy, value), or heads by name"
        )
    heads: HeadOutputs = {}
    for name, width in widths.items():
        if name not in said:
            raise ConfigError(
                f"{what}: its forward says nothing called {name!r}; return (policy, value), or a "
                f"dict with {', '.join(widths)}"
            )
        heads[name] = head = said[name]
        if not isinstance(head, Tensor):
            raise ConfigError(f"{what}: its {name} is {a_kind(head)}; return a tensor")
        shapes = [(PROBED, width)] + ([(PROBED,)] if name == VALUE else [])
        if tuple(head.shape) not in shapes:
            wanted = " or ".join(show_shape(shape[1:]) for shape in reversed(shapes))
            raise ConfigError(
                f"{what}: its {name} of {PROBED} rows is {tuple(head.shape)}, need {wanted}"
            )
        if not head.is_floating_point() or not bool(torch.isfinite(head).all()):
            raise ConfigError(f"{what}: its {name} of rows of zeros is not finite numbers")
    return heads


def make_module(config: NetConfig, given: Any) -> nn.Module:
    """Call the class of a network, which runs its code."""
    what = f"net.kind {config.kind}"
    kind = load_factory(config.kind, "net.kind")
    named = read_keywords(config.set, "net.set")
    if isinstance(kind, type) and not issubclass(kind, nn.Module):
        raise ConfigError(f"{what} is no torch.nn.Module; have the class inherit from it")
    if not isinstance(kind, type) and not is_allowed_here(config.kind):
        raise UntrustedError(
            f"{what} is a function, which runs only where it is named each time: --trust "
            f"{config.kind} (in Python: trust={config.kind!r}); a class of torch.nn.Module is "
            "named once"
        )
    try:
        made = kind(given, **named)
    except ConfigError:
        raise
    except Exception as wrong:
        raise ConfigError(
            f"{what} cannot be made with {', '.join(['inputs', *config.set])}: "
            f"{describe_error(wrong)}"
        ) from wrong
    if not isinstance(made, nn.Module):
        raise ConfigError(f"{what} makes {a_kind(made)}; it has to make a torch.nn.Module")
    return made.train()


def a_kind(thing: Any) -> str:
    if isinstance(thing, tuple | list):
        return f"a {type(thing).__name__} of {len(thing)}"
    return f"a {type(thing).__name__}"


def show_shape(behind: tuple[int, ...]) -> str:
    """A shape with any number of rows."""
    return f"(rows{''.join(f', {n}' for n in behind)})"


def keep_net(given: Any, name: str = "") -> str:
    """Return what net.kind has to be for a class of networks, or for a network as it is.

    name: one that it had before, in a run that goes on.
    """
    if not isinstance(given, nn.Module) and not callable(given):
        raise ConfigError(
            f"net {given!r}: give a table of settings, a torch.nn.Module or its class"
        )
    make = copy_factory(given) if isinstance(given, nn.Module) else given
    if name:
        return register_object(make, name)
    kept = "" if isinstance(given, nn.Module) else register_factory(make)
    kind = given if hasattr(given, "__name__") else type(given)
    return kept or register_object(make, str(kind.__name__).strip("<>"))


def copy_factory(module: nn.Module) -> Callable[..., nn.Module]:
    """What makes a network like this one, weights included, whenever one is wanted."""

    def make(inputs: Any, **named: Any) -> nn.Module:
        if named:
            raise ConfigError(
                f"net.set {' '.join(named)}: the network is there already; give its class"
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
"""Steps that leave a single column what it is."""
PRODUCTS = ("Addmm", "Mm")
"""What a linear layer is to autograd, with a bias and without."""
LEAF = "AccumulateGrad"


def find_last_layer(said: HeadOutputs, named: Mapping[str, Tensor], head: str) -> tuple[str, ...]:
    """Return the parameters of the linear layer that says a head of one number, () if none does.

    said: by a forward pass that autograd has seen. named: the network's parameters.
    """
    value = said.get(head)
    step = value.grad_fn if value is not None else None
    while step is not None and kind_of(step) in RESHAPING:
        step = step.next_functions[0][0]
    if step is None or kind_of(step) not in PRODUCTS:
        return ()
    inputs = [each for each, _ in step.next_functions]
    parts = [leaf_of(inputs[-1])] + ([leaf_of(inputs[0])] if kind_of(step) == "Addmm" else [])
    layer = [part for part in parts if part is not None]
    if len(layer) < len(parts) or layer[0].dim() != 2 or len(layer[0]) != 1:
        return ()
    # Behind the layer itself nobody may read its parameters, nor may another head.
    behind = [inputs[-2]] + [h.grad_fn for name, h in said.items() if name != head]
    used = {id(tensor) for tensor in leaves(behind)}
    if any(id(part) in used for part in layer):
        return ()
    names = {id(tensor): name for name, tensor in named.items()}
    return tuple(names[id(part)] for part in layer) if all(id(p) in names for p in layer) else ()


def kind_of(step: Any) -> str:
    """What autograd calls a step, without its number."""
    name: str = step.name()
    return name.partition("Backward")[0].removeprefix("torch::autograd::")


def leaf_of(step: Any) -> Tensor | None:
    """The parameter that a step reads, transposed or not; None if it reads something else."""
    while step is not None and kind_of(step) in ("T", "Transpose"):
        step = step.next_functions[0][0]
    if step is None or kind_of(step) != LEAF:
        return None
    found: Tensor = step.variable
    return found


def leaves(steps: list[Any]) -> Iterator[Tensor]:
    """All parameters that steps depend on."""
    seen: set[Any] = set()
    while steps:
        step = steps.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        if kind_of(step) == LEAF:
            yield step.variable
        steps += [each for each, _ in step.next_functions]
