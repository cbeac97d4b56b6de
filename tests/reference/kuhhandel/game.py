"""Plain reference of the Kuhhandel environment (sections 3 to 15), written to be read.

The game keeps lists and recomputes whatever it needs. Rewards are summed exactly and rounded to
floats once per step. What the specification leaves open is decided here as follows.

Chance. Only `reset` draws, in the order of section 2. First the deck: the list 0,0,0,0,1,1,..,9 and
for i = 0..38: j = i + below(40 - i), entries i and j change places; entry 0 is turned up first
(39 draws). Then the first player: below(N).

Decisions. Every applied action counts for `max_decisions`, those that `skip_forced` applies
included; micro-choices that `auto_forced` applies do not count. Reaching the limit cuts the game
(`at_limit` CUT): the position stays as it is, and nothing is paid for the result. With SCORE it
ends the game by rule: it is scored and paid like any other end, bids and piles are taken back, and
an animal under the hammer belongs to nobody. A game cannot be limited to its first action, which
is forced: with `skip_forced` nobody would ever decide.

Auction. A repetition after a bluff starts with nothing passed, no last bids and no high bid,
with HARD passes too. Under CAP nobody is excluded, an exposed player only has a lower limit.
Players who cannot raise are marked as passed when it would be their turn, not earlier.

Money. Cards laid down or selected stay in the hand until they change hands, so hands always add
up. In an exchange both piles leave before either arrives, which matters for what the two know of
each other. With `zeros_return` the 0-cards of a trade do not move at all, also when the target
accepts, and nobody learns from them. A tie that returns the piles teaches nothing either.
`tie_money` also holds for the last tie. `empty_offer` holds for offers and counter-offers.

Rewards. What is due when control returns to a seat is paid to whoever has to decide next, forced
or not, and to everybody when the game ends or is cut: the seed's two terms about money, and
(g - 1) * F of the potential, whose growth is paid when it happens. Together that is
g * F(now) - F(then) from one decision of a seat to its next. All other terms of the seed are paid
when the thing happens. "While deck not empty" looks at the deck after the card under auction was
turned up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from reference.kuhhandel import rewards
from reference.kuhhandel.bots import choose
from reference.kuhhandel.config import checked_config
from reference.kuhhandel.observation import observation_size, observe
from reference.kuhhandel.rules import (
    ACCEPT,
    AUCTION,
    BUY,
    COUNTER,
    DONKEY,
    DONKEY_PAYOUTS,
    FIRST_NUMBER,
    FIRST_TRADE,
    KINDS,
    MIN_RAISE,
    NOBODY,
    PASS,
    SELL,
    START_HAND,
    auto_payment,
    offer_counts,
    payment_counts,
    quartets,
    score,
    stake,
    total,
)
from reference.philox import CHANCE, Philox

EVENTS_KEPT = 64


class Rng(Protocol):
    def u32(self) -> int: ...

    def below(self, m: int) -> int: ...


@dataclass
class Auction:
    animal: int
    auctioneer: int
    last_bid: list[int]
    passed: list[bool]
    exposed: list[bool]
    high: int = 0
    high_bidder: int = NOBODY
    last_asked: int = NOBODY
    hundreds: int = 0


@dataclass
class Trade:
    challenger: int
    target: int
    animal: int
    stake: int
    rebid: bool = False
    tied: int = 0
    offer: list[int] = field(default_factory=lambda: [0] * 6)


@dataclass
class Composing:
    """A pile in the making; price, payer and payee only mean something in PAY."""

    selected: list[int]
    denomination: int
    price: int = 0
    payer: int = NOBODY
    payee: int = NOBODY


class Kuhhandel:
    def __init__(self, config: dict[str, Any] | None = None, chance: Rng | None = None) -> None:
        self.config = checked_config(config)
        self.chance: Rng = chance if chance is not None else Philox(0, 0, 0, CHANCE)
        self.num_players: int = self.config["num_players"]
        self.players = range(self.num_players)

    def reset(self) -> None:
        """Start a game; the draws are those of the module's first paragraph."""
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
        if len(animals) != self.num_players or len(money) != self.num_players:
            raise ValueError(f"{self.num_players} players need as many lists")
        for kind in range(KINDS):
            if list(deck).count(kind) + sum(owned[kind] for owned in animals) != 4:
                raise ValueError(f"there are four cards of kind {kind}")
        self.terminated = self.truncated = False
        self.end: str | None = None
        self.decisions = 0
        self.deck = list(deck)
        self.donkeys = 4 - self.deck.count(DONKEY)
        self.animals = [list(owned) for owned in animals]
        self.money = [list(hand) for hand in money]
        self.known = [[list(hand) for hand in money] for _ in self.players]
        self.auction: Auction | None = None
        self.trade: Trade | None = None
        self.composing: Composing | None = None
        self.events: list[tuple[int, ...]] = []
        self.turn = turn
        self._clear_terms()
        self._find_turn(turn)
        self._play_forced()

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated

    @property
    def role(self) -> int:
        return 0

    def scores(self) -> list[int]:
        return [score(owned) for owned in self.animals]

    def circulation(self) -> int:
        return sum(total(hand) for hand in self.money)

    def observe(self, seat: int) -> list[float]:
        return observe(self, seat)

    def observation_size(self) -> int:
        return observation_size(self)

    def bot(self, name: str, rng: Rng) -> int:
        return choose(self, name, rng)

    def bid_limit(self, player: int) -> int:
        """Highest bid of a player (K1, K3)."""
        bluff = self.config["bluff"]
        if bluff == "FORBID" or (bluff == "CAP" and self.now.exposed[player]):
            return total(self.money[player])
        return self.circulation()

    def is_excluded(self, player: int) -> bool:
        return self.config["bluff"] == "EXCLUDE" and self.now.exposed[player]

    @property
    def now(self) -> Auction:
        assert self.auction is not None
        return self.auction

    @property
    def deal(self) -> Trade:
        assert self.trade is not None
        return self.trade

    @property
    def pile(self) -> Composing:
        assert self.composing is not None
        return self.composing

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

    def trades(self, player: int) -> list[int]:
        """TRADE actions of a player, ascending."""
        return [
            FIRST_TRADE + 10 * (relative - 1) + kind
            for relative in range(1, self.num_players)
            for kind in range(KINDS)
            if self.animals[player][kind]
            and self.animals[(player + relative) % self.num_players][kind]
        ]

    def jump_bids(self) -> range:
        return range(self.now.high + 20, self.bid_limit(self.seat) + 1, 10)

    def tens_digits(self) -> list[int]:
        return [b % 100 // 10 for b in self.jump_bids() if b // 100 == self.now.hundreds]

    def counts(self) -> list[int]:
        """Legal counts of the denomination that is being chosen."""
        hand, pile = self.money[self.seat], self.pile
        if self.phase == "PAY":
            return payment_counts(hand, pile.price, pile.selected, pile.denomination)
        may_be_empty = bool(self.config["empty_offer"])
        return offer_counts(hand, pile.selected, pile.denomination, may_be_empty)

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

    def _clear_terms(self) -> None:
        self._terms: dict[str, list[Fraction | int]] = {
            name: [0] * self.num_players for name in rewards.TERMS
        }

    def _earn(self, term: str, player: int, amount: Fraction | int = 1) -> None:
        self._terms[term][player] += amount

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

    def _find_turn(self, player: int) -> None:
        """Give the turn to this player or, if he can do nothing, to the next one who can."""
        self.auction = self.trade = self.composing = None
        if not self.deck and all(sum(o[kind] == 4 for o in self.animals) for kind in range(KINDS)):
            self._end_game("quartets")
            return
        while not self.deck and not self.trades(player):
            player = (player + 1) % self.num_players
        self.turn = self.seat = player
        self.phase = "TURN"

    def _pass_turn(self) -> None:
        self._find_turn((self.turn + 1) % self.num_players)

    def _end_game(self, why: str) -> None:
        self.terminated = True
        self.end = why
        self.phase = "DONE"
        self.seat = NOBODY
        scores = self.scores()
        for player in self.players:
            self._earn("rank", player, rewards.rank_rewards(scores)[player])
            self._earn("win", player, rewards.win_rewards(scores)[player])
            self._earn("score_zs", player, rewards.score_zero_sum(scores)[player])
            if scores[player] == max(scores):
                self._earn("seed_final_win", player)

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

    def _give_animals(self, player: int, kind: int, count: int) -> None:
        self.animals[player][kind] += count
        if kind in quartets(self.animals[player]) and self.deck:
            self._earn("seed_quartet", player)

    def _move_money(
        self, transfers: Sequence[tuple[int, int, Sequence[int]]], open_to_all: bool = False
    ) -> None:
        """Move piles (from, to, cards) at once, and what everybody knows with them (11.1)."""
        for giver, _, pile in transfers:
            for player in self.players:
                seen = open_to_all or player in self._parties(transfers)
                row = self.known[player][giver]
                for d in range(6):
                    row[d] = max(0, row[d] - (pile[d] if seen else sum(pile)))
            for d in range(6):
                self.money[giver][d] -= pile[d]
        for _, receiver, pile in transfers:
            for player in self.players:
                if open_to_all or player in self._parties(transfers):
                    for d in range(6):
                        self.known[player][receiver][d] += pile[d]
            for d in range(6):
                self.money[receiver][d] += pile[d]

    def _parties(self, transfers: Sequence[tuple[int, int, Sequence[int]]]) -> Collection[int]:
        return {player for giver, receiver, _ in transfers for player in (giver, receiver)}

    # Auction (sections 4 to 6).

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
        if auction.high_bidder != NOBODY:
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
        auction.high, auction.high_bidder = 0, NOBODY
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

    # Composing a pile (section 11.2).

    def _compose(self, phase: str, player: int, price: int = 0, payee: int = NOBODY) -> None:
        self.phase, self.seat = phase, player
        payer = player if phase == "PAY" else NOBODY
        self.composing = Composing([0] * 6, 6, price, payer, payee)
        if phase == "PAY" and self.config["pay_mode"] == "AUTO":
            self.composing.selected = auto_payment(self.money[player], price)
            self._finish_payment()
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
        if self.phase == "PAY":
            self._finish_payment()
        elif self.phase == "OFFER":
            self._lay_offer()
        else:
            self._compare_piles()

    # Cow trade (section 7).

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

    def _travelling(self, pile: Sequence[int]) -> list[int]:
        """The cards of a pile that change hands (K11)."""
        return [0, *pile[1:]] if self.config["zeros_return"] else list(pile)

    def _accept(self) -> None:
        trade = self.deal
        self._move_money([(trade.challenger, trade.target, self._travelling(trade.offer))])
        self._finish_trade(trade.challenger, payment=total(trade.offer), counter_cards=-1)

    def _compare_piles(self) -> None:
        trade, counter = self.deal, self.pile.selected
        offered, countered = total(trade.offer), total(counter)
        tie = offered == countered
        last_round = trade.rebid or self.config["tie_rounds"] == 1
        if not tie or self.config["tie_money"] == "EXCHANGE":
            self._move_money(
                [
                    (trade.challenger, trade.target, self._travelling(trade.offer)),
                    (trade.target, trade.challenger, self._travelling(counter)),
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

    def _event(
        self,
        kind: int,
        actor: int = NOBODY,
        other: int = NOBODY,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
        e: int = 0,
    ) -> None:
        """Keep a public event (section 13) with absolute seats."""
        self.events = [*self.events, (kind, actor, other, a, b, c, d, e)][-EVENTS_KEPT:]

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
            "lot": NOBODY if self.auction is None else self.auction.animal,
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
