"""`sparring tune`: find the fastest settings for this machine by measuring."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparring.commands.shared.curves import drawn, write_page
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.commands.shared.stopping import Interrupted, interruptible
from sparring.config.tools import TuneConfig
from sparring.draw.charts.axes import label
from sparring.errors import ConfigError
from sparring.machine import format_bytes, machine_info, warn_if_busy
from sparring.speed.timer import TimerProcess
from sparring.sweep.charts import make_page, strength_page
from sparring.sweep.grid import Grid, make_grid
from sparring.sweep.parameters import show_value
from sparring.sweep.settings import MARK, file_for, settings_of, write_settings
from sparring.sweep.speed_search import SpeedResult, SpeedSearch, SpeedTrial
from sparring.sweep.strength_search import (
    QUARTER,
    StrengthResult,
    SuccessiveHalving,
    TrainingStoppedError,
    TrialTrainer,
    describe_times,
    target_time,
)
from sparring.sweep.timings import SearchBudget

OK = 0
STATE_TEXTS = {
    "preset": "the preset",
    "faster": "faster at first",
    "unconfirmed": "not confirmed",
    "slower": "slower",
    "close": "not faster",
    "memory": "too large",
    "failed": "failed",
}


def run(config: TuneConfig) -> int:
    """Search, write the best settings, and print the result."""
    path = file_for(config.game, config.out)
    if config.target and config.goal != "strength":
        raise ConfigError(f"target {config.target:g} is for --for strength; leave it out")
    grid = make_grid(config)
    if config.same_learning and config.goal == "strength":
        raise ConfigError("--same-learning is for speed; leave it out with --for strength")
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    found, code = search_settings(config, grid)
    if isinstance(found, StrengthResult):
        tried, lines, what = len(found.trials), strength_verdict(found), "time to a strength"
    else:
        tried = sum(trial.gain is not None for trial in found.trials)
        lines, what = [verdict(found), *altered_line(found)], "speed"
    if not tried:  # stopped before anything was measured
        raise Interrupted(code - 128)
    lines += end_line(found)
    where = f"{tried} tried in {found.seconds:.0f} s", machine_words(facts)
    command = f"sparring train {config.game} --config FILE"
    table = settings_of(grid.base, config.config, found.best, config.set)
    write_settings(path, table, [MARK, command, "", *lines, ", ".join(where), facts["date"]])
    title, shown = f"{config.game}: tuned for {what}", (lines[0].partition(";")[0], *where)
    if isinstance(found, StrengthResult):
        page, table = strength_page(title, shown, found), trials_table(found)
    else:
        page, table = make_page(title, shown, found, grid.parameters), speed_table(found)
        lines.append(
            f"preset: {', '.join(f'{k} {show_value(v)}' for k, v in found.preset.items())}"
        )
    pictures = drawn(partial(write_page, page, pictures_of(path)))
    if config.json:
        head = {"command": "tune", "game": config.game, "algo": grid.base.algo}
        files = {"file": str(path), "pictures": [str(one) for one in pictures]}
        print_json({**head, "goal": config.goal, **files, **found.plain(), "machine": facts})
    else:
        print_table(table)
        print_result(lines, config, [path, *pictures], facts, better=found.better)
    return code


def search_settings(config: TuneConfig, grid: Grid) -> tuple[SpeedResult | StrengthResult, int]:
    """Search until it is done, time is up, or a signal comes; return the result so far."""
    budget = SearchBudget(60 * config.minutes)
    with TimerProcess() as timer, ProgressBar(f"tune {config.game}", round(budget.total_s)) as bar:

        def watch(doing: str) -> None:
            bar.reach(min(round(budget.elapsed_s), bar.total), doing)

        strategy: SpeedSearch | SuccessiveHalving = SpeedSearch(
            timer, grid, budget, room=grid.memory_limit, watch=watch
        )
        if config.goal == "strength":
            train = TrialTrainer(grid, QUARTER * budget.total_s)
            strategy = SuccessiveHalving(grid, train, budget, target=config.target, watch=watch)
        try:
            with interruptible():
                return strategy.run(), OK
        except Interrupted as signal:
            return strategy.found, signal.code
        except TrainingStoppedError as stopped:
            return strategy.found, 128 + stopped.number


def verdict(found: SpeedResult) -> str:
    """Return the result of a search for speed as one sentence."""
    if not found.better:
        text = f"nothing was better than the preset ({per_s(found.preset_rate)} decisions/s)"
        if found.tried_best:
            tried = found.tried_best.point.describe_changes(found.preset)
            text += f"; {tried} seemed better but was not confirmed: {found.tried_best.why}"
        return text
    assert found.gain
    rates = f"{per_s(found.preset_rate)} to {per_s(found.rate)} decisions/s"
    text = f"{found.gain}, {rates}: {found.best.describe_changes(found.preset)}"
    if found.confirmed:
        return f"{text}; timed {found.gain.turns} times in turn with the preset"
    return f"{text}; stopped before it was timed in full"


def altered_line(found: SpeedResult) -> list[str]:
    """Return a note about settings that change what is learned."""
    if not found.altered:
        return []
    return [
        f"{', '.join(found.altered)}: these change what is learned, not only the speed; "
        "--same-learning leaves such settings alone, --for strength measures their effect"
    ]


def strength_verdict(found: StrengthResult) -> list[str]:
    """Return the result of a search for strength as sentences."""
    if math.isnan(found.target):
        return ["nothing was measured: the preset had no evaluation in its time; more --minutes"]
    source = "given" if found.given else "what the preset reached in a quarter of the time"
    lines = [f"target {found.target:.3f} ({source})"]
    preset = describe_times(found.times(found.preset))
    if found.finalist is None:
        lines.insert(0, f"nothing could be compared; the preset: {preset}; more --minutes")
    else:
        name, times = (
            found.finalist.describe_changes(found.preset),
            describe_times(found.times(found.finalist)),
        )
        if found.better:
            lines.insert(0, f"{name}: {times} to the target; the preset: {preset}")
        else:
            lines.insert(0, f"nothing was surely faster than the preset; it took {preset}")
            lines.append(f"{name} came nearest: {times}")
    return [*lines, "seeds are few: time to a target varies by more than two of them show"]


def end_line(found: SpeedResult | StrengthResult) -> list[str]:
    """Return a note about a search that ended early."""
    words = {
        "interrupted": "stopped: this is the result so far",
        "time": "time ran out before all promising settings were tried; more --minutes",
    }
    return [words[found.ended]] if found.ended in words else []


def machine_words(facts: dict[str, Any]) -> str:
    gpu = f", {facts['gpu']}" if facts.get("gpu") else ""
    return f"{facts['cpu']}, {facts['cores']} cores{gpu}"


def pictures_of(path: Path) -> tuple[Path, Path]:
    return path.with_suffix(".png"), path.with_suffix(".html")


def print_result(
    lines: Sequence[str],
    config: TuneConfig,
    files: Sequence[Path],
    facts: dict[str, Any],
    *,
    better: bool,
) -> None:
    """Print the result, the files and the next command."""
    for line in lines:
        echo(line)
    echo(f"machine: {facts['cpu']}, {facts['cores']} cores, {facts['date']}")
    note = "" if better else " (the preset's values)"
    echo(f"written: {', '.join([f'{files[0]}{note}', *map(str, files[1:])])}")
    echo(f"next: {next_command(config, files[0], better=better)}")


def next_command(config: TuneConfig, path: Path, *, better: bool) -> str:
    """Return the command that trains with the result."""
    if better:
        return shlex.join(["sparring", "train", config.game, "--config", str(path)])
    given = [("--config", config.config), ("--algo", config.algo)]
    given += [("--device", config.device if config.device != "auto" else "")]
    given += [("--set", flag) for flag in config.set]
    words = [word for name, value in given if value for word in (name, value)]
    return shlex.join(["sparring", "train", config.game, *words])


def per_s(rate: float) -> str:
    return label(rate, "rate")


def speed_table(found: SpeedResult) -> Any:
    table = make_table(
        ("settings", "decisions/s", "to the preset", "turns", "memory", ""),
        numbers=("decisions/s", "to the preset", "turns", "memory"),
        least=("memory", "turns"),
    )
    for trial in found.trials:
        table.add_row(*cells(trial, found))
    return table


def cells(trial: SpeedTrial, found: SpeedResult) -> tuple[str, ...]:
    name = found.name(trial.point)
    size = format_bytes(trial.bytes) if trial.bytes else ""
    verdict = STATE_TEXTS.get(trial.state, trial.state)
    if trial.point == found.best and found.better:
        verdict = "chosen"
    if trial.why:
        verdict = f"{verdict}: {trial.why}"
    if not trial.gain:
        return name, "", "", "", size, verdict
    gain = "" if trial.state == "preset" else str(trial.gain)
    turns = str(trial.gain.turns) if trial.gain.turns else ""
    return name, per_s(trial.rate), gain, turns, size, verdict


def trials_table(found: StrengthResult) -> Any:
    table = make_table(
        ("settings", "seed", "trained", "strength", "to the target", ""),
        numbers=("seed", "trained", "strength", "to the target"),
    )
    for trial in found.trials:
        name = found.name(trial.settings)
        last = f"{trial.curve[-1][2]:.3f}" if trial.curve else ""
        time = target_time(trial, found.target)
        sooner = "" if time is None else f"{time:.1f} s"
        table.add_row(name, str(trial.seed), f"{trial.seconds:.1f} s", last, sooner, trial.why)
    return table
