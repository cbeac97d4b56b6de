"""Bids and piles of Kuhhandel as choices of several actions."""

from __future__ import annotations

import re

from sparring.games.kuhhandel import NOTES, KuhhandelPosition, Pile, read, show_pile
from sparring.games.state import State
from sparring.games.terminal import ActionChoice

PASS, NUMBER_FIRST = 41, 47
"""Actions; from NUMBER_FIRST on they name a digit or a count."""
BIDS, PILES = ("bid", "tens"), ("pay", "offer", "counter")
"""Phases in which one choice takes several actions."""


def bid_choices(state: State) -> list[ActionChoice]:
    """Return a pass and all legal bids."""
    at = read(state)
    choices = []
    for action in state.legal():
        if action == PASS:
            choices.append(ActionChoice(action, "pass", "pass"))
            continue
        copy = state.clone()
        copy.apply(action)
        now = read(copy)
        bid = now.last_bids[at.actor]
        if is_finished(at, action, now):
            choices.append(ActionChoice(action, str(bid), f"bid {bid}"))
            continue
        for digit in copy.legal():
            bid = 100 * (action - NUMBER_FIRST) + 10 * (digit - NUMBER_FIRST)
            choices.append(ActionChoice(action, str(bid), f"bid {bid}", (digit,)))
    return choices


def payment_choices(state: State) -> list[ActionChoice]:
    """Return all sets of cards that pay the price."""
    hand = read(state).money[state.seat]
    choices = []
    unfinished: list[tuple[State, tuple[int, ...]]] = [(state, ())]
    while unfinished:
        at, named = unfinished.pop(0)
        for action in at.legal():
            copy = at.clone()
            copy.apply(action)
            actions = (*named, action)
            if not is_finished(read(at), action, read(copy)):
                unfinished.append((copy, actions))
                continue
            pile = show_pile(subtract_piles(hand, read(copy).money[state.seat]))
            choices.append(ActionChoice(actions[0], pile, f"pay {pile}", actions[1:]))
    return choices


def example_piles(state: State) -> list[ActionChoice]:
    """Return the empty pile, single cards and the whole hand, where they are legal."""
    notes = range(len(NOTES))
    singles = [tuple(int(d == note) for d in notes) for note in notes]
    piles = [(0,) * len(NOTES), *singles, read(state).money[state.seat]]
    choices = (pile_choice(state, pile) for pile in dict.fromkeys(piles))
    return [choice for choice in choices if choice]


def pile_choice(state: State, wanted: Pile) -> ActionChoice | None:
    """Return the actions that lay down or pay these cards, None if illegal."""
    copy, actions, finished, now = state.clone(), [], False, read(state)
    while not finished:
        was = now
        action = NUMBER_FIRST + wanted[was.pointer]
        if action not in copy.legal():
            return None
        copy.apply(action)
        actions.append(action)
        now = read(copy)
        finished = is_finished(was, action, now)
    if completed_pile(was, action, now) != wanted:
        return None
    shown = show_pile(wanted)
    name = f"{'pay' if was.phase == 'pay' else 'lay down'} {shown}"
    return ActionChoice(actions[0], shown, name, tuple(actions[1:]))


def read_pile(typed: str, hand: Pile) -> Pile | None:
    """Return the typed cards, None unless they are a list of cards in this hand."""
    if typed in ("all", "nothing"):
        return hand if typed == "all" else (0,) * len(NOTES)
    counts = [0] * len(NOTES)
    for word in typed.replace(",", " ").replace("+", " ").split():
        found = re.fullmatch(r"(?:(\d+)x)?(\d+)", word)
        if not found or int(found[2]) not in NOTES:
            return None
        counts[NOTES.index(int(found[2]))] += int(found[1] or 1)
    held = all(count <= have for count, have in zip(counts, hand, strict=True))
    return tuple(counts) if held else None


def is_finished(was: KuhhandelPosition, action: int, now: KuhhandelPosition) -> bool:
    """Whether an action completed a bid or a pile."""
    if was.phase in BIDS:
        return now.phase != "tens"
    same = (now.phase, now.actor) == (was.phase, was.actor)
    return not (same and now.pointer < was.pointer)


def completed_pile(was: KuhhandelPosition, action: int, now: KuhhandelPosition) -> Pile:
    """Return the pile that an action completed, with its forced cards."""
    hand = was.money[was.actor]
    if was.phase == "pay":
        return subtract_piles(hand, now.money[was.actor])
    pile = list(was.chosen)
    if was.phase in PILES:
        pile[was.pointer] += action - NUMBER_FIRST
    left = hand[: was.pointer] if was.phase in PILES else hand
    if sum(pile) == 0 and sum(left) == 1:
        pile[next(d for d, count in enumerate(hand) if count)] = 1
    return tuple(pile)


def subtract_piles(pile: Pile, other: Pile) -> Pile:
    return tuple(a - b for a, b in zip(pile, other, strict=True))
