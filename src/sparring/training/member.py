"""One run of a training loop: its folder, its curves, its checkpoints, what evaluations found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparring.curriculum.state import CurriculumState
from sparring.curriculum.timeline import curriculum_metrics
from sparring.errors import warn
from sparring.games.rules import Rules
from sparring.league.arena import ALONE, default_opponents, guaranteed_share, strength_of
from sparring.learn.learner import Report, Snapshot
from sparring.phases import phase
from sparring.pools.custom.cache import is_custom
from sparring.schedule import Moment
from sparring.store import checkpoint as checkpoints
from sparring.store.folders import BEST, SNAPSHOT, display_path
from sparring.store.policies import custom_meta
from sparring.training.budget import BUDGETS, set_budget
from sparring.training.evaluations import (
    TrainingReturn,
    by_training,
    curves_of_match,
    custom_request,
    first_look,
    has_first_look,
    pace,
    too_few,
)
from sparring.training.league import League
from sparring.training.planning.training import RunPlan
from sparring.training.records.metrics import MetricsWriter
from sparring.training.records.run import EVENTS, Run
from sparring.training.records.sinks import EpisodesTable
from sparring.training.resuming import better_saved_checkpoint, save_elsewhere, saved_elsewhere_text
from sparring.training.status import PREVIOUS_BEST, Status, in_order


class Member:
    """A run of its own, or one of a population that is trained together."""

    def __init__(
        self,
        plan: RunPlan,
        run: Run,
        rules: Rules,
        *,
        resume: checkpoints.Checkpoint | None = None,
        lr_factor: float = 1.0,
        league: League | None = None,
        course: CurriculumState | None = None,
    ) -> None:
        self.league, self.course = league, course
        self.plan, self.run, self.rules, self.lr_factor = plan, run, rules, lr_factor
        self.status = Status(rules.name, display_path(run.path))
        set_budget(self.status, *plan.budget)
        self.active = True
        """False for a member of a population that has diverged."""
        self.events: list[dict[str, Any]] = []
        self.best: dict[str, float] = {"update": -1, "strength": -1.0}
        self.first: dict[str, float] = {}
        """Seconds and score of the first evaluation."""
        self.dry = 0
        """Evaluations in a row without a new best."""
        self.waiting: dict[int, float] = {}
        """Checkpoints whose evaluation was asked for, with their seconds, the oldest first."""
        self.owed: set[int] = set()
        """Those of them that were asked for before a resume: they are played, whatever comes."""
        self.playing = -1
        """The one of them that is evaluated now."""
        self.looked = -1
        """The one of them whose evaluation is small, because somebody waits for the first one."""
        self.evaluated = -1
        """The last one that was."""
        self.earned = TrainingReturn()
        """What training games have paid since the last checkpoint."""
        self.unsaved = False
        """Whether the run's own disk did not take the last checkpoint."""
        self.elsewhere: Path | None = None
        """Where that lies then, None if no other disk took it either."""
        self.keep: int = plan.file["keep"]
        sinks = {name: plan.file[name] for name in ("tensorboard", "wandb", "csv")}
        self.metrics = MetricsWriter(run.path, **sinks)
        self.episodes_csv = EpisodesTable(run.path, rules) if plan.file["episodes_csv"] else None
        self.saver = checkpoints.BackgroundSaver(run.checkpoints, resume.segments if resume else {})
        if resume is not None:
            self._go_on(resume)
        self.opponents = list(plan.evaluation.against or default_opponents(rules, 2))

    def _go_on(self, resume: checkpoints.Checkpoint) -> None:
        """Take over what a checkpoint says, and forget what came after it."""
        meta, status = resume.meta, self.status
        for name in ("update", "seconds", "decisions", "samples"):
            setattr(status, name, meta[name])
        status.episodes, status.wins = meta.get("episodes", 0), meta["wins"]
        status.evaluated = self.evaluated = meta.get("evaluated", -1)
        self.events, self.best = meta["events"], meta["best"]
        self.first, self.dry = meta.get("first", {}), meta.get("dry", 0)
        asked = {int(number): at for number, at in meta.get("waiting", {}).items()}
        there = {resume.number, *checkpoints.checkpoint_numbers(self.run.checkpoints)}
        self.waiting = {number: at for number, at in asked.items() if number in there}
        self.owed = set(self.waiting)
        checkpoints.rename_damaged(self.run.checkpoints, after=resume.number)
        checkpoints.remove_unused_segments(self.run.checkpoints)  # those of a save that was killed
        best = status.best = int(self.best["update"])
        self.forget_after(resume.number)
        kind, amount = self.plan.budget
        if any(self.plan.file[key] != meta["config"].get(key, 0) for key in BUDGETS):
            self.note("budget", **{kind: amount}, seconds=status.seconds)
            self.dry = 0  # who asks for more has patience again
        elif kind == "minutes":
            status.total_updates = meta["total_updates"]
        named = self.run.checkpoints / f"{best:08d}"
        if best >= 0 and not checkpoints.is_valid(named, segments=False):
            self.best, status.best = {"update": -1, "strength": -1.0}, -1
            self.note("best lost: its checkpoint is damaged or gone", checkpoint=best)
        self.write_json(EVENTS, self.events)
        if found := better_saved_checkpoint(self.run.path, self.best, until=resume.number):
            self._take_best(*found)
            self._tell_best(found[0], self.waiting.get(found[0], status.seconds))
        else:
            self._name_best()

    @phase("recording")
    def record(
        self, report: Report, phases: dict[str, float], *, update: int, seconds: float, took: float
    ) -> None:
        status, stats = self.status, report.stats
        before = status.decisions, status.samples
        status.update, status.seconds = update, seconds
        self._show_saved()
        status.episodes += int(stats.get("charts/games", 0))
        status.count(report.decisions, report.samples)
        status.decisions_per_s = (report.decisions - before[0]) / took
        status.samples_per_s = (report.samples - before[1]) / took
        status.take(stats)
        shares = {name: spent / took for name, spent in phases.items()}
        status.phases = in_order(status.phases, shares)
        values = {
            **stats,
            **{f"phases/{name}": share for name, share in shares.items()},
            "charts/SPS": status.decisions_per_s,
            "charts/samples_per_s": status.samples_per_s,
            "charts/decisions": float(report.decisions),
            "charts/episodes": float(status.episodes),
            "charts/opponent_rows": float(report.opponent_rows),
        }
        if self.course:
            values |= curriculum_metrics(self.course)
            now = Moment(status.decisions, status.progress, status.episodes)
            status.standing = self.course.progress(now)
        if self.league:
            values |= self.league.after(report, update=update, seconds=seconds)
            status.league = self.league.told()
        self.earned.add(stats)
        self.metrics.add(update, values, seconds=seconds)
        if self.episodes_csv and report.episodes is not None:
            self.episodes_csv.add(update, report.episodes)

    def forget_after(self, update: int) -> None:
        """Forget what curves and tables say of later updates; of -1, all of it."""
        self.metrics.truncate_after(update)
        if self.episodes_csv:
            self.episodes_csv.truncate_after(update)

    def note(self, what: str, **facts: Any) -> None:
        """Record something that came from beside, with the update at which it took effect."""
        self.events.append({"update": self.status.update, "event": what, **facts})
        self.write_json(EVENTS, self.events)

    def noted(self, what: str, **facts: Any) -> bool:
        wanted = {"event": what, **facts}
        return any(wanted.items() <= event.items() for event in self.events)

    def write_json(self, name: str, obj: Any) -> None:
        """Write a small file; a full disk does not stop training."""
        try:
            self.run.write_json(name, obj)
        except OSError as wrong:
            warn(f"{self.run.path / name} was not written, training goes on: {wrong.strerror}")

    def _name_best(self) -> None:
        if self.best["update"] >= 0:
            best = {"checkpoint": int(self.best["update"]), "strength": self.best["strength"]}
            self.write_json(BEST, best)
        else:
            (self.run.path / BEST).unlink(missing_ok=True)

    # Saving

    def meta(self, snapshot: Snapshot) -> dict[str, Any]:
        """What a checkpoint says besides tensors and games."""
        rules, status = self.rules, self.status
        return {
            "net": self.plan.file["net"],
            **snapshot.meta,
            "game": rules.name,
            "rules_version": rules.rules_version,
            "game_config": rules.config,
            **custom_meta(rules),
            "config": self.plan.file,
            "seconds": status.seconds,
            "episodes": status.episodes,
            "total_updates": status.total_updates,
            "lr_factor": self.lr_factor,
            **self._found(),
        }

    def _found(self) -> dict[str, Any]:
        return {
            "events": list(self.events),
            "best": dict(self.best),
            "first": dict(self.first),
            "dry": self.dry,
            **({"league": self.league.state()} if self.league else {}),
            **({"course": self.course.state()} if self.course else {}),
            "waiting": {str(number): at for number, at in self.waiting.items()},
            "wins": dict(self.status.wins),
            "evaluated": self.status.evaluated,
        }

    def amend_last(self) -> None:
        """Have the last checkpoint say what evaluations found after it was saved."""
        if self.saver.saved == self.status.update:
            with suppress(checkpoints.CheckpointError, OSError):  # a resume asks them again
                checkpoints.amend(self.run.checkpoints / f"{self.saver.saved:08d}", self._found())

    def save(self, snapshot: Snapshot) -> None:
        """Hand a checkpoint to the background writer; a full disk does not stop training."""
        self.metrics.flush()  # a run that is resumed here has every curve up to here
        self._judge_training()
        with training_on():
            self._submit(snapshot)
            self._prune(self.keep)

    def save_last(self, snapshot: Snapshot) -> None:
        """Save what training ends with: here, with fewer old checkpoints, or on another disk."""
        self.metrics.flush()
        self._judge_training()
        self.wait_for_save()
        if self.saver.saved == snapshot.meta["update"]:
            self._prune(self.keep)
            return  # it was saved a moment ago, and is perhaps being evaluated
        wrong: Exception | None = None
        for keep in (self.keep, 1):
            try:
                self._submit(snapshot)
                self.saver.wait()
            except checkpoints.CheckpointError as failed:
                wrong = failed
                self._prune(1)
            else:
                self._show_saved()
                self._prune(keep)
                return
        self.unsaved = True
        self.elsewhere = save_elsewhere(self.run.name, snapshot, self.meta(snapshot))
        text = saved_elsewhere_text(self.elsewhere, self.run.checkpoints)
        warn(f"{wrong}; {text}")

    def _submit(self, snapshot: Snapshot) -> None:
        self.saver.submit(
            snapshot.meta["update"],
            tensors=snapshot.tensors,
            blobs=snapshot.blobs,
            meta=self.meta(snapshot),
            segments=snapshot.segments,
        )

    @phase("saving")
    def wait_for_save(self) -> None:
        """Wait for the checkpoint that is being written; a full disk does not stop training."""
        with training_on():
            self.saver.wait()
        self._show_saved()

    def _show_saved(self) -> None:
        """Show which checkpoint is on the disk by now, and since when that is known."""
        if self.status.saved != self.saver.saved:
            self.status.saved, self.status.saved_s = self.saver.saved, self.status.seconds

    def _prune(self, keep: int) -> None:
        always = {int(self.best["update"]), *self.waiting}
        needed = self.saver.needed
        checkpoints.prune(self.run.checkpoints, keep=keep, always=always, needed=needed)
        if self.league:
            self.league.noticed(self.run.checkpoints)

    # Evaluation

    def want_evaluation(self) -> None:
        """Ask for an evaluation of the checkpoint that is saved now.

        Of those that are not played yet, the oldest is next and the others give way to this one.
        """
        next_one = [number for number in self.waiting if number != self.playing][:1]
        kept = {*self.owed, self.playing, *next_one}
        self.waiting = {n: at for n, at in self.waiting.items() if n in kept}
        if self.status.update != self.evaluated:
            self.waiting.setdefault(self.status.update, self.status.seconds)

    @property
    def has_request(self) -> bool:
        """Whether an evaluation is due whose checkpoint is written."""
        number = next(iter(self.waiting), -1)
        return number >= 0 and (self.run.checkpoints / f"{number:08d}").exists()

    def request(self, *, soon: bool = False) -> dict[str, Any] | None:
        """The evaluation that is due, once its checkpoint is written. soon: it may be small."""
        if not self.has_request:
            return None
        number = next(iter(self.waiting))
        folder = self.run.checkpoints / f"{number:08d}"
        best = int(self.best["update"])
        before = folder.with_name(f"{best:08d}")
        rivals = [str(before)] if self.rules.seats > 1 and best not in (-1, number) else []
        rivals += self.league.rivals(number) if self.league else []
        self.playing = number
        when = {"update": self.status.update, "decisions": self.status.decisions}
        league = {"league": str(self.league.archive.folder), **when} if self.league else {}
        request = {
            **league,
            "checkpoint": str(folder),
            "opponents": self.opponents,
            "rivals": rivals,
            "games": self.plan.evaluation.games,
            "seed": 1_000_000 + number,
            **custom_request(self.rules, self.plan),
        }
        first = soon and number not in self.owed and not self.status.wins
        if first and has_first_look(self.plan.evaluation, self.opponents):
            self.looked = number
            return first_look(request, self.rules)
        return request

    def take_in(self, number: int, result: dict[str, Any]) -> dict[str, Any] | None:
        """Learn what an evaluation found: curves, the best checkpoint, early stopping."""
        seconds = self.waiting.pop(number, self.status.seconds)
        small, self.looked, self.playing = number == self.looked, -1, -1
        self.evaluated = self.evaluated if small else number
        self.owed.discard(number)
        if result.get("error"):
            warn(f"evaluation of update {number} failed: {result['error']}")
            return None
        known = [ALONE] if self.rules.seats == 1 else self.opponents
        results = {name: result["results"][name] for name in known if name in result["results"]}
        values = self._show(number, result["results"], known)
        if small:
            self.metrics.add(number, values, seconds=seconds)
            return None
        if self.league and self.rules.seats > 1:
            for name in known:
                self.league.take_match(number, self.status.decisions, name, results[name])
        strength = strength_of(self.rules, results)
        values["eval/strength"] = strength
        if is_custom(self.rules):
            values["eval/games"] = self._count_episodes(results)
        values |= pace(self.first, results, seconds, self.rules)
        self.metrics.add(number, values, seconds=seconds)
        self._reach_targets(guaranteed_share(self.rules, results), seconds)
        if self.best["update"] < 0 or strength > self.best["strength"]:
            self._take_best(number, strength)
            self._tell_best(number, seconds)
        self.dry = 0 if number == self.best["update"] else self.dry + 1
        if self.course:
            self.course.record_evaluation(number, results)
        return results

    def _show(self, number: int, played: Mapping[str, Any], known: list[str]) -> dict[str, float]:
        """Show what matches found, and return it as curves have it."""
        values = {}
        self.status.evaluated, self.status.wins = number, {}
        for opponent, found in played.items():
            name = opponent if opponent in known else PREVIOUS_BEST
            if self.league and opponent.endswith(SNAPSHOT):
                name = self.league.take_match(number, self.status.decisions, opponent, found)
                values[f"eval/{name}/win"] = found["win"]
                continue
            self.status.wins[name] = found
            self.status.remember(f"eval/{name}", found["score" if name == ALONE else "win"])
            values |= curves_of_match(name, found)
        return values

    def _count_episodes(self, results: Mapping[str, Any]) -> float:
        """How many episodes there was time for; said once if too few."""
        games = min(found["games"] for found in results.values())
        what = "evaluations have no time for all episodes"
        text = too_few(self.rules, self.plan.evaluation, games)
        if text and not self.noted(what):
            self.note(what, episodes=games)
            warn(text)
        return float(games)

    def _tell_best(self, number: int, seconds: float) -> None:
        """Let the league meet the best checkpoint, if that can be read."""
        with suppress(checkpoints.CheckpointError):
            if self.league:
                saved = checkpoints.load(self.run.checkpoints / f"{number:08d}", segments=False)
                when = {"update": number, "decisions": int(saved.meta["decisions"])}
                self.league.new_best(saved.tensors["net"], **when, seconds=seconds)

    def _judge_training(self) -> None:
        """Find the best checkpoint by what training games paid, where nothing else measures it."""
        earned, self.earned = self.earned, TrainingReturn()
        update = self.status.update
        if not by_training(self.rules) or not earned.games or update == self.best["update"]:
            return
        if self.best["update"] < 0 or earned.mean > self.best["strength"]:
            self._take_best(update, earned.mean, by="training return")

    def _take_best(self, number: int, strength: float, **how: Any) -> None:
        self.status.best = number
        self.best = {"update": number, "strength": strength}
        self.note("best", checkpoint=number, strength=strength, **how)
        self._name_best()

    def _reach_targets(self, least: float, seconds: float) -> None:
        """Note the time of every target that the hardest opponent's lower bound has passed."""
        for target in self.plan.evaluation.target:
            if least >= target and not self.noted("target reached", target=target):
                self.note("target reached", target=target, low=least, seconds=seconds)

    def close(self) -> None:
        try:
            self.saver.close()
        except checkpoints.CheckpointError as wrong:
            warn(str(wrong))
        self.metrics.close()
        if self.episodes_csv:
            self.episodes_csv.close()
        if self.league:
            self.league.close(self.status.update, self.status.decisions)


@contextmanager
def training_on() -> Iterator[None]:
    """A full disk does not stop training."""
    try:
        yield
    except checkpoints.CheckpointError as wrong:
        warn(f"not saved, training goes on: {wrong}")
