"""The page of what combines: learners, networks, games and devices, from the table of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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

Which learners, networks, games and devices work together. `sparring train ... --dry-run` says it
for a command before it runs: what is refused, and which devices and backends the run would use.
This page is written from `sparring/capabilities/table.py`, which decides both (`make docs`).

Learners, networks, games, places (devices of games and network) and passes (code that computes
networks) *offer* abilities. A requested feature *needs* some of them. If one is missing, the run
stops with a line that names the feature, the missing ability and alternatives; a run that could be
faster prints which backend it uses, and why.
"""
YES, NO = "yes", "-"
OWN = "custom environments"
"""Who offers what no bundled game does."""
EVERYTHING = {**FEATURES, **NET_SETTINGS}
"""All features that can be requested, including settings of networks."""


def combines_page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    yield "## Learners\n"
    yield from offers(LEARNER, LEARNERS)
    yield "\n## Networks\n"
    yield from offers(NETWORK, NETWORKS)
    yield "\nThe other abilities of networks come with a setting:\n"
    for name, ability in ABILITIES[NETWORK].items():
        if all(name not in choice.offers for choice in NETWORKS.values()):
            yield f"- {ability.what}: {ability.add} ({asked_by(NETWORK, name)})"
    yield "\n## Games\n"
    yield from header(["feature", "needs", "games"])
    for name, ability in ABILITIES[GAME].items():
        yield row([asked_by(GAME, name), ability.what, ", ".join(games_offering(name)) or OWN])
    yield "\n## Places\n"
    yield "The first that offers all needed abilities is used.\n"
    yield from lacks(PLACE, PLACES)
    yield "\n## Passes\n"
    yield "Code that computes networks and their gradients.\n"
    yield from lacks(PASSES, PASSES_OF)
    yield "\n## Pairs that do not combine\n"
    yield from header(["", "with", "because"])
    for name, feature in FEATURES.items():
        for other, why in feature.forbids.items():
            yield row([name, other, why])
    yield ""


def offers(part: str, choices: Mapping[str, Component]) -> Iterator[str]:
    yield from header(["feature", "needs", *(choice.shown for choice in choices.values())])
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
