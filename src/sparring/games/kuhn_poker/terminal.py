"""Terminal view of Kuhn poker."""

from __future__ import annotations

from sparring.games import kuhn_poker
from sparring.games.poker import PokerPosition
from sparring.games.poker_terminal import PokerTerminal
from sparring.games.state import State


class KuhnTerminal(PokerTerminal):
    """One card, one bet."""

    rules_in_short = """\
Three cards, J Q K, one each. Both put in a chip. Check or bet one more; who faces a bet calls or
folds. The higher card wins what the other has put in."""

    def read(self, state: State) -> PokerPosition:
        return kuhn_poker.read(state)


TERMINAL = KuhnTerminal
