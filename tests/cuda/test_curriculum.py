"""Phases on a GPU: members change apart, schedules arrive, and runs resume in any phase."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from curriculum.course_helpers import SKULL_KING, Reference, moments, three_phases
from sparring.config import (
    CollectConfig,
    DQNConfig,
    EvaluationConfig,
    NetConfig,
    PPOConfig,
    ReplayConfig,
    TrainConfig,
)
from sparring.curriculum.state import CurriculumState
from sparring.learn.learner import apply_game_overrides
from sparring.pools import LEARNER, Lineup, Mix, Pool
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment
from sparring.store import checkpoint as checkpoints
from sparring.training.records.metrics import read
from sparring.training.train import resume, train_population, train_with

PHASES = [
    {
        "name": "alone",
        "decisions": 2500,
        "opponents": ["self=1"],
        "set": {"round_weights": [3, 1, 1]},
        "ppo": {"lr": "0:1e-3,2500:1e-4"},
    },
    {
        "name": "mixed",
        "decisions": 4000,
        "opponents": ["self=1", "captain=0:0.1,4000:3", "past=1"],
        "set": {"round_weights": ["0:1,4000:9", 1, 1]},
        "rewards": {"score_delta": "0%:1,100%:0.3"},
    },
    {"name": "last", "opponents": ["captain=1"]},
]


def config(runs: Path, **changes: Any) -> TrainConfig:
    return replace(
        TrainConfig(
            game="skull_king",
            set=("rounds=1,2,3",),
            opponents=("self=1", "captain=1"),
            device="cuda",
            runs=str(runs),
            net=NetConfig(hidden=(64, 32)),
            collect=CollectConfig(games=64, steps=20),
            ppo=PPOConfig(minibatch=512, lr=1e-3, entropy=0.01),
            eval=EvaluationConfig(off=True),
            tensorboard=False,
        ),
        **changes,
    )


def last(run: Path) -> checkpoints.Checkpoint:
    folder = checkpoints.newest_valid(run / "checkpoints")
    assert folder is not None
    return checkpoints.load(folder)


def words(phases: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(map(json.dumps, phases))


def test_members_that_change_apart_play_what_pools_of_their_own_play() -> None:
    draw, games, seeds = np.random.default_rng(2), 32, (3, 4)
    lineups = [[Lineup((LEARNER, *(who,) * 3))] for who in ("captain", LEARNER, 1, Mix("past"))]
    together = CudaPool(SKULL_KING, 2 * games, seeds=seeds, mixes=("past",))
    apart = [Pool(SKULL_KING, games, seed=seed, threads=1, mixes=("past",)) for seed in seeds]
    for pool in (together, *apart):
        pool.reset()
    for _ in range(200):
        member = int(draw.integers(2))
        alone = apart[member]
        if draw.random() < 0.3:
            chosen = lineups[draw.integers(4)]
            together.set_lineups(chosen, together.mixes, member=member)
            alone.set_lineups(chosen, alone.mixes)
            together.set_mixes({"past": {2: 1.0}}, member=member)
            alone.set_mixes({"past": {2: 1.0}})
        if draw.random() < 0.3:
            weights = draw.integers(1, 5, size=3).tolist()
            together.set_config(member=member, round_weights=weights)
            alone.set_config(round_weights=weights)
        if draw.random() < 0.3:
            paid = {"score_delta": float(draw.random())}
            together.set_rewards(paid, member=member)
            alone.set_rewards(paid)
        actions = together.sample_actions().cpu().numpy()
        batch = together.step(actions)
        for number, pool in enumerate(apart):
            mine = slice(number * games, (number + 1) * games)
            assert np.array_equal(pool.sample_actions(), actions[mine])
            stepped = pool.step(actions[mine])
            assert np.array_equal(batch.obs[mine].cpu().numpy(), stepped.obs)
            assert np.array_equal(batch.reward[mine].cpu().numpy(), stepped.reward)
            assert np.array_equal(batch.policy[mine].cpu().numpy(), stepped.policy)
    for number, pool in enumerate(apart):
        mine = slice(number * games, (number + 1) * games)
        assert np.array_equal(together.tables[mine].cpu().numpy(), pool._native.envs)
        assert together.policies_of(number) == pool.policies
    assert apart[0].rules.config != apart[1].rules.config
    together.load_state(apart[1].state(), 1)


def test_at_1000_points_the_device_has_what_the_schedules_say() -> None:
    course, reference = CurriculumState(three_phases()), Reference()
    pool = CudaPool(SKULL_KING, 64, seeds=(1, 2))
    plain = Pool(SKULL_KING, 1, seed=2, threads=1)
    apply_game_overrides(pool, course.begin(), member=1)
    reference.apply(plain, Moment(0, 0.0))
    before = pool.settings[0].clone()
    numbers = pool.settings[1].cpu().numpy().view(np.int64) == plain._native.setting.view(np.int64)
    assert (~numbers).sum() < 8, "addresses"
    for update, now in enumerate(moments(1000, 3)):
        course.advance(now, update)
        reference.go(now)
        terms = course.overrides(now)
        if terms is not None:
            apply_game_overrides(pool, terms, member=1)
        reference.apply(plain, now)
        mine = pool.settings[1].cpu().numpy().view(np.int64)
        np.testing.assert_array_equal(mine[numbers], plain._native.setting.view(np.int64)[numbers])
    assert torch.equal(pool.settings[0], before), "the other member goes its own way"


def test_a_run_resumes_in_any_phase_to_the_bit(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"phases": words(PHASES), "updates": 10, "checkpoint_every_s": 0.0}
    whole = train_with(config(tmp_path, keep=50, **asked), quiet=True)
    phase = dict(zip(*(read(whole.run)["charts/phase"][at].tolist() for at in (0, 2)), strict=True))
    assert set(phase.values()) == {1.0, 2.0, 3.0}
    for number in {list(phase.values()).index(wanted) + 1 for wanted in (1.0, 2.0, 3.0)}:
        again = resume(str(whole.run), number=number, quiet=True)
        mine, other = last(whole.run), last(again.run)
        assert mine.blobs == other.blobs
        assert mine.meta["course"] == other.meta["course"]
        for group in ("net", "optimizer", "carried"):
            for name, tensor in mine.tensors[group].items():
                assert torch.equal(tensor, other.tensors[group][name]), name


def test_members_go_through_phases_and_go_on_alone(tmp_path: Path) -> None:
    plan = config(tmp_path, phases=words(PHASES), population=2, updates=10)
    agents = train_population(plan, quiet=True)
    for agent in agents:
        events = json.loads((agent.run / "events.json").read_text())
        assert [e["name"] for e in events if e["event"] == "phase"] == ["alone", "mixed", "last"]
        assert read(agent.run)["curriculum/flag/round_weights[0]"][2].max() > 1
    ended = resume(str(agents[1].run), updates=12, quiet=True)
    assert last(ended.run).meta["course"]["name"] == "last"


def test_dqn_on_a_gpu_forgets_when_a_phase_says_so(tmp_path: Path) -> None:
    phases = [
        {"name": "first", "decisions": 4000},
        {"name": "anew", "decisions": 4000, "clear_replay": True},
        {"name": "on"},
    ]
    asked = config(
        tmp_path,
        game="tic_tac_toe",
        set=(),
        opponents=("self=1",),
        algo="dqn",
        ppo=PPOConfig(),
        dqn=DQNConfig(),
        net=NetConfig(hidden=(32,)),
        replay=ReplayConfig(batch=64, capacity=20_000, warmup=1500, ratio=0.5),
        phases=words(phases),
        updates=8,
        keep=50,
        checkpoint_every_s=0.0,
    )
    whole = train_with(asked, quiet=True)
    curves = read(whole.run)
    updates, _, fill = curves["learning/replay_fill"]
    phase = curves["charts/phase"][2]
    at = int(np.flatnonzero(phase == 2)[0])
    assert fill[at] < fill[at - 1]
    again = resume(str(whole.run), number=int(updates[at]), quiet=True)
    assert last(whole.run).blobs == last(again.run).blobs
    for group, tensors in last(whole.run).tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, last(again.run).tensors[group][name]), (group, name)
