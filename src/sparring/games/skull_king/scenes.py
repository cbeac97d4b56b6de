"""Scenes of a Skull King game: decisions, complete tricks, scores of rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparring.games.decisions import decisions
from sparring.games.picture import RecordedEpisode
from sparring.games.skull_king import (
    LOADS,
    TIGRESS,
    TIGRESS_AS_ESCAPE,
    SkullKingPosition,
    read,
    token_short_name,
    winning_seat,
)
from sparring.games.skull_king.tricks import (
    is_destroyed,
    round_ended,
    trick_after,
    trick_winner,
)
from sparring.games.state import State


@dataclass(frozen=True)
class SkullKingScene:
    """One moment of a game."""

    at: SkullKingPosition
    winner: int | None
    """The seat that wins the trick, or would win it now."""
    event: str
    """Text of the last event."""
    kind: str = "decision"
    """"decision", "trick" (a complete trick) or "scores" (after a round)."""
    points: tuple[int, ...] = ()
    """Points of each seat in the round, for "scores"."""


def scenes_of(episode: RecordedEpisode) -> Iterator[SkullKingScene]:
    """Yield the scenes of a game from the deal to the last score."""
    start = episode.states[0]
    yield SkullKingScene(read(start), None, "the cards are dealt")
    for before, action, after in decisions(episode.states):
        was, now = read(before), read(after)
        event = describe_decision(before, was, now, action)
        if was.phase == "play" and len(trick_after(was, action)) == was.seats:
            yield full_trick(was, now, action, event)
        if round_ended(was, now):
            yield round_scores(was, now)
        if now.phase != "over":
            yield SkullKingScene(
                now, winner_now(after, now), "" if round_ended(was, now) else event
            )


def winner_now(state: State, at: SkullKingPosition) -> int | None:
    return winning_seat(state, at) if at.trick else None


def describe_decision(
    before: State, was: SkullKingPosition, now: SkullKingPosition, action: int
) -> str:
    """Return a decision as text; hidden cards are named."""
    name = before.action_name(action)
    leads = f"lets seat {now.leader} lead" if now.leader != was.actor else "leads again"
    event = {
        "bid": f"bids {name.removeprefix('bid ')}",
        "cannon": f"loads {name}",
        "play": f"plays {name}",
        "rosie": leads,
        "discard": f"discards {name}",
        "wager": f"wagers {name.removeprefix('wager ')}",
        "harry": f"chooses to {name}",
    }
    return f"seat {was.actor} {event[was.phase]}"


def full_trick(
    was: SkullKingPosition, now: SkullKingPosition, action: int, event: str
) -> SkullKingScene:
    """Return the scene with all cards of a trick on the table, and its winner."""
    laid = trick_after(was, action)
    played = dict(laid)
    hands = [[c for c in hand if c != card_of(played[s])] for s, hand in enumerate(was.hands)]
    at = replace(was, trick=laid, hands=hands, actor=-1)
    if is_destroyed(laid):
        return SkullKingScene(at, None, f"{event}: the trick is destroyed", "trick")
    winner = trick_winner(was, now)
    won = [count + (seat == winner) for seat, count in enumerate(was.by_seat["won"])]
    bonus = now.by_seat["last_bonus" if round_ended(was, now) else "bonus"]
    gained = bonus[winner] - was.by_seat["bonus"][winner] if winner < was.players else 0
    more = f", +{gained} if the bid comes true" if gained > 0 else ""
    who = f"seat {winner}" if winner < was.players else "the ghost"
    taken = f"{who} takes the trick with {token_short_name(played[winner])}{more}"
    at = replace(at, by_seat={**was.by_seat, "won": won})
    return SkullKingScene(at, winner, taken, "trick")


def card_of(token: int) -> int:
    return TIGRESS if token == TIGRESS_AS_ESCAPE else token - 1


def round_scores(was: SkullKingPosition, now: SkullKingPosition) -> SkullKingScene:
    """Return the scene after a round, with the points of the seats."""
    per = {
        **was.by_seat,
        **{name: now.by_seat[f"last_{name}"] for name in ("bid", "won", "bonus")},
        "total": now.by_seat["total"],
    }
    hands: list[list[int]] = [[] for _ in was.hands]
    at = replace(was, trick=[], hands=hands, actor=-1, leader=-1, by_seat=per, phase="over")
    points = tuple(now.by_seat["last_points"][: was.players])
    return SkullKingScene(at, None, f"the points of round {was.round}", "scores", points)


def seat_notes(scene: SkullKingScene, seat: int, *, cannonball: bool) -> str:
    """Return remarks about a seat: its load, wager and pirate."""
    at, per = scene.at, scene.at.by_seat
    loaded = at.phase != "cannon" or (seat - at.leader) % at.players < at.placed
    notes = []
    if cannonball and seat < at.players and at.phase != "bid" and loaded:
        notes.append(LOADS[per["cannon"][seat]])
    if per["wager"][seat]:
        notes.append(f"wagers {per['wager'][seat]}")
    if seat == at.harry:
        notes.append("has Harry")
    return ", ".join(notes)
