"""Writes docs/what-combines.md from the table: `python -m sparring.capabilities.page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sparring.capabilities.refusals import games_offering
from sparring.capabilities.table import (
    ABILITIES,
    FEATURES,
    GAME,
    LEARNER,
    LEARNERS,
    NET_SETTINGS,
    NETWORK,
    NETWORKS,
    PASSES,
    PASSES_OF,
    PLACE,
    PLACES,
    Component,
)

HEAD = """# What combines

This page is written from `sparring/capabilities/table.py`, which also decides what is refused and
which way a run takes. `sparring train ... --dry-run` says both for a command before it runs.

Learners, networks, games, places and passes *offer* abilities. Whatever is asked for *needs* some
of them. A run that lacks one is refused with a line that says what was asked for, what is missing,
and what would work; a run that could be faster says which way it takes, and because of what.
"""
YES, NO = "yes", "-"
EVERYTHING = {**FEATURES, **NET_SETTINGS}
"""That can be asked for, settings of networks as they are typed."""


def page(games: Mapping[str, Sequence[str]]) -> str:
    """The page. games: names by ability."""
    return "\n".join([HEAD, *lines(games)])


def lines(games: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "## Learners\n"
    yield from offers(LEARNER, LEARNERS)
    yield "\n## Networks\n"
    yield from offers(NETWORK, NETWORKS)
    yield "\nWhat is missing here comes with a setting:\n"
    for name, ability in ABILITIES[NETWORK].items():
        if all(name not in choice.offers for choice in NETWORKS.values()):
            yield f"- {ability.what}: {ability.add} ({asked_by(NETWORK, name)})"
    yield "\n## Games\n"
    yield from header(["asked for", "needs", "games"])
    for name, ability in ABILITIES[GAME].items():
        yield row([asked_by(GAME, name), ability.what, ", ".join(games[name])])
    yield "\n## Places\n"
    yield "The first that offers all that is needed is taken.\n"
    yield from lacks(PLACE, PLACES)
    yield "\n## Passes\n"
    yield "What computes networks and their gradients.\n"
    yield from lacks(PASSES, PASSES_OF)
    yield "\n## Pairs that do not combine\n"
    yield from header(["", "with", "because"])
    for name, feature in FEATURES.items():
        for other, why in feature.forbids.items():
            yield row([name, other, why])
    yield ""


def offers(part: str, choices: Mapping[str, Component]) -> Iterator[str]:
    yield from header(["asked for", "needs", *(choice.shown for choice in choices.values())])
    for name, ability in ABILITIES[part].items():
        there = [YES if name in choice.offers else NO for choice in choices.values()]
        asking = asked_by(part, name)
        if asking and YES in there:
            yield row([asking, ability.what, *there])


def lacks(part: str, choices: Mapping[str, Component]) -> Iterator[str]:
    needed = {one for feature in EVERYTHING.values() for one in feature.needs.get(part, ())}
    needed |= {one for choice in choices.values() for one in choice.offers}
    yield from header([part, "has none of"])
    for choice in choices.values():
        missing = ", ".join(sorted(needed - choice.offers))
        yield row([choice.shown, missing or "nothing is missing"])


def asked_by(part: str, ability: str) -> str:
    needing = EVERYTHING.items()
    return ", ".join(name for name, one in needing if ability in one.needs.get(part, ()))


def header(names: Iterable[str]) -> Iterator[str]:
    names = list(names)
    yield row(names)
    yield row(["---"] * len(names))


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page({name: games_offering(name) for name in ABILITIES[GAME]}), end="")
