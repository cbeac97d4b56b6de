"""What a finished run is worth: measured once more against everybody, and written down."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sparring.config import EvaluationConfig
from sparring.errors import SparringError, warn
from sparring.league.arena import ALONE, play_own_match, usual_opponents
from sparring.league.own import Terms
from sparring.league.results import MatchResult, load_result
from sparring.pools.foreign.again import RANDOM
from sparring.pools.foreign.base import ForeignPool
from sparring.pools.foreign.rules import ForeignRules
from sparring.store.folders import shown_path
from sparring.training.agent import Agent
from sparring.training.evaluate import EvalWorker
from sparring.training.records.metrics import read
from sparring.training.records.overview import DECISIONS
from sparring.training.records.run import RESULTS, Run
from sparring.training.records.strength import (
    LEAST_HOURS,
    LEAST_MILLIONS,
    best_opponent,
    gained_per,
    strength_in,
)

FINAL_SEED = 77_000_000
"""The deals of final measurements; no evaluation beside training has them."""

FINAL_LIMIT = 10.0
"""How much longer than an evaluation beside training the final one may take, where it has to be
bounded."""


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
    against = wanted.against or usual_opponents(agent.policy.rules)
    matches: list[tuple[str, ...]] = [(name,) for name in against] or [()]
    results: dict[str, MatchResult] = {}
    rules = agent.policy.rules
    played = beside if isinstance(rules, ForeignRules) and rules.factory else Agent.evaluate
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
                    limit_s=FINAL_LIMIT * wanted.limit_s,
                )
            except SparringError as wrong:
                keep(agent, results, why_not=str(wrong))
                where = shown_path(agent.run)
                raise UnmeasuredError(f"{where} was not measured: {wrong}", results) from wrong
        keep(agent, results)
    return results


def measure_here(agent: Agent, wanted: EvaluationConfig, pool: ForeignPool) -> None:
    """Measure an agent in environments that a program brought along, which nobody else can make.

    They are played in this process, one episode after the other. What keeps them from it is warned
    of: the run is whole all the same.
    """
    rules = agent.policy.rules
    others = [RANDOM] * (rules.seats - 1)
    terms = Terms(wanted.games, FINAL_SEED, limit_s=wanted.limit_s)
    try:
        found = play_own_match(rules, [agent.policy, *others], terms, given=pool)
    except SparringError as wrong:
        keep(agent, {}, why_not=str(wrong))
        warn(f"{shown_path(agent.run)} was not measured: {wrong}")
        return
    keep(agent, {(others or [ALONE])[0]: found})


def beside(
    agent: Agent, *against: str, games: int, seed: int, threads: int, limit_s: float
) -> dict[str, MatchResult]:
    """Do what `Agent.evaluate` does in a process that can be ended, should an environment hang."""
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "id": FINAL_SEED,
            "checkpoint": str(agent.save(Path(folder) / "policy")),
            "name": agent.policy.name,
            "opponents": list(against),
            **{"games": games, "seed": seed, "limit_s": limit_s, "keep": folder},
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
        "score gained per hour": gained_per(seconds / 3600, score, LEAST_HOURS),
        "score gained per million decisions": gained_per(made / 1e6, score, LEAST_MILLIONS),
    }
    return {name: rate for name, rate in found.items() if rate is not None}
