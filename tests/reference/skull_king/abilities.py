"""What the pirates can do after they won a trick (section 9)."""

from __future__ import annotations

from reference.skull_king import rewards
from reference.skull_king.rules import BENDT, HARRY, JADE, PIRATES, RASCAL, ROSIE
from reference.skull_king.scoring import Scoring


class Abilities(Scoring):
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
        """Go on to the next trick or to the score; the game knows how."""
        raise NotImplementedError
