"""One run of a training loop: its folder, metrics, checkpoints and evaluations."""

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
from sparring.training.best import EXPLOITABILITY, NOBODY, is_better
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
from sparring.training.exact import exact_request
from sparring.training.league import League
from sparring.training.planning.training import RunPlan
from sparring.training.records.metrics import MetricsWriter
from sparring.training.records.run import EVENTS, Run
from sparring.training.records.sinks import EpisodesTable
from sparring.training.resuming import better_saved_checkpoint, save_elsewhere, saved_elsewhere_text
from sparring.training.status import PREVIOUS_BEST, SIMULATIONS_PER_S, Status, in_order


class Member:
    """A single run, or one member of a population that is trained together."""

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
        self.best: dict[str, float] = dict(NOBODY)
        self.first: dict[str, float] = {}
        """Seconds and score of the first evaluation."""
        self.evaluations_since_best = 0
        """Evaluations in a row without a new best."""
        self.waiting: dict[int, float] = {}
        """Checkpoints that wait for an evaluation, oldest first, with their seconds of training."""
        self.carried_over: set[int] = set()
        """Those requested before a resume; they are never dropped."""
        self.playing = -1
        """The checkpoint that is evaluated now."""
        self.quick_evaluation = -1
        """The checkpoint with a small evaluation, so that a first result comes soon."""
        self.evaluated = -1
        """The last evaluated checkpoint."""
        self.training_return = TrainingReturn()
        """Returns of training games since the last checkpoint."""
        self.unsaved = False
        """The last checkpoint could not be written to the run's folder."""
        self.fallback_path: Path | None = None
        """Where it was written instead, None if nowhere."""
        self.keep: int = plan.file["keep"]
        sinks = {name: plan.file[name] for name in ("tensorboard", "wandb", "csv")}
        self.metrics = MetricsWriter(run.path, **sinks)
        self.episodes_csv = EpisodesTable(run.path, rules) if plan.file["episodes_csv"] else None
        self.saver = checkpoints.BackgroundSaver(run.checkpoints, resume.segments if resume else {})
        if resume is not None:
            self._restore(resume)
        self.opponents = list(plan.evaluation.against or default_opponents(rules, 2))

    def _restore(self, resume: checkpoints.Checkpoint) -> None:
        """Restore the state of a checkpoint, and remove metrics and checkpoints after it."""
        meta, status = resume.meta, self.status
        for name in ("update", "seconds", "decisions", "samples"):
            setattr(status, name, meta[name])
        status.episodes, status.wins = meta.get("episodes", 0), meta["wins"]
        status.evaluated = self.evaluated = meta.get("evaluated", -1)
        self.events, self.best = meta["events"], meta["best"]
        self.first, self.evaluations_since_best = meta.get("first", {}), meta.get("dry", 0)
        requested = {int(number): seconds for number, seconds in meta.get("waiting", {}).items()}
        existing = {resume.number, *checkpoints.checkpoint_numbers(self.run.checkpoints)}
        self.waiting = {
            number: seconds for number, seconds in requested.items() if number in existing
        }
        self.carried_over = set(self.waiting)
        checkpoints.rename_damaged(self.run.checkpoints, after=resume.number)
        checkpoints.remove_unused_segments(self.run.checkpoints)  # those of a save that was killed
        best = status.best = int(self.best["update"])
        self.forget_after(resume.number)
        kind, amount = self.plan.budget
        if any(self.plan.file[key] != meta["config"].get(key, 0) for key in BUDGETS):
            self.record_event("budget", **{kind: amount}, seconds=status.seconds)
            self.evaluations_since_best = 0  # a new budget restarts eval.patience
        elif kind == "minutes":
            status.total_updates = meta["total_updates"]
        best_folder = self.run.checkpoints / f"{best:08d}"
        if best >= 0 and not checkpoints.is_valid(best_folder, segments=False):
            self.best, status.best = dict(NOBODY), -1
            self.record_event("best lost: its checkpoint is damaged or gone", checkpoint=best)
        self.write_json(EVENTS, self.events)
        if result := better_saved_checkpoint(self.run.path, self.best, until=resume.number):
            self._set_best(*result)
            self._add_best_to_league(result[0], self.waiting.get(result[0], status.seconds))
        else:
            self._write_best()

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
        if "learning/simulated" in stats:
            stats = {**stats, SIMULATIONS_PER_S: stats["learning/simulated"] / took}
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
            status.phase_progress = self.course.progress(now)
        if self.league:
            values |= self.league.after_update(report, update=update, seconds=seconds)
            status.league = self.league.summary()
        self.training_return.add(stats)
        self.metrics.add(update, values, seconds=seconds)
        if self.episodes_csv and report.episodes is not None:
            self.episodes_csv.add(update, report.episodes)

    def forget_after(self, update: int) -> None:
        """Remove metrics of later updates; -1: of all updates."""
        self.metrics.truncate_after(update)
        if self.episodes_csv:
            self.episodes_csv.truncate_after(update)

    def record_event(self, what: str, **facts: Any) -> None:
        """Append an event to events.json, with the current update."""
        self.events.append({"update": self.status.update, "event": what, **facts})
        self.write_json(EVENTS, self.events)

    def has_event(self, what: str, **facts: Any) -> bool:
        wanted = {"event": what, **facts}
        return any(wanted.items() <= event.items() for event in self.events)

    def write_json(self, name: str, obj: Any) -> None:
        """Write a small file; if that fails, warn and continue."""
        try:
            self.run.write_json(name, obj)
        except OSError as error:
            warn(f"{self.run.path / name} was not written, training continues: {error.strerror}")

    def _write_best(self) -> None:
        if self.best["update"] >= 0:
            found = {key: value for key, value in self.best.items() if key != "update"}
            self.write_json(BEST, {"checkpoint": int(self.best["update"]), **found})
        else:
            (self.run.path / BEST).unlink(missing_ok=True)

    # Saving

    def meta(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the metadata of a checkpoint."""
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
            **self._evaluation_state(),
        }

    def _evaluation_state(self) -> dict[str, Any]:
        return {
            "events": list(self.events),
            "best": dict(self.best),
            "first": dict(self.first),
            "dry": self.evaluations_since_best,
            **({"league": self.league.state()} if self.league else {}),
            **({"course": self.course.state()} if self.course else {}),
            "waiting": {str(number): seconds for number, seconds in self.waiting.items()},
            "wins": dict(self.status.wins),
            "evaluated": self.status.evaluated,
        }

    def amend_last(self) -> None:
        """Add results of later evaluations to the last checkpoint."""
        if self.saver.saved == self.status.update:
            with suppress(checkpoints.CheckpointError, OSError):  # a resume asks them again
                checkpoints.amend(
                    self.run.checkpoints / f"{self.saver.saved:08d}", self._evaluation_state()
                )

    def save(self, snapshot: Snapshot) -> None:
        """Hand a checkpoint to the background writer; a full disk does not stop training."""
        self.metrics.flush()  # a run resumed from here has all metrics up to here
        self._rate_by_return()
        with training_on():
            self._submit(snapshot)
            self._prune(self.keep)

    def save_last(self, snapshot: Snapshot) -> None:
        """Save the final state: if there is no space, without old checkpoints, or elsewhere."""
        self.metrics.flush()
        self._rate_by_return()
        self.wait_for_save()
        if self.saver.saved == snapshot.meta["update"]:
            self._prune(self.keep)
            return  # it was saved a moment ago, and may be under evaluation
        error: Exception | None = None
        for keep in (self.keep, 1):
            try:
                self._submit(snapshot)
                self.saver.wait()
            except checkpoints.CheckpointError as failed:
                error = failed
                self._prune(1)
            else:
                self._show_saved()
                self._prune(keep)
                return
        self.unsaved = True
        self.fallback_path = save_elsewhere(self.run.name, snapshot, self.meta(snapshot))
        text = saved_elsewhere_text(self.fallback_path, self.run.checkpoints)
        warn(f"{error}; {text}")

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
        """Update the status after a checkpoint was written."""
        if self.status.saved != self.saver.saved:
            self.status.saved, self.status.saved_s = self.saver.saved, self.status.seconds

    def _prune(self, keep: int) -> None:
        always = {int(self.best["update"]), *self.waiting}
        needed = self.saver.needed
        checkpoints.prune(self.run.checkpoints, keep=keep, always=always, needed=needed)
        if self.league:
            self.league.set_saved_checkpoints(self.run.checkpoints)

    # Evaluation

    def want_evaluation(self) -> None:
        """Request an evaluation of the checkpoint that is saved now.

        Of the waiting checkpoints, the oldest stays; the others are dropped in favor of this one.
        """
        oldest = [number for number in self.waiting if number != self.playing][:1]
        keep_numbers = {*self.carried_over, self.playing, *oldest}
        self.waiting = {n: seconds for n, seconds in self.waiting.items() if n in keep_numbers}
        if self.status.update != self.evaluated:
            self.waiting.setdefault(self.status.update, self.status.seconds)

    @property
    def has_request(self) -> bool:
        """Whether the checkpoint that waits longest for an evaluation has been written."""
        number = next(iter(self.waiting), -1)
        return number >= 0 and (self.run.checkpoints / f"{number:08d}").exists()

    def request(self, *, soon: bool = False) -> dict[str, Any] | None:
        """Return the next evaluation request, None if none is ready. soon: it may be small."""
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
            **exact_request(self.rules, self.plan.evaluation, self.status.seconds),
        }
        first = soon and number not in self.carried_over and not self.status.wins
        if first and has_first_look(self.plan.evaluation, self.opponents):
            self.quick_evaluation = number
            return first_look(request, self.rules)
        return request

    def add_evaluation(self, number: int, result: dict[str, Any]) -> dict[str, Any] | None:
        """Process the result of an evaluation: metrics, best checkpoint, early stopping."""
        seconds = self.waiting.pop(number, self.status.seconds)
        quick, self.quick_evaluation, self.playing = number == self.quick_evaluation, -1, -1
        self.evaluated = self.evaluated if quick else number
        self.carried_over.discard(number)
        if result.get("error"):
            warn(f"evaluation of update {number} failed: {result['error']}")
            return None
        opponents = [ALONE] if self.rules.seats == 1 else self.opponents
        results = {name: result["results"][name] for name in opponents if name in result["results"]}
        values = self._match_metrics(number, result["results"], opponents)
        if quick:
            self.metrics.add(number, values, seconds=seconds)
            return None
        if self.league and self.rules.seats > 1:
            for name in opponents:
                self.league.add_match(number, self.status.decisions, name, results[name])
        strength = strength_of(self.rules, results)
        values["eval/strength"] = strength
        values |= self._exact_metrics(result)
        if is_custom(self.rules):
            values["eval/games"] = self._count_episodes(results)
        values |= pace(self.first, results, seconds, self.rules)
        self.metrics.add(number, values, seconds=seconds)
        self._record_targets(guaranteed_share(self.rules, results), seconds)
        found = {"strength": strength}
        found |= {key: result[key] for key in (EXPLOITABILITY,) if key in result}
        before = str(self.run.checkpoints / f"{int(self.best['update']):08d}")
        if is_better(self.rules, self.best, found, results, result["results"].get(before)):
            self._set_best(number, found)
            self._add_best_to_league(number, seconds)
        self.evaluations_since_best = (
            0 if number == self.best["update"] else self.evaluations_since_best + 1
        )
        if self.course:
            self.course.record_evaluation(number, results)
        return results

    def _match_metrics(
        self, number: int, played: Mapping[str, Any], opponents: list[str]
    ) -> dict[str, float]:
        """Put match results into the status, and return them as metrics."""
        values = {}
        self.status.evaluated, self.status.wins = number, {}
        for opponent, result in played.items():
            name = opponent if opponent in opponents else PREVIOUS_BEST
            if self.league and opponent.endswith(SNAPSHOT):
                name = self.league.add_match(number, self.status.decisions, opponent, result)
                values[f"eval/{name}/win"] = result["win"]
                continue
            self.status.wins[name] = result
            self.status.remember(f"eval/{name}", result["score" if name == ALONE else "win"])
            values |= curves_of_match(name, result)
        return values

    def _exact_metrics(self, result: Mapping[str, Any]) -> dict[str, float]:
        """Return the exact exploitability, if it was measured; warn once if it cannot be."""
        what = "exploitability cannot be measured"
        if (why := result.get("not_exact")) and not self.has_event(what):
            self.record_event(what, why=why)
            if self.plan.evaluation.exploitability == "on":
                warn(f"eval.exploitability on: {why}")
        self.status.exploitability = found = result.get("exploitability")
        return {} if found is None else {"eval/exploitability": found}

    def _count_episodes(self, results: Mapping[str, Any]) -> float:
        """Return how many episodes were played in time; warn once if they are too few."""
        games = min(result["games"] for result in results.values())
        what = "evaluations have no time for all episodes"
        text = too_few(self.rules, self.plan.evaluation, games)
        if text and not self.has_event(what):
            self.record_event(what, episodes=games)
            warn(text)
        return float(games)

    def _add_best_to_league(self, number: int, seconds: float) -> None:
        """Add the best checkpoint to the league, if it can be read."""
        with suppress(checkpoints.CheckpointError):
            if self.league:
                saved = checkpoints.load(self.run.checkpoints / f"{number:08d}", segments=False)
                when = {"update": number, "decisions": int(saved.meta["decisions"])}
                self.league.new_best(saved.tensors["net"], **when, seconds=seconds)

    def _rate_by_return(self) -> None:
        """Choose the best checkpoint by training returns, if it cannot be evaluated."""
        earned, self.training_return = self.training_return, TrainingReturn()
        update = self.status.update
        if not by_training(self.rules) or not earned.games or update == self.best["update"]:
            return
        if self.best["update"] < 0 or earned.mean > self.best["strength"]:
            self._set_best(update, {"strength": earned.mean}, by="training return")

    def _set_best(self, number: int, found: Mapping[str, float], **how: Any) -> None:
        self.status.best = number
        self.best = {"update": number, **found}
        self.record_event("best", checkpoint=number, **found, **how)
        self._write_best()

    def _record_targets(self, least: float, seconds: float) -> None:
        """Record the time of every target that the lower bound has reached."""
        for target in self.plan.evaluation.target:
            if least >= target and not self.has_event("target reached", target=target):
                self.record_event("target reached", target=target, low=least, seconds=seconds)

    def close(self) -> None:
        try:
            self.saver.close()
        except checkpoints.CheckpointError as error:
            warn(str(error))
        self.metrics.close()
        if self.episodes_csv:
            self.episodes_csv.close()
        if self.league:
            self.league.close(self.status.update, self.status.decisions)


@contextmanager
def training_on() -> Iterator[None]:
    """Warn about a checkpoint that cannot be written, and continue."""
    try:
        yield
    except checkpoints.CheckpointError as error:
        warn(f"checkpoint not saved, training continues: {error}")
