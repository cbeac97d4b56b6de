"""Transfer of weights between networks of different shapes or for different flags of a game.

Tensors are matched by name, and their entries by label (`axis_labels.py`). Entries without a
counterpart keep their initial values, with two exceptions: weights from new inputs to transferred
units are 0, and a new layer of a relu perceptron is the identity. So a wider or deeper network
computes exactly what the old one did, until it learns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.nets.axis_labels import AxisLabels, Labels, axis_labels_of
from sparring.nets.heads import ROLES
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net

WHOLE, PART, IDENTITY, FRESH = "whole", "in part", "passes on", "fresh"
AXES = ("rows", "columns")
SCALES = {"value_scale": "value", "score_scale": "score", "wdl_unit": "wdl"}
"""Buffers with the unit of a head, and that head."""
SETTINGS = ("wdl_blend",)
"""Buffers that the configuration of the run decides."""


@dataclass(frozen=True)
class TensorTransfer:
    """Result of the transfer for one tensor."""

    name: str
    shape: tuple[int, ...]
    how: str
    """WHOLE, PART, IDENTITY or FRESH."""
    kept: int = 0
    """Number of transferred entries."""
    part: str = ""
    """Which rows and columns were transferred, if not all."""

    @property
    def numbers(self) -> int:
        return int(torch.Size(self.shape).numel())


@dataclass(frozen=True)
class Transfer:
    """New tensors of a network, and the result of the transfer by tensor."""

    tensors: dict[str, Tensor]
    kept: tuple[TensorTransfer, ...]
    left: tuple[str, ...]
    """Tensors of the source network that were not used."""

    def count(self, how: str) -> int:
        return sum(one.how == how for one in self.kept)

    @property
    def numbers(self) -> tuple[int, int]:
        """Number of transferred entries, and of all entries."""
        return sum(one.kept for one in self.kept), sum(one.numbers for one in self.kept)

    def line(self) -> str:
        """Return a summary in one line."""
        kept, numbers = self.numbers
        if self.count(WHOLE) == len(self.kept) and not self.left:
            return f"kept all {len(self.kept)} tensors, {numbers:,} numbers"
        parts = [f"kept {self.count(WHOLE)} of {len(self.kept)} tensors whole"]
        partial = [one for one in self.kept if one.how == PART]
        if partial:
            parts.append(f"{partial[0].name} in part ({partial[0].part})")
        if len(partial) > 1:
            parts.append(f"{len(partial) - 1} more in part")
        parts.append(f"{kept:,} of {numbers:,} numbers")
        if fresh := [one.name for one in self.kept if one.how == FRESH]:
            parts.append(f"fresh: {shorten_list(fresh)}")
        if self.left:
            parts.append(f"left out: {shorten_list(self.left)}")
        return ", ".join(parts)

    def plain(self) -> dict[str, Any]:
        """Return the results of all tensors as JSON values."""
        tensors = [{**vars(one), "shape": list(one.shape)} for one in self.kept]
        return {**self._totals(), "tensors": tensors, "left": list(self.left)}

    def record(self) -> dict[str, Any]:
        """Return the entry for the run's record: all tensors that are not whole."""
        changed = {
            one.name: {"shape": list(one.shape), "how": one.how, "kept": one.kept}
            for one in self.kept
            if one.how != WHOLE
        }
        lists = {"tensors": len(self.kept), "changed": changed, "left": list(self.left)}
        return {**self._totals(), **lists}

    def _totals(self) -> dict[str, Any]:
        kept, numbers = self.numbers
        return {"summary": self.line(), "kept": kept, "numbers": numbers}


def shorten_list(names: Iterable[str], limit: int = 3) -> str:
    """Return a few names, and how many more there are."""
    names = list(names)
    more = [f"{len(names) - limit} more"] if len(names) > limit else []
    return " and ".join(filter(None, (", ".join(names[:limit]), *more)))


