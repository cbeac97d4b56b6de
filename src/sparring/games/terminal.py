"""How a game is shown to a person: the position, the choices, what the others did.

A game that is shown in its own way has a `terminal.py` with a `TERMINAL` in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.games.state import State

HELP = """\
Type a choice by its number, its short name, or the beginning of its name.
  h  this help      ?  what the best bot would do
  u  take back your last move      q  quit
Where a choice begins with such a letter, :h, :u and :q are the keys."""
MAX_FIXED_NUMBERS = 16
"""Actions of a game in which every action has its own number from the beginning."""


@dataclass(frozen=True)
class ActionChoice:
    """A legal action as a person types it."""

    action: int
    short: str
    name: str
    then: tuple[int, ...] = ()
    """What follows at once, where one wish takes several actions."""
    number: int = 0
    """What may be typed for it; 0: its place among the choices."""

    @property
    def actions(self) -> tuple[int, ...]:
        """All actions that it takes."""
        return (self.action, *self.then)


def match_choices(typed: str, choices: Sequence[ActionChoice]) -> list[ActionChoice]:
    """Return the choices that a word can mean, by the first way of reading it that fits any."""
    word = typed.strip().lower()
    if not word:
        return []
    number = int(word) if word.isdecimal() else -1
    readings = (
        [c for c in choices if c.short.lower() == word],
        [c for at, c in enumerate(choices, 1) if (c.number or at) == number],
        [c for c in choices if c.short.lower().startswith(word)],
        [c for c in choices if c.name.lower().startswith(word)],
        [c for c in choices if any(w.startswith(word) for w in c.name.lower().split())],
    )
    return next((fitting for fitting in readings if fitting), [])


class Terminal:
    """Any discrete turn game, by its own text and action names."""

    styles: tuple[tuple[str, str], ...] = ()
    """(regular expression, style) for colors on a terminal."""

    def __init__(self, rules: Rules, person: int) -> None:
        self.rules, self.person = rules, person
        self._numbers: dict[Hashable, dict[tuple[int, ...], int]] = {}

    def show(self, state: State) -> str:
        """Return what the person sees before deciding."""
        return state.text(self.person).rstrip("\n")

    def ask(self, state: State) -> str:
        """Return what is being asked."""
        return "your move"

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the legal actions."""
        names = [(action, state.action_name(action)) for action in state.legal()]
        return [ActionChoice(action, name, name) for action, name in names]

    def numbered(self, state: State) -> list[ActionChoice]:
        """Return the legal actions with numbers that stay while the same question is asked.

        A choice that disappears leaves its number free; others do not move up.
        """
        choices = self.choices(state)
        known = self._numbers.setdefault(self.question(state), {})
        for actions in (*self.possible(state), *(choice.actions for choice in choices)):
            known.setdefault(actions, len(known) + 1)
        return [replace(choice, number=known[choice.actions]) for choice in choices]

    def question(self, state: State) -> Hashable:
        """Return what is asked; numbers of choices are those of this question."""
        return self.ask(state)

    def possible(self, state: State) -> Iterable[tuple[int, ...]]:
        """Return what may be chosen sooner or later in answer to the same question, in order."""
        return (
            (action,)
            for action in range(
                self.rules.actions if self.rules.actions <= MAX_FIXED_NUMBERS else 0
            )
        )

    def list_choices(self, choices: Sequence[ActionChoice]) -> str:
        """Return the choices in a line, numbered."""
        return "  ".join(f"{c.number or at}:{c.short}" for at, c in enumerate(choices, 1))

    def match(
        self, state: State, typed: str, choices: Sequence[ActionChoice]
    ) -> list[ActionChoice]:
        """Return what a line can mean."""
        return match_choices(typed, choices)

    def advice(self, state: State, adviser: Callable[[State], int]) -> str:
        """Return what an adviser would do; the state is a copy that may be played on."""
        action = adviser(state)
        return next(choice.name for choice in self.choices(state) if choice.action == action)

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Say what an action did."""
        return [f"{self.name(before.seat)}: {before.action_name(action)}"]

    def next_view(self) -> bool:
        """Show the board in another way from now on. False if there is only one."""
        return False

    def name(self, seat: int) -> str:
        """Return "you" or "seat 1"."""
        return "you" if seat == self.person else f"seat {seat}"

    def help(self) -> str:
        """Return the rules in short and the keys."""
        return HELP

    def result(self, state: State) -> str:
        """Return the final standings; equal scores share a place."""
        scores = state.scores
        place = {seat: 1 + sum(o > s for o in scores) for seat, s in enumerate(scores)}
        lines = [f"{(state.end or 'over').capitalize()}. Final standings:"]
        for seat in sorted(place, key=place.__getitem__):
            lines.append(f"  {place[seat]}. {self.name(seat):7} {scores[seat]:g}")
        shared = list(place.values()).count(place[self.person]) > 1
        if place[self.person] == 1:
            lines.append("You share the win." if shared else "You win!")
        else:
            lines.append(f"You are number {place[self.person]} of {len(scores)}.")
        return "\n".join(lines)


def terminal_of(rules: Rules, person: int) -> Terminal:
    """Return what shows a game to a person in a seat; -1 for an onlooker."""
    module = game_module(rules.name, "terminal")
    kind: type[Terminal] = Terminal if module is None else module.TERMINAL
    return kind(rules, person)
