"""`sparring train` and `sparring resume`: from one command to a measured winner."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sparring.commands.plotting import plot_run
from sparring.commands.printing import ProgressBar, make_table, print_json, print_table
from sparring.commands.results import draw_lines, next_command, results_table
from sparring.config import ResumeConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.league.arena import ALONE, strength_of, usual_opponents
from sparring.training.agent import Agent, resume, train_population, train_with
from sparring.training.metrics import read
from sparring.training.plan import uses_gpu
from sparring.training.settings import members_of, read_config, with_preset

OK, FAILED, INTERRUPTED = 0, 3, 130


def prepare(args: list[str], parse: Callable[[list[str], TrainConfig], TrainConfig]) -> TrainConfig:
    """The defaults that the command line starts from: preset and file.

    parse: reads the words of the command line over a configuration.
    """
    helped = {"-h", "--help"} & set(args)
    words = [word for word in args if word not in helped]
    try:
        asked = parse(words, replace(TrainConfig(), game=""))
    except ConfigError:
        if not helped:
            raise
        asked = replace(TrainConfig(), game="")
    base = with_preset(asked.game, asked.config)
    device = asked.device
    if device == TrainConfig.device != base.device:  # typed, or left to the file?
        device = parse(words, base).device
    if helped or not uses_gpu(device):
        return base
    return with_preset(asked.game, asked.config, gpu=True)


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
    if len(members_of(config)) > 1:
        return report_population(config)
    return report(lambda: train_with(config, quiet=config.json), as_json=config.json)


def report_population(config: TrainConfig) -> int:
    """Train several runs at once, measure each, and list them."""
    started = time.perf_counter()
    agents = train_population(config, quiet=config.json)
    trained_s = time.perf_counter() - started
    ended = agents[0].ended
    if ended.startswith("SIG"):
        for agent in agents:
            print(f"{ended}: saved; go on with: sparring resume {agent.run}", file=sys.stderr)
        return INTERRUPTED
    rules = agents[0].policy.rules
    against = config.eval.against or usual_opponents(rules, 2)
    rows: list[dict[str, Any]] = []
    with ProgressBar(f"measuring {config.game}", len(agents)) as steps:
        for agent, member in zip(agents, members_of(config), strict=True):
            steps.next(agent.run.name)
            found = agent.evaluate(
                *against,
                games=config.eval.final_games,
                seed=77_000_000,
                threads=config.threads or 1,
            )
            rows.append(
                {
                    "run": str(agent.run),
                    "seed": member.seed,
                    "results": {name: one.summary() for name, one in found.items()},
                }
            )
    if config.json:
        print_json({"ended": ended, "seconds": trained_s, "members": rows})
        return OK
    shown = "score" if rules.seats == 1 else "win"
    heads = ("run", "seed", *rows[0]["results"])
    table = make_table(heads, numbers=heads[1:])
    for row in rows:
        strengths = (f"{found[shown]:.3f}" for found in row["results"].values())
        table.add_row(row["run"], str(row["seed"]), *strengths)
    print_table(table)
    best = max(rows, key=lambda row: strength_of(rules, row["results"]))
    print(f"best run: {best['run']}; next: {next_command(rules, best['run'])}")
    return OK


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

    settings = read_config(Run.open(str(agent.run)).config, str(agent.run))
    # One match after the other, so that each is told; alone is a match too.
    against = settings.eval.against or usual_opponents(agent.policy.rules)
    matches: list[tuple[str, ...]] = [(name,) for name in against] or [()]
    results = {}
    with ProgressBar(f"measuring {agent.policy.rules.name}", len(matches)) as steps:
        for number, match in enumerate(matches):
            steps.next(*match or (ALONE,))
            found = agent.evaluate(
                *match,
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
        "results": {name: found.summary() for name, found in results.items()},
        "progress": rates(agent.run),
    }
    if as_json:
        print_json(summary)
        return OK
    print_table(results_table(results))
    for line in draw_lines(results):
        print(line)
    for name, value in summary["progress"].items():
        print(f"{name}: {value:,.2f}")
    print(f"curves: {', '.join(str(path) for path in plots)}")
    print(f"run: {agent.run}; next: {next_command(agent.policy.rules, agent.run)}")
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
