"""What lies on the table of a game of Kuhhandel, and what every part of the rules does with it.

Money. Cards laid down or selected stay in the hand until they change hands, so hands always add
up. In an exchange both piles leave before either arrives, which matters for what the two know of
each other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reference.kuhhandel import rewards
from reference.kuhhandel.config import checked_config
from reference.kuhhandel.rules import DONKEY, FIRST_TRADE, KINDS, NO_POLICY, quartets, score, total
from reference.philox import CHANCE, Philox, Rng

EVENTS_KEPT = 64


@dataclass
class Auction:
    animal: int
    auctioneer: int
    last_bid: list[int]
    passed: list[bool]
    exposed: list[bool]
    high: int = 0
    high_bidder: int = NO_POLICY
    last_asked: int = NO_POLICY
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
    payer: int = NO_POLICY
    payee: int = NO_POLICY


class Table:
    """Cards, money, knowledge, whose turn it is, public events, and what has been earned."""

    def __init__(self, config: dict[str, Any] | None = None, chance: Rng | None = None) -> None:
        self.config = checked_config(config)
        self.chance: Rng = chance if chance is not None else Philox(0, 0, 0, CHANCE)
        self.num_players: int = self.config["num_players"]
        self.players = range(self.num_players)

    def _lay_out(
        self,
        deck: Sequence[int],
        animals: Sequence[Sequence[int]],
        money: Sequence[Sequence[int]],
    ) -> None:
        """Begin with these cards and nothing under way."""
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
        self._clear_terms()

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated

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

    def scores(self) -> list[int]:
        return [score(owned) for owned in self.animals]

    def circulation(self) -> int:
        return sum(total(hand) for hand in self.money)

    def trades(self, player: int) -> list[int]:
        """TRADE actions of a player, ascending."""
        return [
            FIRST_TRADE + 10 * (relative - 1) + kind
            for relative in range(1, self.num_players)
            for kind in range(KINDS)
            if self.animals[player][kind]
            and self.animals[(player + relative) % self.num_players][kind]
        ]

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
        self.seat = NO_POLICY
        scores = self.scores()
        for player in self.players:
            self._earn("rank", player, rewards.rank_rewards(scores)[player])
            self._earn("win", player, rewards.win_rewards(scores)[player])
            self._earn("score_zs", player, rewards.score_zero_sum(scores)[player])
            if scores[player] == max(scores):
                self._earn("seed_final_win", player)

    def _clear_terms(self) -> None:
        self._terms: dict[str, list[Fraction | int]] = {
            name: [0] * self.num_players for name in rewards.TERMS
        }

    def _earn(self, term: str, player: int, amount: Fraction | int = 1) -> None:
        self._terms[term][player] += amount

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

    def _event(
        self,
        kind: int,
        actor: int = NO_POLICY,
        other: int = NO_POLICY,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
        e: int = 0,
    ) -> None:
        """Keep a public event (section 13) with absolute seats."""
        self.events = [*self.events, (kind, actor, other, a, b, c, d, e)][-EVENTS_KEPT:]
