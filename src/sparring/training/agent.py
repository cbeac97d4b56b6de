"""What comes out of training: a policy, the run it came from, and what it is worth in the end."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.config import EvaluationConfig
from sparring.errors import SparringError, warn
from sparring.league.arena import (
    ALONE,
    default_games,
    default_opponents,
    evaluate,
    play_custom_match,
)
from sparring.league.custom_env import EpisodeSettings
from sparring.league.results import MatchResult, load_result
from sparring.nets.policy import Policy, is_state
from sparring.nets.predict import predict, rows_of, to_masks
from sparring.pools.custom.base import CustomPool
from sparring.pools.custom.cache import RANDOM
from sparring.pools.custom.rules import CustomRules
from sparring.store.files import read_regular
from sparring.store.folders import display_path
from sparring.store.policies import save_policy
from sparring.store.schema import any_value, mapping_of, object_with, parse_json
from sparring.training.evaluate import EvalWorker
from sparring.training.records.metrics import read
from sparring.training.records.overview import DECISIONS
from sparring.training.records.run import RESULTS, Run
from sparring.training.records.strength import (
    MIN_HOURS,
    MIN_MILLIONS,
    best_opponent,
    gained_per,
    last_evaluation,
    strength_in,
)

A_MEASUREMENT = object_with({"results": mapping_of(mapping_of(any_value))})
FINAL_SEED = 77_000_000
"""The deals of final measurements; no evaluation beside training has them."""

FINAL_LIMIT = 10.0
"""How much longer than an evaluation beside training the final one may take, where it has to be
bounded."""


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
        if is_state(obs):
            return self.policy.act(obs, None if mask is None else np.asarray(mask), **how)
        rules = self.policy.rules
        rows, _ = rows_of(rules, obs, rules.obs_bytes + self.policy.memory_bytes)
        return self.policy.act(rows, to_masks(rules, mask, len(rows)), **how)

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
        timeout_s: float = math.inf,
    ) -> dict[str, MatchResult]:
        """Play seat-fair games against each opponent; without one, against all bots, or alone.

        games: 0 for 4,096, or 128 in an environment of your own, which has to have a factory.
        timeout_s: there, seconds after which no more games begin.
        """
        rules = self.policy.rules
        opponents: Sequence[str | Policy] = against or default_opponents(rules)
        return evaluate(
            self.policy,
            opponents,
            games=games or default_games(rules),
            seed=seed,
            threads=threads,
            timeout_s=timeout_s,
        )

    def save(self, path: str | Path) -> Path:
        """Write the policy to a folder of its own; `sparring.load` reads it."""
        return save_policy(self.policy, Path(path))


class UnmeasuredError(SparringError):
    """A run that could not be measured to the end; it is whole all the same."""

    def __init__(self, text: str, results: dict[str, MatchResult]) -> None:
        super().__init__(text)
        self.results = results


def measure(
    agent: Agent,
    wanted: EvaluationConfig,
    told: Callable[[str], None] | None = None,
    *,
    threads: int = 1,
) -> dict[str, MatchResult]:
    """Play the final games, one match after the other, and keep what they say in the run.

    Nobody else trains, measures or removes it meanwhile.
    What keeps them from being played is kept too, and raised as `UnmeasuredError`.
    told: called with the name of every opponent before its match.
    """
    against = wanted.against or default_opponents(agent.policy.rules)
    matches: list[tuple[str, ...]] = [(name,) for name in against] or [()]
    results: dict[str, MatchResult] = {}
    rules = agent.policy.rules
    played = beside if isinstance(rules, CustomRules) and rules.factory else Agent.evaluate
    with Run.open(agent.run).held():
        keep(agent, results, why_not="it was interrupted")  # what is true if this process dies here
        for number, match in enumerate(matches):
            if told:
                told(*match or (ALONE,))
            try:
                results |= played(
                    agent,
                    *match,
                    games=wanted.final_games,
                    seed=FINAL_SEED + number,
                    threads=threads,
                    timeout_s=FINAL_LIMIT * wanted.timeout_s,
                )
            except SparringError as wrong:
                keep(agent, results, why_not=str(wrong))
                where = display_path(agent.run)
                raise UnmeasuredError(f"{where} was not measured: {wrong}", results) from wrong
        keep(agent, results)
    return results


def measure_in_process(agent: Agent, wanted: EvaluationConfig, pool: CustomPool) -> None:
    """Measure an agent in environments that a program brought along, which nobody else can make.

    They are played in this process, one episode after the other. What keeps them from it is warned
    of: the run is whole all the same.
    """
    rules = agent.policy.rules
    others = [RANDOM] * (rules.seats - 1)
    terms = EpisodeSettings(wanted.games, FINAL_SEED, timeout_s=wanted.timeout_s)
    try:
        found = play_custom_match(rules, [agent.policy, *others], terms, pool=pool)
    except SparringError as wrong:
        keep(agent, {}, why_not=str(wrong))
        warn(f"{display_path(agent.run)} was not measured: {wrong}")
        return
    keep(agent, {(others or [ALONE])[0]: found})


def beside(
    agent: Agent, *against: str, games: int, seed: int, threads: int, timeout_s: float
) -> dict[str, MatchResult]:
    """Do what `Agent.evaluate` does in a process that can be ended, should an environment hang."""
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "id": FINAL_SEED,
            "checkpoint": str(agent.save(Path(folder) / "policy")),
            "name": agent.policy.name,
            "opponents": list(against),
            **{"games": games, "seed": seed, "timeout_s": timeout_s, "keep": folder},
            "paths": [place for place in sys.path if place],
        }
        with EvalWorker(nice=0, idle=False, threads=threads) as worker:
            worker.submit(request)
            (answer,) = worker.drain(math.inf)
        if "error" in answer:
            raise SparringError(answer["error"])
        rules = agent.policy.rules
        return {
            name: load_result(Path(folder) / f"{number}.npz", rules)
            for number, name in enumerate(answer["results"])
        }


def keep(agent: Agent, results: dict[str, MatchResult], why_not: str = "") -> None:
    """Write results.json; a full disk is said. why_not: what kept further matches away."""
    meta = agent.policy.meta
    summaries = {name: result.summary() for name, result in results.items()}
    strength = strength_in(summaries, best_opponent(agent.policy.rules))
    found = {
        "policy": agent.policy.name,
        "checkpoint": meta.get("update"),
        "decisions": agent.decisions,
        "minutes": agent.minutes,
        "ended": agent.ended,
        "strength": strength and strength.plain(),
        "results": summaries,
        "progress": rates(agent),
        **({"not_measured": why_not} if why_not else {}),
    }
    try:
        Run.open(agent.run).write_json(RESULTS, found)
    except OSError as wrong:
        warn(f"{agent.run / RESULTS} was not written: {wrong.strerror}")


def rates(agent: Agent) -> dict[str, float]:
    """Score gained per hour and per million decisions, from the first evaluation to the last.

    Nothing of a zero-sum game, where scores only say who was met, nor of evaluations that are
    close to each other.
    """
    curves: dict[str, Any] = read(agent.run, "eval/score", DECISIONS)
    if "eval/score" not in curves or DECISIONS not in curves or agent.policy.rules.zero_sum:
        return {}
    updates, seconds, score = curves["eval/score"]
    counted, _, decisions = curves[DECISIONS]
    made = np.interp(updates, counted, decisions)
    found = {
        "score gained per hour": gained_per(seconds / 3600, score, MIN_HOURS),
        "score gained per million decisions": gained_per(made / 1e6, score, MIN_MILLIONS),
    }
    return {name: rate for name, rate in found.items() if rate is not None}
