"""Every learner from actors: in lock-step it is the run in one process, bit for bit."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from cluster.supervisors import LocalSupervisor, shared_memory, together
from cluster.test_actors import check_nothing_left, recorded
from cluster.test_lanes import check_same, check_same_tensors, iterated, scripted
from own_envs import diary_length
from sparring.cluster.actors.packing import counts_of
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.learn.advantages import VTrace
from sparring.learn.learner import Learner, Overrides
from sparring.learn.replay import ReplayBatch
from sparring.schedule import Moment
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset

SLOW = pytest.mark.slow
TINY: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "collect": {"games": 8, "steps": 8},
    "eval": {"off": True},
    "tensorboard": False,
    "threads": 1,
    "device": "cpu",
}
REPLAY: dict[str, Any] = {"capacity": 4096, "batch": 16, "warmup": 100, "ratio": 1.0}
BOX: dict[str, Any] = {"net": {"hidden": (16,), "std": "predicted", "squash": True}}
RUNS: dict[str, dict[str, Any]] = {
    "dqn": {
        "replay": {**REPLAY, "prioritized": True, "n_step": 3},
        "dqn": {"epsilon": "0%:1.0,100%:0.1", "epsilon_spread": 3.0, "win_bonus": 0.5},
    },
    "qrdqn": {"replay": REPLAY, "qrdqn": {"quantiles": 8}},
    "pqn": {"algo": "dqn", "dqn": {"mode": "rollouts", "epochs": 1, "minibatch": 32}},
    "sac": {"game": "laser_hockey", "replay": REPLAY, **BOX},
    "redq": {"replay": {**REPLAY, "ratio": 2.0}},
    "td3": {
        "game": "laser_hockey",
        "replay": REPLAY,
        "net": {"hidden": (16,), "std": "shared", "squash": True},
        "td3": {"noise": "0%:0.5,100%:0.1"},
    },
    "gumbel": {
        "collect": {"games": 4, "steps": 4},
        "gumbel": {"simulations": 8, "fast_simulations": 3, "minibatch": 16, "epochs": 1},
    },
    "worlds": {
        "algo": "gumbel",
        "game": "leduc_poker",
        "collect": {"games": 4, "steps": 4},
        "gumbel": {"simulations": 8, "minibatch": 16, "epochs": 1, "eta": "0%:2,100%:1"},
        "heads": {"hidden": 0.5},
    },
    "roles": {
        "algo": "ppo",
        "game": "skull_king",
        "set": ("num_players=3", "rounds=1,2"),
        "collect": {"games": 8, "steps": 16},
        "hierarchy": {"on": True},
    },
    "hindsight": {
        "algo": "dqn",
        "game": "skull_king",
        "set": ("num_players=3", "rounds=1,2"),
        "collect": {"games": 8, "steps": 16},
        "replay": REPLAY,
        "hindsight": {"on": True},
    },
}
"""Settings of runs with every learner."""
QUICK = ("dqn", "sac", "gumbel", "roles")


def config_of(name: str, **changes: Any) -> TrainConfig:
    run = {"algo": name, "game": "tic_tac_toe", **RUNS[name]}
    mode, by_role = run.get("dqn", {}).get("mode", ""), "hierarchy" in run
    base = with_preset(run.pop("game"), algo=run["algo"], mode=mode, hierarchy=by_role)
    config: TrainConfig = merged(merged(base, TINY, "test"), {**run, **changes}, "test")
    return config


def in_one_process(config: TrainConfig) -> Learner:
    one = replace(config, actors=0)
    return make_learner(one, resolve([one]))


@pytest.mark.parametrize("actors", [1, pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in RUNS]
)
def test_in_lockstep_every_learner_gets_what_it_would_have_collected(
    name: str, actors: int
) -> None:
    config = config_of(name, actors=actors, distributed={"lockstep": True})
    one, distributed, again = in_one_process(config), together(config), together(config)
    for mine, theirs in zip(iterated(one), iterated(distributed), strict=True):
        check_same(mine, theirs)
    saved = distributed.snapshot()
    check_same_tensors(one.snapshot(), saved)
    again.restore(saved)
    check_same(distributed.iterate(0.5)[0], again.iterate(0.5)[0])
    check_same_tensors(distributed.snapshot(), again.snapshot())


def test_phases_reach_searches_and_exploration_in_actors() -> None:
    """Settings of the algorithm act where games are played."""
    for name, changes in {
        "gumbel": {"full_share": 1.0, "fast_simulations": 2},
        "dqn": {"epsilon": "0.9"},
    }.items():
        config = config_of(name, actors=1, distributed={"lockstep": True})
        learners = [in_one_process(config), together(config)]
        overrides = Overrides(settings=merged(getattr(config, name), changes, "test"))
        for learner in learners:
            learner.iterate(0.0)
            learner.apply_overrides(overrides)  # type: ignore[attr-defined]
        for mine, theirs in zip(*map(iterated, learners), strict=True):
            check_same(mine, theirs)


# Without lock-step

LATE: dict[str, Any] = {"actors_per_update": 1, "max_lag": 5, "queue": 1}


@pytest.mark.parametrize(
    "name", [name if name == "roles" else pytest.param(name, marks=SLOW) for name in RUNS]
)
def test_every_learner_takes_rollouts_as_they_come_and_counts_each_once(name: str) -> None:
    config = config_of(name, actors=4, distributed=LATE)
    learner = together(config, deliver=scripted(1))
    supervisor = learner.supervisor
    assert isinstance(supervisor, LocalSupervisor)
    for update in range(6):
        if update == 3:
            supervisor.kill(2)
        report = learner.iterate(update / 6)[0]
        assert all(np.isfinite(value) for value in report.stats.values())
    queues = learner.collector.queues
    waiting = {id(one.batch) for queue in queues for one in queue.pending if one.batch}
    taken = [batch for batch in supervisor.handed_in if id(batch) not in waiting]
    counted = sum(counts_of(batch.arrays)["decisions"] for batch in taken)
    assert counted == learner.collector.decisions == report.decisions


def test_a_replay_holds_what_was_played_whoever_is_late_or_dies() -> None:
    """Every sample of n steps is a piece of one episode, with its rewards and its end."""
    gamma, changes = 0.9, {"actors": 3, "distributed": LATE, "collect": {"games": 6, "steps": 5}}
    replay = {**REPLAY, "n_step": 3, "batch": 64, "ratio": 4.0}
    base = merged(TrainConfig(), TINY, "test")
    own = {"game": "own_envs:make_diary", "algo": "dqn", "dqn": {"gamma": gamma}}
    config = merged(base, {**own, **changes, "replay": replay}, "test")
    learner = together(config, deliver=scripted(2))
    assert isinstance(learner.supervisor, LocalSupervisor)
    for update in range(12):
        if update in (3, 7):
            learner.supervisor.kill(update % 3)
        learner.iterate(0.0)
        buffer = learner.inner.experience.replay
        stored = buffer.ring["obs"][: buffer.head].view(np.float32)[:, :2]
        decided = stored[buffer.ring["end"][: buffer.head] > 0]
        assert len(np.unique(decided, axis=0)) == len(decided) == len(buffer)
        check_true(buffer.sample(update), gamma)


def check_true(samples: ReplayBatch, gamma: float) -> None:
    pair = samples.obs, samples.next_obs
    seen, after = (one.numpy().view(np.float32)[:, :2] for one in pair)
    for at, ((number, age), (then, later)) in enumerate(zip(seen, after, strict=True)):
        left, discount = diary_length(int(number)) - age, float(samples.discount[at])
        steps = int(later - age) if discount else int(left)
        assert 1 <= steps <= min(3, left) and number == then
        assert discount == pytest.approx(gamma**steps) or (discount == 0 and number % 2 == 0)
        paid = sum(gamma**step * (age + step + 1) for step in range(steps))
        assert float(samples.reward[at]) == pytest.approx(paid, rel=1e-5)


@SLOW
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
@pytest.mark.parametrize("name", ["dqn", "gumbel"])
def test_kills_of_processes_lose_no_training_and_leave_none(name: str) -> None:
    before = len(shared_memory())
    config = config_of(name, actors=2, distributed={"actors_per_update": 1})
    learner, supervisor = recorded(config)
    try:
        decisions, kills = 0, 0
        while kills < 5 or supervisor.supervisor.restarts < 5:
            report = learner.iterate(0.0)[0]
            assert report.decisions == supervisor.learned_from(learner) > decisions
            decisions = report.decisions
            ready = [one for one in supervisor.supervisor._handles if supervisor.has_played(one)]
            if kills == supervisor.supervisor.restarts < 5 and ready:
                os.kill(ready[kills % len(ready)].process.pid, signal.SIGKILL)
                kills += 1
        assert report.stats["distributed/lost"] <= 5
    finally:
        learner.close()
    del learner, supervisor, report, ready
    check_nothing_left(before)


def test_late_decisions_of_every_role_weigh_as_one_policy_says() -> None:
    """Where the policy has not changed, V-trace by role is GAE by role."""
    one, other = (cast(Any, in_one_process(config_of("roles"))) for _ in range(2))
    other.correction = late = AllLate()
    found = []
    for learner in (one, other):
        learner.collector.collect(0)
        found.append(learner.targets(learner.hparams_at(Moment(0, 0.0))))
    (samples, plain), (again, weighed) = found
    assert np.array_equal(samples, again) and len(samples) > 50
    for name, array in plain.items():
        np.testing.assert_allclose(weighed[name][samples], array[samples], atol=1e-4)
    assert late.figures["distributed/rho_mean"] == pytest.approx(1.0, abs=1e-4)


class AllLate(VTrace):
    """Takes all decisions for those of older weights."""

    def _stale(self, collector: Any) -> Any:
        return np.arange(collector.transitions.max_pending, collector.transitions.places)


def test_what_only_some_learners_have_is_refused_for_others() -> None:
    config = config_of("gumbel", actors=2, distributed={"c_clip": 0.5})
    with pytest.raises(ConfigError, match=r"distributed\.c_clip 0\.5 needs .*; use --algo ppo"):
        resolve([config])
