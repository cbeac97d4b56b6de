"""Size of a network: parameters, multiply-accumulates (MACs) of one decision, bytes of a pass.

`num_parameters` and `pass_bytes` need a configuration only; `count` measures a network. It runs
forward and backward over a few rows of zeros in plain torch and counts every product by its shape.
Layers that skip zeros count as dense ones, and custom modules need no formula.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
from sparring.nets.board import board_layout
from sparring.nets.heads import ROLES, head_width
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.inputs import Inputs, memory_bytes_of
from sparring.nets.layers import FirstLayer
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.residual import ResidualNet
from sparring.nets.run.flat import VALUE_WIDTH, round_up, widened_width

ROWS = (2, 4)
"""Batch sizes of the counted passes. Modules may treat a single row in a special way."""
OUTERMOST = "Global"
"""Name of the scope outside all modules in torch's tracker."""
BOARDS = 4
"""Boards of all channels, inputs included, that a pass over a residual net keeps at once."""
ALIVE_TENSORS = 4
"""Approximate number of tensors that a pass without gradients keeps at once."""
TRACED_ROWS = 64
"""Rows of a traced pass; enough that tensors shared by all rows do not count."""


@dataclass(frozen=True)
class LayerCount:
    """Parameters and MACs of one module, without its submodules."""

    name: str
    kind: str
    """Name of its class."""
    shape: tuple[int, ...]
    """Shape of its largest tensor."""
    parameters: int
    macs: int


@dataclass(frozen=True)
class NetCounts:
    """Parameters and MACs of a network."""

    layers: tuple[LayerCount, ...]
    macs: int | None
    """MACs of one decision, of the largest network with one per role. None: unknown."""
    backward: int | None
    """MACs of the backward pass of one decision, likewise."""

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    def line(self) -> str:
        macs = "?" if self.macs is None else f"{self.macs:,}"
        return f"{self.parameters:,} parameters, {macs} multiply-accumulates per decision"

    def plain(self) -> dict[str, Any]:
        layers = [{**vars(layer), "shape": list(layer.shape)} for layer in self.layers]
        return {"parameters": self.parameters, "macs": self.macs, "layers": layers}


def count(net: Net) -> NetCounts:
    """Count parameters and MACs of a network, without changing it."""
    if roles := nets_by_role(net):
        counts = {role: count(role_net) for role, role_net in roles}
        layers = tuple(
            replace(layer, name=f"{ROLES}.{role}.{layer.name}")
            for role, role_counts in counts.items()
            for layer in role_counts.layers
        )
        return NetCounts(
            layers,
            largest(one.macs for one in counts.values()),
            largest(one.backward for one in counts.values()),
        )
    macs, backward = count_macs(net) or (None, None)
    modules = dict(net.named_modules())
    names = [name for name, module in modules.items() if list(module.parameters(recurse=False))]
    layers = tuple(
        count_layer(name, modules[name], (macs or {}).get(name, 0))
        for name in dict.fromkeys([*names, *(macs or {})])
    )
    return NetCounts(layers, None if macs is None else sum(macs.values()), backward)


def largest(counts: Iterable[int | None]) -> int | None:
    """Return the largest count; None if one of them is unknown."""
    known = list(counts)
    return None if None in known else max(one for one in known if one is not None)


def count_layer(name: str, module: nn.Module, macs: int) -> LayerCount:
    parameters = list(module.parameters(recurse=False))
    shape = max(parameters, key=Tensor.numel).shape if parameters else ()
    size = sum(map(Tensor.numel, parameters))
    return LayerCount(name or "itself", type(module).__name__, tuple(shape), size, macs)


