"""How large a network is: numbers that it learns, multiply-accumulates of one decision, bytes.

Everybody who asks reads it here. `num_parameters` and `pass_bytes` answer for settings, before a
network is made; `count` looks at one. It runs a pass over a few rows of zeros in plain torch,
forward and back, and counts every product in it by its shape. So layers of our own that skip zeros
count as if they did not, and what nobody wrote a formula for, such as a module of somebody's own,
is counted all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry
from torch.utils.module_tracker import ModuleTracker

from sparring.config import NetConfig
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.hierarchy import ROLES, nets_by_role
from sparring.nets.inputs import Inputs, memory_bytes_of
from sparring.nets.layers import FirstLayer
from sparring.nets.make import make_net
from sparring.nets.net import Net, head_width
from sparring.nets.residual import ResidualNet, layout_of
from sparring.nets.run.flat import VALUE_WIDTH, rounded_up, widened_width

ROWS = (2, 4)
"""Of the passes that are counted. Modules may take a single row for something else."""
WHOLE = "Global"
"""What torch's tracker calls the outermost module's surroundings."""
BOARDS = 4
"""Boards of all channels that a pass over a residual net has at once, those that it reads too."""
ALIVE = 4
"""Tensors that a pass without gradients has at once, about."""
TRACED_ROWS = 64
"""Of a pass that is only looked at; so many that what all rows share does not count."""


@dataclass(frozen=True)
class LayerCount:
    """One module with numbers of its own, or with products of what others have made."""

    name: str
    kind: str
    """Its class."""
    shape: tuple[int, ...]
    """Of its largest tensor."""
    parameters: int
    macs: int


@dataclass(frozen=True)
class NetCounts:
    """Of a network."""

    layers: tuple[LayerCount, ...]
    macs: int | None
    """Of one decision; with a network per role those of the largest. None: it cannot be told."""
    backward: int | None
    """Of the gradients of one decision, likewise."""

    @property
    def parameters(self) -> int:
        """Numbers that are learned."""
        return sum(layer.parameters for layer in self.layers)

    def line(self) -> str:
        """The same in words."""
        macs = "?" if self.macs is None else f"{self.macs:,}"
        return f"{self.parameters:,} parameters, {macs} multiply-accumulates per decision"

    def plain(self) -> dict[str, Any]:
        layers = [{**vars(layer), "shape": list(layer.shape)} for layer in self.layers]
        return {"parameters": self.parameters, "macs": self.macs, "layers": layers}


def count(net: Net) -> NetCounts:
    """Count a network as it is; nothing in it changes."""
    if roles := nets_by_role(net):
        each = {role: count(own) for role, own in roles}
        layers = tuple(
            LayerCount(f"{ROLES}.{role}.{one.name}", *list(vars(one).values())[1:])
            for role, own in each.items()
            for one in own.layers
        )
        return NetCounts(
            layers,
            largest(own.macs for own in each.values()),
            largest(own.backward for own in each.values()),
        )
    found, backward = count_macs(net) or (None, None)
    modules = dict(net.named_modules())
    names = [*(name for name, one in modules.items() if has_own(one)), *(found or {})]
    layers = tuple(
        layer_of(name, modules[name], (found or {}).get(name, 0)) for name in dict.fromkeys(names)
    )
    return NetCounts(layers, None if found is None else sum(found.values()), backward)


def largest(counts: Iterable[int | None]) -> int | None:
    """The largest of some counts; None if one of them cannot be told."""
    known = list(counts)
    return None if None in known else max(one for one in known if one is not None)


def has_own(module: nn.Module) -> bool:
    """Whether numbers are learned in it, and not only in modules inside of it."""
    return any(True for _ in module.parameters(recurse=False))


def layer_of(name: str, module: nn.Module, macs: int) -> LayerCount:
    own = list(module.parameters(recurse=False))
    shape = max(own, key=Tensor.numel).shape if own else ()
    return LayerCount(
        name or "itself", type(module).__name__, tuple(shape), sum(map(Tensor.numel, own)), macs
    )


def count_macs(net: Net) -> tuple[dict[str, int], int] | None:
    """Multiply-accumulates of a row by module, and of its gradients; None: they cannot be told.

    What all rows of a pass share is not counted.
    """
    plain = plain_torch_copy(net).eval()
    found = []
    for rows in ROWS:
        obs = torch.zeros(rows, net.inputs.row_bytes, dtype=torch.uint8)
        try:
            tracker = ModuleTracker()
            counted = Products(plain, tracker)
            back = Products(plain, tracker)
            with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
                with tracker, counted:
                    said = sum((head.sum() for head in plain(obs).values()), torch.zeros(()))
                with back:
                    said.backward()
        except Exception:  # a module of somebody's own may want other rows than these
            return None
        found.append((counted.found, back.found.total()))
    (few, few_back), (more, more_back) = found
    rows = ROWS[1] - ROWS[0]
    forward = {name: (more[name] - few[name]) // rows for name in more}
    return forward, (more_back - few_back) // rows


def plain_torch_copy(net: Net) -> Net:
    """The same network on the CPU, in plain torch alone."""
    twin = net.cpu_copy()
    for module in twin.modules():
        if isinstance(module, FirstLayer):
            module.sparse = False
        if isinstance(module, ResidualNet):
            module.native = None
    return twin


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up products: by the module whose weights they take, or in whose forward they are."""

    def __init__(self, net: Net, tracker: ModuleTracker) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.owners = {
            one.untyped_storage()._cdata: name.rpartition(".")[0]
            for name, one in net.named_parameters()
        }
        self.tracker = tracker
        self.found: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No, says this to torch: to skip its compiler takes seconds, to load it."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            flops = int(formula(*args, **(kwargs or {}), out_val=out))
            self.found[self.owner(args)] += flops // 2
        return out

    def owner(self, args: Iterable[Any]) -> str:
        """The module that a product belongs to."""
        for one in args:
            if isinstance(one, Tensor) and one.untyped_storage()._cdata in self.owners:
                return self.owners[one.untyped_storage()._cdata]
        inside = max(self.tracker.parents - {WHOLE}, key=len, default="")
        return inside.partition(".")[2]


