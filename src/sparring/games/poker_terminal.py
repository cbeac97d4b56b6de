"""Terminal views of small poker games for two."""

from __future__ import annotations

from typing import ClassVar

from sparring.games.poker import PokerPosition, count_chips
from sparring.games.state import State
from sparring.games.terminal import HELP, ActionChoice, Terminal


class PokerTerminal(Terminal):
    """Shows the person's card, the pot and the betting history."""

    styles = ((r"\byou\b", "bold"), (r"\b[JQK]\b", "bold yellow"))
    rules_in_short: ClassVar[str]

    def read(self, state: State) -> PokerPosition:
        """Return the position of a state."""
        raise NotImplementedError

    def show(self, state: State) -> str:
        """Return the position as the person sees it."""
        position = self.read(state)
        lines = []
        for seat in (0, 1):
            card = f"{position.cards[seat]}, " if seat == self.person else ""
            lines.append(f"{self.name(seat)}: {card}{count_chips(position.chips[seat])} in")
        if position.table:
            lines.append(f"on the table: {position.table}")
        for number, actions in enumerate(position.rounds, 1):
            if actions:
                texts = [f"{self.name(turn % 2)} {action}" for turn, action in enumerate(actions)]
                lines.append(f"round {number}: " * (len(position.rounds) > 1) + ", ".join(texts))
        return "\n".join(lines)

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the legal actions with their names in this position."""
        return [ActionChoice(action, word, word) for action, word in self.read(state).choices]

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Return the action, and the public card if it was just dealt."""
        was, now = self.read(before), self.read(after)
        lines = [f"{self.name(before.seat)}: {dict(was.choices)[action]}"]
        return lines + [f"  the table's card is {now.table}"] * (now.table != was.table)

    def result(self, state: State) -> str:
        """Return the cards of a showdown, and the winnings."""
        position, mine = self.read(state), state.scores[self.person]
        lines = []
        if state.end == "showdown":
            lines = [f"{self.name(seat)}: {position.cards[seat]}" for seat in (0, 1)]
            lines += [f"on the table: {position.table}"] * bool(position.table)
        result = f"you {'win' if mine > 0 else 'lose'} {count_chips(abs(int(mine)))}"
        return "\n".join([*lines, f"{state.end}: {result if mine else 'you share the pot'}"])

    def help(self) -> str:
        return f"{self.rules_in_short}\n{HELP}"