def transfer_weights(name: str, net: Net, source: Net, fresh: Mapping[str, Tensor]) -> Transfer:
    """Copy the matching weights of a source network into the tensors of another one.

    name: of the source in messages, such as "init: runs/x".
    fresh: initial tensors of `net`, which are not changed.
    """
    given = {key: value.detach().cpu() for key, value in source.state_dict().items()}
    labels, source_labels = axis_labels_of(net), axis_labels_of(source)
    labels |= shared_tower_labels(net, source)
    renamed, identities = dict(renames(net, source, fresh)), dict(new_layers(net, source, fresh))
    tensors: dict[str, Tensor] = {}
    kept: dict[str, TensorTransfer] = {}
    for key, initial in fresh.items():
        source_key, shape = renamed.get(key, key), tuple(initial.shape)
        tensors[key], kept[key] = initial, TensorTransfer(key, shape, FRESH)
        if source_key in given and initial.ndim == given[source_key].ndim:
            overlap = Overlap(
                initial, given[source_key], labels.get(key), source_labels.get(source_key)
            )
            tensors[key] = overlap.merge()
            kept[key] = TensorTransfer(key, shape, *overlap.describe())
        elif key in identities:
            tensors[key], kept[key] = identities[key], TensorTransfer(key, shape, IDENTITY)
    for key in fresh:
        if not is_transferred(key, kept):
            tensors[key], kept[key] = fresh[key], TensorTransfer(key, (), FRESH)
    used = {renamed.get(key, key) for key, one in kept.items() if one.kept}
    left = tuple(key for key in given if key not in used)
    transfer = Transfer(tensors, tuple(kept.values()), left)
    check_not_empty(name, transfer)
    return transfer


def is_transferred(name: str, kept: Mapping[str, TensorTransfer]) -> bool:
    """Whether a buffer is transferred: a scale only with its head, a setting never."""
    prefix, _, last = name.rpartition(".")
    if last not in SCALES:
        return last not in SETTINGS
    head = kept.get(f"{prefix}.{SCALES[last]}_head.weight".removeprefix("."))
    if head is not None:
        return bool(head.kept)
    # A custom module, whose heads may have any names.
    others = (one for one in kept.values() if one.name.rpartition(".")[2] not in SCALES)
    return any(one.kept for one in others)


def check_not_empty(name: str, transfer: Transfer) -> None:
    if transfer.numbers[0]:
        return
    first = next(iter(transfer.kept))
    raise ConfigError(
        f"{name} holds another network, of which nothing fits: here are {first.name} "
        f"{first.shape} and others, there is {transfer.left[0] if transfer.left else 'nothing'}; "
        "set net as it was there, or begin without init"
    )


class Overlap:
    """Common entries of two tensors of one name."""

    def __init__(
        self,
        tensor: Tensor,
        source: Tensor,
        labels: AxisLabels | None,
        source_labels: AxisLabels | None,
    ) -> None:
        self.tensor, self.source = tensor, source
        self.inputs = labels.inputs if labels else None
        self.indices = [
            match_labels(labels_of(tensor, labels, axis), labels_of(source, source_labels, axis))
            for axis in range(tensor.ndim)
        ]
        """By dimension: matching indices in the tensor, and in the source."""

    def merge(self) -> Tensor:
        """Return the tensor with the source's entries; old outputs get 0 from new inputs."""
        merged = self.tensor.clone()
        if not merged.ndim:
            return self.source.to(merged).clone()
        to = [mine for mine, _ in self.indices]
        if self.inputs is not None:
            old = set(to[self.inputs].tolist())
            new = [index for index in range(merged.shape[self.inputs]) if index not in old]
            block = list(to)
            block[self.inputs] = torch.tensor(new, dtype=torch.long)
            merged[index_grid(block)] = 0
        merged[index_grid(to)] = self.source[index_grid([of for _, of in self.indices])].to(merged)
        return merged

    def describe(self) -> tuple[str, int, str]:
        """Return how it was transferred, the number of entries, and which rows and columns."""
        counts = [len(mine) for mine, _ in self.indices]
        numbers = int(torch.Size(counts).numel())
        part = ", ".join(
            f"{count:,} of {size:,} {AXES[min(axis, 1)]}{where}"
            for tensor, where in ((self.tensor, ""), (self.source, " there"))
            for axis, (count, size) in enumerate(zip(counts, tensor.shape, strict=True))
            if count < size
        )
        return (FRESH if part and not numbers else PART if part else WHOLE), numbers, part


def labels_of(tensor: Tensor, labels: AxisLabels | None, axis: int) -> Labels:
    """Return the labels of a dimension, its indices if it has none."""
    known = labels.labels.get(axis) if labels else None
    return known if known is not None else range(tensor.shape[axis])


def match_labels(labels: Labels, source: Labels) -> tuple[Tensor, Tensor]:
    """Return the indices of labels that the source has too, and their indices in the source."""
    index_of: dict[Hashable, int] = {label: index for index, label in enumerate(source)}
    index_of.pop(None, None)
    pairs = [(index, index_of[label]) for index, label in enumerate(labels) if label in index_of]
    matches = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return matches[:, 0], matches[:, 1]


def index_grid(indices: list[Tensor]) -> tuple[Tensor, ...]:
    """Return broadcastable indices of all combinations (`numpy.ix_`)."""
    return tuple(
        one.reshape([-1 if axis == dimension else 1 for axis in range(len(indices))])
        for dimension, one in enumerate(indices)
    )


