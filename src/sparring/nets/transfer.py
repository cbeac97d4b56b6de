"""Weights from one network to another that need not be alike: what means the same is taken over.

Tensors are matched by their names, and inside them numbers by what they stand for (`places.py`).
Whatever has no counterpart stays as it was made, but for this: what a kept unit gets from new ones
begins at 0, and a new layer of a perceptron with relu passes on what it gets. So a network that was
widened or made deeper says what it said before, exactly, until it learns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.nets.axis_labels import Meaning, Places, axis_labels_of
from sparring.nets.hierarchy import ROLES, nets_by_role
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net

WHOLE, PART, PASSES_ON, FRESH = "whole", "in part", "passes on", "fresh"
AXES = ("rows", "columns")
UNITS = {"value_scale": "value", "score_scale": "score", "wdl_unit": "wdl"}
"""What heads are measured in, and the head of each."""
SETTINGS = ("wdl_blend",)
"""What the settings of a run say, whatever it begins with."""


@dataclass(frozen=True)
class Kept:
    """What became of one tensor."""

    name: str
    shape: tuple[int, ...]
    how: str
    """WHOLE, PART, PASSES_ON or FRESH."""
    kept: int = 0
    """Numbers that were taken over."""
    part: str = ""
    """Of one that was kept in part: which."""

    @property
    def numbers(self) -> int:
        return int(torch.Size(self.shape).numel())


@dataclass(frozen=True)
class Transfer:
    """A network's tensors after others were taken over, and what was kept of them."""

    tensors: dict[str, Tensor]
    kept: tuple[Kept, ...]
    left: tuple[str, ...]
    """Tensors of the other network that have no counterpart."""

    def how_many(self, how: str) -> int:
        """Tensors of which that became."""
        return sum(one.how == how for one in self.kept)

    @property
    def numbers(self) -> tuple[int, int]:
        """Those that were kept, and all."""
        return sum(one.kept for one in self.kept), sum(one.numbers for one in self.kept)

    def line(self) -> str:
        """Say what was kept."""
        kept, numbers = self.numbers
        if self.how_many(WHOLE) == len(self.kept) and not self.left:
            return f"kept all {len(self.kept)} tensors, {numbers:,} numbers"
        said = [f"kept {self.how_many(WHOLE)} of {len(self.kept)} tensors whole"]
        parts = [one for one in self.kept if one.how == PART]
        if parts:
            said.append(f"{parts[0].name} in part ({parts[0].part})")
        if len(parts) > 1:
            said.append(f"{len(parts) - 1} more in part")
        said.append(f"{kept:,} of {numbers:,} numbers")
        if fresh := [one.name for one in self.kept if one.how == FRESH]:
            said.append(f"fresh: {listed(fresh)}")
        if self.left:
            said.append(f"left out: {listed(self.left)}")
        return ", ".join(said)

    def plain(self) -> dict[str, Any]:
        """As plain values, tensor by tensor."""
        kept, numbers = self.numbers
        tensors = [{**vars(one), "shape": list(one.shape)} for one in self.kept]
        said = {"said": self.line(), "kept": kept, "numbers": numbers}
        return {**said, "tensors": tensors, "left": list(self.left)}

    def record(self) -> dict[str, Any]:
        """What the record of a run says of it: all tensors but those that are whole."""
        kept, numbers = self.numbers
        others = (one for one in self.kept if one.how != WHOLE)
        return {
            "said": self.line(),
            "kept": kept,
            "numbers": numbers,
            "tensors": len(self.kept),
            "changed": {
                one.name: {"shape": list(one.shape), "how": one.how, "kept": one.kept}
                for one in others
            },
            "left": list(self.left),
        }


