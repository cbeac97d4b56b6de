"""Entities that a game declares for networks with attention: cards in hand, players, animals.

A game's folder may have `entities.py` with a function `entities(rules)` that returns an
`EntitySpec`: which features of an observation describe which entity, and which actions refer to
one. It finds blocks, columns and actions by name, so that one declaration works for all flags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from sparring.errors import ConfigError, suggestion
from sparring.games.features import FeatureBlock
from sparring.games.lookup import game_module
from sparring.games.rules import Rules

FeatureTable = tuple[tuple[int | None, ...], ...]
"""Feature indices of every item, the same number for each; None reads as 0."""


@dataclass(frozen=True)
class EntitySet:
    """Entities of one type. Items have fixed indices, such as the cards of a deck."""

    name: str
    items: int
    features: FeatureTable = ()
    """Features that describe each item. Empty: an item is known by its index alone."""
    present: tuple[int, ...] = ()
    """For every item the feature that is nonzero while the item is present. Empty: always."""
    max_present: int = 0
    """Largest number of items present at once. 0: all of them."""
    constants: tuple[tuple[float, ...], ...] = ()
    """Numbers of every item that never change, such as the suit of a card."""

    @property
    def tokens(self) -> int:
        """Number of tokens in the network."""
        return min(self.max_present or self.items, self.items)

    @property
    def selects_present(self) -> bool:
        """Whether only items that are present become tokens."""
        return self.tokens < self.items


@dataclass(frozen=True)
class EntityActions:
    """Actions that refer to one item of a set, such as playing a card."""

    entity_set: str
    actions: Mapping[int, int]
    """Action by item."""

    @property
    def entity_sets(self) -> tuple[str, ...]:
        return (self.entity_set,)


@dataclass(frozen=True)
class EntityPairActions:
    """Actions that refer to items of two sets, such as trading an animal with a seat."""

    first: str
    second: str
    actions: Mapping[tuple[int, int], int]
    """Action by (item of the first set, item of the second set)."""

    @property
    def entity_sets(self) -> tuple[str, ...]:
        return self.first, self.second


@dataclass(frozen=True)
class EntitySpec:
    """All entities of a game. Features outside of them describe the whole table."""

    sets: tuple[EntitySet, ...]
    pointers: tuple[EntityActions | EntityPairActions, ...] = ()

    def check(self, rules: Rules) -> EntitySpec:
        """Return this spec; raises a ConfigError if it does not fit the rules."""
        sets = {entities.name: entities for entities in self.sets}
        if not sets or len(sets) < len(self.sets):
            raise spec_error(rules, "needs sets, each with a different name")
        for entities in self.sets:
            check_set(rules, entities)
        used: set[int] = set()
        for pointer in self.pointers:
            names = pointer.entity_sets
            for name in names:
                if name not in sets:
                    raise spec_error(rules, f"points to {name!r}{suggestion(name, sets)}")
            for item, action in pointer.actions.items():
                items = (item,) if isinstance(item, int) else item
                inside = all(
                    0 <= i < sets[name].items for i, name in zip(items, names, strict=True)
                )
                if not inside or not 0 <= action < rules.actions or action in used:
                    raise spec_error(
                        rules,
                        f"gives action {action} to item {item} of {' and '.join(names)}; there are "
                        f"{rules.actions} actions, each for one item at most",
                    )
                used.add(action)
        return self


def check_set(rules: Rules, entities: EntitySet) -> None:
    """Refuse lists of the wrong length and feature indices out of range."""
    lists = {
        "features": entities.features,
        "present": entities.present,
        "constants": entities.constants,
    }
    for name, values in lists.items():
        if values and len(values) != entities.items:
            raise spec_error(
                rules,
                f"has {name} for {len(values)} of {entities.items} items of {entities.name!r}",
            )
    if entities.items < 1 or len({len(row) for row in entities.features}) > 1:
        raise spec_error(rules, f"needs items of {entities.name!r} with as many features for each")
    if entities.selects_present and not entities.present:
        raise spec_error(
            rules, f"does not say which of {entities.name!r} are present, only how many"
        )
    for feature in (*chain.from_iterable(entities.features), *entities.present):
        if feature is not None and not 0 <= feature < len(rules.features):
            raise spec_error(rules, f"has feature {feature} of {len(rules.features)}")


def spec_error(rules: Rules, problem: str) -> ConfigError:
    return ConfigError(
        f"entities.py of {rules.name} {problem}; fix it, see docs/guides/networks.md"
    )


def entities_of(rules: Rules) -> EntitySpec:
    """Return the entities of a game; raises a ConfigError if it declares none."""
    module = game_module(rules.name, "entities")
    if module is None or rules.box:
        raise ConfigError(
            f"net.kind attention needs a game that declares entities; {rules.name} declares none: "
            "use --net.kind mlp, or see docs/guides/networks.md for how a game declares them"
        )
    spec: EntitySpec = module.entities(rules)
    return spec.check(rules)


# Helpers for declarations


def block_of(rules: Rules, name: str) -> FeatureBlock | None:
    """Return a block by name; None if `NAME?` is missing with these flags."""
    blocks = {block.name: block for block in rules.blocks}
    block = blocks.get(name.removesuffix("?"))
    if block is None and not name.endswith("?"):
        raise ConfigError(f"{rules.name} has no block {name!r}{suggestion(name, blocks)}")
    return block


def rows(rules: Rules, *names: str) -> FeatureTable:
    """Return one row of features per item, from one or several blocks.

    names: blocks; `NAME?` for a block that some flags leave out.
    """
    blocks = [block for block in (block_of(rules, name) for name in names) if block]
    return joined(*map(rows_of_block, blocks))


def rows_of_block(block: FeatureBlock) -> FeatureTable:
    width = len(block.columns)
    starts = range(block.first, block.first + block.rows * width, width)
    return tuple(tuple(range(start, start + width)) for start in starts)


def columns(rules: Rules, block: str, items: Iterable[object], called: str = "{}") -> FeatureTable:
    """Return for every item its column, in all rows of a block.

    items: names of the items; called: name of an item's column, `{}` for the item.
    """
    names = [called.format(item) for item in items]
    found = block_of(rules, block)
    if found is None:
        return ((),) * len(names)
    for name in names:
        if name not in found.columns:
            raise ConfigError(
                f"block {block!r} of {rules.name} has no {name!r}{suggestion(name, found.columns)}"
            )
    return tuple(
        tuple(
            found.first + row * len(found.columns) + found.columns.index(name)
            for row in range(found.rows)
        )
        for name in names
    )


def joined(*tables: FeatureTable) -> FeatureTable:
    """Concatenate the features of several tables, item by item."""
    if len({len(table) for table in tables}) > 1:
        raise ConfigError(f"entities with {[len(table) for table in tables]} items do not match")
    return tuple(tuple(chain.from_iterable(of_item)) for of_item in zip(*tables, strict=True))


def actions_called(rules: Rules, names: Sequence[str]) -> dict[int, int]:
    """Return the action of every item by the action's name; items without one are left out."""
    by_name = {rules.action_name(action): action for action in range(rules.actions)}
    return {item: by_name[name] for item, name in enumerate(names) if name in by_name}
