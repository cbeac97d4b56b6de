"""The result of training: a policy, its run, and its final evaluation."""

from __future__ import annotations

import copy
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
from sparring.search.budget import Budget
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
"""Seed of the final evaluation; evaluations during training use others."""

FINAL_LIMIT = 10.0
"""Factor of eval.timeout_s for the final evaluation of a custom environment."""


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
        """Create the agent of a finished run.

        ended: done, early, stopped, diverged (a member of a population), or the signal.
        unsaved: the last checkpoint could not be written to the run; the policy is from memory.
        elsewhere: where the checkpoint was written instead, if anywhere.
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
        """Decisions that the policy was trained on."""
        return int(self.policy.meta.get("decisions", 0))

    @property
    def minutes(self) -> float:
        """Minutes that the policy was trained for."""
        return float(self.policy.meta.get("seconds", 0.0)) / 60

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """Results by opponent of the final or else the last evaluation; {} without one."""
        with suppress(OSError, ValueError):
            content = parse_json(read_regular(self.run / RESULTS))
            A_MEASUREMENT(content, "")
            results: dict[str, dict[str, Any]] = content["results"]
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
            game works too and returns what `State.apply` takes; a list of positions, an array.
        mask: left out, every action is legal. deterministic, greedy: take the most probable
            action; if either is false, sample one. A policy with memory needs `predict`.
        """
        how: dict[str, Any] = {"deterministic": deterministic and greedy, "step": self._next()}
        if is_state(obs):
            return self.policy.act(obs, None if mask is None else np.asarray(mask), **how)
        rules = self.policy.rules
        rows, _ = rows_of(rules, obs, rules.obs_bytes + self.policy.memory_bytes)
        return self.policy.act(rows, to_masks(rules, mask, len(rows)), **how)

    act_batch = act
    """Alias: `act` takes batches."""

    def predict(
        self,
        observation: Any,
        state: npt.NDArray[np.uint8] | None = None,
        episode_start: npt.ArrayLike | None = None,
        deterministic: bool = False,
        action_masks: npt.ArrayLike | None = None,
    ) -> tuple[Any, npt.NDArray[np.uint8] | None]:
        """Return an action for the environment and the next `state`, like SB3's models.

        observation: one or a batch: an array, or a dictionary of arrays, whose `action_mask` is
            used unless action_masks [actions] or [B, actions] are given.
        state, episode_start: for a network with memory: the state that the last call returned, and
            which episodes begin [B]. Without memory the state is None.
        deterministic: take the most probable action instead of sampling one.
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
        """Return the number of this call, so that each call samples differently."""
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
        """Play games against each opponent, each deal from every seat; default: against all bots.

        games: 0 for 4,096, or 128 in a custom environment, which needs a factory.
        timeout_s: for a custom environment: seconds after which no more games start.
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

    def searching(self, budget: Budget | str | int) -> Agent:
        """Return this agent with a tree search at every decision, see `Policy.searching`.

        `act` then takes states alone; `evaluate` and matches search as well.
        """
        agent = copy.copy(self)
        agent.policy = self.policy.searching(budget)
        return agent

    def save(self, path: str | Path) -> Path:
        """Write the policy to a folder, which `sparring.load` reads."""
        return save_policy(self.policy, Path(path))


class UnmeasuredError(SparringError):
    """The final evaluation of a run failed; the run itself is complete."""

    def __init__(self, text: str, results: dict[str, MatchResult]) -> None:
        super().__init__(text)
        self.results = results


def measure(
    agent: Agent,
    settings: EvaluationConfig,
    on_match: Callable[[str], None] | None = None,
    *,
    threads: int = 1,
) -> dict[str, MatchResult]:
    """Run the final evaluation, one match after the other, and write its results to the run.

    The run is locked meanwhile. A failure is written too, and raised as `UnmeasuredError`.
    on_match: called with the name of every opponent before its match.
    """
    against = settings.against or default_opponents(agent.policy.rules)
    matches: list[tuple[str, ...]] = [(name,) for name in against] or [()]
    results: dict[str, MatchResult] = {}
    rules = agent.policy.rules
    has_factory = isinstance(rules, CustomRules) and rules.factory
    play = evaluate_in_subprocess if has_factory else Agent.evaluate
    with Run.open(agent.run).lock():
        write_results(agent, results, reason="it was interrupted")  # if this process dies
        for number, match in enumerate(matches):
            if on_match:
                on_match(*match or (ALONE,))
            try:
                results |= play(
                    agent,
                    *match,
                    games=settings.final_games,
                    seed=FINAL_SEED + number,
                    threads=threads,
                    timeout_s=FINAL_LIMIT * settings.timeout_s,
                )
            except SparringError as error:
                write_results(agent, results, reason=str(error))
                path = display_path(agent.run)
                raise UnmeasuredError(f"{path} was not measured: {error}", results) from error
        write_results(agent, results)
    return results


def measure_in_process(agent: Agent, settings: EvaluationConfig, pool: CustomPool) -> None:
    """Evaluate an agent in environment objects, which other processes cannot create.

    Episodes are played in this process one after the other. A failure is only a warning.
    """
    rules = agent.policy.rules
    others = [RANDOM] * (rules.seats - 1)
    terms = EpisodeSettings(settings.games, FINAL_SEED, timeout_s=settings.timeout_s)
    try:
        results = play_custom_match(rules, [agent.policy, *others], terms, pool=pool)
    except SparringError as error:
        write_results(agent, {}, reason=str(error))
        warn(f"{display_path(agent.run)} was not measured: {error}")
        return
    write_results(agent, {(others or [ALONE])[0]: results})


def evaluate_in_subprocess(
    agent: Agent, *against: str, games: int, seed: int, threads: int, timeout_s: float
) -> dict[str, MatchResult]:
    """Like `Agent.evaluate`, in a process that can be killed if an environment hangs."""
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


def write_results(agent: Agent, results: dict[str, MatchResult], reason: str = "") -> None:
    """Write results.json; warn if the disk is full. reason: why further matches are missing."""
    meta = agent.policy.meta
    summaries = {name: result.summary() for name, result in results.items()}
    strength = strength_in(summaries, best_opponent(agent.policy.rules))
    content = {
        "policy": agent.policy.name,
        "checkpoint": meta.get("update"),
        "decisions": agent.decisions,
        "minutes": agent.minutes,
        "ended": agent.ended,
        "strength": strength and strength.plain(),
        "results": summaries,
        "progress": score_rates(agent),
        **({"not_measured": reason} if reason else {}),
    }
    try:
        Run.open(agent.run).write_json(RESULTS, content)
    except OSError as error:
        warn(f"{agent.run / RESULTS} was not written: {error.strerror}")


def score_rates(agent: Agent) -> dict[str, float]:
    """Return the score gained per hour and per million decisions between evaluations.

    Empty for zero-sum games, whose scores depend on the opponent, and for short runs.
    """
    curves: dict[str, Any] = read(agent.run, "eval/score", DECISIONS)
    if "eval/score" not in curves or DECISIONS not in curves or agent.policy.rules.zero_sum:
        return {}
    updates, seconds, score = curves["eval/score"]
    counted, _, decisions = curves[DECISIONS]
    made = np.interp(updates, counted, decisions)
    results = {
        "score gained per hour": gained_per(seconds / 3600, score, MIN_HOURS),
        "score gained per million decisions": gained_per(made / 1e6, score, MIN_MILLIONS),
    }
    return {name: rate for name, rate in results.items() if rate is not None}
