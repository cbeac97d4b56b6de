"""Whether the best setting is better: trained with fresh seeds beside the file's own settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from sparring.league.intervals import welch_95
from sparring.league.statistics import Found, stronger
from sparring.sweep.file import SweepFile
from sparring.sweep.jobs import Executor, Job, never
from sparring.sweep.points import config_at
from sparring.sweep.record import CONFIRM, Folder
from sparring.sweep.search import with_result
from sparring.sweep.trials import BEST, DONE, PRESET, RUNNING, Trial

FRESH = 1_000_000
"""Seeds of the confirmation begin so far behind those of the search."""
FINAL_GAMES = 2048
"""Games of each of these runs against each opponent, where the file says nothing: seeds differ by
more than so many games leave open."""
KEEP = "keep the preset"


@dataclass(frozen=True)
class Confirmed:
    """What fresh seeds say."""

    best: tuple[float, ...]
    """Values of the best setting, a seed each."""
    preset: tuple[float, ...]
    """Values of the file's own settings with the same seeds."""
    difference: Found
    """By how much the best setting is better."""
    stronger: Found
    """How probably a run of the best setting is stronger than one of the preset."""
    runs: tuple[str, ...]
    failed: tuple[str, ...] = ()
    """What is wrong with runs that failed."""

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is above 0, and no run of the best setting failed."""
        return not self.missing and self.difference.low is not None and self.difference.low > 0

    @property
    def missing(self) -> str:
        """A run of the best setting that failed: the others would be the lucky ones."""
        return next((line for line in self.failed if line.startswith(f"{BEST}-")), "")

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "best": list(self.best),
            "preset": list(self.preset),
            "difference": self.difference.plain(),
            "stronger": self.stronger.plain(),
            "better": self.is_better,
            "verdict": self.verdict,
            "runs": list(self.runs),
            "failed": list(self.failed),
        }

    @property
    def verdict(self) -> str:
        """The same in a sentence."""
        if not self.best or not self.preset:
            why = self.failed[0] if self.failed else "nothing was trained"
            return f"the best setting was not confirmed: {why}; {KEEP}"
        by = self.difference
        shown = f"{by.value:+.4g}"
        if by.low is not None and by.high is not None:
            shown += f" ({by.low:+.4g} .. {by.high:+.4g})"
        if self.missing:
            return f"the best setting is not reliable: {self.missing}; without it {shown}; {KEEP}"
        if by.low is None or by.high is None:
            return f"one seed cannot tell whether the best setting is better: {shown}; {KEEP}"
        seeds = f"over {len(self.best)} fresh seeds"
        if self.is_better:
            return f"the best setting is better than the preset by {shown} {seeds}"
        how = "worse" if by.high < 0 else "not shown to be better"
        return f"the best setting is {how} than the preset: {shown} {seeds}; {KEEP}"


def difference_of(ours: Sequence[float], theirs: Sequence[float]) -> Found:
    """By how much the mean of the one is above that of the other, with Welch's 95 % interval."""
    value, half = fmean(ours) - fmean(theirs), welch_95(ours, theirs)
    return Found(value) if half is None else Found(value, value - half, value + half)


def confirm(
    file: SweepFile,
    folder: Folder,
    executor: Executor,
    best: Trial,
    told: Callable[[Trial], None] = lambda _trial: None,
) -> Confirmed:
    """Train the best setting and the file's own with seeds that the search never had.

    What an earlier time has confirmed of the same setting is not trained again.
    """
    records = folder.confirming
    if any(known.extra.get("of") != best.settings for known in records.trials.values()):
        forget(folder)
        records = folder.confirming
    waiting = [
        trial
        for trial in planned(file, best)
        if getattr(records.trials.get(trial.number), "state", RUNNING) == RUNNING
    ]
    running: dict[int, Trial] = {}
    while waiting or running:
        batch, waiting = waiting[: executor.free], waiting[executor.free :]
        for trial in batch:
            folder.clear_run(name_of(trial))
            running[trial.number] = trial
            records.put(trial)
        if batch:
            executor.begin([job_of(file, folder, trial) for trial in batch], never)
        for ended in executor.wait():
            trial = with_result(running.pop(ended.number), ended)
            records.put(trial)
            told(trial)
    return judged([records.trials[trial.number] for trial in planned(file, best)])


def judged(trials: Sequence[Trial]) -> Confirmed:
    """What the runs say together."""
    values: dict[str, list[float]] = {BEST: [], PRESET: []}
    for trial in trials:
        if trial.state == DONE and trial.value is not None:
            values[trial.extra["side"]].append(trial.value)
    there = values[BEST] and values[PRESET]
    return Confirmed(
        best=tuple(values[BEST]),
        preset=tuple(values[PRESET]),
        difference=difference_of(values[BEST], values[PRESET]) if there else Found(0.0),
        stronger=stronger(values[BEST], values[PRESET]) if there else Found(0.5),
        runs=tuple(trial.run for trial in trials if trial.run),
        failed=tuple(f"{name_of(trial)}: {trial.why}" for trial in trials if trial.state != DONE),
    )


def planned(file: SweepFile, best: Trial) -> list[Trial]:
    """The runs of a confirmation: seed by seed, the best setting and the file's own."""
    first = int(file.settings.get("seed", 0)) + FRESH
    found: list[Trial] = []
    for seed in range(file.search.confirm):
        for side, settings in ((BEST, best.settings), (PRESET, {})):
            extra = {"side": side, "of": best.settings}
            found.append(Trial(len(found), settings, RUNNING, seed=first + seed, extra=extra))
    return found


def name_of(trial: Trial) -> str:
    """The name of a run that confirms."""
    return f"{trial.extra['side']}-{trial.number // 2 + 1}"


def job_of(file: SweepFile, folder: Folder, trial: Trial) -> Job:
    """The training of such a run."""
    where = str(folder.path)
    config = config_at(file, trial.settings, seed=trial.seed, name=name_of(trial), folder=where)
    if "final_games" not in file.settings.get("eval", {}):
        games = min(config.eval.final_games, FINAL_GAMES)
        config = replace(config, eval=replace(config.eval, final_games=games))
    return Job(trial.number, config, final=True)


def forget(folder: Folder) -> None:
    """Remove what confirmed another setting."""
    for trial in folder.confirming.trials.values():
        folder.clear_run(name_of(trial))
    (folder.path / CONFIRM).unlink(missing_ok=True)
