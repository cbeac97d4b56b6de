"""`sparring tune`: settings that suit this machine, found by measuring."""

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
from sparring.sweep.grid import Grid, make_grid
from sparring.sweep.knobs import switched
from sparring.sweep.pictures import make_page, strength_page
from sparring.sweep.points import MARK, file_for, settings_of, write_settings
from sparring.sweep.race import Look, Outcome, Race
from sparring.sweep.strength import (
    QUARTER,
    Found,
    Halving,
    StoppedError,
    Trainer,
    reached,
    told_times,
)
from sparring.sweep.timings import Clock

OK = 0
WORDS = {
    "preset": "where it began",
    "faster": "ahead for a while",
    "unconfirmed": "not confirmed",
    "slower": "slower",
    "close": "no better",
    "memory": "too large",
    "failed": "failed",
}
"""What is said of each state."""


def run(config: TuneConfig) -> int:
    """Search, write what was found, and say what it is worth."""
    path = file_for(config.game, config.out)
    if config.target and config.goal != "strength":
        raise ConfigError(f"target {config.target:g} is for --for strength; leave it out")
    grid = make_grid(config)
    if config.same_learning and config.goal == "strength":
        raise ConfigError("same_learning is for speed: what does not learn otherwise is timed")
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    found, code = searched(config, grid)
    if isinstance(found, Found):
        tried, told, what = len(found.trials), strength_verdict(found), "time to a strength"
    else:
        tried = sum(look.gain is not None for look in found.looks)
        told, what = [verdict(found), *alterations(found)], "speed"
    if not tried:  # stopped before anything was measured
        raise Interrupted(code - 128)
    told += ending(found)
    where = f"{tried} tried in {found.seconds:.0f} s", machine_words(facts)
    command = f"sparring train {config.game} --config FILE"
    table = settings_of(grid.base, config.config, found.best, config.set)
    write_settings(path, table, [MARK, command, "", *told, ", ".join(where), facts["date"]])
    title, shown = f"{config.game}: tuned for {what}", (told[0].partition(";")[0], *where)
    if isinstance(found, Found):
        page, looks = strength_page(title, shown, found), trials_table(found)
    else:
        page, looks = make_page(title, shown, found, grid.knobs), looks_table(found)
        told.append(f"preset: {', '.join(f'{k} {switched(v)}' for k, v in found.preset.items())}")
    pictures = drawn(partial(write_page, page, pictures_of(path)))
    if config.json:
        head = {"command": "tune", "game": config.game, "algo": grid.base.algo}
        files = {"file": str(path), "pictures": [str(one) for one in pictures]}
        print_json({**head, "goal": config.goal, **files, **found.plain(), "machine": facts})
    else:
        print_table(looks)
        tell(told, config, [path, *pictures], facts, better=found.better)
    return code


def searched(config: TuneConfig, grid: Grid) -> tuple[Outcome | Found, int]:
    """Search until it is done, the time is over, or a signal comes; what is found stays."""
    clock = Clock(60 * config.minutes)
    with TimerProcess() as timer, ProgressBar(f"tune {config.game}", round(clock.seconds)) as bar:

        def watch(doing: str) -> None:
            bar.reach(min(round(clock.gone), bar.total), doing)

        search: Race | Halving = Race(timer, grid, clock, room=grid.room, watch=watch)
        if config.goal == "strength":
            train = Trainer(grid, QUARTER * clock.seconds)
            search = Halving(grid, train, clock, target=config.target, watch=watch)
        try:
            with interruptible():
                return search.run(), OK
        except Interrupted as signal:
            return search.found, signal.code
        except StoppedError as stopped:
            return search.found, 128 + stopped.number


def verdict(found: Outcome) -> str:
    """What came out of a search for speed, in one sentence."""
    if not found.better:
        told = f"nothing was better than the preset ({per_s(found.preset_rate)} decisions/s)"
        if found.tried_best:
            tried = found.tried_best.point.beside(found.preset)
            told += f"; {tried} seemed to be and was not confirmed: {found.tried_best.why}"
        return told
    assert found.gain
    rates = f"{per_s(found.preset_rate)} to {per_s(found.rate)} decisions/s"
    told = f"{found.gain}, {rates}: {found.best.beside(found.preset)}"
    if found.confirmed:
        return f"{told}; timed {found.gain.turns} times in turn with the preset"
    return f"{told}; not timed in full, as it was stopped before"


