"""Runs with a custom network: by class, as an object, in a league, going on, found again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import own_nets
import sparring
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.nets.custom_inputs import describe_inputs
from sparring.nets.policy import Policy

SMALL: dict[str, Any] = {
    "device": "cpu",
    "threads": 1,
    "quiet": True,
    "collect": {"games": 16, "steps": 12},
    "eval": {"off": True},
    "tensorboard": False,
}


def train(folder: Path, net: Any, game: str = "tic_tac_toe", **changes: Any) -> sparring.Agent:
    return sparring.train(game, net=net, runs=str(folder), **{"updates": 2, **SMALL, **changes})


def said(policy: Policy) -> np.ndarray:
    return policy.value(np.zeros((1, policy.net.inputs.row_bytes), np.uint8))


def test_a_class_is_named_and_goes_on_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from own_nets import Plain\n\n\nclass Net(Plain):\n    pass\n")
    agent = train(tmp_path, {"kind": "mine.py:Net", "set": {"width": 12}})
    assert agent.policy.net.config.kind == f"{tmp_path}/mine.py:Net"
    assert agent.policy.net.config.set == ("width=12",)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ended = sparring.resume(agent.run, updates=3, quiet=True)
    assert ended.decisions > agent.decisions
    assert said(sparring.load(ended.run)) == said(ended.policy)
    (tmp_path / "mine.py").unlink()
    monkeypatch.delitem(sys.modules, "mine")
    with pytest.raises(ConfigError, match=r"net\.kind: there is no file .*mine\.py"):
        sparring.load(ended.run)


def test_a_module_as_it_is_begins_with_its_weights_and_is_given_again(tmp_path: Path) -> None:
    net = own_nets.Plain(describe_inputs(train(tmp_path, "mlp").policy.net.inputs, {}, 9))
    with pytest.warns(SparringWarning, match="given:Plain is an object of this process"):
        agent = train(tmp_path, net, eval={"games": 2})
    assert agent.policy.net.config.kind == "given:Plain"
    with pytest.warns(SparringWarning, match="not evaluated during training"):
        sparring.resume(agent.run, updates=3, quiet=True, net=net)
    assert said(sparring.load(agent.run, net=net)).shape == (1,)


def test_what_nobody_gave_again_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Local(own_nets.Plain):
        pass

    agent = train(tmp_path, Local)
    monkeypatch.setattr("sparring.factories._registered", {})
    with pytest.raises(SparringError, match="'given:Local' was an object of another program"):
        sparring.load(agent.run)
    with pytest.raises(ConfigError, match="'given:Local' was an object of another program"):
        sparring.resume(agent.run, updates=3, quiet=True)


def test_what_is_wrong_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"its policy of 2 rows is \(2, 8\)"):
        train(tmp_path / "runs", {"kind": "own_nets:Wrong", "set": {"how": "narrow"}})
    with pytest.raises(ConfigError, match="give a table of settings"):
        train(tmp_path / "runs", 3)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Plain", "Blocks"])
@pytest.mark.parametrize(
    "how",
    [
        {"opponents": ("self=1", "past=1"), "updates": 8},
        {"algo": "dqn"},
        {"algo": "sac"},
        {"game": "skull_king", "hierarchy": True},
        {"game": "laser_hockey", "algo": "sac", "updates": 1},
    ],
    ids=lambda how: " ".join(map(str, how.values())),
)
def test_it_is_a_network_like_any_other(kind: str, how: dict[str, Any], tmp_path: Path) -> None:
    agent = train(tmp_path, f"own_nets:{kind}", **{"game": "tic_tac_toe", **how})
    ended = sparring.resume(agent.run, updates=int(how.get("updates", 2)) + 1, quiet=True)
    assert ended.decisions > 0
