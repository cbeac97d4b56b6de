"""Error messages for features that do not combine, and the choice of devices and backends.

A message names the requested feature, what it needs, the component that lacks it, and
alternatives. Of the possible devices and backends the first that fits is used; the reasons against
faster ones are reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

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
    UNHEARD,
    Ability,
    Component,
    FeatureSpec,
)
from sparring.config import NetConfig
from sparring.config.synonyms import LIKE
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.hidden import hidden_of
from sparring.games.lookup import game_module
from sparring.games.rules import Rules, game_names
from sparring.pools.custom.cache import is_custom, pixels_of
from sparring.pygames.registry import is_registered

HIERARCHY = "hierarchy.on"
"""The feature that turns PPO into another learner."""
MULTIPLE = 8
"""Tensor cores need widths that are multiples of it."""
ACTIVATIONS = ("relu", "tanh")
"""Activations of the learner's kernels."""
KINDS = {
    **{"mlp": "perceptron", "residual": "convolutions", "attention": "attention"},
    **dict.fromkeys(("nature", "impala"), "pixels"),
}
"""Ability that each net.kind needs of passes."""


@dataclass(frozen=True)
class FeatureRequest:
    """A feature that the user requested."""

    feature: FeatureSpec
    typed: str
    """As the user typed it: net.memory gru."""
    role: str = ""
    """The role whose network it is about, with a network per role."""
    instead: str | None = None
    """Advice for doing without it; None: leave it out."""

    @property
    def without(self) -> str:
        if self.instead is not None:
            return self.instead
        return f"leave {self.typed.partition(' ')[0]} out"


@dataclass(frozen=True)
class Combination:
    """A learner, networks and a game, and the requested features."""

    learner: str
    """A key of `LEARNERS`."""
    networks: Mapping[str, NetConfig]
    """By role; the role "" is for all."""
    game: str
    game_offers: frozenset[str]
    asked: Mapping[str, FeatureRequest]
    """By the feature's name."""
    games: Callable[[str], Sequence[str]] = lambda _: ()
    """Returns the games that offer an ability, for advice."""

    def refusal(self) -> str:
        """Return an error message about what does not combine, "" if everything does."""
        for one, part, ability in self._lacks():
            return self._lacking(one, part, ability)
        for one, other, why in self._clashes():
            return f"{one.typed} and {other.typed} do not combine: {why}; leave one of them out"
        return ""

    def _combines(self) -> bool:
        return not any(True for _ in self._lacks()) and not any(True for _ in self._clashes())

    def _lacks(self) -> Iterator[tuple[FeatureRequest, str, str]]:
        for one in self.asked.values():
            for part in (LEARNER, GAME, NETWORK):
                for ability in one.feature.needs.get(part, ()):
                    if not self._offered(one, part, ability):
                        yield one, part, ability

    def _clashes(self) -> Iterator[tuple[FeatureRequest, FeatureRequest, str]]:
        for one in self.asked.values():
            for other, why in one.feature.forbids.items():
                if other in self.asked:
                    yield one, self.asked[other], why

    def _offered(self, one: FeatureRequest, part: str, ability: str) -> bool:
        if part == LEARNER:
            return ability in LEARNERS[self.learner].offers
        if part == GAME:
            return ability in self.game_offers
        return all(ability in offered_by(net) for net in self._nets(one))

    def _nets(self, one: FeatureRequest) -> list[NetConfig]:
        return [self.networks[one.role]] if one.role else list(self.networks.values())

    def _lacking(self, one: FeatureRequest, part: str, ability: str) -> str:
        known = ABILITIES[part][ability]
        if part == LEARNER:
            return lacking(one, known, LEARNERS[self.learner].shown, either(self._instead(one)))
        if part == GAME:
            others = ", ".join(self.games(ability))
            return lacking(one, known, self.game, f"play one of {others}" if others else "")
        unfit = next(net for net in self._nets(one) if ability not in offered_by(net))
        return lacking_network(one, ability, unfit)

    def _instead(self, wanted: FeatureRequest) -> Iterator[str]:
        """Yield options that replace the learner by one that works; of several alike the first."""
        asked = {name: one for name, one in self.asked.items() if name != HIERARCHY}
        by_role = HIERARCHY in self.asked and wanted is not self.asked[HIERARCHY]
        if by_role and replace(self, learner="ppo", asked=asked)._combines():
            yield f"leave {HIERARCHY} out"
        means = {"ppo": "ppo by role"} if HIERARCHY in self.asked else {}
        for name, choice in LEARNERS.items():
            if (
                choice.typed
                and name not in LIKE
                and self._learned_by(means.get(name, name))._combines()
            ):
                yield f"use {choice.typed}"

    def _learned_by(self, learner: str) -> Combination:
        """Return the combination with another learner, and with what that one requests."""
        mine, other = LEARNERS[self.learner].feature, LEARNERS[learner].feature
        asked = {name: one for name, one in self.asked.items() if name != mine}
        if other:
            asked[other] = FeatureRequest(FEATURES[other], LEARNERS[learner].shown)
        return replace(self, learner=learner, asked=asked)


