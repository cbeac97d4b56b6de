"""Moves of players in single games: bots, policies, policies that search."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from sparring.commands.shared.thinking import Thought
from sparring.games.state import State
from sparring.league.players import Player
from sparring.nets.stateful_player import StatefulPlayer

if TYPE_CHECKING:
    from sparring.nets.policy import Policy


def move_of(player: StatefulPlayer | str, state: State) -> int:
    """Return the action of a player; its sampling is seeded by the state, so that it repeats."""
    if isinstance(player, str):
        return int(state.ask(player))
    number = zlib.crc32(state.native.serialize()) >> 1
    return int(player.action(state, seed=state.seed, step=number))


def searches(player: StatefulPlayer | str) -> bool:
    """Whether a player has a budget for search."""
    return not isinstance(player, str) and getattr(player.player, "budget", None) is not None


def choose(player: StatefulPlayer | str, state: State) -> tuple[int, Thought | None]:
    """Return the action of a player, and what its search saw if it searches."""
    if isinstance(player, str) or not searches(player):
        return move_of(player, state), None
    policy = cast("Policy", player.player)
    options = {"seed": state.seed, "noise": policy.greedy is False}
    search = policy.searches.search(policy, state.rules, 1, **options)
    found = search.from_state(state, keep=True)
    return int(found.action[0]), Thought(policy.name, state.clone(), found, search.line())


def with_memory(players: Sequence[Player], *, skip_forced: bool) -> list[StatefulPlayer | str]:
    """Wrap policies to keep their memory; a policy in several seats is wrapped once."""
    known: dict[int, StatefulPlayer | str] = {}
    for one in players:
        fresh = one if isinstance(one, str) else StatefulPlayer(one, skip_forced=skip_forced)
        known.setdefault(id(one), fresh)
    return [known[id(one)] for one in players]
