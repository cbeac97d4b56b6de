"""The game of a kernel source: the header of a bundled game, or rules that are linked."""

from __future__ import annotations

from typing import Any, NamedTuple, NotRequired, TypedDict

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.kernels import LinkedRules
from sparring.pygames.registry import is_registered, rules_on_gpu, script_sizes_of

HEADER = "games/{name}.hpp"
TYPE = "::sparring::{name}::Game"
LINKED_HEADER, LINKED_TYPE = "cuda/scripted.cuh", "::sparring::Scripted"


class LinkOptions(TypedDict):
    """What `build` takes for rules that are linked."""

    linked: NotRequired[LinkedRules]


class GameSource(NamedTuple):
    """A kernel source with a game, its constants, and what is linked to it."""

    source: str
    defines: dict[str, Any]
    options: LinkOptions


def bundled_source(rules: Rules, source: str, what: str) -> str:
    """Fill a game into a source that cannot report failures of rules in Python."""
    if is_registered(rules.name):
        raise ConfigError(
            f"{what} on a GPU are for bundled games, and {rules.name} is in Python: --pool cpu"
        )
    return source.format(name=rules.name)


def game_source(rules: Rules, source: str, defines: dict[str, Any]) -> GameSource:
    """Fill a game into a source. source: one that names the header and the type of {name}."""
    if not is_registered(rules.name):
        return GameSource(source.format(name=rules.name), defines, {})
    text = source.replace(HEADER, LINKED_HEADER).replace(TYPE, LINKED_TYPE)
    constants = {**defines, **script_sizes_of(rules.name)}
    return GameSource(text, constants, {"linked": rules_on_gpu(rules.name)})