def listed(names: Iterable[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    names = list(names)
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return " and ".join(filter(None, (", ".join(names[:most]), *more)))


def transferred(where: str, mine: Net, theirs: Net, fresh: Mapping[str, Tensor]) -> Transfer:
    """Take over what fits of a network into another one's tensors.

    where: how the user named it, such as "init: runs/x". fresh: the tensors of `mine` as it begins,
    which are not changed.
    """
    given = {name: value.detach().cpu() for name, value in theirs.state_dict().items()}
    here, there = {**axis_labels_of(mine), **alike_towers(mine, theirs)}, axis_labels_of(theirs)
    source, deeper = dict(sources(mine, theirs, fresh)), dict(new_layers(mine, theirs, fresh))
    tensors: dict[str, Tensor] = {}
    kept: dict[str, Kept] = {}
    for name, made in fresh.items():
        whence, shape = source.get(name, name), tuple(made.shape)
        tensors[name], kept[name] = made, Kept(name, shape, FRESH)
        if whence in given and made.ndim == given[whence].ndim:
            taken = Overlap(made, given[whence], here.get(name), there.get(whence))
            tensors[name], kept[name] = taken.filled(), Kept(name, shape, *taken.said())
        elif name in deeper:
            tensors[name], kept[name] = deeper[name], Kept(name, shape, PASSES_ON)
    for name in fresh:
        if not comes_along(name, kept):
            tensors[name], kept[name] = fresh[name], Kept(name, (), FRESH)
    used = {source.get(name, name) for name, one in kept.items() if one.kept}
    left = tuple(name for name in given if name not in used)
    found = Transfer(tensors, tuple(kept.values()), left)
    check_something(where, found)
    return found


def comes_along(name: str, kept: Mapping[str, Kept]) -> bool:
    """Whether a number beside the weights is taken over: a unit with its head, no setting."""
    prefix, _, last = name.rpartition(".")
    if last not in UNITS:
        return last not in SETTINGS
    head = kept.get(f"{prefix}.{UNITS[last]}_head.weight".removeprefix("."))
    if head is not None:
        return bool(head.kept)
    # A module of somebody's own, whose heads have names of their own.
    others = (one for one in kept.values() if one.name.rpartition(".")[2] not in UNITS)
    return any(one.kept for one in others)


def check_something(where: str, found: Transfer) -> None:
    """Refuse a network of which nothing fits."""
    if found.numbers[0]:
        return
    first = next(iter(found.kept))
    raise ConfigError(
        f"{where} holds another network, of which nothing fits: here are {first.name} "
        f"{first.shape} and others, there is {found.left[0] if found.left else 'nothing'}; set net "
        "as it was there, or begin without init"
    )


class Overlap:
    """What two tensors of a name have in common."""

    def __init__(
        self, mine: Tensor, theirs: Tensor, here: Meaning | None, there: Meaning | None
    ) -> None:
        self.mine, self.theirs = mine, theirs
        self.inputs = here.inputs if here else None
        self.places = [
            shared(at_places(mine, here, axis), at_places(theirs, there, axis))
            for axis in range(mine.ndim)
        ]
        """By dimension: where numbers come to be, and where they are taken from."""

    def filled(self) -> Tensor:
        """Return mine with what is shared from theirs; kept outputs get 0 from new inputs."""
        made = self.mine.clone()
        if not made.ndim:
            return self.theirs.to(made).clone()
        into = [to for to, _ in self.places]
        if self.inputs is not None:
            old = set(into[self.inputs].tolist())
            new = [at for at in range(made.shape[self.inputs]) if at not in old]
            block = list(into)
            block[self.inputs] = torch.tensor(new, dtype=torch.long)
            made[grid(block)] = 0
        made[grid(into)] = self.theirs[grid([of for _, of in self.places])].to(made)
        return made

    def said(self) -> tuple[str, int, str]:
        """How much it is, in numbers and words."""
        counts = [len(to) for to, _ in self.places]
        numbers = int(torch.Size(counts).numel())
        part = ", ".join(
            f"{count:,} of {size:,} {AXES[min(axis, 1)]}{where}"
            for tensor, where in ((self.mine, ""), (self.theirs, " there"))
            for axis, (count, size) in enumerate(zip(counts, tensor.shape, strict=True))
            if count < size
        )
        return (FRESH if part and not numbers else PART if part else WHOLE), numbers, part


def at_places(tensor: Tensor, meaning: Meaning | None, axis: int) -> Places:
    """What the places of a dimension stand for; just their numbers where nothing else is known."""
    known = meaning.places.get(axis) if meaning else None
    return known if known is not None else range(tensor.shape[axis])


def shared(here: Places, there: Places) -> tuple[Tensor, Tensor]:
    """Return the places here that are there too, and where they are there."""
    at: dict[Hashable, int] = {place: number for number, place in enumerate(there)}
    at.pop(None, None)
    pairs = [(number, at[place]) for number, place in enumerate(here) if place in at]
    found = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def grid(places: list[Tensor]) -> tuple[Tensor, ...]:
    """Indices of all combinations of places."""
    return tuple(
        one.reshape([-1 if axis == own else 1 for axis in range(len(places))])
        for own, one in enumerate(places)
    )


def by_role(mine: Net, theirs: Net) -> Iterator[tuple[str, Net, Net]]:
    """The networks of both, with what stands in front of their tensors' names."""
    others = dict(nets_by_role(theirs))
    roles = nets_by_role(mine)
    if not roles:
        yield "", mine, theirs
    for role, own in roles:
        if role in others:
            yield f"{ROLES}.{role}.", own, others[role]


def perceptrons(mine: Net, theirs: Net) -> Iterator[tuple[str, Perceptron, Perceptron]]:
    """The same where both are perceptrons."""
    for prefix, own, other in by_role(mine, theirs):
        if isinstance(own, Perceptron) and isinstance(other, Perceptron):
            yield prefix, own, other


def sources(mine: Net, theirs: Net, fresh: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """Tensors that come from one of another name, "" for none.

    Towers that were one before all begin as that one. Heads that would read something else than
    they did begin anew: of another kind of network, or behind layers that are not those of before.
    """
    for prefix, own, other in by_role(mine, theirs):
        both = isinstance(own, Perceptron) and isinstance(other, Perceptron)
        for name in (one for one in fresh if one.startswith(prefix)):
            inside = name.removeprefix(prefix)
            first, _, rest = inside.partition(".")
            head, _, last = first.rpartition("_")
            if last == "head" and not reads_the_same(head, own, other):
                yield name, ""
            if both and first in ("towers", "first_norms") and other.config.shared:
                yield name, f"{prefix}{first}.0.{rest.partition('.')[2]}"


def reads_the_same(head: str, mine: Net, theirs: Net) -> bool:
    """Whether what a head reads means what it did there."""
    if not isinstance(mine, Perceptron) or not isinstance(theirs, Perceptron):
        return type(mine) is type(theirs)
    if mine.config.shared and theirs.tower_of.get(head, 0):
        return False  # of towers that become one the first, the policy's, stays
    names = ("towers", mine.head_layers.get(head) or theirs.head_layers.get(head))
    return all(stack.holds for stack in stacks_of(mine, theirs) if stack.name in names)


@dataclass(frozen=True)
class Stack:
    """Layers one behind the other, here and there: widths, that of what they read first."""

    name: str
    here: tuple[int, ...]
    there: tuple[int, ...]
    exact: bool
    """Whether a layer can pass on what it gets: of what is not below 0, relu is that."""

    @property
    def grows(self) -> bool:
        """Whether new layers stand at its end that can pass on everything."""
        before = len(self.there)
        wide = min(self.here[before - 1 :], default=0) >= self.there[-1]
        return self.exact and wide and len(self.here) > before

    @property
    def holds(self) -> bool:
        """Whether what it gives still means the same."""
        return len(self.here) == len(self.there) or self.grows


def stacks_of(mine: Perceptron, theirs: Perceptron) -> Iterator[Stack]:
    """The layers of all heads together, and those of policy and value alone."""
    here, there = mine.config, theirs.config
    exact = here.activation == there.activation == "relu" and not (here.norm or there.norm)
    yield Stack("towers", here.hidden, there.hidden, exact)
    for name in ("policy", "value"):
        widths = [(one.hidden[-1], *getattr(one, f"{name}_hidden")) for one in (here, there)]
        yield Stack(f"{name}_layers", widths[0], widths[1], exact)


def alike_towers(mine: Net, theirs: Net) -> dict[str, Meaning]:
    """What the first layer's columns are where all towers begin as the one that was shared."""
    found = {}
    for prefix, own, other in perceptrons(mine, theirs):
        if not other.config.shared:
            continue
        for name in ("first.weight", "first.bias"):
            meaning = axis_labels_of(own)[name]
            columns = [(0, at) for at in range(own.config.hidden[0])] * len(own.towers)
            places = {**meaning.places, max(meaning.places): columns}
            found[prefix + name] = replace(meaning, places=places)
    return found


def new_layers(mine: Net, theirs: Net, fresh: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Layers at the end of a stack that change nothing of what it gives."""
    for prefix, own, other in perceptrons(mine, theirs):
        for stack in stacks_of(own, other):
            for layer in range(len(stack.there) - 1, len(stack.here) - 1) if stack.grows else ():
                towers = range(len(own.towers)) if stack.name == "towers" else [None]
                for tower in towers:
                    inside = stack.name if tower is None else f"{stack.name}.{tower}"
                    name, units = f"{prefix}{inside}.{2 * layer}.weight", stack.there[-1]
                    made = fresh[name].clone()
                    made[:units] = torch.eye(*made[:units].shape)
                    yield name, made
