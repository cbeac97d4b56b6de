"""The way that a run takes: where its games are, and what computes its networks.

Choices of the table are tried in order, the fastest first. What keeps a run from an earlier one is
told beside the choice, so that it can be announced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparring.capabilities.refusals import Asked, net_settings
from sparring.capabilities.table import FEATURES, PASSES, PASSES_OF, Choice, Feature
from sparring.config import NetConfig

MULTIPLE = 8
"""Tensor cores take widths in multiples of it."""
ACTIVATIONS = ("relu", "tanh")
"""Those that kernels of a learner know."""
KINDS = {"mlp": "perceptron", "residual": "convolutions", "attention": "attention"}
"""What networks ask of what computes them, by net.kind."""


@dataclass(frozen=True)
class Way:
    """A choice, and what keeps those before it from being taken."""

    choice: str
    because: tuple[str, ...] = ()


def missing(choice: Choice, part: str, asked: Iterable[Asked]) -> list[str]:
    """What was asked for that a choice does not offer, as it was typed."""
    lacks = (
        one.typed
        for one in asked
        if any(ability not in choice.offers for ability in one.feature.needs.get(part, ()))
    )
    return list(dict.fromkeys(lacks))


def first_way(part: str, choices: Mapping[str, Choice], asked: Iterable[Asked]) -> Way | None:
    """Return the first choice that offers all that is asked for, None if there is none."""
    asked, because = list(asked), list[str]()
    for name, choice in choices.items():
        lacks = missing(choice, part, asked)
        if not lacks:
            return Way(name, tuple(because))
        because.append(has_no(lacks, choice))
    return None


def why_not(passes: str, net: NetConfig, *, heads: Sequence[str] = (), memory: int = 0) -> str:
    """Say what keeps a network from passes of the table, "" if nothing does; see `network_asks`."""
    asked = network_asks(net, heads=heads, memory=memory)
    lacks = missing(PASSES_OF[passes], PASSES, asked)
    return has_no(lacks, PASSES_OF[passes]) if lacks else ""


def has_no(lacks: Sequence[str], choice: Choice) -> str:
    """Say what a choice does not do: heads.wdl and net.norm have no kernels."""
    return f"{' and '.join(lacks)} {'has' if len(lacks) == 1 else 'have'} no {choice.shown}"


def why_no(passes: str, feature: str) -> str:
    """Say that passes do not know a feature that was asked for, "" if they do."""
    lacks = missing(PASSES_OF[passes], PASSES, [Asked(FEATURES[feature], feature)])
    return has_no(lacks, PASSES_OF[passes]) if lacks else ""


def network_asks(net: NetConfig, *, heads: Sequence[str] = (), memory: int = 0) -> list[Asked]:
    """What a network asks of what computes it. heads: as they are typed. memory: bytes."""
    asked = [Asked(FEATURES["heads"], head) for head in heads]
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
    return [*asked, *(Asked(Feature({PASSES: (one,)}), typed) for one, typed in found.items())]
