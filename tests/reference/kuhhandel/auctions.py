"""Auctions (sections 4 to 6), with what the specification leaves open about them.

A repetition after a bluff starts with nothing passed, no last bids and no high bid, with HARD
passes too. Under CAP nobody is excluded, an exposed player only has a lower limit. Players who
cannot raise are marked as passed when it would be their turn, not earlier.
"""

from __future__ import annotations

from fractions import Fraction

from reference.kuhhandel.piles import Piles
from reference.kuhhandel.rules import DONKEY, DONKEY_PAYOUTS, NO_POLICY, total
from reference.kuhhandel.table import Auction


class Auctions(Piles):
    """From the card that is turned up to who owns it."""

    def bid_limit(self, player: int) -> int:
        """Highest bid of a player (K1, K3)."""
        bluff = self.config["bluff"]
        if bluff == "FORBID" or (bluff == "CAP" and self.now.exposed[player]):
            return total(self.money[player])
        return self.circulation()

    def is_excluded(self, player: int) -> bool:
        return self.config["bluff"] == "EXCLUDE" and self.now.exposed[player]

    def jump_bids(self) -> range:
        return range(self.now.high + 20, self.bid_limit(self.seat) + 1, 10)

    def tens_digits(self) -> list[int]:
        return [b % 100 // 10 for b in self.jump_bids() if b // 100 == self.now.hundreds]

    def _start_auction(self) -> None:
        animal = self.deck.pop(0)
        self._event(1, self.turn, a=animal)
        if animal == DONKEY:
            self._pay_out_donkey()
        self.auction = Auction(
            animal=animal,
            auctioneer=self.turn,
            last_bid=[0] * self.num_players,
            passed=[False] * self.num_players,
            exposed=[False] * self.num_players,
            last_asked=self.turn,
        )
        self._ask_next_bidder()

    def _pay_out_donkey(self) -> None:
        denomination = DONKEY_PAYOUTS[self.donkeys]
        self.donkeys += 1
        for player in self.players:
            self.money[player][denomination] += 1
            for observer in self.players:
                self.known[observer][player][denomination] += 1
        self._event(10, a=self.donkeys)

    def _ask_next_bidder(self) -> None:
        """The next player clockwise who may raise; without one the bidding closes."""
        auction = self.now
        for step in range(1, self.num_players + 1):
            player = (auction.last_asked + step) % self.num_players
            silent = player in (auction.auctioneer, auction.high_bidder)
            if silent or self.is_excluded(player) or auction.passed[player]:
                continue
            if auction.high + 10 > self.bid_limit(player):
                self._pass(player)
                continue
            auction.last_asked = self.seat = player
            self.phase = "BID"
            return
        self._close_bidding()

    def _pass(self, player: int) -> None:
        self.now.passed[player] = True
        self._event(3, player)

    def _choose_tens(self) -> None:
        self.phase = "TENS"
        digits = self.tens_digits()
        if self.config["auto_forced"] and len(digits) == 1:
            self._raise(100 * self.now.hundreds + 10 * digits[0])

    def _raise(self, bid: int) -> None:
        auction = self.now
        if bid - auction.high > 10:
            self._earn("seed_overraise", self.seat, Fraction(bid - auction.high - 10, 100))
        auction.high, auction.high_bidder, auction.hundreds = bid, self.seat, 0
        auction.last_bid[self.seat] = bid
        if self.config["pass_mode"] == "SOFT":
            auction.passed = [False] * self.num_players
        self._event(2, self.seat, a=bid // 10)
        self._ask_next_bidder()

    def _close_bidding(self) -> None:
        auction = self.now
        if auction.high_bidder != NO_POLICY:
            self.phase, self.seat = "DECIDE", auction.auctioneer
            return
        self._event(6, auction.auctioneer, a=auction.animal)
        for player in self.players:
            self._earn("seed_free", player, 1 if player == auction.auctioneer else -1)
        self._give_animals(auction.auctioneer, auction.animal, 1)
        self._pass_turn()

    def _decide(self, buys: bool) -> None:
        auction = self.now
        if buys:
            self._ask_for_payment(auction.auctioneer, auction.high_bidder)
        elif total(self.money[auction.high_bidder]) >= auction.high:
            self._ask_for_payment(auction.high_bidder, auction.auctioneer)
        else:
            self._expose(auction.high_bidder)

    def _expose(self, player: int) -> None:
        """The bluff is called: all see the player's money, the auction is repeated (K1)."""
        for observer in self.players:
            self.known[observer][player] = list(self.money[player])
        self._event(7, player, *self.money[player])
        auction = self.now
        auction.exposed[player] = True
        auction.high, auction.high_bidder = 0, NO_POLICY
        auction.last_asked = auction.auctioneer
        auction.last_bid = [0] * self.num_players
        auction.passed = [False] * self.num_players
        self._ask_next_bidder()

    def _ask_for_payment(self, payer: int, payee: int) -> None:
        self._compose("PAY", payer, price=self.now.high, payee=payee)

    def _finish_payment(self) -> None:
        auction, pile = self.now, self.pile
        transfer = (pile.payer, pile.payee, pile.selected)
        self._move_money([transfer], open_to_all=bool(self.config["open_pay"]))
        buys = pile.payer == auction.auctioneer
        cards = sum(pile.selected)
        self._event(5 if buys else 4, pile.payer, pile.payee, pile.price // 10, cards)
        if buys:
            self._earn("seed_bought", pile.payer)
            self._earn("seed_was_paid", pile.payee)
        else:
            self._earn("seed_auction_won", pile.payer)
        self._give_animals(pile.payer, auction.animal, 1)
        self._pass_turn()
