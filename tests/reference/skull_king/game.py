"""Plain reference of the Skull King environment (sections 14 and 15), written to be read.

The game keeps lists of card ids and recomputes whatever it needs. Rewards are summed exactly and
rounded to floats once per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from reference.philox import CHANCE, Philox
from reference.skull_king import rewards
from reference.skull_king.bots import choose
from reference.skull_king.config import checked_config
from reference.skull_king.observation import observation_size, observe
from reference.skull_king.rules import (
    BENDT,
    DECKS,
    HARRY,
    JADE,
    LOOTS,
    PIRATES,
    RASCAL,
    ROSIE,
    TIGRESS,
    Play,
    capture_bonus,
    captures,
    deduplicate,
    follow_suit,
    is_whale_trick,
    legal_cards,
    resolve,
    round_points,
    shows_void,
)

__all__ = ["SkullKing", "capture_bonus", "legal_cards", "resolve", "round_points"]

FIRST_CARD_ACTION = 11
TIGRESS_AS_ESCAPE = 85
FIRST_ROSIE, FIRST_WAGER, HARRY_KEEP, GRAPESHOT = 86, 94, 98, 100
TIGRESS_ESCAPE_TOKEN = 75
NO_ALLIANCE = (-1, -1)


class Rng(Protocol):
    def u32(self) -> int: ...

    def below(self, m: int) -> int: ...


class SkullKing:
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

    def reset(self) -> None:
        """Start an episode; the draws are round (ROUND mode), first leader, deal, in this order."""
        number = 1
        if self.config["episode"] == "ROUND":
            number = self.config["start_round"] or self._draw_round()
        leader = self.chance.below(self.num_players)
        self._start_episode(number, leader, [0] * self.num_players)
        self._deal()
        self._play_forced()

    def load_round(
        self,
        number: int,
        hands: Sequence[Sequence[int]],
        first_leader: int,
        scores: Sequence[int] | None = None,
    ) -> None:
        """Start round `number` with given hands; the ghost's hand is in its play order."""
        if not 1 <= number <= len(self.config["rounds"]):
            raise ValueError(f"there is no round {number}")
        dealt = [card for hand in hands for card in hand]
        if len(set(dealt)) != len(dealt) or not set(dealt) <= set(self.deck):
            raise ValueError("hands must be disjoint and made of cards of the deck")
        size = self.cards_in_round(number)
        if len(hands) != self.seats or any(len(hand) != size for hand in hands):
            raise ValueError(f"round {number} needs {self.seats} hands of {size} cards")
        if first_leader not in range(self.num_players):
            raise ValueError(f"seat {first_leader} cannot lead the round")
        totals = [0] * self.num_players if scores is None else list(scores)
        if len(totals) != self.num_players:
            raise ValueError("scores must have one entry per player")
        self._start_episode(number, first_leader, totals)
        self._take_hands(hands)
        self._play_forced()

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

    @property
    def role(self) -> int:
        """0 manager, 1 worker (section 19)."""
        return 0 if self.phase in ("BID", "CANNON") else 1

    def player_bids(self) -> list[int]:
        return self.bid[: self.num_players]

    def bids_complete(self) -> bool:
        return -1 not in self.player_bids()

    def trick_cards(self) -> list[Play]:
        return [(card, as_pirate) for _, card, as_pirate in self.trick]

    def follow(self) -> int:
        return follow_suit(self.trick_cards(), self.config["follow_rule"])

    def observe(self, seat: int) -> list[float]:
        return observe(self, seat)

    def observation_size(self) -> int:
        return observation_size(self)

    def bot(self, name: str, rng: Rng) -> int:
        return choose(self, name, rng)

    def legal(self) -> list[int]:
        """Legal action indices in ascending order (section 15); empty only after the end."""
        if self.phase == "BID":
            return list(range(self.cards + 1))
        if self.phase == "CANNON":
            return [GRAPESHOT, GRAPESHOT + 1]
        if self.phase == "PLAY":
            hand = self.hands[self.seat]
            cards = legal_cards(self.trick_cards(), hand, self.config["follow_rule"])
            actions = self._card_actions(cards)
            if TIGRESS in cards:
                actions.append(TIGRESS_AS_ESCAPE)
            return actions
        if self.phase == "ROSIE":
            return [FIRST_ROSIE + relative for relative in range(self.num_players)]
        if self.phase == "DISCARD":
            return self._card_actions(self.hands[self.seat])
        if self.phase == "WAGER":
            return [FIRST_WAGER, FIRST_WAGER + 1, FIRST_WAGER + 2]
        if self.phase == "HARRY":
            bid = self.bid[self.seat]
            return [HARRY_KEEP + d for d in (-1, 0, 1) if 0 <= bid + d <= self.cards]
        return []

    def _card_actions(self, cards: list[int]) -> list[int]:
        if self.config["dedupe"]:
            cards = deduplicate(cards, bool(self.config["abilities"]))
        return [FIRST_CARD_ACTION + card for card in cards]

    def step(self, action: int) -> dict[str, list[float]]:
        """Apply the action and everything up to the next decision; reward parts per player."""
        if action not in self.legal():
            raise ValueError(f"action {action} is illegal in phase {self.phase}")
        self._clear_parts()
        self._apply(action)
        self._play_forced()
        return {name: [float(x) for x in values] for name, values in self._parts.items()}

    def _play_forced(self) -> None:
        if not self.config["skip_forced"]:
            return
        while not self.terminated and len(self.legal()) == 1:
            self._apply(self.legal()[0])

    def _clear_parts(self) -> None:
        self._parts = {name: [Fraction(0)] * self.num_players for name in rewards.PARTS}

    def _earn(self, part: str, player: int, amount: Fraction) -> None:
        if amount:
            self._parts[part][player] += amount

    def _earn_all(self, part: str, amounts: Sequence[Fraction]) -> None:
        for player, amount in enumerate(amounts):
            self._earn(part, player, amount)

    def _need(self, player: int) -> int:
        return self.bid[player] - self.won[player]

    def _apply(self, action: int) -> None:
        self._earn("flat_shaped", self.seat, rewards.exact("0.1"))
        if self.phase == "BID":
            self._place_bid(action)
        elif self.phase == "CANNON":
            self._choose_load(action - GRAPESHOT)
        elif self.phase == "PLAY":
            self._play_action(action)
        elif self.phase == "ROSIE":
            self._choose_leader(action - FIRST_ROSIE)
        elif self.phase == "DISCARD":
            self._discard(action - FIRST_CARD_ACTION)
        elif self.phase == "WAGER":
            self._place_wager(10 * (action - FIRST_WAGER))
        else:
            self._change_bid(action - HARRY_KEEP)

    def _place_bid(self, bid: int) -> None:
        hand = self.hands[self.seat]
        self._earn("flat_shaped", self.seat, rewards.flat_bid(bid, hand, self.cards))
        self.bid[self.seat] = bid
        self.seat = (self.seat + 1) % self.num_players
        if self.seat != self.leader:
            return
        if self.config["cannonball"]:
            self.phase = "CANNON"
        else:
            self._start_trick()

    def _choose_load(self, load: int) -> None:
        self.cannon[self.seat] = load
        self.seat = (self.seat + 1) % self.num_players
        if self.seat == self.leader:
            self._start_trick()

    def _start_trick(self) -> None:
        self.phase = "PLAY"
        self.order = self._trick_order()
        self._play_ghost_or_wait()

    def _trick_order(self) -> list[int]:
        if self.ghost is None:
            return [(self.leader + i) % self.num_players for i in range(self.num_players)]
        if self.leader == self.ghost:
            # Section 10: the human who played right after the ghost in the previous trick.
            second = self.order[self.order.index(self.ghost) + 1]
            return [self.ghost, second, 1 - second]
        return [self.leader, self.ghost, 1 - self.leader]

    def _play_ghost_or_wait(self) -> None:
        """Go on until a player has to choose a card."""
        while len(self.trick) < self.seats:
            seat = self.order[len(self.trick)]
            if seat != self.ghost:
                self.seat = seat
                return
            self._put(seat, self.ghost_order.pop(0), as_pirate=False)
        self._finish_trick()

    def _play_action(self, action: int) -> None:
        card = TIGRESS if action == TIGRESS_AS_ESCAPE else action - FIRST_CARD_ACTION
        as_pirate = card == TIGRESS and action != TIGRESS_AS_ESCAPE
        player = self.seat
        self._earn("flat_shaped", player, rewards.flat_card(self._need(player), card))
        suit = shows_void(self.trick_cards(), card, self.config["follow_rule"])
        if suit is not None:
            self.void[player][suit] = True
        self._put(player, card, as_pirate)
        self._play_ghost_or_wait()

    def _put(self, seat: int, card: int, as_pirate: bool) -> None:
        if not self.trick:
            self.history_leaders[self.tricks_done] = seat
        self.history_tokens[self.tricks_done][seat] = token(card, as_pirate)
        self.hands[seat].remove(card)
        self.played[seat].append(card)
        self.trick.append((seat, card, as_pirate))
        for known in self.priv:
            known.discard(card)

    def _finish_trick(self) -> None:
        cards = self.trick_cards()
        who = [seat for seat, _, _ in self.trick]
        winner, next_leader = resolve(cards, self.config["kraken_lead"])
        taker = None if winner is None else who[winner]
        self._reward_trick(cards, winner, taker)
        if winner is not None and taker is not None:
            self.won[taker] += 1
            self.bonus[taker] += capture_bonus(
                cards, winner, self.config["deck"], self.config["tigress_bonus"]
            )
            self._ally(taker)
        self.tricks_done += 1
        self.leader = who[next_leader]
        self.trick = []
        if winner is not None and taker is not None and taker != self.ghost:
            self._trigger(cards[winner][0], taker)
        if self.phase == "PLAY":
            self._continue_round()

    def _reward_trick(self, cards: list[Play], winner: int | None, taker: int | None) -> None:
        """Trick terms; called before the trick is counted, as `need` is the one before it."""
        left = self.cards - self.tricks_done - 1
        for player in range(self.num_players):
            need, won = self._need(player), player == taker
            self._earn("worker", player, rewards.worker_trick(need, won, left))
            self._earn("flat_shaped", player, rewards.flat_trick(need, won, left))
        if taker is not None and taker != self.ghost:
            counts = captures(cards, winner, self.config["tigress_bonus"])
            self._earn("flat_shaped", taker, rewards.flat_captures(counts))

    def _ally(self, taker: int) -> None:
        """Section 8; the ghost allies with nobody."""
        if is_whale_trick(self.trick_cards()) and not self.config["whale_loot"]:
            return
        for seat, card, _ in self.trick:
            if card in LOOTS and seat != taker and self.ghost not in (seat, taker):
                self.loot[LOOTS.index(card)] = (seat, taker)

    def _trigger(self, card: int, player: int) -> None:
        """Section 9: ability of the winning card; opens a phase when there is a choice."""
        if not self.config["abilities"] or card not in PIRATES:
            return
        last_trick = self.tricks_done == self.cards
        if card == HARRY:
            self.harry = player
        elif card == RASCAL and (not last_trick or self.config["rascal_last"]):
            self._open_phase("WAGER", player)
        elif last_trick:
            return
        elif card == ROSIE:
            self._open_phase("ROSIE", player)
        elif card == JADE:
            self.priv[player] |= set(self.stock)
        elif card == BENDT:
            self._draw_from_stock(player)

    def _open_phase(self, phase: str, player: int) -> None:
        self.phase = phase
        self.seat = player

    def _draw_from_stock(self, player: int) -> None:
        for _ in range(min(2, len(self.stock))):
            card = self.stock.pop(self.chance.below(len(self.stock)))
            self.hands[player] = sorted([*self.hands[player], card])
            self.priv[player].discard(card)
            self.pending += 1
        if self.pending:
            self._open_phase("DISCARD", player)

    def _choose_leader(self, relative: int) -> None:
        self._earn("ability_nudge", self.seat, rewards.nudge_rosie(relative == 0))
        self.leader = (self.seat + relative) % self.num_players
        self._continue_round()

    def _discard(self, card: int) -> None:
        player = self.seat
        nudge = rewards.nudge_discard(self._need(player), card)
        self._earn("ability_nudge", player, nudge)
        self.hands[player].remove(card)
        self.discards.append(card)
        self.priv[player].add(card)
        self.pending -= 1
        if self.pending == 0:
            self._continue_round()

    def _place_wager(self, wager: int) -> None:
        player, left = self.seat, self.cards - self.tricks_done
        nudge = rewards.nudge_wager(wager, self._need(player), left)
        self._earn("ability_nudge", player, nudge)
        self.wager[player] = wager
        self._continue_round()

    def _change_bid(self, change: int) -> None:
        player = self.seat
        nudge = rewards.nudge_harry(self.bid[player], change, self.won[player])
        self._earn("ability_nudge", player, nudge)
        self.bid[player] += change
        self._score_round()

    def _continue_round(self) -> None:
        if self.tricks_done < self.cards:
            self._start_trick()
        elif self.harry != -1:
            self._open_phase("HARRY", self.harry)
        else:
            self._score_round()

    def _score_round(self) -> None:
        players = range(self.num_players)
        exact = [self.bid[player] == self.won[player] for player in players]
        allied = [0] * self.num_players
        partner_exact = [0] * self.num_players
        for by, partner in self.loot:
            if (by, partner) == NO_ALLIANCE:
                continue
            for own, other in ((by, partner), (partner, by)):
                allied[own] += 1
                partner_exact[own] += exact[other]
        points = [
            round_points(
                self.bid[player],
                self.won[player],
                self.cards,
                self.bonus[player],
                20 * partner_exact[player],
                self.config["scoring"],
                bool(self.cannon[player]),
                self.wager[player],
            )
            for player in players
        ]
        for player in players:
            error = abs(self._need(player))
            paid_loot = partner_exact[player] if exact[player] else 0
            self.score[player] += points[player]
            self.sum_bid[player] += self.bid[player]
            self.sum_err[player] += error
            manager = rewards.manager_reward(self.bid[player], self.won[player], self.cards)
            self._earn("manager", player, manager)
            self._earn("worker", player, rewards.worker_round(error))
            self._earn("flat_shaped", player, rewards.flat_round(error, paid_loot))
        self._earn_all("score_delta", rewards.score_delta(points))
        self._earn_all("score_delta_zs", rewards.score_delta_zero_sum(points))
        self.last_round = {
            "bid": self.player_bids(),
            "won": self.won[: self.num_players],
            "cards": [self.cards] * self.num_players,
            "bonus": self.bonus[: self.num_players],
            "loot": allied,
            "loot_exact": partner_exact,
            "points": points,
        }
        if self.config["episode"] == "ROUND" or self.round == len(self.config["rounds"]):
            self._end_episode()
        else:
            self._start_round(self.round + 1)
            self._deal()

    def _end_episode(self) -> None:
        self.terminated = True
        self.phase = "END"
        self.seat = -1
        self._earn_all("rank", rewards.rank_rewards(self.score))
        self._earn_all("win", rewards.win_rewards(self.score))
        self._earn_all("score_final", rewards.score_final(self.score))
        self._earn_all("flat_shaped", rewards.flat_ranks(self.score))

    def state(self) -> dict[str, Any]:
        """Canonical plain form of everything that decides the future or is observed."""
        return {
            "phase": self.phase,
            "seat": self.seat,
            "leader": self.leader,
            "first": self.first,
            "round": self.round,
            "cards": self.cards,
            "tricks_done": self.tricks_done,
            "hands": [sorted(hand) for hand in self.hands],
            "played": [sorted(cards) for cards in self.played],
            "stock": sorted(self.stock),
            "priv": [sorted(cards) for cards in self.priv],
            "trick": [(seat, token(card, as_pirate)) for seat, card, as_pirate in self.trick],
            "bid": list(self.bid),
            "won": list(self.won),
            "sum_bid": list(self.sum_bid),
            "sum_err": list(self.sum_err),
            "bonus": list(self.bonus),
            "score": list(self.score),
            "void": [list(suits) for suits in self.void],
            "loot": [list(alliance) for alliance in self.loot],
            "ghost_order": list(self.ghost_order),
            "wager": list(self.wager),
            "cannon": list(self.cannon),
            "harry": self.harry,
            "pending": self.pending,
            "follow": self.follow(),
            "last_round": None if self.last_round is None else {**self.last_round},
        }


def token(card: int, as_pirate: bool) -> int:
    """1 + id, or 75 for the Tigress as escape (section 16.4)."""
    return TIGRESS_ESCAPE_TOKEN if card == TIGRESS and not as_pirate else 1 + card
