"""Runs through phases: exact resumption, events, thresholds, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.errors import ConfigError
from sparring.games.starts import write_starts
from sparring.games.state import new_state
from sparring.store import checkpoint as checkpoints
from sparring.training.curriculum import advance_phase, check_overridable
from sparring.training.member import Member
from sparring.training.planning.training import run_plan
from sparring.training.records.metrics import read
from sparring.training.train import new_run, prepare, resume
from training.run_helpers import events, settings, trained

PHASES = [
    {
        "name": "alone",
        "decisions": 300,
        "opponents": ["self=1"],
        "set": {"round_weights": [3, 1, 1]},
        "ppo": {"lr": "0:1e-3,300:1e-4"},
    },
    {
        "name": "mixed",
        "episodes": 24,
        "opponents": ["self=1", "captain=0ep:0.1,24ep:3", "past=1"],
        "set": {"round_weights": ["0ep:1,24ep:9", 1, 1]},
        "rewards": {"score_delta": "0%:1,100%:0.3", "manager.win": 1},
    },
    {"name": "last", "opponents": ["captain=1", "past=0:1,9000:0"], "ppo": {"entropy": 0.02}},
]


def words(phases: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(map(json.dumps, phases))


def through_phases(runs: Path, **changes: Any) -> sparring.Agent:
    later = new_state("skull_king", config={"rounds": [1, 2, 3]}, seed=1)
    for _ in range(10):
        later.apply(later.legal()[0])
    write_starts(runs / "later.jsonl", [later])
    begin = {"starts": [f"{runs / 'later.jsonl'}=2", "usual=1"]}
    usual: dict[str, Any] = {
        "game": "skull_king",
        "set": ("rounds=1,2,3",),
        "phases": words([PHASES[0], PHASES[1] | begin, PHASES[2]]),
        "league": {"every_decisions": 300, "slots": 2},
        "collect": {"games": 8, "steps": 20},
        "updates": 12,
        "keep": 100,
    }
    return trained(runs, **usual | changes)


def begun(run: Path) -> list[tuple[str, str, int, int]]:
    """Every phase: its name, why it began, when."""
    return [
        (event["name"], event["why"], event["update"], event["decisions"])
        for event in events(run)
        if event["event"] == "phase"
    ]


def assert_same(a: Path, b: Path, number: int) -> None:
    one, two = (checkpoints.load(run / "checkpoints" / f"{number:08d}") for run in (a, b))
    assert one.blobs == two.blobs
    assert one.meta["course"] == two.meta["course"]
    assert list(one.segments) == list(two.segments)
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, two.tensors[group][name]), (group, name)
    mine, yours = read(a), read(b)
    names = {n for n in mine if n.startswith(("losses/", "curriculum/"))} | {"charts/phase"}
    for name in names:
        np.testing.assert_array_equal(mine[name][2], yours[name][2], err_msg=name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve updates through three phases, with all their checkpoints."""
    return through_phases(tmp_path_factory.mktemp("runs")).run


def test_phases_are_events_and_checkpoints_know_them(whole: Path) -> None:
    phases = begun(whole)
    assert [(name, why) for name, why, _, _ in phases] == [
        ("alone", "beginning"),
        ("mixed", "decisions"),
        ("last", "episodes"),
    ]
    (_, _, second, made), (_, _, third, _) = phases[1:]
    assert 1 < second < third - 2 < 9
    meta = checkpoints.load(whole / "checkpoints" / f"{third - 1:08d}").meta
    assert meta["course"]["name"] == "mixed"
    assert meta["course"]["began"]["update"] == second
    assert meta["course"]["began"]["decisions"] == made
    assert meta["game_config"]["round_weights"] == [1.0] * 10, "evaluations play the run's rules"
    curves = read(whole)
    updates, _, phase = curves["charts/phase"]
    assert phase.tolist() == [1 + (u > second) + (u > third) for u in updates]
    rates, entropy = (curves[f"learning/{name}"][2] for name in ("lr", "entropy_weight"))
    made = np.append(0, curves["charts/decisions"][2])
    assert rates[:second] == pytest.approx(1e-3 - 0.9e-3 * np.minimum(made[:second] / 300, 1))
    assert (rates[second:] == 1e-3).all(), "as the run has it, not as the phase before left it"
    assert (entropy == np.where(phase == 3, 0.02, 0.01)).all()


