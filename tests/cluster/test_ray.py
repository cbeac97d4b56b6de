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
from sparring.cluster.ray import resources
from sparring.cluster.ray.host import ActorHost
from sparring.cluster.ray.session import Cluster, connect
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.games.rules import Rules
from sparring.league.arena import evaluate
from sparring.league.round_robin import RoundRobinSettings, play_round_robin
from sparring.store.policies import load_policy
from sparring.training.train import resume, train_with

pytestmark = NEEDS_RAY


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with connect("local", cpus=4, gpus=2) as cluster:
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
    from sparring.cluster.ray.runs import train_runs

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


def test_runs_that_ask_for_a_gpu_have_one_each(cluster: Cluster, tmp_path: Path) -> None:
    from sparring.cluster.ray.runs import train_runs

    members = [small(tmp_path, device="auto", seed=n, name=f"gpu-{n}") for n in range(3)]
    told: list[str] = []
    places = [one.summary["place"] for one in train_runs(cluster, members, told.append)]
    assert sorted({place.rpartition(", ")[2] for place in places}) == ["GPU 0", "GPU 1"]
    assert told == ["3 runs of 1 CPU and 1 GPU each: 2 at once, the others as soon as these end"]
    with pytest.raises(ConfigError, match="threads 9: a run needs 9 CPUs and 1 GPU on one machine"):
        list(train_runs(cluster, [small(tmp_path, device="auto", threads=9)]))
    with pytest.raises(ConfigError, match="Ray chooses the GPU of every run; use --device cuda"):
        list(train_runs(cluster, [replace(members[0], device="cuda:1")]))


@pytest.mark.timeout(120)
def test_an_actor_without_a_cpu_says_what_it_waits_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "WAIT_LINE_S", 1.0)
    holder = cluster.ray.remote(num_cpus=3)(ActorHost).remote()  # somebody else's
    cluster.ray.get(holder.pid.remote())
    config = settings("tic_tac_toe", actors=2, distributed={"timeout_s": 60.0})
    learner = learner_in(cluster, config, shared=True)
    with pytest.warns(SparringWarning, match="waiting for 1 CPU: the cluster has 4 CPUs, 4 in"):
        while learner.supervisor._wait_line.waited_s < 2:  # type: ignore[attr-defined]
            learner.iterate(0.1)
    cluster.ray.kill(holder)
    while not all(map(learner.supervisor.is_ready, range(2))):
        learner.iterate(0.1)
    assert not learner.supervisor.restarts
    learner.close()


def test_an_evaluation_in_a_cluster_says_the_same(cluster: Cluster, tmp_path: Path) -> None:
    from sparring.cluster.ray.matches import play_pairings

    agent = train_with(small(tmp_path), quiet=True)
    rules, how = Rules("tic_tac_toe"), RoundRobinSettings(games=64, seed=3)
    against = ["random", "careful", agent.policy.always(greedy=False)]
    here = evaluate(agent.policy, against, rules=rules, games=64, seed=3)

    def runner(tables: Any) -> Any:
        return play_pairings(cluster, rules, tables, how, threads=1, same_deals=True)

    there = evaluate(agent.policy, against, rules=rules, games=64, seed=3, runner=runner)
    assert list(here) == list(there)
    assert [one.summary() for one in here.values()] == [one.summary() for one in there.values()]


def test_the_folder_of_a_run_comes_back_from_another_machine(
    cluster: Cluster, tmp_path: Path
) -> None:
    from sparring.cluster.ray.runs import train_runs

    node, cluster.node = cluster.node, "another machine"
    try:
        (done,) = train_runs(cluster, [small(tmp_path, name="far")])
    finally:
        cluster.node = node
    assert done.summary["run"] == str(tmp_path / "far")
    assert load_policy(tmp_path / "far").rules.name == "tic_tac_toe"
    assert (tmp_path / "far" / "results.json").is_file()
    resumed = resume(tmp_path / "far", updates=4, quiet=True)
    assert resumed.run == tmp_path / "far" and resumed.policy.meta["update"] == 4
    assert str(tmp_path) in (tmp_path / "far" / "config.toml").read_text("utf-8")


def test_an_arena_in_a_cluster_says_the_same(cluster: Cluster, tmp_path: Path) -> None:
    from sparring.cluster.ray.matches import play_pairings

    agent = train_with(small(tmp_path), quiet=True)
    rules, how = Rules("tic_tac_toe"), RoundRobinSettings(games=64, seed=3)
    players = [agent.policy, "random", "careful", agent.policy.always(greedy=False)]
    here = play_round_robin(rules, players, how)
    there = play_round_robin(
        rules,
        players,
        how,
        runner=lambda tables: play_pairings(cluster, rules, tables, how, threads=1),
    )
    assert [one.plain() for one in here.pairings] == [one.plain() for one in there.pairings]
    assert here.ratings == there.ratings
