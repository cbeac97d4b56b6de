"""Learners in several processes: a run with them is a run like any other."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.cluster.learners import with_replicas
from sparring.cluster.replicas.learner import ReplicatedPPO
from sparring.cluster.replicas.replica import Replica, ReplicaShare
from sparring.config import CollectConfig, EvaluationConfig, NetConfig, PPOConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.learn.algos import factory_of
from sparring.learn.learner import LostError, Overrides, Report, closing_learner
from sparring.pools.lineups import Lineup
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import written

SMALL: dict[str, Any] = {
    "updates": 4,
    "threads": 1,
    "device": "cpu",
    "net": {"hidden": [16]},
    "collect": {"games": 8, "steps": 12},
    "ppo": {"epochs": 2, "minibatch": 64},
    "eval": {"off": True, "final_games": 2},
}


def config_of(**changes: Any) -> TrainConfig:
    return TrainConfig(
        game="tic_tac_toe",
        threads=1,
        device="cpu",
        replicas=2,
        net=NetConfig(hidden=(16,)),
        collect=CollectConfig(games=8, steps=12),
        ppo=PPOConfig(epochs=2, minibatch=64),
        eval=EvaluationConfig(off=True),
        **changes,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algo": "dqn"}, "replicas 2 needs .*, and algo dqn is not one; use --algo ppo"),
        ({"cluster": "10.0.0.1:6379"}, "listens without a token.*--distributed.trusted_network"),
        ({"actors": 2}, "replicas 2 and actors 2 do not combine: actors play for one learner"),
        ({"replicas": 3}, "replicas 3: collect.games 8 does not divide equally; nearest: 6"),
        ({"replicas": 0}, "replicas"),
    ],
)
def test_what_learners_cannot_share_is_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    usual = {k: v for k, v in SMALL.items() if k != "ppo" or "algo" not in settings}
    with pytest.raises(ConfigError, match=message):
        sparring.train(
            "tic_tac_toe", **{**usual, "replicas": 2, **settings}, runs=str(tmp_path), quiet=True
        )
    assert not list(tmp_path.iterdir())


def test_a_hierarchy_has_no_replicas(tmp_path: Path) -> None:
    usual = {k: v for k, v in SMALL.items() if k not in ("net", "ppo")}
    with pytest.raises(
        ConfigError,
        match=r"replicas 2 needs .*; leave hierarchy\.on out",
    ):
        sparring.train(
            "skull_king", **{**usual, "replicas": 2, "hierarchy": True}, runs=str(tmp_path)
        )


def weights_of(learner: ReplicatedPPO) -> list[torch.Tensor]:
    return [p.detach().clone() for p in learner.net.parameters()]


def children(learner: ReplicatedPPO) -> list[int]:
    return [other.pid for other in learner.others]


@pytest.mark.slow
def test_two_processes_learn_save_and_go_on_as_one() -> None:
    """One pair of processes for all of it: starting them takes seconds."""
    config = config_of()
    learner = with_replicas(config, resolve([config]))
    try:
        check_reports([learner.iterate(0.0)[0] for _ in range(3)])
        check_other_terms(learner, config)
        saved = learner.snapshot()
        assert {"games.bin", "1.games.bin", "open.bin", "1.open.bin"} <= saved.blobs.keys()
        first = [learner.iterate(0.5)[0].decisions for _ in range(2)]
        weights = weights_of(learner)
        learner.restore(saved)
        assert [learner.iterate(0.5)[0].decisions for _ in range(2)] == first
        for mine, theirs in zip(weights, weights_of(learner), strict=True):
            assert torch.equal(mine, theirs)
        check_death(learner)
    finally:
        pids = children(learner)
        learner.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def check_reports(reports: list[Report]) -> None:
    """Decisions, games and samples of both are counted; tic-tac-toe has a decision per step."""
    for number, report in enumerate(reports, 1):
        assert report.decisions == number * 8 * 12
        assert report.stats["learning/decisions"] == 8 * 12
        assert report.episodes is not None
        assert report.stats["charts/games"] == len(report.episodes)
        assert set(report.episodes.game.tolist()) <= set(range(8))
        assert {0, 4} & {game - game % 4 for game in report.episodes.game.tolist()}
    assert any((report.episodes.game >= 4).any() for report in reports if report.episodes)
    assert reports[-1].samples == sum(int(r.stats["learning/samples"]) for r in reports)


def check_other_terms(learner: ReplicatedPPO, config: TrainConfig) -> None:
    """Line-ups, settings and rewards reach the other one, too."""
    settings = replace(config.ppo, epochs=1)
    rewards = dict.fromkeys(learner.rules.parts, (2.0,))
    learner.apply_overrides(
        Overrides(settings=settings, lineups=(Lineup((0, "random")),), rewards=rewards)
    )
    for _ in range(3):
        (report,) = learner.iterate(0.2)
    assert report.episodes is not None
    late = report.episodes.game >= 4
    assert (report.episodes.policy[late] < -1).any(), "the other one's games have bots by now"
    assert report.met is not None
    assert report.met.sum() == len(report.episodes)
    assert learner.seated()[0] == 8


def check_death(learner: ReplicatedPPO) -> None:
    """A killed one ends the run; what was learned can be saved, games begin anew."""
    updates = learner.updates
    os.kill(children(learner)[0], signal.SIGKILL)
    with pytest.raises(
        LostError,
        match=r"replica 1 has died: its process was killed, as happens .*; the run has ended",
    ):
        learner.iterate(0.9)
    left = learner.snapshot()
    assert left.meta["update"] == updates
    assert not left.blobs
    assert np.isfinite(left.meta["decisions"])


def test_a_lower_rate_is_lower_for_every_replica() -> None:
    config = config_of()
    share = asdict(ReplicaShare(rank=1, size=2, games=4, threads=1, lr_factor=0.1))
    alone = replace(config, replicas=1)
    (wanted,) = resolve([alone], lr_factor=0.1).settings
    assert wanted.lr == config.ppo.lr.scaled(0.1)
    assert Replica(written(config), share).learner.learners[""].settings == wanted


@pytest.mark.slow
def test_critics_of_two_processes_learn_as_one() -> None:
    """Both play the games of one process; sums of gradients are rounded in another order."""
    net = NetConfig(hidden=(16,), critic="full")
    config = replace(config_of(), game="leduc_poker", net=net)
    learner = with_replicas(config, resolve([config]))
    try:
        one = factory_of("ppo")(resolve([replace(config, replicas=1)]))
        for _ in range(2):
            mine, theirs = (each.iterate(0.0)[0].stats for each in (learner, one))
            for name in ("losses/critic_loss", "losses/value_loss"):
                assert mine[name] == pytest.approx(theirs[name], rel=1e-2)
    finally:
        learner.close()


@pytest.mark.slow
def test_a_learner_in_ray_learns_with_the_run() -> None:
    pytest.importorskip("ray")
    config = config_of(cluster="local")
    learner = with_replicas(config, resolve([config]))
    try:
        reports = [learner.iterate(0.0)[0] for _ in range(2)]
        assert reports[-1].decisions == 2 * 8 * 12
        assert {"games.bin", "1.games.bin"} <= learner.snapshot().blobs.keys()
    finally:
        learner.close()


@pytest.mark.slow
def test_a_run_whose_replica_dies_is_saved_and_goes_on(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill(watched: Any) -> None:
        if watched.status.update == 2 and not killed:
            (pid,) = [int(p) for p in replica_pids()]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    settings = {**SMALL, "replicas": 2, "name": "a", "runs": str(tmp_path), "quiet": True}
    with pytest.raises(LostError, match="is saved without its games"):
        sparring.train("tic_tac_toe", **settings, on_update=kill)
    events = json.loads((tmp_path / "a" / "events.json").read_text())
    assert [event["event"] for event in events if event["event"] == "lost"] == ["lost"]
    agent = sparring.resume(str(tmp_path / "a"), quiet=True)
    assert agent.ended == "done"
    assert not replica_pids()


def replica_pids() -> list[str]:
    """Processes of ours that are other learners."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
        except (OSError, IndexError):
            continue
        if b"sparring.cluster.replicas.replica" in words and int(parent) == os.getpid():
            found.append(folder.name)
    return found


