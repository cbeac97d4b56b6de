"""Terminal view of Leduc poker."""

from __future__ import annotations

from sparring.games import leduc_poker
from sparring.games.poker import PokerPosition
from sparring.games.poker_terminal import PokerTerminal
from sparring.games.state import State


class LeducTerminal(PokerTerminal):
    """Two rounds of betting, with a card for both between them."""

    rules_in_short = """\
Six cards, two each of J Q K, one for each player. Both put in a chip. Two rounds of check or call,
raise, fold, with at most two raises: of 2 chips in the first round, of 4 in the second. Between
them a card is laid on the table. Who has its pair wins, else the higher card; equal cards share."""

    def read(self, state: State) -> PokerPosition:
        return leduc_poker.read(state)


TERMINAL = LeducTerminal
