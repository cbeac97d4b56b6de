"""Refusals in one voice: what was asked for, what it needs, who lacks it, and what would work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparring.capabilities.table import (
    ABILITIES,
    FEATURES,
    GAME,
    LEARNER,
    LEARNERS,
    NET_SETTINGS,
    NETWORK,
    NETWORKS,
    UNHEARD,
    Ability,
    Choice,
    Feature,
)
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory


@dataclass(frozen=True)
class Asked:
    """One thing that somebody asked for."""

    feature: Feature
    typed: str
    """As it is typed: net.memory gru."""
    role: str = ""
    """Whose network it is about, where every role has one."""
    instead: str | None = None
    """What to do without it; None: leave it out."""

    @property
    def without(self) -> str:
        """What to do without it."""
        if self.instead is not None:
            return self.instead
        words = self.typed.split(" ")
        return f"leave {' '.join(words[:2]) if self.role else words[0]} out"


@dataclass(frozen=True)
class Combination:
    """A learner, networks and a game, and what is asked of them together."""

    learner: str
    """A key of `LEARNERS`."""
    networks: Mapping[str, NetConfig]
    """By role; one called "" where it is for all."""
    game: str
    game_offers: frozenset[str]
    asked: Mapping[str, Asked]
    """By the feature's name."""
    games: Callable[[str], Sequence[str]] = lambda _: ()
    """Names of games that offer an ability, for advice."""

    def refusal(self) -> str:
        """Say what does not combine, "" if everything does."""
        return next(self._refusals(), "")

    def _refusals(self) -> Iterator[str]:
        """Yield what is lacking, then what does not combine."""
        for one in self.asked.values():
            for part in (LEARNER, GAME, NETWORK):
                for ability in one.feature.needs.get(part, ()):
                    if said := self._lacking(one, part, ability):
                        yield said
        for one in self.asked.values():
            for other, why in one.feature.forbids.items():
                if other in self.asked:
                    typed = self.asked[other].typed
                    yield f"{one.typed} and {typed} do not combine: {why}; leave one of them out"

    def _lacking(self, one: Asked, part: str, ability: str) -> str:
        known = ABILITIES[part][ability]
        if part == LEARNER:
            holder = LEARNERS[self.learner]
            if ability in holder.offers:
                return ""
            return lacking(one, known, holder.shown, either(self._learners(one, holder)))
        if part == GAME:
            if ability in self.game_offers:
                return ""
            others = ", ".join(self.games(ability))
            return lacking(one, known, self.game, f"play one of {others}" if others else "")
        return next(filter(None, (self._unfit(one, role, ability) for role in self.networks)), "")

    def _unfit(self, one: Asked, role: str, ability: str) -> str:
        if ability in offered_by(self.networks[role]):
            return ""
        return lacking_network(one, ability, self.networks[role])

    def _learners(self, one: Asked, holder: Choice) -> Iterator[str]:
        """Yield what would work instead of the learner."""
        for name, choice in LEARNERS.items():
            if choice.typed and not replace(self, learner=name).refusal():
                yield f"leave {holder.shown} out" if not holder.typed else f"use {choice.typed}"
                if not holder.typed:
                    return


def lacking(one: Asked, ability: Ability, holder: str, way: str) -> str:
    """Say what is lacking, and what to do."""
    ways = either(filter(None, (way, ability.add, one.without)))
    return f"{one.typed} needs {ability.what}, and {holder} is none; {ways}"


def lacking_network(one: Asked, ability: str, net: NetConfig) -> str:
    """The same of a network."""
    known = ABILITIES[NETWORK][ability]
    if not one.role:
        return lacking(one, known, shown_network(net, ability), "")
    add = for_role(known.add, one.role)
    return lacking(one, replace(known, add=add), shown_network(net, ability), "")


def shown_network(net: NetConfig, ability: str) -> str:
    """A network as a refusal names it: by what it lacks the ability for."""
    if ability in ("state", "frames"):
        return f"net.memory {net.memory}" if net.memory else "net.memory, which is off,"
    if ability == "layers" and net.kind == "mlp":
        return "net.shared, which is off,"
    return f"net.kind {net.kind}"


def for_role(add: str, role: str) -> str:
    """Advice about `net` as the words of `roles` give it."""
    given = re.sub(r"--net\.(\w+) (\S+)", rf"--roles {role}.net.\1=\2", add)
    return re.sub(r"--net\.(\w+)$", rf"--roles {role}.net.\1=true", given)


def either(ways: Iterable[str]) -> str:
    """Join what could be done: "use --algo ppo, or leave it out"."""
    found = list(dict.fromkeys(ways))
    return ", or ".join(found)


def learner_of(algo: str, *, rollouts: bool, by_role: bool) -> str:
    """Return the key of a learner. rollouts: the mode of DQN that has no replay."""
    if is_factory(algo):
        return "own"
    if algo == "ppo" and by_role:
        return "ppo by role"
    return "pqn" if algo == "dqn" and rollouts else algo


def kind_of(net: NetConfig) -> str:
    """Return the key of a network."""
    return "own" if is_factory(net.kind) else net.kind


def offered_by(net: NetConfig) -> frozenset[str]:
    """What a network offers with its settings."""
    offers = set(NETWORKS[kind_of(net)].offers)
    if not net.shared:
        offers.discard("layers")
    offers |= {"gru": {"state"}, "stack": {"frames"}}.get(net.memory, set())
    offers |= {"squash"} if net.squash else set()
    return frozenset(offers | {f"{net.spread} spread"})


def net_settings(net: NetConfig, role: str = "") -> Iterator[tuple[str, Asked]]:
    """Yield the settings of a network that not every network has a use for, if they are given."""
    usual = NetConfig()
    where = f"roles {role}.net" if role else "net"
    for name, feature in NET_SETTINGS.items():
        given = getattr(net, name)
        if given != getattr(usual, name):
            off = off_switch(name, role) if given is True else None
            yield name, Asked(feature, f"{where}.{name} {shown(given)}", role, off)
    if net.memory:
        yield "memory", Asked(FEATURES["memory"], f"{where}.memory {net.memory}", role)


def off_switch(name: str, role: str) -> str:
    """How to switch a setting of networks off, which a preset may have switched on."""
    return f"add --roles {role}.net.{name}=false" if role else f"add --net.no-{name}"


def demand_network(net: NetConfig, role: str = "") -> None:
    """Refuse a network that would have to do what its kind cannot. role: it is one of several."""
    for name, one in net_settings(net, role):
        if name in UNHEARD and name != "set":
            continue
        for ability in one.feature.needs.get(NETWORK, ()):
            if ability not in offered_by(net):
                raise ConfigError(lacking_network(one, ability, net))
        if role and name == "memory":
            by_role = LEARNERS["ppo by role"].shown
            raise ConfigError(lacking(one, ABILITIES[LEARNER]["memory"], by_role, ""))


def shown(value: object) -> str:
    """A value as it is typed."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
