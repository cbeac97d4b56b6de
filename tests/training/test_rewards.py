"""What is paid for can be said by part and by role, and is what decisions are paid."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomlkit

import sparring
from sparring.cli import main
from sparring.config import TrainConfig
from sparring.curriculum.curriculum import START
from sparring.curriculum.rewards import read_rewards, weights_of
from sparring.learn.plan import Plan
from sparring.learn.ppo import PPO
from sparring.learn.transitions import TERMINATED, TO_NEXT
from sparring.store.folders import CONFIG
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset
from sparring.training.train import resume, train

TINY: dict[str, Any] = {
    "threads": 1,
    "device": "cpu",
    "collect": {"games": 8, "steps": 48},
    "net": {"hidden": (8,)},
    "ppo": {"epochs": 1, "minibatch": 512, "gamma_into": (0, 1)},
    "eval": {"off": True},
}
MANAGER, WORKER = 0, 1


def plan_of(*rewards: str) -> tuple[TrainConfig, Plan]:
    changes = {**TINY, "rewards": rewards, "set": ("rounds=1,2",)}
    config = merged(TrainConfig(game="skull_king"), changes, "test")
    return config, resolve([config])


def paid_by_role(*rewards: str) -> tuple[list[np.ndarray], PPO]:
    """What the decisions of a first rollout are paid, by role; the games are always the same."""
    learner = make_learner(*plan_of(*rewards))
    assert isinstance(learner, PPO)
    collector = learner.collector
    collector.collect(0)
    samples = collector.link(1.0, (0, 1))
    places = samples - collector.transitions.max_pending
    role = collector.rollout.role.reshape(-1)[places]
    paid = collector.transitions.paid[samples]
    return [paid[role == one] for one in (MANAGER, WORKER)], learner


def test_a_weight_of_a_role_changes_what_that_role_is_paid_and_nothing_else() -> None:
    base, _ = paid_by_role("manager.score_delta=2")
    more, _ = paid_by_role("manager.score_delta=2", "worker.score_delta=1000")
    for role in (MANAGER, WORKER):
        assert base[role].any()
    assert np.array_equal(more[MANAGER], base[MANAGER])
    assert np.allclose(more[WORKER], 1000 * base[WORKER])
    less, _ = paid_by_role("score_delta=1", "manager.score_delta=0")
    assert not less[MANAGER].any()
    assert np.array_equal(less[WORKER], base[WORKER])


def test_a_bid_is_paid_for_the_whole_round_as_a_manager_is() -> None:
    _, learner = paid_by_role("manager.manager=1", "score_delta=0", "worker.worker=1")
    collector, rollout = learner.collector, learner.collector.rollout
    transitions, checked = collector.transitions, 0
    for game in range(8):
        for seat in range(learner.rules.seats):
            bids = np.flatnonzero(
                (rollout.seat[:, game] == seat) & (rollout.role[:, game] == MANAGER)
            )
            for bid, end in pairwise(bids):
                place = transitions.max_pending + bid * 8 + game
                wanted = rollout.reward[bid:end, game, seat, MANAGER].sum()
                assert transitions.paid[place] == pytest.approx(wanted)
                # The last card of the round ends it for the worker too.
                cards = np.flatnonzero(rollout.seat[bid + 1 : end, game] == seat) + bid + 1
                last = transitions.max_pending + cards[-1] * 8 + game
                for at in (place, last):
                    assert transitions.end[at] == TERMINATED or transitions.discount[at] == 0
                    checked += transitions.end[at] == TO_NEXT
    assert checked > 50


def test_the_same_weight_for_all_roles_links_as_before() -> None:
    assert not plan_of()[1].by_role
    assert not plan_of("score_delta=3")[1].by_role
    assert plan_of("score_delta=3", "worker.score_delta=1")[1].by_role
    assert plan_of()[1].rewards is None


def test_parts_that_are_not_named_keep_the_weight_of_the_game() -> None:
    rules = sparring.Rules("skull_king")
    given = read_rewards(rules, ["worker.rank=0.5", "rank=2", "win=-1"])
    weights = weights_of(rules, {name: weight.at(START) for name, weight in given.items()})
    assert (weights["score_delta"], weights["rank"]) == ((1.0, 1.0), (2.0, 0.5))
    assert (weights["win"], weights["manager"]) == ((-1.0, -1.0), (0.0, 0.0))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("score=1", "rewards: no reward part 'score'; did you mean 'score_final'?"),
        ("wroker.rank=1", "rewards: no role 'wroker'; did you mean 'worker'?"),
        ("worker.rnak=1", "rewards: no reward part 'rnak'; did you mean 'rank'?"),
        ("a.b.rank=1", "rewards: no role 'a.b'; there are: manager, worker"),
        ("rank", "rewards: 'rank' is not key=value"),
        ("rank=much", "rewards: 'rank=much' is not NAME=WEIGHT; give a finite number"),
        ("rank=1e99", "rewards: 'rank=1e99' is not NAME=WEIGHT; give a finite number"),
        ("rank=1 rank=2", "rewards: rank was given twice; give it once"),
        ("score_delta=0", "rewards: every weight is 0, so there is no reward"),
    ],
)
def test_what_cannot_be_paid_is_refused_before_anything_is_made(
    words: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = ["--runs", str(tmp_path / "runs"), "--device", "cpu"]
    assert main(["train", "skull_king", "--rewards", *words.split(), *runs]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_list_rewards(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('rewards = ["rank=1", "worker.rank=2"]\n')
    config = with_preset("skull_king", str(file))
    plan = resolve([merged(config, {"device": "cpu"}, "test")])
    assert plan.rewards is not None
    assert plan.rewards["rank"] == (1.0, 2.0)
    file.write_text("rewards = [1]\n")
    with pytest.raises(sparring.ConfigError, match="rewards needs text, not 1"):
        resolve([merged(with_preset("skull_king", str(file)), {"device": "cpu"}, "test")])


def test_a_run_keeps_its_rewards(tmp_path: Path) -> None:
    words = ("worker.score_delta=1000",)
    agent = train("skull_king", updates=1, quiet=True, runs=str(tmp_path), rewards=words, **TINY)
    table = tomllib.loads((agent.run / CONFIG).read_text())
    assert table["rewards"] == list(words)
    assert resume(str(agent.run), updates=2, quiet=True).ended == "done"
    table["rewards"] = []
    (agent.run / CONFIG).write_text(tomlkit.dumps(table))
    with pytest.raises(sparring.ConfigError, match="rewards was"):
        resume(str(agent.run), updates=3, quiet=True)


@pytest.mark.filterwarnings("ignore:CartPole-v1 cannot be saved")
def test_what_an_environment_of_ones_own_pays_is_weighted(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    quick = {
        "updates": 1,
        "quiet": True,
        "runs": str(tmp_path / "runs"),
        "collect": {"steps": 8},
        "eval": {"off": True},
        "device": "cpu",
        "threads": 1,
    }
    env = gymnasium.make_vec("CartPole-v1", num_envs=4)
    with pytest.raises(sparring.ConfigError, match="no reward part 'score'; there are: reward"):
        sparring.train(env, rewards=("score=2",), **quick)
    assert list(tmp_path.iterdir()) == []
    scales = []
    for weight in (1, 100):
        env = gymnasium.make_vec("CartPole-v1", num_envs=4)
        agent = sparring.train(env, rewards=(f"reward={weight}",), **quick)
        scales.append(float(agent.policy.net.value_scale))
    assert scales[1] == pytest.approx(100 * scales[0])