def num_parameters(rules: Rules, config: NetConfig) -> int:
    """Numbers that a network of these settings learns, however large: ours are not really made."""
    device = "cpu" if is_factory(config.kind) else "meta"
    with torch.random.fork_rng(devices=[]), torch.device(device):
        net = make_net(rules, config)
    return sum(map(Tensor.numel, net.parameters()))


def pass_bytes(rules: Rules, net: NetConfig, *, bf16: bool, learn: bool) -> int:
    """Bytes of a row in a pass; with learn, of its gradients too."""
    number, heads = 2 if bf16 else 4, rounded_up(head_width(rules)) + VALUE_WIDTH
    inside = num_activations(rules, net, learn=learn)
    widened = widened_width(Inputs(rules, memory_bytes_of(rules, net), net.inputs))
    return number * (widened + inside + heads * learn) + 4 * heads


def num_activations(rules: Rules, net: NetConfig, *, learn: bool) -> int:
    """Numbers of a row inside a network."""
    if net.kind == "mlp" and not net.recurrent:
        towers = sum(net.hidden) * (1 if net.shared else 2)
        return (towers + sum(net.policy_hidden + net.value_hidden)) * (2 if learn else 1)
    if net.kind != "residual":
        kept = traced(rules, net)
        alive = sum(sorted(kept)[-ALIVE:])
        return alive + sum(kept) * learn
    boards = BOARDS + (2 * net.blocks if learn else 0)
    return boards * net.channels * layout_of(rules).squares


def traced(rules: Rules, net: NetConfig) -> list[int]:
    """Numbers of a row that autograd keeps of a forward pass, by tensor.

    For networks without passes of their own; it is tried with a few rows of zeros.
    """
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.random.fork_rng(devices=[]):
        made = plain_torch_copy(make_net(rules, net, memory=memory_bytes_of(rules, net)))
    obs = torch.zeros(TRACED_ROWS, made.inputs.row_bytes, dtype=torch.uint8)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        made(obs)
    own = [*made.parameters(), *made.buffers()]
    besides = {one.untyped_storage()._cdata for one in own}
    return [one.numel() // TRACED_ROWS for at, one in kept.items() if at not in besides]
