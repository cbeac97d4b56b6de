"""How a pile of money is composed: a payment, an offer or a counter-offer (section 11.2).

`empty_offer` holds for offers and counter-offers.
"""

from __future__ import annotations

from reference.kuhhandel.rules import NO_POLICY, auto_payment, offer_counts, payment_counts, total
from reference.kuhhandel.table import Composing, Table


class Piles(Table):
    """A player names how many cards of each denomination go into the pile, highest first."""

    def counts(self) -> list[int]:
        """Legal counts of the denomination that is being chosen."""
        hand, pile = self.money[self.seat], self.pile
        if self.phase == "PAY":
            return payment_counts(hand, pile.price, pile.selected, pile.denomination)
        may_be_empty = bool(self.config["empty_offer"])
        return offer_counts(hand, pile.selected, pile.denomination, may_be_empty)

    def _compose(self, phase: str, player: int, price: int = 0, payee: int = NO_POLICY) -> None:
        self.phase, self.seat = phase, player
        payer = player if phase == "PAY" else NO_POLICY
        self.composing = Composing([0] * 6, 6, price, payer, payee)
        if phase == "PAY" and self.config["pay_mode"] == "AUTO":
            self.composing.selected = auto_payment(self.money[player], price)
            self._finish_pile()
        else:
            self._next_denomination()

    def _select(self, count: int) -> None:
        self.pile.selected[self.pile.denomination] = count
        self._next_denomination()

    def _next_denomination(self) -> None:
        """Go down to the next denomination that leaves something to choose."""
        pile, hand = self.pile, self.money[self.seat]
        lowest = 1 if self.phase == "PAY" else 0
        while pile.denomination > lowest:
            if self.phase == "PAY" and total(pile.selected) >= pile.price:
                break
            pile.denomination -= 1
            if hand[pile.denomination] == 0:
                continue
            counts = self.counts()
            if len(counts) > 1 or not self.config["auto_forced"]:
                return
            pile.selected[pile.denomination] = counts[0]
        self._finish_pile()

    def _finish_pile(self) -> None:
        """What becomes of the pile; the game knows, as this depends on the phase."""
        raise NotImplementedError
