"""One game in an environment of somebody's own, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.commands.shared.players import player_called
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.players import Seated, random_player
from sparring.nets.remembering import Remembering
from sparring.pools.foreign.again import (
    check_same,
    factory_of,
    made_again,
    modes_of,
    tables_of,
)
from sparring.pools.foreign.faults import told


class OwnGame:
    """An environment, who is to decide in it, and what everybody was paid."""

    def __init__(self, name: str, rules: Rules, mode: str = "") -> None:
        """Make the environment that a policy was trained in; name: what the policy is called."""
        word = factory_of(rules)
        pool = made_again(word, 1, mode)
        if not tables_of(pool):
            raise ConfigError(
                f"{word} makes a vector; a single game needs a factory of a single environment"
            )
        check_same(name, rules, pool.rules)
        self.word, self.rules, self.table = word, pool.rules, tables_of(pool)[0]
        self.env = self.table.env
        self.score = np.zeros(pool.rules.seats)
        self.steps = self.seed = 0
        self._minds: dict[tuple[int, int], Remembering] = {}
        """What players remember of seats, by player and seat."""

    @property
    def modes(self) -> list[str]:
        """How the environment says that it can be rendered."""
        return modes_of(self.env)

    @property
    def over(self) -> bool:
        """Whether nobody is left."""
        return self.table.over

    @property
    def end(self) -> str:
        """How it ended."""
        return "truncated" if self.table.truncated.any() else "terminated"

    def start(self, seed: int) -> None:
        """Begin anew."""
        with told(f"{self.rules.name} failed in its reset"):
            self.table.start(seed)
            self.table.check()
        self.score[:] = 0
        self.steps, self.seed = 0, seed
        self._minds.clear()

    def asked(self) -> list[tuple[int, int]]:
        """Rows and seats that are to decide now."""
        return [(row, seat) for row, seat in enumerate(self.table.deciding()) if seat >= 0]

    def legal(self, seat: int) -> list[int]:
        """Actions that a seat may choose from, counted from 0."""
        return [int(action) for action in np.flatnonzero(self.table.mask[seat])]

    def answer(self, player: Seated, seat: int, *, greedy: bool = True) -> Any:
        """What a player does in this seat, once a step; it remembers that."""
        mind = self._minds.setdefault((id(player), seat), Remembering(player))
        obs = self.rules.pack(self.table.numbers[seat][None])
        mask = self.table.mask[seat][None]
        how: dict[str, Any] = {"greedy": greedy, "seed": self.seed}
        return mind.decide(seat, obs, mask, rollout=seat, step=self.steps, **how)

    def play(self, actions: Sequence[tuple[int, Any]]) -> None:
        """Answer rows, each with its action."""
        rules = self.rules
        shape = (rules.rows, rules.box) if rules.box else (rules.rows,)
        own: npt.NDArray[Any] = np.zeros(shape, np.float32 if rules.box else np.int64)
        for row, action in actions:
            own[row] = action
        self.table.reward.fill(0)
        with told(f"{rules.name} failed in step {self.steps + 1}"):
            self.table.play(rules.env_actions(own))
            self.table.check()
        self.score += self.table.reward
        self.steps += 1

    def render(self) -> Any:
        """What the environment shows of itself; what it raises is told in one line."""
        with told(f"{self.rules.name}: render() failed"):
            return self.env.render()


def own_player(word: str, rules: Rules) -> Seated:
    """Whoever a word means: `random`, or the agent of a run or checkpoint."""
    player = player_called(word, rules)
    return random_player(rules) if isinstance(player, str) else player


def own_players(words: Sequence[str], rules: Rules, seats: int, what: str) -> list[Seated]:
    """One player for each of so many seats; a single one sits in all of them."""
    known = {word: own_player(word, rules) for word in dict.fromkeys(words)}
    players = [known[word] for word in words]
    if len(players) == 1:
        players *= seats
    if len(players) != seats:
        raise ConfigError(
            f"{what} names {len(players)} players for {seats} seats; give 1 or {seats}"
        )
    return players
