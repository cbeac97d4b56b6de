"""`sparring train` and `sparring resume`: train, evaluate and report."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sparring.commands.shared.curves import plot_run
from sparring.commands.shared.finished import strength_words
from sparring.commands.shared.printing import (
    ProgressBar,
    echo,
    make_table,
    print_json,
    print_table,
    say,
)
from sparring.commands.shared.results import draw_lines, next_command, results_table, score_word
from sparring.commands.shared.stopping import Interrupted, interruptible, report_stopped
from sparring.commands.shared.timeline import show_timeline
from sparring.config import TrainConfig
from sparring.config.runs import ResumeConfig
from sparring.errors import SparringError, warn
from sparring.games.rules import Rules
from sparring.league.arena import default_opponents, strength_of, whole_rounds
from sparring.league.results import MatchResult
from sparring.learn.learner import DivergedError
from sparring.pools.custom.cache import is_custom
from sparring.store.folders import display_path
from sparring.training.agent import Agent, UnmeasuredError, measure, score_rates
from sparring.training.budget import MET
from sparring.training.planning.custom import rules_of
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import (
    members_of,
    read_config,
    read_varied,
    value_at,
)
from sparring.training.records.overview import Overview, events_of, measured_line
from sparring.training.records.run import Run, check_name
from sparring.training.records.strength import best_opponent, strength_in
from sparring.training.session import INIT
from sparring.training.train import at_once, resume, train_population, train_with

OK, FAILED = 0, 3


def run(config: TrainConfig | ResumeConfig) -> int:
    if isinstance(config, ResumeConfig):
        return report(
            lambda: resume(
                config.run,
                number=config.checkpoint,
                minutes=config.minutes,
                updates=config.updates,
                decisions=config.decisions,
                episodes=config.episodes,
                devices=config.devices,
                clear_replay=config.clear_replay,
                quiet=config.json,
            ),
            as_json=config.json,
        )
    if config.dry_run:
        return show_timeline(config)
    if len(members_of(config)) > 1:
        return report_several(config)
    return report(lambda: train_with(config, quiet=config.json), as_json=config.json)


def report(work: Callable[[], Agent], *, as_json: bool) -> int:
    started = time.perf_counter()
    agent: Agent | None = None
    missing = ""
    try:
        with interruptible():  # the training loop handles signals itself
            agent = work()
            trained_s = time.perf_counter() - started
            if agent.ended.startswith("SIG"):
                return report_stopped([agent])
            settings = read_config(Run.open(str(agent.run)).config, str(agent.run))
            try:
                results = measured(agent, settings, quiet=as_json)
            except UnmeasuredError as error:
                results, missing = error.results, str(error)
    except Interrupted as error:
        if agent is None:
            return error.report()
        saved = f" while measuring; the run is saved in {display_path(agent.run)}"
        return error.report(saved, f"measure it with: {measuring(agent)}")
    plots = draw_curves(agent)
    summaries = {name: found.summary() for name, found in results.items()}
    strength = strength_in(summaries, best_opponent(agent.policy.rules))
    summary: dict[str, Any] = {
        "run": str(display_path(agent.run)),
        "ended": agent.ended,
        "seconds": trained_s,
        "decisions": agent.decisions,
        "minutes": agent.minutes,
        "checkpoint": agent.policy.meta.get("update"),
        "strength": strength and strength.plain(),
        "results": summaries,
        "progress": score_rates(agent),
        **({"not_measured": missing} if missing else {}),
        **of_the_network(agent),
    }
    code = FAILED if agent.unsaved or missing else OK
    if missing:
        print(f"sparring: {missing}", file=sys.stderr)
    if as_json:
        print_json(summary)
        return code
    if agent.ended != "done":
        echo(f"ended early: {why_early(agent)}")
    if results:
        update = int(agent.policy.meta.get("update", 0))
        echo(measured_line(Overview(agent.run), update, agent.decisions))
        print_table(results_table(results, score_word(agent.policy.rules)))
    if strength:
        print(f"strength: {strength_words(strength)}")
    for line in draw_lines(results) if results else ():
        echo(line)
    for name, value in summary["progress"].items():
        print(f"{name}: {value:,.2f}")
    if plots:
        print(f"curves: {', '.join(str(path) for path in plots)}")
    where = display_path(agent.run)
    seeing = agent.policy.seeing  # a yardstick, which never plays
    following = f"sparring plot {where}" if seeing else next_command(agent.policy.rules, where)
    print(f"run: {where}; next: {following}")
    return code


def of_the_network(agent: Agent) -> dict[str, Any]:
    """Return the size of the network, and what `init` copied into it."""
    seen = Overview(agent.run)
    size = {key: seen.network[key] for key in ("parameters", "macs") if key in seen.network}
    init = [event for event in events_of(agent.run) if event.get("event") == INIT]
    return {**({"network": size} if size else {}), **({"init": init[-1]} if init else {})}


def why_early(agent: Agent) -> str:
    met = [event.get("found", ()) for event in events_of(agent.run) if event.get("event") == MET]
    values = f": {', '.join(met[-1])}" if met and met[-1] else ""
    reasons = {
        "early": "no new best for eval.patience evaluations",
        "reached": f"eval.stop is fulfilled{values}",
    }
    return reasons.get(agent.ended, "a callback stopped it")


def measuring(agent: Agent) -> str:
    """Return the command that measures a run; resume would continue one that ended early."""
    return f"sparring {'resume' if agent.ended == 'done' else 'eval'} {display_path(agent.run)}"


def measured(agent: Agent, settings: TrainConfig, *, quiet: bool) -> dict[str, MatchResult]:
    against = settings.eval.against or default_opponents(agent.policy.rules)
    if not quiet:
        limit = "up to " * is_custom(agent.policy.rules)  # whose games have a time limit
        games = f"{whole_rounds(agent.policy.rules, settings.eval.final_games):,} games"
        each = f" against each of {', '.join(against)}" if against else ""
        say(f"trained; measuring {limit}{games}{each}; Ctrl-C leaves the run unmeasured")
    with ProgressBar(f"measuring {agent.policy.rules.name}", len(against) or 1) as steps:
        return measure(agent, settings.eval, steps.next, threads=settings.threads or 1)


def draw_curves(agent: Agent) -> list[Path]:
    """Draw the curves; a failure is only a warning."""
    try:
        return [display_path(path) for path in plot_run(agent.run)]
    except (OSError, SparringError) as error:
        text = f"the curves of {display_path(agent.run)} were not drawn: {error}"
        warn(text)
        return []


def report_several(config: TrainConfig) -> int:
    started = time.perf_counter()
    members = members_of(config)
    for member in members:
        check_name(Path(member.runs), member.name)
    for member in () if at_once(config) else members:
        resolve([member], played=False)  # refuse mistakes before the first run
    agents: list[Agent] = []
    try:
        with interruptible():
            work = train_in_cluster if in_cluster(config) else train_here
            rows, well = work(config, members, agents)
    except KeyboardInterrupt as raised:
        # Ray raises a plain one in place of ours.
        error = raised if isinstance(raised, Interrupted) else Interrupted(signal.SIGINT)
        if not agents:
            return error.report()
        again = (f"  measure it with: {measuring(agent)}" for agent in agents)
        return error.report(" while measuring; all runs are saved:", *again)
    if signaled := [agent for agent in agents if agent.ended.startswith("SIG")]:
        return report_stopped(signaled)
    if config.json:
        print_json({"seconds": time.perf_counter() - started, "members": rows})
    elif rows:
        show_several(agents[0].policy.rules if agents else rules_of(members[0]), rows)
    return OK if well else FAILED


def train_here(
    config: TrainConfig, members: Sequence[TrainConfig], agents: list[Agent]
) -> tuple[list[dict[str, Any]], bool]:
    """Train and measure runs; return a row for each, and whether all succeeded.

    agents: trained agents are appended.
    """
    rows: list[dict[str, Any]] = []
    well = True
    for member, agent in trained(config, members):
        if agent is None:
            well = False
            continue
        agents.append(agent)
        well = well and agent.ended != "diverged" and not agent.unsaved
        if agent.ended.startswith("SIG"):
            break
        try:
            results = measured(agent, member, quiet=config.json)
        except UnmeasuredError as error:
            print(f"sparring: {error}", file=sys.stderr)
            well = False
            continue
        rows.append(
            {
                "run": str(display_path(agent.run)),
                "seed": member.seed,
                "varied": varied(config, member),
                "results": {name: one.summary() for name, one in results.items()},
            }
        )
    return rows, well


def in_cluster(config: TrainConfig) -> bool:
    """Whether runs are tasks of a cluster; with actors, the cluster serves one run at a time."""
    return bool(config.cluster) and not config.actors and config.replicas == 1


def train_in_cluster(
    config: TrainConfig, members: Sequence[TrainConfig], _: list[Agent]
) -> tuple[list[dict[str, Any]], bool]:
    """The same as tasks of a cluster; the agents stay there."""
    from sparring.cluster.ray.runs import check_tasks, train_runs
    from sparring.cluster.ray.session import connect

    check_tasks(config)
    rows: dict[int, dict[str, Any]] = {}
    well = True
    with connect(config.cluster) as cluster:
        for done in train_runs(cluster, members, say):
            member, facts = members[done.number], done.summary
            what = varied(config, member)
            which = f"run {done.number + 1} of {len(members)} ({what})"
            for text in facts.get("warnings", ()):
                print(f"sparring: {which}: {text}", file=sys.stderr)
            if done.error:
                well = False
                print(f"sparring: {which} failed: {done.error}", file=sys.stderr)
                continue
            well = well and not facts["unsaved"] and bool(facts["results"])
            print(f"{which}: {facts['ended']}, {facts['run']} ({facts['place']})", file=sys.stderr)
            if facts["results"]:
                row = {"run": facts["run"], "seed": member.seed, "varied": what}
                rows[done.number] = {**row, "results": facts["results"]}
    return [rows[number] for number in sorted(rows)], well


def trained(
    config: TrainConfig, members: Sequence[TrainConfig]
) -> Iterator[tuple[TrainConfig, Agent | None]]:
    """Train the members one by one, or at once; a failure does not stop the others."""
    if at_once(config):
        yield from zip(members, train_population(config, quiet=config.json), strict=True)
        return
    for number, member in enumerate(members, start=1):
        print(f"run {number} of {len(members)}: {varied(config, member)}", file=sys.stderr)
        try:
            agent = train_with(member, quiet=config.json)
        except DivergedError as error:
            print(f"sparring: run {number} failed: {error}", file=sys.stderr)
            yield member, None
            continue
        if agent.ended.startswith("SIG") and number < len(members):
            print(f"runs {number + 1} to {len(members)} were not started", file=sys.stderr)
        yield member, agent
        if agent.ended.startswith("SIG"):
            return


def varied(config: TrainConfig, member: TrainConfig) -> str:
    words = [f"seed {member.seed}"]
    for word in config.vary:
        keys = read_varied(word)[0]
        words.append(f"{'.'.join(keys)} {value_at(member, keys)}")
    return ", ".join(words)


def show_several(rules: Rules, rows: Sequence[dict[str, Any]]) -> None:
    shown = "score" if rules.seats == 1 else "win"
    heads = ("run", "settings", *rows[0]["results"])
    table = make_table(heads, numbers=heads[2:])
    for row in rows:
        strengths = (f"{found[shown]:.3f}" for found in row["results"].values())
        table.add_row(row["run"], row["varied"], *strengths)
    print_table(table)
    against = best_opponent(rules)

    def strong(row: dict[str, Any]) -> float:
        found = strength_in(row["results"], against)
        return found.value if found else strength_of(rules, row["results"])

    best = max(rows, key=strong)
    print(f"best run: {best['run']}; next: {next_command(rules, best['run'])}")
    print(f"compare them with: sparring compare {' '.join(row['run'] for row in rows)}")
