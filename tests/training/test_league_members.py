"""Members of a league on a CPU: they take turns, meet each other, and exploiters find something."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import sparring
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.league.roles import EXPLOITER, LEAGUE_EXPLOITER, MAIN
from sparring.learn.learner import DivergedError, Report
from sparring.learn.members import TurnTaking
from sparring.learn.plan import Plan
from sparring.store.archive import Archive
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, merged
from sparring.training.records.metrics import read
from sparring.training.train import resume, train_population
from training.run_helpers import settings

ROLES = f'league.role="{MAIN}","{EXPLOITER}","{LEAGUE_EXPLOITER}"'
GAME: dict[str, Any] = {
    "game": "rock_paper_scissors",
    "net": {"hidden": (16,)},
    "collect": {"games": 256, "steps": 4},
    "ppo": {"epochs": 2, "minibatch": 256, "lr": 1e-2, "entropy": 0.0, "target_kl": 0.0},
    "opponents": ("past=1",),
    "league": {"shared": True, "every_decisions": 2000, "slots": 8},
    "checkpoint_every_s": 60.0,
}


def league_of(folder: Path, **changes: Any) -> TrainConfig:
    return settings(folder, **{**GAME, "vary": (ROLES,), "name": "one", **changes})


def test_exploiters_are_trained_on_a_cpu_and_main_agents_meet_them(tmp_path: Path) -> None:
    agents = train_population(league_of(tmp_path, decisions=60_000, updates=0), quiet=True)
    assert [agent.run.name for agent in agents] == ["one-1", "one-2", "one-3"]
    archive = Archive(agents[0].run, max_bytes=0)
    roles = {entry.hash: entry.role for entry in archive.entries()}
    found = Counter(roles.values())
    assert min(found[MAIN], found[EXPLOITER], found[LEAGUE_EXPLOITER]) > 0, found
    met: dict[str, set[str]] = {}
    for one in archive.results():
        met.setdefault(one.member, set()).add(roles.get(one.opponent, ""))
    assert {MAIN, EXPLOITER, LEAGUE_EXPLOITER} <= met["one-1"], "main agents meet everybody"
    assert met["one-2"] - {""} == {MAIN}, "exploiters meet main agents alone"
    assert {MAIN, EXPLOITER, LEAGUE_EXPLOITER} <= met["one-3"]


def weights(learner: Any, member: int = 0) -> dict[str, torch.Tensor]:
    net: dict[str, torch.Tensor] = learner.policy(member).net.state_dict()
    return net


def plan_for(config: TrainConfig) -> Plan:
    return resolve(members_of(config))


def test_members_learn_what_they_would_learn_alone(tmp_path: Path) -> None:
    """Without anybody's past they have nothing in common but the process."""
    config = league_of(
        tmp_path, opponents=("self=1",), vary=("ppo.lr=1e-2,1e-3",), device="cpu", population=2
    )
    together = make_learner(config, plan_for(config))
    assert isinstance(together, TurnTaking)
    singles = [make_learner(member, resolve([member])) for member in members_of(config)]
    for progress in (0.0, 0.1):
        reports = together.iterate(progress)
        alone = [single.iterate(progress)[0] for single in singles]
        assert [one.decisions for one in reports] == [one.decisions for one in alone]
    for number, single in enumerate(singles):
        mine, theirs = weights(together, number), weights(single)
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert not torch.equal(*(next(iter(weights(together, n).values())) for n in (0, 1)))
    assert together.phases.take()["update"] > 0 and together.updates == 2


def test_the_same_seed_trains_the_same_members_and_one_goes_on_alone(tmp_path: Path) -> None:
    runs = [
        train_population(league_of(tmp_path / name, updates=6), quiet=True) for name in ("a", "b")
    ]
    for one, other in zip(*runs, strict=True):
        mine, theirs = one.policy.net.state_dict(), other.policy.net.state_dict()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    continued = resume(runs[0][1].run, updates=8, quiet=True)
    assert continued.decisions > runs[0][1].decisions
    assert (continued.run / "league.sqlite").exists(), "with a copy of the archive of all"


def test_a_member_that_diverges_stops_and_the_others_go_on(tmp_path: Path) -> None:
    config = league_of(tmp_path, opponents=("self=1",), vary=(), device="cpu", population=2)
    together = make_learner(config, plan_for(config))
    assert isinstance(together, TurnTaking)
    together.iterate(0.0)
    before = together.last[0]

    def diverge(progress: float) -> list[Report]:
        raise DivergedError("the loss is not finite")

    together.members[0].iterate = diverge  # type: ignore[method-assign]
    first, second = together.iterate(0.1)
    assert first.diverged == "the loss is not finite" and first.decisions == before.decisions
    assert not second.diverged and second.decisions > before.decisions
    assert not together.iterate(0.2)[0].diverged, "it is said once"


def test_members_imitate_once_and_each_is_held_to_it(tmp_path: Path) -> None:
    wanted = {"imitate": ("paper",), "imitation": {"games": 50, "epochs": 1}, "vary": ()}
    agents = train_population(league_of(tmp_path, updates=2, population=2, **wanted), quiet=True)
    for agent in agents:
        assert read(agent.run)["losses/reference_kl"][2][-1] >= 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"league": {"shared": False}, "population": 2}, "population of 2 needs games and netw"),
        ({"actors": 2}, "members take turns in one process"),
        ({"vary": ('league.role="exploiter","league-exploiter"',)}, "no main agent to meet"),
    ],
)
def test_what_does_not_go_together_is_refused(
    changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    config = merged(league_of(tmp_path, updates=1), changes, "test")
    with pytest.raises(ConfigError, match=told):
        train_population(config, quiet=True)
    assert not list(tmp_path.glob("one*"))


def test_from_python_members_of_a_shared_league_are_trained_at_once(tmp_path: Path) -> None:
    given = {key: value for key, value in GAME.items() if key != "game"}
    given |= {"runs": str(tmp_path), "updates": 2, "tensorboard": False, "eval": {"off": True}}
    agents = sparring.train("rock_paper_scissors", population=2, quiet=True, device="cpu", **given)
    assert len({agent.policy.name for agent in agents}) == 2
    assert len(Archive(agents[0].run, max_bytes=0).entries()) > 1
