"""Members of a population on a GPU with flags and rewards of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparring.config import CollectConfig, EvaluationConfig, NetConfig, PPOConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.learn.algos import fused_games
from sparring.learn.fused import FusedPPO
from sparring.pools import Pool
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of
from sparring.training.records.metrics import read
from sparring.training.train import prepare_new, resume, train_population

ORDERS = ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 1, 4, 3])


def config(runs: Path, **changes: Any) -> TrainConfig:
    return replace(
        TrainConfig(
            game="cage2",
            set=("orders=FIXED", "max_steps=30", "mask=1"),
            device="cuda",
            runs=str(runs),
            updates=3,
            net=NetConfig(hidden=(64, 32)),
            collect=CollectConfig(games=64, steps=20),
            ppo=PPOConfig(minibatch=512, lr=1e-3),
            eval=EvaluationConfig(games=32),
            tensorboard=False,
            vary=("set.order=" + ",".join(map(str, ORDERS)),),
        ),
        **changes,
    )


def last(run: Path) -> checkpoints.Checkpoint:
    folder = checkpoints.newest_valid(run / "checkpoints")
    assert folder is not None
    return checkpoints.load(folder)


def test_the_games_of_members_are_those_of_pools_of_their_own(tmp_path: Path) -> None:
    plan = resolve(members_of(config(tmp_path)))
    together = fused_games(plan).pool
    apart = [
        Pool(plan.rules_of(member), 64, seed=seed, threads=1, lineups=plan.participants.lineups)
        for member, seed in enumerate(plan.seeds)
    ]
    batch = together.reset()
    for pool in apart:
        pool.reset()
    for _ in range(70):  # two episodes and some
        actions = together.sample_actions().cpu().numpy()
        batch = together.step(actions)
        for member, pool in enumerate(apart):
            mine = slice(member * 64, (member + 1) * 64)
            assert np.array_equal(pool.sample_actions(), actions[mine])
            stepped = pool.step(actions[mine])
            assert np.array_equal(batch.obs[mine].cpu().numpy(), stepped.obs)
            assert np.array_equal(batch.reward[mine].cpu().numpy(), stepped.reward)
    for member, pool in enumerate(apart):
        mine = slice(member * 64, (member + 1) * 64)
        assert np.array_equal(together.tables[mine].cpu().numpy(), pool._native.envs)
        together.load_state(pool.state(), member)
    shown = {pool.batch().obs[0].tobytes() for pool in apart}
    assert len(shown) == len(ORDERS)


def test_each_is_saved_measured_and_goes_on_as_a_run_of_its_own(tmp_path: Path) -> None:
    agents = train_population(config(tmp_path), quiet=True)
    for agent, order in zip(agents, ORDERS, strict=True):
        saved = last(agent.run)
        assert saved.meta["game_config"]["order"] == order
        assert f"order={','.join(map(str, order))}" in saved.meta["config"]["set"]
        assert load_policy(agent.run).rules.config["order"] == order
        assert agent.policy.rules.config["order"] == order
        assert "eval/strength" in read(agent.run)
    ended = resume(str(agents[1].run), updates=5, quiet=True)
    assert last(ended.run).meta["update"] == 5
    assert last(ended.run).meta["game_config"]["order"] == ORDERS[1]


def test_rounds_of_every_member_are_as_long_as_its_flag_says(tmp_path: Path) -> None:
    rounds = config(
        tmp_path,
        game="skull_king",
        set=("episode=ROUND",),
        vary=("set.start_round=1,10",),
        eval=EvaluationConfig(off=True),
        collect=CollectConfig(games=64, steps=60),
    )
    agents = train_population(rounds, quiet=True)
    short, long = (read(agent.run)["charts/length"][2] for agent in agents)
    assert short.max() < 10 < 40 < long.min()


def test_a_phase_gives_back_what_a_member_has_of_its_own(tmp_path: Path) -> None:
    rounds = config(
        tmp_path,
        game="skull_king",
        set=("episode=ROUND",),
        vary=("set.start_round=1,10",),
        eval=EvaluationConfig(off=True),
        phases=('{"name": "both", "decisions": 1500, "set": {"start_round": 5}}', '{"name": "on"}'),
        updates=8,
    )
    for agent, own in zip(train_population(rounds, quiet=True), (1, 10), strict=True):
        flag = read(agent.run)["curriculum/flag/start_round"][2]
        assert (flag[0], flag[-1]) == (5, own)
        ended = resume(str(agent.run), updates=9, quiet=True)
        assert last(ended.run).meta["update"] == 9


def test_every_member_is_paid_by_its_own_weights(tmp_path: Path) -> None:
    paid = config(
        tmp_path,
        game="skull_king",
        set=("rounds=1,2,3",),
        vary=('rewards=["score_delta=1"],["score_delta=2"]',),
    )
    members = members_of(paid)
    learner = make_learner(members[0], resolve(members))
    assert isinstance(learner, FusedPPO)
    learner.iterate(0.0)
    first, second = torch.chunk(learner.rollout.reward, 2, dim=1)
    assert first.any()
    assert torch.equal(2 * first, second), "the first rollout is the same game in both"


def test_weights_to_begin_with_may_differ(tmp_path: Path) -> None:
    plain = config(tmp_path, vary=(), updates=1, eval=EvaluationConfig(off=True))
    begun = train_population(replace(plain, population=2), quiet=True)
    told = [replace(plain, seed=7, init=str(agent.run), vary=()) for agent in begun]
    session, _ = prepare_new(told, quiet=True)
    for member, agent in enumerate(begun):
        mine, theirs = session.learner.snapshot(member).tensors["net"], last(agent.run).tensors
        for name, tensor in theirs["net"].items():
            assert torch.equal(mine[name].cpu(), tensor), name


def test_what_cannot_change_while_games_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="share max_steps"):
        train_population(config(tmp_path, vary=("set.max_steps=30,40",)), quiet=True)
    assert not list(tmp_path.iterdir())
