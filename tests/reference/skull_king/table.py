"""Episodes, rounds and deals of Skull King: what lies on the table (section 14)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from reference.philox import CHANCE, Philox, Rng
from reference.skull_king import rewards
from reference.skull_king.config import checked_config
from reference.skull_king.rules import DECKS, Play, follow_suit

NO_ALLIANCE = (-1, -1)


class Table:
    """Cards, bids and scores, and what has been earned."""

    def __init__(self, config: dict[str, Any] | None = None, chance: Rng | None = None) -> None:
        self.config = checked_config(config)
        self.chance: Rng = chance if chance is not None else Philox(0, 0, 0, CHANCE)
        self.num_players: int = self.config["num_players"]
        has_ghost = self.num_players == 2 and self.config["ghost"] == 1
        self.ghost = 2 if has_ghost else None
        self.seats = self.num_players + has_ghost
        self.deck = DECKS[self.config["deck"]]
        extended = self.config["abilities"] or self.config["cannonball"]
        self.action_count = 102 if extended else 86
        self._clear_parts()

    def cards_in_round(self, number: int) -> int:
        """c(r) of section 2."""
        cap: int = min(10, len(self.deck) // self.seats)
        if self.num_players == 8:
            cap = min(cap, self.config["cap8"])
        size: int = self.config["rounds"][number - 1]
        return min(size, cap)

    def _draw_round(self) -> int:
        weights = self.config["round_weights"][: len(self.config["rounds"])]
        x = self.chance.u32()
        # The float operations are spelled out in this order for bit-exact comparison.
        total = 0.0
        for weight in weights:
            total += weight
        target = x / 2**32 * total
        cumulative = 0.0
        for number, weight in enumerate(weights, start=1):
            cumulative += weight
            if cumulative > target:
                return number
        raise AssertionError("the target lies below the total")

    def _start_episode(self, number: int, first_leader: int, scores: list[int]) -> None:
        self.terminated = False
        self.score = scores
        self.sum_bid = [0] * self.num_players
        self.sum_err = [0] * self.num_players
        self.last_round: dict[str, list[int]] | None = None
        self.first = (first_leader - (number - 1)) % self.num_players
        self._start_round(number)

    def _start_round(self, number: int) -> None:
        self.round = number
        self.cards = self.cards_in_round(number)
        self.leader = (self.first + number - 1) % self.num_players
        self.seat = self.leader
        self.phase = "BID"
        self.tricks_done = 0
        self.order: list[int] = []
        self.trick: list[tuple[int, int, bool]] = []
        self.hands: list[list[int]] = [[] for _ in range(self.seats)]
        self.played: list[list[int]] = [[] for _ in range(self.seats)]
        self.stock: list[int] = []
        self.discards: list[int] = []
        self.ghost_order: list[int] = []
        self.bid = [-1] * self.seats
        self.won = [0] * self.seats
        self.bonus = [0] * self.seats
        self.void = [[False] * 4 for _ in range(self.seats)]
        self.loot: list[tuple[int, int]] = [NO_ALLIANCE, NO_ALLIANCE]
        self.priv: list[set[int]] = [set() for _ in range(self.num_players)]
        self.wager = [0] * self.num_players
        self.cannon = [0] * self.num_players
        self.harry = -1
        self.pending = 0
        self.history_tokens = [[0] * self.seats for _ in range(10)]
        self.history_leaders = [-1] * 10

    def _deal(self) -> None:
        """Partial shuffle of section 14.4."""
        cards = list(self.deck)
        for i in range(self.seats * self.cards):
            j = i + self.chance.below(len(cards) - i)
            cards[i], cards[j] = cards[j], cards[i]
        c = self.cards
        self._take_hands([cards[seat * c : seat * c + c] for seat in range(self.seats)])

    def _take_hands(self, hands: Sequence[Sequence[int]]) -> None:
        self.hands = [sorted(hand) for hand in hands]
        dealt = {card for hand in hands for card in hand}
        self.stock = [card for card in self.deck if card not in dealt]
        if self.ghost is not None:
            self.ghost_order = list(hands[self.ghost])

    def player_bids(self) -> list[int]:
        return self.bid[: self.num_players]

    def bids_complete(self) -> bool:
        return -1 not in self.player_bids()

    def trick_cards(self) -> list[Play]:
        return [(card, as_pirate) for _, card, as_pirate in self.trick]

    def follow(self) -> int:
        return follow_suit(self.trick_cards(), self.config["follow_rule"])

    def _need(self, player: int) -> int:
        return self.bid[player] - self.won[player]

    def _open_phase(self, phase: str, player: int) -> None:
        self.phase = phase
        self.seat = player

    def _clear_parts(self) -> None:
        self._parts = {name: [Fraction(0)] * self.num_players for name in rewards.PARTS}

    def _earn(self, part: str, player: int, amount: Fraction) -> None:
        if amount:
            self._parts[part][player] += amount

    def _earn_all(self, part: str, amounts: Sequence[Fraction]) -> None:
        for player, amount in enumerate(amounts):
            self._earn(part, player, amount)
