"""Scenes of a Kuhhandel game: complete bids, offers and payments with event texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparring.games.decisions import decisions
from sparring.games.kuhhandel import KuhhandelPosition, Pile, read
from sparring.games.kuhhandel.choices import completed_pile
from sparring.games.kuhhandel.terminal import KuhhandelTerminal
from sparring.games.picture import RecordedEpisode
from sparring.games.state import State

SPECTATOR = -1
"""Sees all cards."""


@dataclass(frozen=True)
class KuhhandelScene:
    """One moment of a game."""

    at: KuhhandelPosition
    scores: tuple[float, ...]
    events: tuple[str, ...]
    """Texts of the last events."""
    counter: Pile | None = None
    """The second pile of a trade, while both lie on the table."""


def scenes_of(episode: RecordedEpisode) -> Iterator[KuhhandelScene]:
    """Yield the scenes of a game; incomplete bids and piles have none."""
    terminal = KuhhandelTerminal(episode.states[0].rules, SPECTATOR)
    yield scene_of(episode.states[0], ("the game begins",))
    for before, action, after in decisions(episode.states):
        events = tuple(line.strip() for line in terminal.narrate(before, action, after))
        if not events:
            continue
        was, now = read(before), read(after)
        if was.phase == "counter":
            yield KuhhandelScene(
                was, tuple(before.scores), events[:1], completed_pile(was, action, now)
            )
        yield scene_of(after, events)


def scene_of(state: State, events: tuple[str, ...]) -> KuhhandelScene:
    return KuhhandelScene(read(state), tuple(state.scores), events)


def status(at: KuhhandelPosition, seat: int) -> str:
    """Return what a seat does in the auction or trade."""
    if at.lot >= 0:
        if seat == at.turn:
            return "auctions"
        if seat in at.exposed:
            return "showed its money"
        if seat in at.passed:
            return "passes"
        return f"bids {at.last_bids[seat]}" if at.last_bids[seat] > 0 else "has not bid"
    if at.target >= 0 and seat in (at.turn, at.target):
        return "challenges" if seat == at.turn else "is challenged"
    return ""
