"""The end of a round and of an episode of Skull King: points, loot, rewards."""

from __future__ import annotations

from reference.skull_king import rewards
from reference.skull_king.rules import round_points
from reference.skull_king.table import NO_ALLIANCE, Table


class Scoring(Table):
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
