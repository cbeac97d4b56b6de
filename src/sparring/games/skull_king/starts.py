"""Starts of Skull King: later rounds, with scores."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.skull_king import CARDS, cards_in, has_ghost
from sparring.games.starts import Start, saved_position
from sparring.games.state import State, new_state

START_FORMATS = "round:7, rounds:7-10 or round:7@120,80,-10,60 with a score per seat"
"""Accepted names of starts, for error messages."""
CARDS_ONLY, CARDS_AND_LEADER = 1, 2
"""What is drawn at random; `ToDeal` in csrc/games/skull_king.hpp."""


def read_starts(rules: Rules, word: str) -> list[Start] | None:
    """Return the starts that `word` names, None if it names none of this game."""
    found = re.fullmatch(r"rounds?:(\d+)(?:-(\d+))?(?:@([-+\d,\s]+))?", word)
    if not found:
        if re.match("rounds?:", word):
            raise ConfigError(f"{word!r} cannot be read; give {START_FORMATS}")
        return None
    first = int(found[1])
    last = int(found[2] or first)
    if first > last:
        raise ConfigError(f"{word!r}: round {first} comes after round {last}")
    scores = read_scores(found[3]) if found[3] else None
    return [
        Start(saved_position(round_start(rules, number, scores)), name=f"round:{number}")
        for number in range(first, last + 1)
    ]


def read_scores(text: str) -> list[int]:
    """Return the numbers of a comma-separated list."""
    try:
        return [int(score) for score in text.split(",")]
    except ValueError:
        raise ConfigError(f"scores {text!r} are not whole numbers between commas") from None


def round_start(
    rules: Rules, number: int, scores: Sequence[int] | None = None, leader: int | None = None
) -> State:
    """Return a round before its deal; the cards are drawn anew in every game.

    leader: the seat that leads. None: drawn.
    """
    players = rules.seats
    totals = list(scores) if scores is not None else [0] * players
    if len(totals) != players:
        raise ConfigError(f"{players} players need {players} scores, got {len(totals)}")
    state = new_state(rules)
    deck = [c for c in range(CARDS) if c in all_cards(state)]
    size = hand_size(rules, number)
    numbers = [number, leader or 0, *totals]
    for seat in range(players + has_ghost(rules)):
        numbers += [size, *deck[seat * size : (seat + 1) * size]]
    numbers.append(CARDS_AND_LEADER if leader is None else CARDS_ONLY)
    if error := state.set_up(numbers):
        raise ConfigError(f"skull_king: {error}")
    return state


def all_cards(state: State) -> set[int]:
    """Return the deck: all hands at the start, and the stock."""
    fields = state.fields()
    hands = [cards_in(fields["hand"].tolist(), seat) for seat in range(8)]
    return {card for cards in (*hands, cards_in(fields["stock"].tolist(), 0)) for card in cards}


def hand_size(rules: Rules, number: int) -> int:
    """Return the number of cards per hand in a round."""
    count = sum(1 for cards in rules.config["rounds"] if cards)
    if not 1 <= number <= count:
        raise ConfigError(f"round {number} is outside 1..{count}")
    probe = new_state(rules.changed({"episode": "ROUND", "start_round": number}))
    return int(probe.fields()["cards"][0])
