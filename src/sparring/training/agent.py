"""What comes out of training: a policy, the run it came from, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.league.arena import evaluate, usual_games, usual_opponents
from sparring.league.results import MatchResult
from sparring.nets.asked import masks_of, predict, rows_of
from sparring.nets.policy import Policy, is_position
from sparring.store.files import read_regular
from sparring.store.plain import anything, named, parse_json, table
from sparring.store.policies import save_policy
from sparring.training.records.run import RESULTS
from sparring.training.records.strength import last_evaluation

A_MEASUREMENT = table({"results": named(named(anything))})


class Agent:
    """A trained policy and the run it came from."""

    def __init__(
        self,
        policy: Policy,
        run: Path,
        ended: str,
        *,
        unsaved: bool = False,
        elsewhere: Path | None = None,
    ) -> None:
        """Take over what a run ended with.

        ended: done, early, stopped, diverged (a member of a population), or the signal.
        unsaved: the run's disk did not take the last checkpoint; the policy is from memory.
        elsewhere: where that lies instead, if another disk took it.
        """
        self.policy, self.run, self.ended = policy, run, ended
        self.unsaved, self.elsewhere = unsaved, elsewhere
        self._calls = 0

    def __repr__(self) -> str:
        return (
            f"Agent({self.policy.rules.name}: {self.policy.name}, {self.decisions:,} decisions, "
            f"{self.minutes:.1f} minutes, {self.ended})"
        )

    @property
    def decisions(self) -> int:
        """Decisions that the policy was trained with."""
        return int(self.policy.meta.get("decisions", 0))

    @property
    def minutes(self) -> float:
        """Minutes of training behind the policy."""
        return float(self.policy.meta.get("seconds", 0.0)) / 60

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The last measurement by opponent, or the last evaluation; {} before there is one."""
        with suppress(OSError, ValueError):
            found = parse_json(read_regular(self.run / RESULTS))
            A_MEASUREMENT(found, "")
            results: dict[str, dict[str, Any]] = found["results"]
            return results
        return last_evaluation(self.run)

    def act(
        self,
        obs: Any,
        mask: npt.ArrayLike | None = None,
        *,
        deterministic: bool = True,
        greedy: bool = True,
    ) -> Any:
        """Return an action for every row of obs [B, ...] and mask [B, actions].

        obs: bytes as pools write them, or numbers as `rules.pack` takes them. A position of the
            game is fine too: what `State.apply` takes comes back; of a list of positions an array.
        mask: left out, every action is legal. deterministic, or greedy: the most probable action;
        if either is false, one that is drawn. One with memory is asked by `predict`.
        """
        how: dict[str, Any] = {"deterministic": deterministic and greedy, "step": self._next()}
        if is_position(obs):
            return self.policy.act(obs, None if mask is None else np.asarray(mask), **how)
        rules = self.policy.rules
        rows, _ = rows_of(rules, obs, rules.obs_bytes + self.policy.memory_bytes)
        return self.policy.act(rows, masks_of(rules, mask, len(rows)), **how)

    act_batch = act
    """The same under another name: `act` takes batches."""

    def predict(
        self,
        observation: Any,
        state: npt.NDArray[np.uint8] | None = None,
        episode_start: npt.ArrayLike | None = None,
        deterministic: bool = False,
        action_masks: npt.ArrayLike | None = None,
    ) -> tuple[Any, npt.NDArray[np.uint8] | None]:
        """Return what to step the environment with, and the next `state`, as SB3's models do.

        observation: of an environment, or a batch of them: numbers, or a dictionary of them, whose
            `action_mask` counts unless action_masks [actions] or [B, actions] are given.
        state, episode_start: of a network with memory: what the call before returned, and where an
            episode begins [B]. Without memory the state is None.
        deterministic: the most probable action, instead of one that is drawn.
        """
        return predict(
            self.policy,
            observation,
            state,
            episode_start,
            deterministic=deterministic,
            action_masks=action_masks,
            step=self._next(),
        )

    def _next(self) -> int:
        """Number the calls: each draws for itself."""
        self._calls += 1
        return self._calls - 1

    def evaluate(
        self,
        *against: str | Policy,
        games: int = 0,
        seed: int = 0,
        threads: int = 1,
        limit_s: float = math.inf,
    ) -> dict[str, MatchResult]:
        """Play seat-fair games against each opponent; without one, against all bots, or alone.

        games: 0 for 4,096, or 128 in an environment of your own, which has to have a factory.
        limit_s: there, seconds after which no more games begin.
        """
        rules = self.policy.rules
        opponents: Sequence[str | Policy] = against or usual_opponents(rules)
        return evaluate(
            self.policy,
            opponents,
            games=games or usual_games(rules),
            seed=seed,
            threads=threads,
            limit_s=limit_s,
        )

    def save(self, path: str | Path) -> Path:
        """Write the policy to a folder of its own; `sparring.load` reads it."""
        return save_policy(self.policy, Path(path))