def lacking(one: FeatureRequest, ability: Ability, holder: str, way: str) -> str:
    ways = either(filter(None, (way, ability.add, one.without)))
    return f"{one.typed} needs {ability.what}, and {holder} is not one; {ways}"


def lacking_network(one: FeatureRequest, ability: str, net: NetConfig) -> str:
    known = ABILITIES[NETWORK][ability]
    if not one.role:
        return lacking(one, known, shown_network(net, ability), "")
    add = for_role(known.add, one.role)
    return lacking(one, replace(known, add=add), shown_network(net, ability), "")


def shown_network(net: NetConfig, ability: str) -> str:
    """Name a network in a message by the setting that decides about the ability."""
    if ability in ("state", "frames"):
        return f"net.memory {net.memory}" if net.memory else "net.memory, which is off,"
    if ability == "predicted spread":
        return f"net.std {net.std}"
    if ability == "critic":
        return "net.critic own"
    if ability == "squash":
        return "net.squash, which is off,"
    if ability == "trunk" or (ability == "layers" and net.kind == "mlp"):
        return "net.shared, which is off,"
    return f"net.kind {net.kind}"


def for_role(add: str, role: str) -> str:
    """Rewrite advice about `--net` for `--roles`."""
    given = re.sub(r"--net\.(\w+) (\S+)", rf"--roles {role}.net.\1=\2", add)
    return re.sub(r"--net\.(\w+)$", rf"--roles {role}.net.\1=true", given)


def either(ways: Iterable[str]) -> str:
    """Join alternatives: "use --algo ppo, or leave it out"."""
    found = list(dict.fromkeys(ways))
    return ", or ".join(found)


def learner_of(algo: str, *, rollouts: bool, by_role: bool) -> str:
    """Return the key of a learner in `LEARNERS`. rollouts: DQN's mode without replay."""
    if algo not in LEARNERS:
        return "own"  # loading an unknown name raises an error later
    if algo == "ppo" and by_role:
        return "ppo by role"
    return "pqn" if algo == "dqn" and rollouts else algo


def kind_of(net: NetConfig) -> str:
    return "own" if is_factory(net.kind) else net.kind


def offered_by(net: NetConfig) -> frozenset[str]:
    offers = set(NETWORKS[kind_of(net)].offers)
    offers = offers | {"trunk"} if net.shared else offers - {"layers"}
    offers |= {"gru": {"state"}, "stack": {"frames"}}.get(net.memory, set())
    offers |= {"squash"} if net.squash else set()
    offers |= {"critic"} if net.full_critic else set()
    return frozenset(offers | {f"{net.std} spread"})


def net_settings(
    net: NetConfig, role: str = "", typed: Collection[str] = ()
) -> Iterator[tuple[str, FeatureRequest]]:
    """Yield the given settings of a network that not every network uses.

    typed: settings that count as given even if they are as usual.
    """
    usual = NetConfig()
    where = f"roles {role}.net" if role else "net"
    for setting, feature in NET_SETTINGS.items():
        name = setting.removeprefix("net.")
        given = getattr(net, name)
        if given != getattr(usual, name) or setting in typed:
            off = unset(name, getattr(usual, name), role)
            value = "" if given is True else f" {shown(given)}"
            yield setting, FeatureRequest(feature, f"{where}.{name}{value}", role, off)
    off = unset("memory", usual.memory, role)
    for name in ("net.memory", "net.memory gru") if net.memory else ():
        if name == "net.memory" or net.recurrent:
            yield name, FeatureRequest(FEATURES[name], f"{where}.memory {net.memory}", role, off)


def unset(name: str, usual: object, role: str) -> str | None:
    """Return the option that unsets a setting which a preset may give; None: leave it out."""
    if role:
        value = str(usual).lower() if isinstance(usual, bool) else shown(usual)
        return f"add --roles {role}.net.{name}={value}"
    return f"add --net.no-{name}" if usual is False else None


def check_network(net: NetConfig, role: str = "") -> None:
    """Raise an error for settings that the network's kind does not support."""
    harmless = {name for name in UNHEARD if name != "net.set"}
    asked = {name: one for name, one in net_settings(net, role) if name not in harmless}
    learner = "ppo by role" if role else "ppo"  # it offers most
    if refused := Combination(learner, {role: net}, "", frozenset(), asked).refusal():
        raise ConfigError(refused)