def test_every_replica_makes_its_share_of_own_environments() -> None:
    """All of them are the games of one process, each once, and normalized by the same numbers."""
    from combinations.trying import learner_of

    net = NetConfig(hidden=(16,), normalize=True)
    config = replace(config_of(), game="own_envs:make_cards", net=net)
    learner: Any = learner_of(config, resolve([config]))
    one = replace(config, replicas=1)
    alone: Any = factory_of("ppo")(resolve([one]))
    seen = [learner.inner.collector.rollout.obs, learner.others[0].replica.learner.collector]
    with closing_learner(learner):
        (report,), (whole,) = learner.iterate(0.0), alone.iterate(0.0)
        rows = [seen[0], seen[1].rollout.obs]
        first, second = (each[len(each) - 12 * 4 :][:4] for each in rows)
        together = alone.collector.rollout.obs
        assert (together[len(together) - 12 * 8 :][:8] == np.concatenate([first, second])).all()
        assert report.decisions == whole.decisions == 12 * 8
        mine, theirs = learner.net, learner.others[0].replica.learner.net
        for name, value in mine.state_dict().items():
            assert torch.equal(value, theirs.state_dict()[name]), name
        assert float(mine.normalizer.count) == float(alone.net.normalizer.count) == 12 * 8
        saved = learner.snapshot()
        assert {"carried", "carried.1"} <= saved.tensors.keys() and not saved.blobs
        learner.iterate(0.5)
        learner.restore(saved)
        assert learner.iterate(0.5)[0].decisions == 2 * 12 * 8


@pytest.mark.parametrize(
    ("game", "changes", "message"),
    [
        (
            "own_envs:make_vector",
            {"collect": CollectConfig(games=4, steps=12)},
            r"replicas 2: .* vector of 4 envs.*set collect.games 8",
        ),
        ("own_envs:make_cards", {"replicas": 3}, "collect.games 8 does not divide equally"),
    ],
)
def test_own_environments_that_do_not_divide_are_refused(
    game: str, changes: dict[str, Any], message: str
) -> None:
    config = replace(config_of(), game=game, **changes)
    with pytest.raises(ConfigError, match=message):
        with_replicas(config, resolve([config]))