def alterations(found: Outcome) -> list[str]:
    """What has to be known of settings that change what is learned."""
    if not found.altered:
        return []
    return [
        f"{', '.join(found.altered)}: no longer the same learning, only more of it per second; "
        "--same-learning leaves such settings alone, --for strength measures what they bring"
    ]


def strength_verdict(found: Found) -> list[str]:
    """What came out of a search for strength, in sentences."""
    if math.isnan(found.target):
        return ["nothing was measured: the preset had no evaluation in its time; more --minutes"]
    whose = "given" if found.given else "what the preset reached in a quarter of the time"
    told = [f"target {found.target:.3f} ({whose})"]
    preset = told_times(found.times(found.preset))
    if found.finalist is None:
        told.insert(0, f"nothing could be compared; the preset: {preset}; more --minutes")
    else:
        name, mine = found.finalist.beside(found.preset), told_times(found.times(found.finalist))
        if found.better:
            told.insert(0, f"{name}: {mine} to the target; the preset: {preset}")
        else:
            told.insert(0, f"nothing was surely sooner than the preset; it took {preset}")
            told.append(f"{name} came nearest: {mine}")
    return [*told, "seeds are few: time to a target varies by more than two of them show"]


def ending(found: Outcome | Found) -> list[str]:
    """What has to be known of a search that was not done."""
    words = {
        "interrupted": "stopped: this is what was found so far",
        "time": "time was over before all that promised something was tried; more --minutes",
    }
    return [words[found.ended]] if found.ended in words else []


def machine_words(facts: dict[str, Any]) -> str:
    gpu = f", {facts['gpu']}" if facts.get("gpu") else ""
    return f"{facts['cpu']}, {facts['cores']} cores{gpu}"


def pictures_of(path: Path) -> tuple[Path, Path]:
    return path.with_suffix(".png"), path.with_suffix(".html")


def tell(
    told: Sequence[str],
    config: TuneConfig,
    files: Sequence[Path],
    facts: dict[str, Any],
    *,
    better: bool,
) -> None:
    """Print what came out, and what to do with it."""
    for line in told:
        echo(line)
    echo(f"machine: {facts['cpu']}, {facts['cores']} cores, {facts['date']}")
    whose = "" if better else " (the preset's values)"
    echo(f"written: {', '.join([f'{files[0]}{whose}', *map(str, files[1:])])}")
    echo(f"next: {next_command(config, files[0], better=better)}")


def next_command(config: TuneConfig, path: Path, *, better: bool) -> str:
    """How to train by the verdict: with what was found, or as before."""
    if better:
        return shlex.join(["sparring", "train", config.game, "--config", str(path)])
    given = [("--config", config.config), ("--algo", config.algo)]
    given += [("--device", config.device if config.device != "auto" else "")]
    given += [("--set", flag) for flag in config.set]
    words = [word for name, value in given if value for word in (name, value)]
    return shlex.join(["sparring", "train", config.game, *words])


def per_s(rate: float) -> str:
    return label(rate, "rate")


def looks_table(found: Outcome) -> Any:
    table = make_table(
        ("settings", "decisions/s", "to the preset", "turns", "memory", ""),
        numbers=("decisions/s", "to the preset", "turns", "memory"),
        least=("memory", "turns"),
    )
    for look in found.looks:
        table.add_row(*cells(look, found))
    return table


def cells(look: Look, found: Outcome) -> tuple[str, ...]:
    name = found.name(look.point)
    size = format_bytes(look.bytes) if look.bytes else ""
    told = WORDS.get(look.state, look.state)
    if look.point == found.best and found.better:
        told = "chosen"
    if look.why:
        told = f"{told}: {look.why}"
    if not look.gain:
        return name, "", "", "", size, told
    beside = "" if look.state == "preset" else str(look.gain)
    turns = str(look.gain.turns) if look.gain.turns else ""
    return name, per_s(look.rate), beside, turns, size, told


def trials_table(found: Found) -> Any:
    table = make_table(
        ("settings", "seed", "trained", "strength", "to the target", ""),
        numbers=("seed", "trained", "strength", "to the target"),
    )
    for trial in found.trials:
        name = found.name(trial.settings)
        last = f"{trial.curve[-1][2]:.3f}" if trial.curve else ""
        time = reached(trial, found.target)
        sooner = "" if time is None else f"{time:.1f} s"
        table.add_row(name, str(trial.seed), f"{trial.seconds:.1f} s", last, sooner, trial.why)
    return table