def check_typed(net: NetConfig, names: Collection[str]) -> None:
    """Refuse settings that were typed and that the network has no use for, whatever their value."""
    typed = {name for name in names if name in UNHEARD}
    asked = {name: one for name, one in net_settings(net, "", typed) if name in typed}
    if refused := Combination("ppo", {"": net}, "", frozenset(), asked).refusal():
        raise ConfigError(refused)


def shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Selection:
    """The selected component, and the reasons against those before it."""

    choice: str
    because: tuple[str, ...] = ()


def missing(choice: Component, part: str, asked: Iterable[FeatureRequest]) -> list[str]:
    """Return the requests, as typed, that a component does not support."""
    lacks = (
        one.typed
        for one in asked
        if any(ability not in choice.offers for ability in one.feature.needs.get(part, ()))
    )
    return list(dict.fromkeys(lacks))


def first_fit(
    part: str, choices: Mapping[str, Component], asked: Iterable[FeatureRequest]
) -> Selection | None:
    """Return the first component that supports all requests, None if there is none."""
    asked, because = list(asked), list[str]()
    for name, choice in choices.items():
        lacks = missing(choice, part, asked)
        if not lacks:
            return Selection(name, tuple(because))
        because.append(lacks_text(lacks, choice))
    return None


def unsupported_reason(
    passes: str, net: NetConfig, *, heads: Sequence[str] = (), memory: int = 0
) -> str:
    """Return why a network cannot use some passes, "" if it can; see `network_asks`."""
    asked = network_asks(net, heads=heads, memory=memory)
    lacks = missing(PASSES_OF[passes], PASSES, asked)
    return lacks_text(lacks, PASSES_OF[passes]) if lacks else ""


def lacks_text(lacks: Sequence[str], choice: Component) -> str:
    """Return "heads.wdl and net.norm have no kernels"."""
    return f"{' and '.join(lacks)} {'has' if len(lacks) == 1 else 'have'} no {choice.shown}"


def feature_unsupported_reason(passes: str, feature: str) -> str:
    """Return why passes do not support a feature, "" if they do."""
    lacks = missing(PASSES_OF[passes], PASSES, [FeatureRequest(FEATURES[feature], feature)])
    return lacks_text(lacks, PASSES_OF[passes]) if lacks else ""


def network_asks(
    net: NetConfig, *, heads: Sequence[str] = (), memory: int = 0
) -> list[FeatureRequest]:
    """Return what a network needs of passes. heads: as typed. memory: bytes."""
    asked = [FeatureRequest(FEATURES["heads"], head) for head in heads]
    asked += [one for _, one in net_settings(net) if PASSES in one.feature.needs]
    found = {KINDS.get(net.kind, "other modules"): f"net.kind {net.kind}"}
    if memory and not net.memory:
        found["memory"] = f"{memory} bytes of memory behind the observation"
    if net.kind == "mlp":
        found["silu"] = f"net.activation {net.activation}" * (net.activation not in ACTIVATIONS)
        odd = any(width % MULTIPLE for width in net.hidden)
        widths = " ".join(map(str, net.hidden))
        found["odd widths"] = f"net.hidden {widths} (no multiples of {MULTIPLE})" * odd
    if net.kind == "residual":
        odd = net.channels % MULTIPLE > 0
        found["odd widths"] = f"net.channels {net.channels} (no multiple of {MULTIPLE})" * odd
        found["board memory"] = "a board with memory behind it" * bool(memory)
    found = {ability: typed for ability, typed in found.items() if typed}
    return [
        *asked,
        *(FeatureRequest(FeatureSpec({PASSES: (one,)}), typed) for one, typed in found.items()),
    ]


def game_offers(rules: Rules) -> frozenset[str]:
    """Return the abilities of a game with its flags."""
    found = {
        "discrete": not rules.box,
        "roles": len(rules.roles) > 1,
        "goals": getattr(getattr(rules, "native", None), "has_goals", False),
        "mirror": rules.mirror is not None,
        "hidden": not is_custom(rules) and hidden_of(rules) is not None,
        "board": len(rules.board) == 2,
        "pixels": pixels_of(rules) is not None,
        "entities": not is_custom(rules)
        and game_module(rules.name, "entities") is not None
        and not rules.box,
        "opponents": rules.seats > 1,
        "repeats": not is_custom(rules),
        "hides": rules.hides and rules.seats > 1,
        "open": not rules.hides or rules.seats == 1,
    }
    return frozenset(name for name, there in found.items() if there)


@cache
def games_offering(ability: str) -> Sequence[str]:
    """Return the bundled games that offer an ability with default flags."""
    names = [name for name in game_names() if not is_registered(name)]
    return [name for name in names if ability in game_offers(Rules(name))]
