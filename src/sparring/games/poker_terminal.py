"""Small poker games for two as a person plays them."""

from __future__ import annotations

from typing import ClassVar

from sparring.games.poker import PokerPosition, count_chips
from sparring.games.state import State
from sparring.games.terminal import HELP, ActionChoice, Terminal


class PokerTerminal(Terminal):
    """The own card, what is in the pot, and what was said."""

    styles = ((r"\byou\b", "bold"), (r"\b[JQK]\b", "bold yellow"))
    rules_in_short: ClassVar[str]

    def read(self, state: State) -> PokerPosition:
        """Return a position of this game in words."""
        raise NotImplementedError

    def show(self, state: State) -> str:
        """Return what the person may know."""
        at = self.read(state)
        lines = []
        for seat in (0, 1):
            card = f"{at.cards[seat]}, " if seat == self.person else ""
            lines.append(f"{self.name(seat)}: {card}{count_chips(at.chips[seat])} in")
        if at.table:
            lines.append(f"on the table: {at.table}")
        for number, said in enumerate(at.rounds, 1):
            if said:
                told = [f"{self.name(turn % 2)} {word}" for turn, word in enumerate(said)]
                lines.append(f"round {number}: " * (len(at.rounds) > 1) + ", ".join(told))
        return "\n".join(lines)

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the legal actions as they are called in this position."""
        return [ActionChoice(action, word, word) for action, word in self.read(state).choices]

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Say what an action was, and which card was turned up."""
        was, now = self.read(before), self.read(after)
        lines = [f"{self.name(before.seat)}: {dict(was.choices)[action]}"]
        return lines + [f"  the table's card is {now.table}"] * (now.table != was.table)

    def result(self, state: State) -> str:
        """Return the cards of a showdown, and who wins what."""
        at, mine = self.read(state), state.scores[self.person]
        lines = []
        if state.end == "showdown":
            lines = [f"{self.name(seat)}: {at.cards[seat]}" for seat in (0, 1)]
            lines += [f"on the table: {at.table}"] * bool(at.table)
        verdict = f"you {'win' if mine > 0 else 'lose'} {count_chips(abs(int(mine)))}"
        return "\n".join([*lines, f"{state.end}: {verdict if mine else 'you share the pot'}"])

    def help(self) -> str:
        """Return the rules in short and the keys."""
        return f"{self.rules_in_short}\n{HELP}"
