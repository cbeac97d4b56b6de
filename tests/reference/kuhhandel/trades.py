"""Cow trades (section 7), with what the specification leaves open about them.

With `zeros_return` the 0-cards of a trade do not move at all, also when the target accepts, and
nobody learns from them. A tie that returns the piles teaches nothing either. `tie_money` also
holds for the last tie.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference.kuhhandel import rewards
from reference.kuhhandel.piles import Piles
from reference.kuhhandel.rules import stake, total
from reference.kuhhandel.table import Trade


class Trades(Piles):
    """From the challenge to who takes the animals."""

    def _start_trade(self, target: int, kind: int) -> None:
        challenger = self.turn
        animals = stake(self.animals[challenger][kind], self.animals[target][kind])
        self.trade = Trade(challenger, target, kind, animals)
        self._compose("OFFER", challenger)

    def _lay_offer(self) -> None:
        trade = self.deal
        trade.offer = self.pile.selected
        self.composing = None
        if trade.rebid:
            self._compose("COUNTER", trade.target)
        else:
            self.phase, self.seat = "RESPOND", trade.target

    def _traveling(self, pile: Sequence[int]) -> list[int]:
        """The cards of a pile that change hands (K11)."""
        return [0, *pile[1:]] if self.config["zeros_return"] else list(pile)

    def _accept(self) -> None:
        trade = self.deal
        self._move_money([(trade.challenger, trade.target, self._traveling(trade.offer))])
        self._finish_trade(trade.challenger, payment=total(trade.offer), counter_cards=-1)

    def _compare_piles(self) -> None:
        trade, counter = self.deal, self.pile.selected
        offered, countered = total(trade.offer), total(counter)
        tie = offered == countered
        last_round = trade.rebid or self.config["tie_rounds"] == 1
        if not tie or self.config["tie_money"] == "EXCHANGE":
            self._move_money(
                [
                    (trade.challenger, trade.target, self._traveling(trade.offer)),
                    (trade.target, trade.challenger, self._traveling(counter)),
                ]
            )
        if tie and not last_round:
            self._event(9, trade.challenger, trade.target, sum(trade.offer), sum(counter))
            trade.rebid, trade.tied, trade.offer = True, offered, [0] * 6
            self._compose("OFFER", trade.challenger)
            return
        winner = trade.challenger if offered >= countered else trade.target
        self._finish_trade(winner, abs(offered - countered), sum(counter))

    def _finish_trade(self, winner: int, payment: int, counter_cards: int) -> None:
        """`payment` is what the winner gave minus what he received."""
        trade = self.deal
        loser = trade.target if winner == trade.challenger else trade.challenger
        self._event(
            8,
            trade.challenger,
            trade.target,
            trade.animal,
            trade.stake,
            sum(trade.offer),
            counter_cards,
            winner,
        )
        self._earn("seed_trade_won", winner, trade.stake)
        self._earn("seed_trade_cheap", winner, rewards.seed_trade_cheap(payment))
        self._earn("seed_trade_lost", loser, trade.stake)
        self._earn("seed_trade_paid", loser, rewards.seed_trade_paid(payment))
        if self.deck:
            self._earn("seed_trade_lost_early", loser)
        self.animals[loser][trade.animal] -= trade.stake
        self._give_animals(winner, trade.animal, trade.stake)
        self._pass_turn()
