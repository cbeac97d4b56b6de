"""Terminal views of games: the position, the choices, and the moves of other players.

A game with a special view has `terminal.py` with a `TERMINAL` in its folder.
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
  w  why: what the search of the others saw before their last move
Where a choice begins with such a letter, :h, :u, :w and :q are the keys."""
MAX_FIXED_NUMBERS = 16
"""Up to so many actions, every action has a fixed number."""


@dataclass(frozen=True)
class ActionChoice:
    """A legal action with the names that a person may type."""

    action: int
    short: str
    name: str
    then: tuple[int, ...] = ()
    """Actions that follow at once, if the choice takes several."""
    number: int = 0
    """Number to type; 0: its position among the choices."""

    @property
    def actions(self) -> tuple[int, ...]:
        return (self.action, *self.then)


def match_choices(typed: str, choices: Sequence[ActionChoice]) -> list[ActionChoice]:
    """Return what fits: a short name or a number; else names or words that begin so."""
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
    return next((fitting for fitting in readings[: 2 if number >= 0 else None] if fitting), [])


class Terminal:
    """Default view of turn-based games: the text of the state and action names."""

    styles: tuple[tuple[str, str], ...] = ()
    """(regular expression, style) for colors on a terminal."""

    def __init__(self, rules: Rules, person: int) -> None:
        self.rules, self.person = rules, person
        self._numbers: dict[Hashable, dict[tuple[int, ...], int]] = {}

    def show(self, state: State) -> str:
        """Return the position as the person sees it."""
        return state.text(self.person).rstrip("\n")

    def ask(self, state: State) -> str:
        """Return the prompt."""
        return "your move"

    def choices(self, state: State) -> list[ActionChoice]:
        names = [(action, state.action_name(action)) for action in state.legal()]
        return [ActionChoice(action, name, name) for action, name in names]

    def numbered(self, state: State) -> list[ActionChoice]:
        """Return the legal actions with stable numbers for the same question.

        Numbers of choices that disappear are not reused.
        """
        choices = self.choices(state)
        known = self._numbers.setdefault(self.question(state), {})
        for actions in (*self.possible(state), *(choice.actions for choice in choices)):
            known.setdefault(actions, len(known) + 1)
        return [replace(choice, number=known[choice.actions]) for choice in choices]

    def question(self, state: State) -> Hashable:
        """Return the key of the question, for which numbers of choices are stable."""
        return self.ask(state)

    def possible(self, state: State) -> Iterable[tuple[int, ...]]:
        """Return all choices that the same question may offer, in order."""
        return (
            (action,)
            for action in range(
                self.rules.actions if self.rules.actions <= MAX_FIXED_NUMBERS else 0
            )
        )

    def list_choices(self, choices: Sequence[ActionChoice]) -> str:
        """Return the numbered choices in one line."""
        return "  ".join(f"{c.number or at}:{c.short}" for at, c in enumerate(choices, 1))

    def match(
        self, state: State, typed: str, choices: Sequence[ActionChoice]
    ) -> list[ActionChoice]:
        """Return the choices that match a typed line."""
        return match_choices(typed, choices)

    def advice(self, state: State, adviser: Callable[[State], int]) -> str:
        """Return the name of the adviser's choice. state: a copy that may be changed."""
        action = adviser(state)
        return next(choice.name for choice in self.choices(state) if choice.action == action)

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Describe an action and its effects, in lines."""
        return [f"{self.name(before.seat)}: {before.action_name(action)}"]

    def next_view(self) -> bool:
        """Switch to the next view of the board. False if there is only one."""
        return False

    def name(self, seat: int) -> str:
        """Return "you" or "seat 1"."""
        return "you" if seat == self.person else f"seat {seat}"

    def help(self) -> str:
        return HELP

    def result(self, state: State) -> str:
        """Return the final standings; equal scores share a rank."""
        scores = state.scores
        rank = {seat: 1 + sum(o > s for o in scores) for seat, s in enumerate(scores)}
        lines = [f"{(state.end or 'over').capitalize()}. Final standings:"]
        for seat in sorted(rank, key=rank.__getitem__):
            lines.append(f"  {rank[seat]}. {self.name(seat):7} {scores[seat]:g}")
        shared = list(rank.values()).count(rank[self.person]) > 1
        if rank[self.person] == 1:
            lines.append("You share the win." if shared else "You win!")
        else:
            lines.append(f"You are number {rank[self.person]} of {len(scores)}.")
        return "\n".join(lines)


def terminal_of(rules: Rules, person: int) -> Terminal:
    """Return the terminal view of a game for a person in a seat; -1: a spectator."""
    module = game_module(rules.name, "terminal")
    kind: type[Terminal] = Terminal if module is None else module.TERMINAL
    return kind(rules, person)
