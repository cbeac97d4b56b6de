"""Short ways to play the vectors of Kuhhandel through the native game."""

from __future__ import annotations

from collections.abc import Sequence

import sparring
from sparring.games.kuhhandel import load_position, read
from vectors import kuhhandel as vectors
from vectors.kuhhandel import NUM, H, action, steps

FULL_FARM = dict.fromkeys(vectors.KINDS, 4)


def play(state: sparring.State, script: str) -> None:
    for seat, chosen in steps(script):
        assert state.seat == seat, script
        state.apply(chosen)


def opened(auction: vectors.Auction) -> sparring.State:
    """The auction of a vector, before the first bid."""
    farms: list[dict[str, int]] = [{} for _ in range(auction.players)]
    if auction.donkeys_out:
        farms[-1]["donkey"] = 4
    hands = [auction.given.get(seat, H) for seat in range(auction.players)]
    state = load_position(farms, hands, deck=[auction.card], config=auction.config)
    state.apply(action("AUCTION"))
    return state


def lay(state: sparring.State, pile: Sequence[int]) -> None:
    """Name the counts of a pile, as far as they are asked for."""
    at = read(state)
    phase, actor, pointer = at.phase, at.actor, 9
    while (at.phase, at.actor) == (phase, actor) and at.pointer < pointer:
        pointer = at.pointer
        state.apply(NUM + pile[pointer])
        at = read(state)
