"""Cards of a trick, and how tricks and rounds end."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.games.skull_king import TIGRESS, TIGRESS_AS_ESCAPE, SkullKingPosition

PLAY_FIRST, PLAY_TIGRESS_ESCAPE = 11, 85
WHALE, KRAKEN = 2, 3
"""Tokens, that is 1 + card id."""


def token_of(action: int) -> int:
    """Return the token of the card that an action plays."""
    return TIGRESS_AS_ESCAPE if action == PLAY_TIGRESS_ESCAPE else action - PLAY_FIRST + 1


def ghost_token(card: int) -> int:
    """Return the token of a card that the ghost plays; its Tigress is an escape."""
    return TIGRESS_AS_ESCAPE if card == TIGRESS else card + 1


def is_destroyed(laid: Sequence[tuple[int, int]]) -> bool:
    """Whether the trick has no winner (section 5: the last leviathan decides)."""
    tokens = [token for _, token in laid]
    leviathans = [token for token in tokens if token in (WHALE, KRAKEN)]
    if not leviathans:
        return False
    return leviathans[-1] == KRAKEN or not any(11 <= token <= 66 for token in tokens)


def round_ended(was: SkullKingPosition, now: SkullKingPosition) -> bool:
    """Whether the scores of a round were written between two positions."""
    return now.round != was.round or now.phase == "over"


def trick_after(was: SkullKingPosition, action: int) -> list[tuple[int, int]]:
    """Return the trick after an action; the ghost plays after the last player."""
    laid = [*was.trick, (was.actor, token_of(action))]
    ghost = was.players
    if was.seats > was.players and ghost not in dict(laid):
        laid.append((ghost, ghost_token(was.ghost_order[0])))
    return laid


def trick_winner(was: SkullKingPosition, now: SkullKingPosition) -> int:
    """Return the winner of the trick that ended between two positions, possibly the ghost."""
    won = now.by_seat["last_won" if round_ended(was, now) else "won"]
    return next((s for s in range(was.players) if won[s] > was.by_seat["won"][s]), was.players)
