"""Rules in Python: the interpreter plays first, then compiled code has to do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sparring.games.rules import Rules
from sparring.games.state import new_state
from sparring.pools.lineups import LEARNER, Lineup
from sparring.pools.native import Pool
from sparring.proof.random_games import random_game, require
from sparring.pygames.registry import (
    SUFFIX,
    is_python_game,
    is_registered,
    register,
    runs_compiled,
)

POOL_GAMES, POOL_STEPS = 16, 100
"""Size of the pools that the interpreter and compiled code play."""
LONGEST = 5_000
"""Decisions after which the interpreter gives a game up."""
PROPERTIES = ("interpreter", "compiler", "interpreter equals compiled")


def has_python_rules(name: str) -> bool:
    """Whether a name is that of a game with rules in Python."""
    return is_registered(name) or is_python_game(name)


class PythonRules:
    """The properties of rules in Python, in the order in which they are tested."""

    def __init__(
        self, game: str | Rules, config: Mapping[str, Any] | None, games: int, seed: int
    ) -> None:
        self.word = (game if isinstance(game, str) else game.name).removesuffix(SUFFIX)
        self.config = dict((config or {}) if isinstance(game, str) else game.config)
        self.games, self.seed = games, seed

    @property
    def properties(self) -> dict[str, Callable[[], str]]:
        """Tests by name."""
        tests = (self.check_interpreted, self.check_compiled, self.check_equal)
        return dict(zip(PROPERTIES, tests, strict=True))

    def interpreted(self) -> Rules:
        return Rules(register(self.word, interpreted=True), self.config)

    def check_interpreted(self) -> str:
        """Games played by the interpreter: nothing fails, every state is in its ranges."""
        rules = self.interpreted()
        longest = positions = 0
        for number in range(self.games):
            steps = random_game(rules, self.seed + number, LONGEST)
            longest = max(longest, len(steps) - 1)
            for at, (state, _) in enumerate(steps):
                where = f"seed {self.seed + number}, decision {at}"
                wrong = state.native.check()
                require(wrong == "", f"{where}: {wrong}")
                positions += 1
                for seat in range(rules.seats):
                    state.observe_bytes(seat)
                    if at % 5 == 0:
                        state.text(seat)
            again = new_state(rules, seed=self.seed + number)
            for _, action in steps[:-1]:
                again.apply(action)
            same = again.native.serialize() == steps[-1][0].native.serialize()
            require(same, f"seed {self.seed + number}: the same actions lead elsewhere")
        for bot in rules.bots[1:]:
            state = new_state(rules, seed=self.seed)
            while not state.over:
                state.apply(state.ask(bot))
        return f"{self.games} games, longest {longest} decisions, {positions} positions"

    def check_compiled(self) -> str:
        """The rules compile."""
        rules = Rules(self.word, self.config)
        if not runs_compiled(rules.name):
            return "not compiled: the interpreter plays this game here"
        return f"{rules.native.game_bytes} bytes a state"

    def check_equal(self) -> str:
        """All bytes of interpreted and compiled games are equal."""
        both = (self.interpreted(), Rules(self.word, self.config))
        if not runs_compiled(both[1].name):
            return "not compiled"
        decisions = compare(*both, games=POOL_GAMES, steps=POOL_STEPS, seed=self.seed)
        return f"{decisions:,} decisions, {len(both[0].bots)} bots"


def compare(one: Rules, two: Rules, *, games: int, steps: int, seed: int) -> int:
    """Play the same games by two rules; return the decisions that were equal, byte for byte."""
    lineups = [Lineup((LEARNER,) * one.seats)]
    for bot in one.bots if one.seats > 1 else ():
        lineups.append(Lineup((LEARNER, *[bot] * (one.seats - 1)), shuffle=True))
    pools = [Pool(rules, games, seed=seed, threads=1, lineups=lineups) for rules in (one, two)]
    batches = [pool.reset() for pool in pools]
    decisions = 0
    for step in range(steps):
        require(pools[0].digest() == pools[1].digest(), f"step {step}: rows or rewards differ")
        if one.rules_version == two.rules_version:
            same = np.array_equal(pools[0].tables, pools[1].tables)
            require(same, f"step {step}: states differ")
        actions = [np.array(pool.sample_actions()) for pool in pools]
        batches = [pool.step(action) for pool, action in zip(pools, actions, strict=True)]
        decisions += int((batches[0].policy >= 0).sum())
        for name in ("final_obs", "final_mask", "final_score", "final_length", "final_reason"):
            first, second = (getattr(batch, name, None) for batch in batches)
            require(np.array_equal(first, second), f"step {step}: {name} differs")  # type: ignore[arg-type]
    require(pools[0].counts().tolist() == pools[1].counts().tolist(), "counters differ")
    return decisions
