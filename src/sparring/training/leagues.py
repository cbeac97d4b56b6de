"""Creates the leagues of a run or a population, new or from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.config import LeagueConfig
from sparring.errors import ConfigError, warn
from sparring.learn.acting import TakesOpponents
from sparring.learn.learner import Learner
from sparring.learn.plan import Participants, Plan
from sparring.store.archive import Archive, copy_archive, snapshots_in_slots
from sparring.store.archive_index import LEAGUE_FILE
from sparring.store.checkpoint import Checkpoint
from sparring.store.policies import policy_meta
from sparring.training.league import League
from sparring.training.records.run import Run

GIGABYTE = 10**9
NONE_YET = -1
"""Number of the last snapshot of a league without snapshots."""


def leagues_of(
    learner: Learner,
    plan: Plan,
    settings: Sequence[LeagueConfig],
    runs: Sequence[Run],
    *,
    resume: Checkpoint | None = None,
) -> list[League | None]:
    """Return one league per member, None without opponent slots."""
    opponent_slots = league_learner(learner, plan.participants)
    if opponent_slots is None:
        return [None] * len(runs)
    leagues: list[League] = []
    shared: list[League] = []
    for member, (league_settings, run) in enumerate(zip(settings, runs, strict=True)):
        if league_settings.shared and shared:
            archive = shared[0].archive
        else:
            policy = learner.policy(member)
            meta = policy_meta(policy.rules, policy.net, policy.meta)
            max_bytes = int(league_settings.gigabytes * GIGABYTE)
            archive = Archive(run.path, max_bytes=max_bytes, policy=meta)
            if resume is None:  # a run that diverged before its first checkpoint starts once more
                archive.forget_after(-1)
        league = League(
            league_settings, plan, opponent_slots, archive, name=run.name, member=member
        )
        if league_settings.shared:
            shared.append(league)
            league.sharing = shared
        saved = resume.meta.get("league") if resume else None
        if resume is not None and saved:
            copy_shared_archive(run, saved["home"])
            if saved.get("last") != NONE_YET and not archive.path.exists():
                warn(f"{archive.path} is gone; past selves in slots are met, the others are lost")
            needed = snapshots_in_slots(run.checkpoints)
            archive.forget_after(resume.number, last=saved.get("last"), needed=needed)
            league.restore(saved, resume.tensors["net"])
            league.set_saved_checkpoints(run.checkpoints)
        else:
            league.begin()
        leagues.append(league)
    return list(leagues)


def league_learner(learner: Learner, participants: Participants) -> TakesOpponents | None:
    """Return the learner if it has opponent slots, None if none are needed."""
    if not participants.slots:
        return None
    if not isinstance(learner, TakesOpponents):
        raise ConfigError(
            f"opponents: this learner takes no frozen policies; {type(learner).__name__} has no "
            "slots"
        )
    return learner


def copy_shared_archive(run: Run, home: str) -> None:
    """Copy a shared archive for a population's member that is resumed alone."""
    other = run.path.parent / home
    if home != run.path.name and not (run.path / LEAGUE_FILE).exists() and other.is_dir():
        copy_archive(other, run.path)