def pairs_by_role(net: Net, source: Net) -> Iterator[tuple[str, Net, Net]]:
    """Yield the networks of each role, with the prefix of their tensors' names."""
    sources = dict(nets_by_role(source))
    roles = nets_by_role(net)
    if not roles:
        yield "", net, source
    for role, role_net in roles:
        if role in sources:
            yield f"{ROLES}.{role}.", role_net, sources[role]


def perceptrons(net: Net, source: Net) -> Iterator[tuple[str, Perceptron, Perceptron]]:
    """Yield the pairs of `pairs_by_role` that are both perceptrons."""
    for prefix, mine, theirs in pairs_by_role(net, source):
        if isinstance(mine, Perceptron) and isinstance(theirs, Perceptron):
            yield prefix, mine, theirs


def renames(net: Net, source: Net, fresh: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """Yield tensors that come from another name of the source, "" for none.

    Separate towers all come from a shared one. Heads whose input has another meaning are not
    transferred: in another kind of network, or after other layers.
    """
    for prefix, mine, theirs in pairs_by_role(net, source):
        both = isinstance(mine, Perceptron) and isinstance(theirs, Perceptron)
        for name in (one for one in fresh if one.startswith(prefix)):
            first, _, rest = name.removeprefix(prefix).partition(".")
            head, _, last = first.rpartition("_")
            if last == "head" and not has_same_input(head, mine, theirs):
                yield name, ""
            if both and first in ("towers", "first_norms") and theirs.config.shared:
                yield name, f"{prefix}{first}.0.{rest.partition('.')[2]}"


def has_same_input(head: str, mine: Net, theirs: Net) -> bool:
    """Whether the input of a head has the same meaning in both networks."""
    if not isinstance(mine, Perceptron) or not isinstance(theirs, Perceptron):
        return type(mine) is type(theirs)
    if mine.config.shared and theirs.tower_of.get(head, 0):
        return False  # a shared tower comes from the first of two, the policy's
    names = ("towers", mine.head_layers.get(head) or theirs.head_layers.get(head))
    return all(stack.keeps_output for stack in stacks_of(mine, theirs) if stack.name in names)


@dataclass(frozen=True)
class LayerStack:
    """Widths of consecutive layers in both networks, the input's first."""

    name: str
    mine: tuple[int, ...]
    theirs: tuple[int, ...]
    exact: bool
    """Whether a new layer can be the identity: relu is, for inputs that are not negative."""

    @property
    def grows(self) -> bool:
        """Whether there are new layers at the end, all wide enough for an identity."""
        before = len(self.theirs)
        wide = min(self.mine[before - 1 :], default=0) >= self.theirs[-1]
        return self.exact and wide and len(self.mine) > before

    @property
    def keeps_output(self) -> bool:
        return len(self.mine) == len(self.theirs) or self.grows


def stacks_of(mine: Perceptron, theirs: Perceptron) -> Iterator[LayerStack]:
    """Yield the towers, and the layers of policy and value."""
    configs = mine.config, theirs.config
    exact = all(one.activation == "relu" and not one.norm for one in configs)
    yield LayerStack("towers", mine.config.hidden, theirs.config.hidden, exact)
    for name in ("policy", "value"):
        widths = [(one.hidden[-1], *getattr(one, f"{name}_hidden")) for one in configs]
        yield LayerStack(f"{name}_layers", widths[0], widths[1], exact)


def shared_tower_labels(net: Net, source: Net) -> dict[str, AxisLabels]:
    """Label the first layer's columns such that all towers come from a shared one."""
    found = {}
    for prefix, mine, theirs in perceptrons(net, source):
        if not theirs.config.shared:
            continue
        for name in ("first.weight", "first.bias"):
            axes = axis_labels_of(mine)[name]
            columns = [(0, unit) for unit in range(mine.config.hidden[0])] * len(mine.towers)
            labels = {**axes.labels, max(axes.labels): columns}
            found[prefix + name] = replace(axes, labels=labels)
    return found


def new_layers(net: Net, source: Net, fresh: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield identity weights for new layers at the end of a stack."""
    for prefix, mine, theirs in perceptrons(net, source):
        for stack in stacks_of(mine, theirs):
            if not stack.grows:
                continue
            towers = range(len(mine.towers)) if stack.name == "towers" else [None]
            for layer in range(len(stack.theirs) - 1, len(stack.mine) - 1):
                for tower in towers:
                    module = stack.name if tower is None else f"{stack.name}.{tower}"
                    name, units = f"{prefix}{module}.{2 * layer}.weight", stack.theirs[-1]
                    weight = fresh[name].clone()
                    weight[:units] = torch.eye(*weight[:units].shape)
                    yield name, weight
