"""Plain reference of the Skull King environment (sections 14 and 15), written to be read.

The game keeps lists of card ids and recomputes whatever it needs. Rewards are summed exactly and
rounded to floats once per step. The parts are `table`, `scoring` and `abilities`; bids and tricks
are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reference.philox import Rng
from reference.skull_king import rewards
from reference.skull_king.abilities import Abilities
from reference.skull_king.bots import choose
from reference.skull_king.observation import observation_size, observe
from reference.skull_king.rules import (
    FIRST_CARD_ACTION,
    FIRST_ROSIE,
    FIRST_WAGER,
    GRAPESHOT,
    HARRY_KEEP,
    LOOTS,
    TIGRESS,
    TIGRESS_AS_ESCAPE,
    Play,
    capture_bonus,
    captures,
    deduplicate,
    is_whale_trick,
    legal_cards,
    resolve,
    shows_void,
)

TIGRESS_ESCAPE_TOKEN = 75


class SkullKing(Abilities):
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

    @property
    def role(self) -> int:
        """0 manager, 1 worker (section 19)."""
        return 0 if self.phase in ("BID", "CANNON") else 1

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

    def _continue_round(self) -> None:
        if self.tricks_done < self.cards:
            self._start_trick()
        elif self.harry != -1:
            self._open_phase("HARRY", self.harry)
        else:
            self._score_round()

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
