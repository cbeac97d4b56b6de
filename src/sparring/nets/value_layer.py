"""The last layer of a value or score, found in what autograd remembers of a forward pass.

If it is linear, has one output and is nobody else's, multiplying its weight and bias multiplies the
value of every row, and changes nothing else: that is how the unit of values is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from sparring.nets.net import Heads

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


def find_last_layer(said: Heads, named: Mapping[str, Tensor], head: str) -> tuple[str, ...]:
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
