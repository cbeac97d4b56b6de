"""The leagues of a run or of a population, new or as a checkpoint has them."""

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
"""What a league says of its last snapshot that never had one."""


def leagues_of(
    learner: Learner,
    plan: Plan,
    settings: Sequence[LeagueConfig],
    runs: Sequence[Run],
    *,
    resume: Checkpoint | None = None,
) -> list[League | None]:
    """One league per member, None where nobody is in slots."""
    taking = league_learner(learner, plan.participants)
    if taking is None:
        return [None] * len(runs)
    leagues: list[League] = []
    common: list[League] = []
    for member, (asked, run) in enumerate(zip(settings, runs, strict=True)):
        if asked.shared and common:
            archive = common[0].archive
        else:
            policy = learner.policy(member)
            meta = policy_meta(policy.rules, policy.net, policy.meta)
            most = int(asked.gigabytes * GIGABYTE)
            archive = Archive(run.path, max_bytes=most, policy=meta)
            if resume is None:  # a run that diverged before its first checkpoint starts once more
                archive.forget_after(-1)
        league = League(asked, plan, taking, archive, name=run.name, member=member)
        if asked.shared:
            common.append(league)
            league.sharing = common
        saved = resume.meta.get("league") if resume else None
        if resume is not None and saved:
            bring_home(run, saved["home"])
            if saved.get("last") != NONE_YET and not archive.path.exists():
                warn(f"{archive.path} is gone; past selves in slots are met, the others are lost")
            needed = snapshots_in_slots(run.checkpoints)
            archive.forget_after(resume.number, last=saved.get("last"), needed=needed)
            league.restore(saved, resume.tensors["net"])
            league.noticed(run.checkpoints)
        else:
            league.begin()
        leagues.append(league)
    return list(leagues)


def league_learner(learner: Learner, participants: Participants) -> TakesOpponents | None:
    """The learner as a league talks to it, None where nobody is in slots."""
    if not participants.slots:
        return None
    if not isinstance(learner, TakesOpponents):
        raise ConfigError(
            f"opponents: this learner takes no frozen policies; {type(learner).__name__} has no "
            "slots"
        )
    return learner


def bring_home(run: Run, home: str) -> None:
    """Give a member of a population that shared an archive one of its own, before it goes on."""
    other = run.path.parent / home
    if home != run.path.name and not (run.path / LEAGUE_FILE).exists() and other.is_dir():
        copy_archive(other, run.path)