@pytest.mark.parametrize(
    "back", [1, pytest.param(0, marks=pytest.mark.slow), pytest.param(-1, marks=pytest.mark.slow)]
)
def test_a_run_resumed_in_a_phase_equals_the_unbroken_one(whole: Path, back: int) -> None:
    """At the end of the second phase, where the third is about to begin, and in that."""
    phases = begun(whole)
    again = resume(str(whole), number=phases[2][2] - back, quiet=True)
    assert again.run != whole
    assert_same(whole, again.run, 12)
    assert begun(again.run) == phases


def test_dqn_forgets_its_replay_when_a_phase_says_so_and_resumes_to_the_bit(tmp_path: Path) -> None:
    phases = [
        {"name": "random", "decisions": 3000, "opponents": ["random=1"]},
        {"name": "anew", "decisions": 3000, "clear_replay": True, "dqn": {"epsilon": "0:1,2000:0"}},
        {"name": "on"},
    ]
    remembered = {"batch": 32, "capacity": 20_000, "warmup": 500, "ratio": 0.5}
    run = trained(
        tmp_path,
        algo="dqn",
        replay=remembered,
        phases=words(phases),
        opponents=("self=1",),
        updates=9,
        keep=100,
    ).run
    second = begun(run)[1][2]
    fill = dict(zip(*(read(run)["learning/replay_fill"][at] for at in (0, 2)), strict=True))
    assert fill[second + 1] < fill[second] / 2
    steps = dict(zip(*(read(run)["learning/optimizer_steps"][at] for at in (0, 2)), strict=True))
    assert steps[second + 1] < steps[second], "it warms up anew"
    again = resume(str(run), number=second + 1, quiet=True)
    assert_same(run, again.run, 9)


def test_a_learner_that_cannot_be_adjusted_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    changes = {"algo": "learn.reinforce:make", "updates": 1}
    with pytest.raises(ConfigError, match=r"Reinforce cannot change .* apply_overrides\(overrides"):
        trained(
            tmp_path / "runs", phases=words([{"name": "a"}]), rewards=("result=0:1,9:2",), **changes
        )
    assert not (tmp_path / "runs").exists()


def test_a_new_phase_has_patience_again(tmp_path: Path) -> None:
    config = settings(tmp_path, phases=words([{"decisions": 100}, {"name": "on"}]), updates=1)
    session = prepare([config])
    learner, (course,) = check_overridable(session.learner), session.courses
    member = Member(run_plan(config), new_run(config), session.plan.rules, course=course)
    member.evaluations_since_best = 4
    for made, patience in ((0, 4), (99, 4), (100, 0)):
        member.status.decisions = made
        advance_phase(learner, 0, member, 0.0)
        assert member.evaluations_since_best == patience
    member.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_thresholds_by_decisions_come_at_the_same_update_every_time(tmp_path: Path) -> None:
    phases = [
        {"name": "weak", "decisions": 20_000, "until": {"win": 0.2, "against": "random"}},
        {"name": "never", "decisions": 1500, "until": {"win": 0.99}},
        {"name": "on"},
    ]
    measured = {"off": False, "every_decisions": 600, "games": 32, "final_games": 32}
    config: dict[str, Any] = {"phases": words(phases), "updates": 24, "eval": measured, "keep": 50}
    one = trained(tmp_path / "one", **config).run
    two = trained(tmp_path / "two", **config).run
    found = begun(one)
    assert [why for _, why, _, _ in found] == ["beginning", "threshold", "fallback"]
    assert begun(two) == found
    event = next(e for e in events(one) if e.get("why") == "threshold")
    assert event["low"] >= event["wanted"] == 0.2
    assert event["checkpoint"] < event["update"], "an answer takes effect with the next question"
    again = resume(str(one), number=event["update"], quiet=True)
    assert begun(again.run) == found
    assert_same(one, again.run, 24)
