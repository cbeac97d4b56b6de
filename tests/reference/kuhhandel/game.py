"""Plain reference of the Kuhhandel environment (sections 3 to 15), written to be read.

The game keeps lists and recomputes whatever it needs. Rewards are summed exactly and rounded to
floats once per step. What the specification leaves open is decided here and in the parts, which
are `table`, `piles`, `auctions` and `trades`.

Chance. Only `reset` draws, in the order of section 2. First the deck: the list 0,0,0,0,1,1,..,9 and
for i = 0..38: j = i + below(40 - i), entries i and j change places; entry 0 is turned up first
(39 draws). Then the first player: below(N).

Decisions. Every applied action counts for `max_decisions`, those that `skip_forced` applies
included; micro-choices that `auto_forced` applies do not count. Reaching the limit cuts the game
(`at_limit` CUT): the position stays as it is, and nothing is paid for the result. With SCORE it
ends the game by rule: it is scored and paid like any other end, bids and piles are taken back, and
an animal under the hammer belongs to nobody. A game cannot be limited to its first action, which
is forced: with `skip_forced` nobody would ever decide.

Rewards. What is due when control returns to a seat is paid to whoever has to decide next, forced
or not, and to everybody when the game ends or is cut: the seed's two terms about money, and
(g - 1) * F of the potential, whose growth is paid when it happens. Together that is
g * F(now) - F(then) from one decision of a seat to its next. All other terms of the seed are paid
when the thing happens. "While deck not empty" looks at the deck after the card under auction was
turned up.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from reference.kuhhandel import rewards
from reference.kuhhandel.auctions import Auctions
from reference.kuhhandel.bots import choose
from reference.kuhhandel.observation import observation_size, observe
from reference.kuhhandel.rules import (
    ACCEPT,
    AUCTION,
    BUY,
    COUNTER,
    FIRST_NUMBER,
    FIRST_TRADE,
    KINDS,
    MIN_RAISE,
    NO_POLICY,
    PASS,
    SELL,
    START_HAND,
    score,
    total,
)
from reference.kuhhandel.trades import Trades
from reference.philox import Rng


class Kuhhandel(Auctions, Trades):
    def reset(self) -> None:
        """Start a game; the draws are described under Chance above."""
        deck = [kind for kind in range(KINDS) for _ in range(4)]
        for i in range(39):
            j = i + self.chance.below(40 - i)
            deck[i], deck[j] = deck[j], deck[i]
        first = self.chance.below(self.num_players)
        self.load(
            deck=deck,
            animals=[[0] * KINDS for _ in self.players],
            money=[START_HAND] * self.num_players,
            turn=first,
        )

    def load(
        self,
        deck: Sequence[int],
        animals: Sequence[Sequence[int]],
        money: Sequence[Sequence[int]],
        turn: int,
    ) -> None:
        """Start at a turn with the given cards; the first of the deck is on top.

        Everybody knows every hand, as after the setup. If the player cannot do anything, the turn
        passes on.
        """
        self._lay_out(deck, animals, money)
        self.turn = turn
        self._find_turn(turn)
        self._play_forced()

    @property
    def role(self) -> int:
        """0 for what to do on a turn, 1 for all about money."""
        return 0 if self.phase == "TURN" else 1

    def observe(self, seat: int) -> list[float]:
        return observe(self, seat)

    def observation_size(self) -> int:
        return observation_size(self)

    def bot(self, name: str, rng: Rng) -> int:
        return choose(self, name, rng)

    def legal(self) -> list[int]:
        """Legal action indices in ascending order (section 12); empty only when it is over."""
        if self.over:
            return []
        if self.phase == "TURN":
            return [AUCTION] * bool(self.deck) + self.trades(self.seat)
        if self.phase == "BID":
            jumps = {bid // 100 for bid in self.jump_bids()}
            return [PASS, MIN_RAISE] + [FIRST_NUMBER + hundreds for hundreds in sorted(jumps)]
        if self.phase == "TENS":
            return [FIRST_NUMBER + digit for digit in self.tens_digits()]
        if self.phase == "DECIDE":
            affordable = total(self.money[self.seat]) >= self.now.high
            return [SELL, BUY] if affordable else [SELL]
        if self.phase == "RESPOND":
            return [ACCEPT, COUNTER]
        return [FIRST_NUMBER + count for count in self.counts()]

    def step(self, action: int) -> dict[str, list[float]]:
        """Apply the action and everything up to the next decision; reward terms per player.

        What forced decisions earned before the first action belongs to the first action.
        """
        if action not in self.legal():
            raise ValueError(f"action {action} is illegal in phase {self.phase}")
        self._apply(action)
        self._play_forced()
        paid = {name: [float(x) for x in values] for name, values in self._terms.items()}
        self._clear_terms()
        return paid

    def _play_forced(self) -> None:
        if not self.config["skip_forced"]:
            return
        while len(self.legal()) == 1:
            self._apply(self.legal()[0])

    def _apply(self, action: int) -> None:
        before = self.scores()
        self.decisions += 1
        self._act(action)
        if not self.terminated and self.decisions >= self.config["max_decisions"]:
            self._reach_limit()
        after = self.scores()
        for player in self.players:
            self._earn("potential", player, rewards.potential(after[player] - before[player]))
        for player in self.players if self.over else [self.seat]:
            self._reward_return(player)

    def _act(self, action: int) -> None:
        if self.phase == "TURN":
            if action == AUCTION:
                self._start_auction()
            else:
                relative, kind = divmod(action - FIRST_TRADE, 10)
                self._start_trade((self.seat + relative + 1) % self.num_players, kind)
        elif self.phase == "BID":
            if action == PASS:
                self._pass(self.seat)
                self._ask_next_bidder()
            elif action == MIN_RAISE:
                self._raise(self.now.high + 10)
            else:
                self.now.hundreds = action - FIRST_NUMBER
                self._choose_tens()
        elif self.phase == "TENS":
            self._raise(100 * self.now.hundreds + 10 * (action - FIRST_NUMBER))
        elif self.phase == "DECIDE":
            self._decide(buys=action == BUY)
        elif self.phase == "RESPOND":
            if action == ACCEPT:
                self._accept()
            else:
                self._compose("COUNTER", self.deal.target)
        else:
            self._select(action - FIRST_NUMBER)

    def _finish_pile(self) -> None:
        if self.phase == "PAY":
            self._finish_payment()
        elif self.phase == "OFFER":
            self._lay_offer()
        else:
            self._compare_piles()

    def _reach_limit(self) -> None:
        if self.config["at_limit"] == "SCORE":
            self._end_game("limit")
        else:
            self.truncated = True
            self.end = "limit"

    def _reward_return(self, player: int) -> None:
        """What is due when control returns to a player."""
        discount = Fraction(self.config["potential_gamma"]) - 1
        self._earn("potential", player, discount * rewards.potential(score(self.animals[player])))
        own = total(self.money[player])
        if own == 0:
            self._earn("seed_broke", player)
        if 2 * own > self.circulation():
            self._earn("seed_rich", player)

    def state(self) -> dict[str, Any]:
        """Canonical plain form of everything that decides the future or is observed."""
        # After an end by the limit only the animal of an interrupted auction is left.
        over = self.phase == "DONE"
        auction, trade, pile = (
            (None, None, None) if over else (self.auction, self.trade, self.composing)
        )
        return {
            "phase": self.phase,
            "seat": self.seat,
            "turn": self.turn,
            "deck": list(self.deck),
            "animals": [list(owned) for owned in self.animals],
            "money": [list(hand) for hand in self.money],
            "known": [[list(hand) for hand in row] for row in self.known],
            "donkeys": self.donkeys,
            "decisions": self.decisions,
            "lot": NO_POLICY if self.auction is None else self.auction.animal,
            "auction": None
            if auction is None
            else {
                "animal": auction.animal,
                "auctioneer": auction.auctioneer,
                "high": auction.high,
                "high_bidder": auction.high_bidder,
                "last_bid": list(auction.last_bid),
                "passed": list(auction.passed),
                "exposed": list(auction.exposed),
                "hundreds": auction.hundreds,
            },
            "trade": None
            if trade is None
            else {
                "challenger": trade.challenger,
                "target": trade.target,
                "animal": trade.animal,
                "stake": trade.stake,
                "rebid": trade.rebid,
                "tied": trade.tied,
                "offer": list(trade.offer),
            },
            "composing": None
            if pile is None
            else {
                "selected": list(pile.selected),
                "denomination": pile.denomination,
                "price": pile.price,
                "payer": pile.payer,
                "payee": pile.payee,
            },
            "events": list(self.events),
        }
