"""`sparring train` and `sparring resume`: from one command to a measured winner."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from sparring.config import ResumeConfig, TrainConfig
from sparring.tools.eval import result_json, results_table
from sparring.tools.plot import plot_run
from sparring.tools.terminal import Steps, print_json, print_table
from sparring.training.agent import Agent, resume, train_with
from sparring.training.metrics import read
from sparring.training.settings import from_table, with_preset

OK, FAILED, INTERRUPTED = 0, 3, 130


def prepare(args: list[str]) -> TrainConfig:
    """The defaults that the command line starts from: preset and file."""
    game = args[0] if args and not args[0].startswith("-") else TrainConfig.game
    file = ""
    for at, word in enumerate(args):
        if word == "--config" and at + 1 < len(args):
            file = args[at + 1]
        elif word.startswith("--config="):
            file = word.partition("=")[2]
    return with_preset(game, file)


def run(config: TrainConfig | ResumeConfig) -> int:
    """Train or go on, then measure the strength."""
    if isinstance(config, ResumeConfig):
        return report(
            lambda: resume(
                config.run,
                number=config.checkpoint,
                updates=config.updates,
                quiet=config.json,
            ),
            as_json=config.json,
        )
    return report(lambda: train_with(config, quiet=config.json), as_json=config.json)


def report(work: Callable[[], Agent], *, as_json: bool) -> int:
    """Do the work, evaluate the result, draw the curves and say what to do next."""
    started = time.perf_counter()
    agent = work()
    trained_s = time.perf_counter() - started
    if agent.ended.startswith("SIG"):
        print(f"{agent.ended}: saved in {agent.run}", file=sys.stderr)
        print(f"go on with: sparring resume {agent.run}", file=sys.stderr)
        return INTERRUPTED
    from sparring.training.run import Run

    settings = from_table(Run.open(str(agent.run)).config, str(agent.run))
    against = settings.eval.against or agent.policy.rules.bots
    results = {}
    with Steps(f"measuring {agent.policy.rules.name}", len(against)) as steps:
        for number, name in enumerate(against):
            steps.next(name)
            found = agent.evaluate(
                name,
                games=settings.eval.final_games,
                seed=77_000_000 + number,
                threads=settings.threads or 1,
            )
            results.update(found)
    plots = plot_run(agent.run)
    summary: dict[str, Any] = {
        "run": str(agent.run),
        "ended": agent.ended,
        "seconds": trained_s,
        "results": {name: result_json(found) for name, found in results.items()},
        "progress": rates(agent.run),
    }
    if as_json:
        print_json(summary)
        return OK
    print_table(results_table(results))
    for name, value in summary["progress"].items():
        print(f"{name}: {value:,.2f}")
    print(f"curves: {', '.join(str(path) for path in plots)}")
    print(f"run: {agent.run}; next: sparring play {agent.run}")
    return OK


def rates(run: Any) -> dict[str, float]:
    """Score per hour and per million decisions, from the first evaluation to the last."""
    metrics = read(run)
    found: dict[str, float] = {}
    if "charts/score" in metrics and "charts/decisions" in metrics:
        _, seconds, score = metrics["charts/score"]
        _, _, decisions = metrics["charts/decisions"]
        if len(score) > 1 and seconds[-1] > seconds[0]:
            gained = float(score[-1] - score[0])
            found["score gained per hour"] = gained / (seconds[-1] - seconds[0]) * 3600
            found["score gained per million decisions"] = gained / (
                (decisions[-1] - decisions[0]) / 1e6
            )
    return found