def count_macs(net: Net) -> tuple[dict[str, int], int] | None:
    """Return the MACs of a row by module, and those of its backward pass; None: unknown.

    Products that all rows of a pass share are not counted.
    """
    plain = plain_torch_copy(net).eval()
    passes = []
    for rows in ROWS:
        obs = torch.zeros(rows, net.inputs.row_bytes, dtype=torch.uint8)
        try:
            tracker = ModuleTracker()
            forward = MacCounter(plain, tracker)
            backward = MacCounter(plain, tracker)
            with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
                with tracker, forward:
                    total = sum((head.sum() for head in plain(obs).values()), torch.zeros(()))
                with backward:
                    total.backward()
        except Exception:  # a custom module may fail on rows of zeros
            return None
        passes.append((forward.macs, backward.macs.total()))
    (few, few_backward), (more, more_backward) = passes
    rows = ROWS[1] - ROWS[0]
    by_module = {name: (more[name] - few[name]) // rows for name in more}
    return by_module, (more_backward - few_backward) // rows


def plain_torch_copy(net: Net) -> Net:
    """Return a copy on the CPU without native layers."""
    plain = net.cpu_copy()
    for module in plain.modules():
        if isinstance(module, FirstLayer):
            module.sparse = False
        if isinstance(module, ResidualNet):
            module.native = None
    return plain


class MacCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts MACs by the module whose weights a product reads, or whose forward computes it."""

    def __init__(self, net: Net, tracker: ModuleTracker) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.owners = {
            one.untyped_storage()._cdata: name.rpartition(".")[0]
            for name, one in net.named_parameters()
        }
        self.tracker = tracker
        self.macs: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: skipping torch's compiler would load it first, which takes seconds."""
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
            self.macs[self.owner(args)] += flops // 2
        return out

    def owner(self, args: Iterable[Any]) -> str:
        """Return the module that a product belongs to."""
        for one in args:
            if isinstance(one, Tensor) and one.untyped_storage()._cdata in self.owners:
                return self.owners[one.untyped_storage()._cdata]
        innermost = max(self.tracker.parents - {OUTERMOST}, key=len, default="")
        return innermost.partition(".")[2]


def num_parameters(rules: Rules, config: NetConfig) -> int:
    """Return the number of parameters of a network; built-in networks take no memory for it."""
    device = "cpu" if is_factory(config.kind) else "meta"
    with torch.random.fork_rng(devices=[]), torch.device(device):
        net = make_net(rules, config)
    return sum(map(Tensor.numel, net.parameters()))


def pass_bytes(rules: Rules, net: NetConfig, *, bf16: bool, learn: bool) -> int:
    """Return the bytes of a row in a forward pass; with learn, of its backward pass too."""
    number_bytes, heads = 2 if bf16 else 4, round_up(head_width(rules)) + VALUE_WIDTH
    activations = num_activations(rules, net, learn=learn)
    inputs = widened_width(Inputs(rules, memory_bytes_of(rules, net), net.inputs))
    return number_bytes * (inputs + activations + heads * learn) + 4 * heads


def num_activations(rules: Rules, net: NetConfig, *, learn: bool) -> int:
    """Return the number of activations of a row that a pass keeps."""
    if net.kind == "mlp" and not net.recurrent:
        towers = sum(net.hidden) * (1 if net.shared else 2)
        return (towers + sum(net.policy_hidden + net.value_hidden)) * (2 if learn else 1)
    if net.kind != "residual":
        sizes = traced_activations(rules, net)
        alive = sum(sorted(sizes)[-ALIVE_TENSORS:])
        return alive + sum(sizes) * learn
    boards = BOARDS + (2 * net.blocks if learn else 0)
    return boards * net.channels * board_layout(rules).squares


def traced_activations(rules: Rules, config: NetConfig) -> list[int]:
    """Return the sizes per row of the tensors that autograd saves in a forward pass.

    For networks without hand-written passes; traces a few rows of zeros.
    """
    saved: dict[int, Tensor] = {}

    def save(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.random.fork_rng(devices=[]):
        net = plain_torch_copy(make_net(rules, config, memory=memory_bytes_of(rules, config)))
    obs = torch.zeros(TRACED_ROWS, net.inputs.row_bytes, dtype=torch.uint8)
    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        net(obs)
    weights = {one.untyped_storage()._cdata for one in [*net.parameters(), *net.buffers()]}
    return [one.numel() // TRACED_ROWS for at, one in saved.items() if at not in weights]
