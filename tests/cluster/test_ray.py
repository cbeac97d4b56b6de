"""One-node Ray: actors, runs and matches in it, held against the same without it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cluster.rays import NEEDS_RAY, learner_in
from cluster.supervisors import alone, settings
from sparring.cluster.ray.session import Cluster, connect
from sparring.config import TrainConfig
from sparring.errors import SparringWarning
from sparring.games.rules import Rules
from sparring.league.round_robin import RoundRobinSettings, play_round_robin
from sparring.store.policies import load_policy
from sparring.training.train import train_with

pytestmark = NEEDS_RAY


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with connect("local", cpus=4) as cluster:
        yield cluster


def test_in_lockstep_two_actors_in_ray_learn_what_one_process_does(cluster: Cluster) -> None:
    config = settings("tic_tac_toe", actors=2, distributed={"lockstep": True})
    here, there = alone(config), learner_in(cluster, config, shared=True)
    for update in range(4):
        one, other = here.iterate(update / 4)[0], there.iterate(update / 4)[0]
        assert (one.decisions, one.samples) == (other.decisions, other.samples)
        told = {name: value for name, value in other.stats.items() if name in one.stats}
        assert told == one.stats
    mine, theirs = here.snapshot(), there.snapshot()
    for name, value in mine.tensors["net"].items():
        assert torch.equal(value, theirs.tensors["net"][name]), name
    there.close()


def test_an_actor_that_takes_too_long_is_started_again(cluster: Cluster) -> None:
    config = settings("tic_tac_toe", actors=1, distributed={"timeout_s": 3.0})
    learner = learner_in(cluster, config, shared=True)
    learner.iterate(0.1)
    (pid,) = learner.supervisor.pids  # type: ignore[attr-defined]
    os.kill(pid, signal.SIGSTOP)
    with pytest.warns(SparringWarning, match="actor 0 hung"):
        while not learner.supervisor.restarts:
            learner.iterate(0.1)
    learner.iterate(0.1)
    learner.close()


def small(folder: Path, **changes: Any) -> TrainConfig:
    quick = {"eval": {"off": True, "final_games": 64}, "runs": str(folder), "updates": 3}
    return settings("tic_tac_toe", minutes=0.1, **{**quick, **changes})


def test_runs_as_tasks_are_the_runs_of_one_process(cluster: Cluster, tmp_path: Path) -> None:
    from sparring.cluster.ray.tasks import train_runs

    members = [small(tmp_path / "there", seed=seed, name=f"seed-{seed}") for seed in range(2)]
    members.append(replace(members[0], name="bad", init=str(tmp_path / "nowhere")))
    done = {one.number: one for one in train_runs(cluster, members)}
    assert sorted(done) == [0, 1, 2]
    assert "no policy" in str(done[2].error) and not done[0].error and not done[1].error
    assert not (tmp_path / "there" / "bad").exists()
    for number in range(2):
        here = train_with(replace(members[number], runs=str(tmp_path / "here")), quiet=True)
        weights = here.policy.net.state_dict()
        there = load_policy(done[number].summary["run"]).net.state_dict()
        assert all(torch.equal(weights[name], there[name]) for name in weights)
        assert set(done[number].summary["results"]) == {"random", "careful"}


def test_the_folder_of_a_run_comes_back_from_another_machine(
    cluster: Cluster, tmp_path: Path
) -> None:
    from sparring.cluster.ray.tasks import train_runs

    node, cluster.node = cluster.node, "another machine"
    try:
        (done,) = train_runs(cluster, [small(tmp_path, name="far")])
    finally:
        cluster.node = node
    assert done.summary["run"] == str(tmp_path / "far")
    assert load_policy(tmp_path / "far").rules.name == "tic_tac_toe"
    assert (tmp_path / "far" / "results.json").is_file()


def test_an_arena_in_a_cluster_says_the_same(cluster: Cluster, tmp_path: Path) -> None:
    from sparring.cluster.ray.tasks import play_pairings

    agent = train_with(small(tmp_path), quiet=True)
    rules, how = Rules("tic_tac_toe"), RoundRobinSettings(games=64, seed=3)
    players = [agent.policy, "random", "careful", agent.policy.always(greedy=False)]
    here = play_round_robin(rules, players, how)
    there = play_round_robin(
        rules, players, how, runner=lambda tables: play_pairings(cluster, rules, tables, how, 1)
    )
    assert [one.plain() for one in here.pairings] == [one.plain() for one in there.pairings]
    assert here.ratings == there.ratings
