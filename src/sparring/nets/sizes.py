"""How large a network is: numbers that it learns, and multiply-accumulates of one decision.

A pass over a few rows of zeros is run in plain torch, forward and back, and every product in it is
counted by its shape. So layers of our own that skip zeros count as if they did not, and what nobody
wrote a formula for, such as a module of somebody's own, is counted all the same.
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

from sparring.nets.hierarchy import ROLES, nets_of
from sparring.nets.layers import FirstLayer
from sparring.nets.net import Net
from sparring.nets.residual import ResidualNet

ROWS = (2, 4)
"""Of the passes that are counted. Modules may take a single row for something else."""
WHOLE = "Global"
"""What torch's tracker calls the outermost module's surroundings."""


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
class Counts:
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
        """As plain values."""
        layers = [{**vars(layer), "shape": list(layer.shape)} for layer in self.layers]
        return {"parameters": self.parameters, "macs": self.macs, "layers": layers}


def count(net: Net) -> Counts:
    """Count a network as it is; nothing in it changes."""
    if roles := nets_of(net):
        each = {role: count(own) for role, own in roles}
        layers = tuple(
            LayerCount(f"{ROLES}.{role}.{one.name}", *list(vars(one).values())[1:])
            for role, own in each.items()
            for one in own.layers
        )
        return Counts(
            layers,
            largest(own.macs for own in each.values()),
            largest(own.backward for own in each.values()),
        )
    found, backward = products_of(net) or (None, None)
    modules = dict(net.named_modules())
    names = [*(name for name, one in modules.items() if has_own(one)), *(found or {})]
    layers = tuple(
        layer_of(name, modules[name], (found or {}).get(name, 0)) for name in dict.fromkeys(names)
    )
    return Counts(layers, None if found is None else sum(found.values()), backward)


def largest(counts: Iterable[int | None]) -> int | None:
    """The largest of some counts; None if one of them cannot be told."""
    known = list(counts)
    return None if None in known else max(one for one in known if one is not None)


def has_own(module: nn.Module) -> bool:
    """Whether numbers are learned in it, and not only in modules inside of it."""
    return any(True for _ in module.parameters(recurse=False))


def layer_of(name: str, module: nn.Module, macs: int) -> LayerCount:
    """What is said of a module."""
    own = list(module.parameters(recurse=False))
    shape = max(own, key=Tensor.numel).shape if own else ()
    return LayerCount(
        name or "itself", type(module).__name__, tuple(shape), sum(map(Tensor.numel, own)), macs
    )


def products_of(net: Net) -> tuple[dict[str, int], int] | None:
    """Multiply-accumulates of a row by module, and of its gradients; None: they cannot be told.

    What all rows of a pass share is not counted.
    """
    plain = dense_twin(net).eval()
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


def dense_twin(net: Net) -> Net:
    """The same network on the CPU, in plain torch alone."""
    twin = net.twin()
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
        """Run an operation, and add what it multiplies."""
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
