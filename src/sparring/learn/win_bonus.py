"""A win that is paid backwards, as the original hockey project does (laser_hockey.md section 19.1).

Once a seat has won, its decisions in that game are paid more: the last but one `win_bonus`, the one
before it `win_bonus * win_discount`, and so on to the first. The last one, which the rules have
paid, is left alone. Decisions lie in the replay already, perhaps since rollouts, and are changed
there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sparring.learn.replay import Replay
from sparring.learn.rollout import Episodes, Rollout
from sparring.learn.transitions import TERMINATED, TO_NEXT, Transitions
from sparring.pools.lineups import LEARNER

Serials = npt.NDArray[np.int64]
Worth = Callable[[int], tuple[float, float]]
"""Bonus and discount of a game, by how many were finished before it."""


class WinBonus:
    """Knows which decision came before another, and pays a chain when its game is won."""

    def __init__(self, replay: Replay, since: int) -> None:
        """Look after decisions from a serial number on; older ones are never changed."""
        self.replay, self.since = replay, since
        self.before = np.full(replay.ring.capacity, -1, np.int64)
        """By place: the serial number of the same seat's decision before it, -1 without one."""
        self._link_stored()

    def _link_stored(self) -> None:
        ring, replay = self.replay.ring, self.replay
        stored = np.arange(max(replay.first, self.since), replay.head)
        stored = stored[ring["end"][self._places(stored)] == TO_NEXT]
        self.before[ring["next"][self._places(stored)]] = stored

    def _places(self, serials: Serials) -> Serials:
        return serials % self.replay.ring.capacity

    def serials_of(self, rollout: Rollout, transitions: Transitions) -> Serials:
        """Return the serial numbers that a rollout will have, by place; ask before it is pushed."""
        found = np.full(transitions.places, -1, np.int64)
        found[: transitions.carried] = self.replay.open
        mine = (rollout.policy.reshape(-1) == LEARNER) & (rollout.seat.reshape(-1) >= 0)
        found[transitions.carried :][mine] = self.replay.head + np.arange(mine.sum())
        return found

    def pay(
        self,
        serials: Serials,
        rollout: Rollout,
        transitions: Transitions,
        ended: Sequence[Episodes],
        worth: Worth,
    ) -> None:
        """Link a rollout that was pushed, and pay the games that it has decided.

        serials: what `serials_of` said. ended: the rollout's finished games in order.
        """
        new = serials[transitions.carried :]
        self.before[self._places(new[new >= 0])] = -1
        goes_on = np.flatnonzero((transitions.end == TO_NEXT) & (serials >= self.since))
        follows = serials[transitions.next[goes_on]]
        self.before[self._places(follows)] = serials[goes_on]
        games = _by_game(ended)
        for place in np.flatnonzero(transitions.end == TERMINATED):
            step, game, seat = _where(int(place), rollout, transitions)
            over = rollout.terminated[:, game] | rollout.truncated[:, game]
            score, number = games[game][int(over[: max(step, 0)].sum())]
            others = np.delete(score, seat)
            if len(others) and score[seat] > others.max():
                self._pay_chain(int(serials[place]), *worth(number))

    def _pay_chain(self, serial: int, bonus: float, discount: float) -> None:
        paid, capacity = self.replay.ring["paid"], self.replay.ring.capacity
        while (serial := int(self.before[serial % capacity])) >= self.replay.first:
            paid[serial % capacity] += bonus
            bonus *= discount

    def unsettled(self) -> Serials:
        """Return the decisions of running games: what they are paid may still change."""
        still = [self.replay.open[self.replay.open >= 0]]
        while len(still[-1]):
            earlier = self.before[self._places(still[-1])]
            still.append(earlier[earlier >= self.replay.first])
        return np.concatenate(still)


def _by_game(ended: Sequence[Episodes]) -> dict[int, list[tuple[npt.NDArray[np.float32], int]]]:
    """Final scores of every game in order, each with how many games had finished before it."""
    found = defaultdict(list)
    number = 0
    for episodes in ended:
        for game, score in zip(episodes.game.tolist(), episodes.score, strict=True):
            found[game].append((score, number))
            number += 1
    return found


def _where(place: int, rollout: Rollout, transitions: Transitions) -> tuple[int, int, int]:
    """Step, game and seat of a decision; the step of one that was carried is -1."""
    rules = transitions.rules
    if place < transitions.carried:
        chain = place // transitions.chains
        return -1, chain // rules.seats, chain % rules.seats
    step, row = divmod(place - transitions.carried, transitions.games * rules.rows)
    return step, row // rules.rows, int(rollout.seat[step, row])
