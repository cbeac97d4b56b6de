"""What games offer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sparring.games.hidden import hidden_of
from sparring.games.lookup import game_module
from sparring.games.rules import Rules, game_names
from sparring.pools.foreign.again import is_own


def game_offers(rules: Rules) -> frozenset[str]:
    """What a game offers under its flags."""
    found = {
        "discrete": not rules.box,
        "roles": len(rules.roles) > 1,
        "goals": getattr(getattr(rules, "native", None), "has_goals", False),
        "mirror": rules.mirror is not None,
        "hidden": not is_own(rules) and hidden_of(rules) is not None,
        "board": len(rules.board) == 2,
        "things": not is_own(rules)
        and game_module(rules.name, "things") is not None
        and not rules.box,
        "opponents": rules.seats > 1,
        "repeats": not is_own(rules),
    }
    return frozenset(name for name, there in found.items() if there)


@cache
def games_offering(ability: str) -> Sequence[str]:
    """The games of sparring that offer an ability as they come."""
    return [name for name in game_names() if ability in game_offers(Rules(name))]
