"""Runs with a network for every role: settings, what is refused, and what lies on the disk."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.cli import main
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.learn.plan import Plan, Turns
from sparring.learn.ppo import PPO
from sparring.schedule import Moment
from sparring.store.policies import load_policy
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.roles import read_roles
from sparring.training.planning.settings import merged, read_config, with_preset, written
from sparring.training.train import resume, train_with

TINY: dict[str, Any] = {
    "collect": {"games": 8, "steps": 24},
    "hierarchy": {"on": True},
    "opponents": ("self=1",),
    "ppo": {"lr": 1e-3, "entropy": 0.01},
    "roles": ("manager.net.hidden=8", "worker.net.hidden=8", "manager.ppo.entropy=0.02"),
    "eval": {"off": True},
    "tensorboard": False,
    "threads": 1,
    "device": "cpu",
    "set": ("rounds=1,2",),
    "checkpoint_every_s": 0.0,
}


def settings(runs: Path | str = "runs", **changes: Any) -> TrainConfig:
    base = with_preset("skull_king", hierarchy=True)
    config: TrainConfig = merged(merged(base, {**TINY, "runs": str(runs)}, "test"), changes, "test")
    return config


def plan_of(**changes: Any) -> Plan:
    return resolve([settings(**changes)])


def test_words_and_tables_go_before_the_preset_and_leave_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'game = "skull_king"\n[hierarchy]\non = true\n[roles.manager]\nended_by = ["worker"]\n'
        '[roles.manager.ppo]\nepochs = 5\nlr = [["0%", 1e-3], ["100%", 1e-4]]\n'
        "[roles.worker.net]\nhidden = [32, 16]\nshared = false\n"
    )
    told = with_preset("", str(file))
    typed = with_preset("skull_king", hierarchy=True)
    words = (
        *("manager.ended_by=worker", "manager.ppo.epochs=5", "manager.ppo.lr=0%:1e-3,100%:1e-4"),
        *("worker.net.hidden=32,16", "worker.net.shared=false"),
    )
    typed = merged(typed, {"hierarchy": {"on": True}, "roles": words}, "test")
    plans = [resolve([one]) for one in (told, typed)]
    assert plans[0].roles == plans[1].roles
    manager, worker = plans[0].roles
    assert manager.settings[0].epochs == 5
    assert manager.settings[0].lr.at(Moment(0, 1.0)) == pytest.approx(1e-4)
    assert manager.ended_by == ("worker",)
    assert worker.ended_by == ("manager",)  # of the preset
    assert (worker.net.hidden, worker.net.shared) == ((32, 16), False)
    assert "hand" in manager.net.inputs
    assert not worker.net.inputs
    assert plans[0].by_role
    again = read_config(written(told), "test")
    assert resolve([again]).roles == plans[0].roles


def test_a_manager_sees_the_block_of_the_stage_where_the_game_has_one() -> None:
    for flag, wanted in ((0, 159), (1, 162)):
        learner = make_learner(settings(), plan_of(set=("rounds=1,2", f"phase_embed={flag}")))
        assert isinstance(learner, PPO)
        assert learner.net.net_of("manager").inputs.used_features is not None
        assert len(learner.net.net_of("manager").inputs.used_features or ()) == wanted


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hierarchy": {"on": False}}, "roles manager.*add --hierarchy.on"),
        ({"hierarchy": {"on": False, "learn": "manager"}, "roles": ()}, "hierarchy.on"),
        ({"roles": ("boss.ppo.lr=1",)}, "no role 'boss'; there are: manager, worker"),
        ({"roles": ("manger.ppo.lr=1",)}, "did you mean 'manager'"),
        ({"roles": ("manager.ppo.lrr=1",)}, "no setting 'lrr'; did you mean 'lr'"),
        ({"roles": ("manager.dqn.lr=1",)}, "a role has the settings net"),
        ({"roles": ("manager.ppo.epochs=2.5",)}, "needs a whole number"),
        ({"roles": ("manager.ppo.epochs=0",)}, "roles: manager: ppo.epochs 0 must be from 1"),
        ({"roles": ("manager.net.shared=maybe",)}, "needs true or false"),
        ({"roles": ("manager.net.inputs=cards",)}, "no block 'cards'"),
        ({"roles": ("worker.ended_by=worker",)}, "worker.ended_by 'worker'"),
        ({"roles": ("worker.ppo",)}, "not key=value"),
        ({"hierarchy": {"learn": "managr"}}, "hierarchy.learn 'managr' .* 'manager'"),
        ({"hierarchy": {"turn": 0}}, "hierarchy.turn 0 must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(sparring.ConfigError, match=said):
        plan_of(**changes)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["tic_tac_toe", "--hierarchy.on"],
            "hierarchy.on needs a game with several roles, and tic_tac_toe is not one; play one of",
        ),
        (
            ["skull_king", "--hierarchy.on", "--algo", "dqn"],
            "every role, and algo dqn is not one; use --algo ppo",
        ),
        (["skull_king", "--net.inputs", "hnad"], "did you mean 'hand'"),
        (["skull_king", "--roles", "worker.ppo.lr=1"], "add --hierarchy.on"),
    ],
)
def test_refusals_leave_nothing_behind(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words, "--device", "cpu"]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_settings_of_the_command_line_reach_the_learner() -> None:
    plan = plan_of(hierarchy={"learn": "alternately", "turn": 3})
    assert plan.turns == Turns("alternately", 3)
    learner = make_learner(settings(), plan)
    assert isinstance(learner, PPO)
    assert learner.collector.transitions.chains == 2
    assert learner.learners["manager"].settings.epochs == plan.roles[0].settings[0].epochs
    assert plan.rewards is not None
    assert plan.rewards["manager"] == (1, 0)
    assert plan.rewards["worker"] == (0, 1)


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel"])
def test_batches_of_roles_are_large_on_a_gpu(game: str) -> None:
    config = with_preset(game, gpu=True, hierarchy=True)
    config = merged(config, {"hierarchy": {"on": True}}, "test")
    for plan in read_roles(sparring.Rules(game), [config]):
        assert plan.settings[0].minibatch >= 16384
        assert max(plan.net.hidden) >= 256


def test_a_lower_rate_is_lower_for_every_role() -> None:
    config = settings(roles=("manager.ppo.lr=0%:2e-3,100%:1e-3",), ppo={"lr": 1e-3})
    calm = resolve([config], lr_factor=0.1)
    rates = [plan.settings[0].lr.at(Moment(0, 0.0)) for plan in calm.roles]
    assert rates == pytest.approx([2e-4, 1e-4])


def test_a_run_resumes_bit_for_bit_and_begins_others_of_its_kind(tmp_path: Path) -> None:
    whole = train_with(settings(tmp_path / "a", updates=3), quiet=True)
    part = train_with(settings(tmp_path / "b", updates=2), quiet=True)
    table = tomllib.loads((part.run / "config.toml").read_text())
    assert table["hierarchy"]["on"]
    part = resume(str(part.run), updates=3, quiet=True)
    theirs = part.policy.net.state_dict()
    for name, tensor in whole.policy.net.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name
    begun = settings(tmp_path / "c", updates=1, init=str(whole.run))
    train_with(begun, quiet=True)
    flat = merged(begun, {"hierarchy": {"on": False}}, "test")
    flat = replace(flat, roles=())
    with pytest.raises(sparring.ConfigError, match="has a network for every role"):
        train_with(flat, quiet=True)
    policy = load_policy(whole.run)
    state = sparring.new_state(policy.rules, seed=1)
    while not state.over:
        state.apply(policy.action(state))
    assert np.isfinite(state.scores).all()


@pytest.mark.parametrize("given", [3, True, None, 0.5])
def test_roles_that_are_neither_words_nor_tables_are_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="roles needs words or a table by role"):
        merged(TrainConfig(), {"roles": given}, "file")


def test_settings_that_no_role_would_hear_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "skull_king", "--hierarchy.on", "--runs", str(tmp_path / "runs")]
    assert main([*words, "--net.hidden", "32"]) == 2
    told = capsys.readouterr().err
    assert "net.hidden" in told and "--roles manager.net.hidden=... worker.net.hidden=..." in told
    with pytest.raises(ConfigError, match="every role has its own; use --roles manager"):
        sparring.train("skull_king", hierarchy=True, ppo={"epochs": 1}, runs=str(tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()
