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
from sparring.nets.hierarchy import ROLES, nets_of
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.places import Meaning, Places, meanings_of

WHOLE, PART, PASSES_ON, FRESH = "whole", "in part", "passes on", "fresh"
AXES = ("rows", "columns")
HEAD, SCALE = "_head.", "_scale"
"""Names of a head's tensors, and the end of the name of its unit."""


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
        """All that it has."""
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

    def record(self) -> dict[str, Any]:
        """The same as plain values: in words, in numbers, and all tensors that are not whole."""
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
    here, there = {**meanings_of(mine), **alike_towers(mine, theirs)}, meanings_of(theirs)
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
        if name.endswith(SCALE) and not of_known_head(name, kept):
            tensors[name], kept[name] = fresh[name], Kept(name, (), FRESH)
    used = {source.get(name, name) for name, one in kept.items() if one.kept}
    left = tuple(name for name in given if name not in used)
    found = Transfer(tensors, tuple(kept.values()), left)
    demand_something(where, found)
    return found


def of_known_head(unit: str, kept: Mapping[str, Kept]) -> bool:
    """Whether the head came along that a unit is of."""
    head = kept.get(f"{unit.removesuffix(SCALE)}{HEAD}weight")
    return head is None or bool(head.kept)


def demand_something(where: str, found: Transfer) -> None:
    """Refuse a network of which nothing fits, or nothing but heads, which mean nothing alone."""
    trunk = [one for one in found.kept if HEAD not in one.name and not one.name.endswith(SCALE)]
    if found.how_many(WHOLE) == len(found.kept) or any(one.kept for one in trunk):
        return
    heads = "nothing but heads" if any(one.kept for one in found.kept) else "nothing"
    first = next(iter(trunk), None)
    raise ConfigError(
        f"{where} holds another network: {heads} of it would be kept"
        + (f", here is {first.name} {first.shape}" * bool(first) if first else "")
        + "; set net as it was there, or begin without init"
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
    others = dict(nets_of(theirs))
    roles = nets_of(mine)
    if not roles:
        yield "", mine, theirs
    for role, own in roles:
        if role in others:
            yield f"{ROLES}.{role}.", own, others[role]


def sources(mine: Net, theirs: Net, fresh: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """Tensors that come from one of another name.

    Towers that were one before all begin as that one. Of towers that become one the policy's stays,
    and the value, which is not about that, begins anew.
    """
    for prefix, own, other in by_role(mine, theirs):
        if not isinstance(own, Perceptron) or not isinstance(other, Perceptron):
            continue
        for name in fresh:
            inside = name.removeprefix(prefix)
            first, _, rest = inside.partition(".")
            number, _, layer = rest.partition(".")
            if first in ("towers", "first_norms") and other.config.shared:
                yield name, f"{prefix}{first}.0.{layer}" if number.isdecimal() else name
            if own.config.shared > other.config.shared and inside.startswith(f"value{HEAD}"):
                yield name, ""


def alike_towers(mine: Net, theirs: Net) -> dict[str, Meaning]:
    """What the first layer's columns are where all towers begin as the one that was shared."""
    found = {}
    for prefix, own, other in by_role(mine, theirs):
        if isinstance(own, Perceptron) and isinstance(other, Perceptron) and other.config.shared:
            for name in ("first.weight", "first.bias"):
                meaning = meanings_of(own)[name]
                axis = max(meaning.places)
                columns = [(0, at) for at in range(own.config.hidden[0])] * len(own.towers)
                found[prefix + name] = replace(meaning, places={**meaning.places, axis: columns})
    return found


def new_layers(mine: Net, theirs: Net, fresh: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Layers of a deeper perceptron that change nothing: of what is not below 0, relu is that."""
    for prefix, own, other in by_role(mine, theirs):
        if not isinstance(own, Perceptron) or not isinstance(other, Perceptron):
            continue
        config, before = own.config, len(other.config.hidden)
        units = other.config.hidden[-1]
        exact = config.activation == other.config.activation == "relu" and not config.norm
        if not exact or min(config.hidden[before - 1 :], default=0) < units:
            continue
        for tower in range(len(own.towers)):
            for layer in range(before - 1, len(config.hidden) - 1):
                name = f"{prefix}towers.{tower}.{2 * layer}.weight"
                made = fresh[name].clone()
                made[:units] = torch.eye(*made[:units].shape)
                yield name, made
