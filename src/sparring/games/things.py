"""Things that a game names for networks with attention: cards in hand, players, animals.

A game's folder may have `things.py` with a function `things(rules)` that returns `Declared`. It
says which numbers of an observation tell about which thing, and which actions refer to one. Blocks,
columns and actions are found by their names, so that one declaration holds for all flags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from sparring.errors import ConfigError, nearest
from sparring.games.features import Block
from sparring.games.lookup import game_module
from sparring.games.rules import Rules

Places = tuple[tuple[int | None, ...], ...]
"""For every item the numbers of features, as many for each; None reads as 0."""


@dataclass(frozen=True)
class Things:
    """A set of like things. Its items have fixed numbers, such as the cards of a deck."""

    name: str
    items: int
    places: Places = ()
    """For every item the features that tell about it. Left out: which item it is says all."""
    present: tuple[int, ...] = ()
    """For every item the feature that is not 0 while it is there. Left out: all always are."""
    most: int = 0
    """How many can be there at once. 0: all of them."""
    facts: tuple[tuple[float, ...], ...] = ()
    """For every item numbers that never change, such as the suit of a card, as many for each."""

    @property
    def tokens(self) -> int:
        """How many a network looks at."""
        return min(self.most or self.items, self.items)

    @property
    def picked(self) -> bool:
        """Whether a network looks at those alone that are there."""
        return self.tokens < self.items


@dataclass(frozen=True)
class Points:
    """A way in which actions refer to the items of a set, such as to play a card."""

    to: str
    actions: Mapping[int, int]
    """By item."""


@dataclass(frozen=True)
class Pairs:
    """A way in which actions refer to items of two sets, such as to trade an animal with a seat."""

    first: str
    second: str
    actions: Mapping[tuple[int, int], int]
    """By the item of the first set and that of the second."""


@dataclass(frozen=True)
class Declared:
    """What a game names. Everything else of an observation is about the whole table."""

    sets: tuple[Things, ...]
    pointers: tuple[Points | Pairs, ...] = ()

    def check(self, rules: Rules) -> Declared:
        """Return it; raises if it does not fit the rules."""
        sets = {things.name: things for things in self.sets}
        if not sets or len(sets) < len(self.sets):
            raise wrong(rules, "needs sets, each with a name of its own")
        for things in self.sets:
            check_set(rules, things)
        used: set[int] = set()
        for pointer in self.pointers:
            names = (
                (pointer.to,) if isinstance(pointer, Points) else (pointer.first, pointer.second)
            )
            for name in names:
                if name not in sets:
                    raise wrong(rules, f"points to {name!r}{nearest(name, sets)}")
            for item, action in pointer.actions.items():
                items = (item,) if isinstance(item, int) else item
                inside = all(
                    0 <= i < sets[name].items for i, name in zip(items, names, strict=True)
                )
                if not inside or not 0 <= action < rules.actions or action in used:
                    raise wrong(
                        rules,
                        f"gives action {action} to item {item} of {' and '.join(names)}; there are "
                        f"{rules.actions} actions, each for one item at most",
                    )
                used.add(action)
        return self


def check_set(rules: Rules, things: Things) -> None:
    """Refuse a set whose lists do not fit its items, or with features that are not there."""
    lists = {"places": things.places, "present": things.present, "facts": things.facts}
    for name, given in lists.items():
        if given and len(given) != things.items:
            raise wrong(
                rules, f"has {name} for {len(given)} of {things.items} items of {things.name!r}"
            )
    if things.items < 1 or len({len(row) for row in things.places}) > 1:
        raise wrong(rules, f"needs items of {things.name!r} with as many features for each")
    if things.picked and not things.present:
        raise wrong(rules, f"does not say which of {things.name!r} are present, only how many")
    for place in (*chain.from_iterable(things.places), *things.present):
        if place is not None and not 0 <= place < len(rules.features):
            raise wrong(rules, f"has feature {place} of {len(rules.features)}")


def wrong(rules: Rules, what: str) -> ConfigError:
    """What is to be raised about a declaration."""
    return ConfigError(f"things.py of {rules.name} {what}; mend it, see docs/attention.md")


def things_of(rules: Rules) -> Declared:
    """Return what a game names; raises if it names nothing."""
    module = game_module(rules.name, "things")
    if module is None or rules.box:
        raise ConfigError(
            f"net.kind attention needs a game that names its things; {rules.name} names none: use "
            "--net.kind mlp, or see docs/attention.md for how a game names them"
        )
    declared: Declared = module.things(rules)
    return declared.check(rules)


# What declarations are made of


def block_of(rules: Rules, name: str) -> Block | None:
    """Return a block by its name; None for NAME? where the flags leave it out."""
    blocks = {block.name: block for block in rules.blocks}
    found = blocks.get(name.removesuffix("?"))
    if found is None and not name.endswith("?"):
        raise ConfigError(f"{rules.name} has no block {name!r}{nearest(name, blocks)}")
    return found


def rows(rules: Rules, *names: str, skip: int = 0) -> Places:
    """A row of one or several blocks for every item.

    NAME? for a block that not every set of flags has. skip: so many items before have no row.
    """
    blocks = [block for block in (block_of(rules, name) for name in names) if block]
    return joined(
        *(
            ((None,) * len(block.columns),) * skip
            + tuple(
                tuple(
                    block.first + row * len(block.columns) + at for at in range(len(block.columns))
                )
                for row in range(block.rows)
            )
            for block in blocks
        )
    )


def columns(rules: Rules, block: str, items: Iterable[object], called: str = "{}") -> Places:
    """Of all rows of a block the column of every item.

    items: their names; called: what their column is called, `{}` for the name.
    """
    names = [called.format(item) for item in items]
    found = block_of(rules, block)
    if found is None:
        return ((),) * len(names)
    for name in names:
        if name not in found.columns:
            raise ConfigError(
                f"block {block!r} of {rules.name} has no {name!r}{nearest(name, found.columns)}"
            )
    return tuple(
        tuple(
            found.first + row * len(found.columns) + found.columns.index(name)
            for row in range(found.rows)
        )
        for name in names
    )


def joined(*parts: Places) -> Places:
    """The features of several parts, item by item."""
    if len({len(part) for part in parts}) > 1:
        raise ConfigError(f"things with {[len(part) for part in parts]} items cannot be joined")
    return tuple(tuple(chain.from_iterable(of_item)) for of_item in zip(*parts, strict=True))


def actions_called(rules: Rules, names: Sequence[str]) -> dict[int, int]:
    """The action of every item by what it is called; items without one are left out."""
    known = {rules.action_name(action): action for action in range(rules.actions)}
    return {item: known[name] for item, name in enumerate(names) if name in known}
