"""`sparring tune`: settings that suit this machine, found by measuring."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.commands.curves import write_page
from sparring.commands.shared.printing import ProgressBar, make_table, print_json, print_table, say
from sparring.commands.shared.stopping import Interrupted, interruptible
from sparring.config.tools import TuneConfig
from sparring.draw.charts.axes import label
from sparring.draw.charts.paper import Page, check_matplotlib
from sparring.errors import ConfigError
from sparring.machine import machine_facts, show_size, warn_if_busy
from sparring.speed.stand import Gauge
from sparring.tuning.knobs import ALTERING, shown
from sparring.tuning.outcome import Look, Outcome
from sparring.tuning.picture import make_page, strength_page
from sparring.tuning.search import Clock, Search, Step
from sparring.tuning.settings import make_space, room_for
from sparring.tuning.space import Space
from sparring.tuning.strength import QUARTER, Found, Halving, told_times
from sparring.tuning.trials import StoppedError, Trainer
from sparring.tuning.writing import file_for, settings_of, write_settings

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
    check_matplotlib()
    path = file_for(config.game, config.out)
    if config.target and config.goal != "strength":
        raise ConfigError(f"target {config.target:g} is for --for strength; leave it out")
    space = make_space(config)
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    answer = for_strength if config.goal == "strength" else for_speed
    report, signal = answer(config, space, path, facts)
    if config.json:
        head = {"command": "tune", "game": config.game, "algo": space.base.algo}
        files = {"file": str(path), "pictures": [str(one) for one in pictures_of(path)]}
        print_json({**head, "goal": config.goal, **files, **report, "machine": facts})
    return signal


def for_speed(
    config: TuneConfig, space: Space, path: Path, facts: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """Search for decisions per second; return the report and the exit code."""
    found, signal = searched(config, space)
    if not found.looks:  # stopped before anything was timed
        assert signal
        raise signal
    timed = sum(look.gain is not None for look in found.looks)
    told = [verdict(found), *notes(found)]
    table = settings_of(space.base, config.config, found.best, config.set)
    write_settings(path, table, comments(config, told, timed, found.seconds, facts))
    shown_facts = (verdict(found).partition(";")[0], *where(timed, found.seconds, facts))
    title = f"{config.game}: tuned for speed"
    draw(make_page(title, shown_facts, found, space.knobs), path)
    if not config.json:
        print_table(looks_table(found))
        preset = ", ".join(f"{name} {shown(value)}" for name, value in found.preset.values)
        tell([*told, f"preset: {preset}"], config, path, facts, better=found.better)
    return {**found.plain(), "alters_learning": altered(found)}, signal.code if signal else OK


def for_strength(
    config: TuneConfig, space: Space, path: Path, facts: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """Search for time to a target; return the report and the exit code."""
    if config.same_learning:
        raise ConfigError("same_learning is for speed: what does not learn otherwise is timed")
    found, code = trained(config, space)
    if not found.trials:
        raise Interrupted(code - 128)
    told = strength_verdict(found)
    table = settings_of(space.base, config.config, found.best, config.set)
    write_settings(path, table, comments(config, told, len(found.trials), found.seconds, facts))
    title = f"{config.game}: tuned for time to a strength"
    shown_facts = where(len(found.trials), found.seconds, facts)
    draw(strength_page(title, (told[0].partition(";")[0], *shown_facts), found), path)
    if not config.json:
        print_table(trials_table(found))
        tell(told, config, path, facts, better=found.better)
    return found.plain(), code


def trained(config: TuneConfig, space: Space) -> tuple[Found, int]:
    """Train until one is found, the time is over, or a signal comes."""
    clock = Clock(60 * config.minutes)
    with ProgressBar(f"tune {config.game}", round(clock.seconds)) as bar:

        def watch(doing: str) -> None:
            bar.reach(min(round(clock.gone), bar.total), f"training {doing}")

        train = Trainer(space, QUARTER * clock.seconds)
        halving = Halving(space, train, clock, target=config.target, tell=watch)
        try:
            with interruptible():
                return halving.run(), OK
        except Interrupted as signal:
            return halving.found, signal.code
        except StoppedError as stopped:
            return halving.found, 128 + stopped.number


def strength_verdict(found: Found) -> list[str]:
    """What came out, in sentences."""
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
    told.append("seeds are few: time to a target varies by more than two of them show")
    if found.ended == "interrupted":
        told.append("stopped: this is what was found so far")
    elif found.ended == "time":
        told.append("time was over before everything was tried; more --minutes")
    return told


def trials_table(found: Found) -> Any:
    """A row for every training."""
    table = make_table(
        ("settings", "seed", "trained", "strength", "to the target", ""),
        numbers=("seed", "trained", "strength", "to the target"),
    )
    for trial in found.trials:
        name = trial.point.beside(found.preset) or "preset"
        last = f"{trial.curve[-1][1]:.3f}" if trial.curve else ""
        time = trial.reached(found.target)
        sooner = "" if time is None else f"{time:.1f} s"
        table.add_row(name, str(trial.seed), f"{trial.seconds:.1f} s", last, sooner, trial.why)
    return table


def searched(config: TuneConfig, space: Space) -> tuple[Outcome, Interrupted | None]:
    """Search until it is done, the time is over, or a signal comes; what is found stays."""
    clock = Clock(60 * config.minutes)
    title = f"tune {config.game}"
    with Gauge() as gauge, ProgressBar(title, round(clock.seconds)) as bar:

        def watch(step: Step) -> None:
            bar.reach(min(round(step.gone_s), bar.total), f"{step.standing}; trying {step.doing}")

        search = Search(gauge, space, clock, room=room_for(space), watch=watch)
        try:
            with interruptible():
                return search.run(), None
        except Interrupted as signal:
            return search.outcome, signal


def altered(found: Outcome) -> list[str]:
    """Settings of the best that change what is learned, beside the preset."""
    before = dict(found.preset.values)
    return [name for name, value in found.best.values if name in ALTERING and before[name] != value]


def verdict(found: Outcome) -> str:
    """What came out, in one sentence."""
    if not found.better:
        told = f"nothing was better than the preset ({per_s(found.preset_rate)} decisions/s)"
        if found.tried_best:
            tried = found.tried_best.point.beside(found.preset)
            told += f"; {tried} seemed to be and was not confirmed: {found.tried_best.why}"
        return told
    assert found.gain
    told = (
        f"{found.gain}, {per_s(found.preset_rate)} to {per_s(found.rate)} decisions/s: "
        f"{found.best.beside(found.preset)}"
    )
    if found.confirmed:
        return f"{told}; timed {found.gain.turns} times in turn with the preset"
    return f"{told}; not timed in full, as it was stopped before"


def notes(found: Outcome) -> list[str]:
    """What has to be known besides."""
    told = []
    if names := altered(found):
        told.append(
            f"{', '.join(names)}: no longer the same learning, only more of it per second; "
            "--same-learning leaves such settings alone, --for strength measures what they bring"
        )
    if found.ended == "interrupted":
        told.append("stopped: this is what was found so far")
    elif found.ended == "time":
        told.append("time was over before all that promised something was tried; more --minutes")
    return told


def comments(
    config: TuneConfig, told: Sequence[str], tried: int, seconds: float, facts: dict[str, Any]
) -> list[str]:
    """What stands above the settings in their file."""
    command = f"sparring train {config.game} --config FILE"
    return [command, "", *told, ", ".join(where(tried, seconds, facts)), facts["date"]]


def where(tried: int, seconds: float, facts: dict[str, Any]) -> tuple[str, ...]:
    """How much was tried, and on what."""
    gpu = f", {facts['gpu']}" if facts.get("gpu") else ""
    return f"{tried} tried in {seconds:.0f} s", f"{facts['cpu']}, {facts['cores']} cores{gpu}"


def pictures_of(path: Path) -> tuple[Path, Path]:
    """Where the picture goes: beside the settings."""
    return path.with_suffix(".png"), path.with_suffix(".html")


def draw(page: Page, path: Path) -> None:
    """Write the picture and the page."""
    write_page(page, pictures_of(path))


def tell(
    told: Sequence[str], config: TuneConfig, path: Path, facts: dict[str, Any], *, better: bool
) -> None:
    """Print what came out, and what to do with it."""
    for line in told:
        say(line)
    say(f"machine: {facts['cpu']}, {facts['cores']} cores, {facts['date']}")
    whose = "" if better else " (the preset's values)"
    say(f"written: {path}{whose}, {', '.join(map(str, pictures_of(path)))}")
    say(f"next: {next_command(config, path, better=better)}")


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
    """A rate with three digits."""
    return label(rate, "rate")


def looks_table(found: Outcome) -> Any:
    """A row for every point that was tried."""
    table = make_table(
        ("settings", "decisions/s", "to the preset", "turns", "memory", ""),
        numbers=("decisions/s", "to the preset", "turns", "memory"),
        least=("memory", "turns"),
    )
    for look in found.looks:
        table.add_row(*cells(look, found))
    return table


def cells(look: Look, found: Outcome) -> tuple[str, ...]:
    """A point as a row of the table."""
    name = look.point.beside(found.preset) or "preset"
    size = show_size(look.bytes) if look.bytes else ""
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
