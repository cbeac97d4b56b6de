"""A run announces the path that its networks are computed on: truly, and wherever people look."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparring import _native
from sparring.cli import main
from sparring.errors import SparringWarning
from sparring.learn.plan import ComputePath, PathSummary
from sparring.training.planning.paths import paths_of
from sparring.training.records.overview import Overview
from sparring.training.records.run import to_toml
from sparring.training.train import complete, resume, train_with
from training.path_cells import ATTENTION, FLAT, HOCKEY, SKULL_KING, prepared
from training.run_helpers import WORDS, settings, trained

NATIVE, TORCH = "native float32", "torch float32"
HALF = ": about half of the speed"
CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "skull king": (SKULL_KING, f"ppo, perceptron 531-256-256-87, {NATIVE}"),
    "perceptron": ({}, f"ppo, perceptron 19-64-64-10, {NATIVE}"),
    "shared by none": ({"net": {"shared": False}}, f"ppo, perceptron 19-64-64-10, {NATIVE}"),
    "silu": ({"net": {"activation": "silu"}}, f"ppo, perceptron 19-64-64-10, {NATIVE}"),
    "stack": (
        {"net": {"memory": "stack", "frames": 2}},
        f"ppo, perceptron 39-64-64-10, {NATIVE}",
    ),
    "gru": (
        {"net": {"memory": "gru", "memory_width": 12}},
        f"ppo, recurrent perceptron 19-64-64-12-10, {TORCH} because net.memory gru has no "
        "native passes",
    ),
    "norm": (
        {"net": {"norm": True}},
        f"ppo, perceptron 19-64-64-10, {TORCH} because net.norm has no native passes{HALF}",
    ),
    "normalize": (
        {"net": {"normalize": True}},
        f"ppo, perceptron 19-64-64-10, {TORCH} because net.normalize has no native passes{HALF}",
    ),
    "own layers": (
        {"net": {"policy_hidden": (8,)}},
        f"ppo, perceptron 19-64-64-10, {TORCH} because net.policy_hidden 8 has no native "
        f"passes{HALF}",
    ),
    "residual": (
        {"net": {"kind": "residual", "channels": 8, "blocks": 1}},
        f"ppo, residual net of 1 block with 8 channels, {TORCH} because net.kind residual has no "
        "native passes",
    ),
    "attention": (
        {**SKULL_KING, "net": ATTENTION},
        f"ppo, attention net of 1 layer with width 8, {TORCH} because net.kind attention has no "
        "native passes",
    ),
    "inputs": (
        {**SKULL_KING, "net": {"hidden": (8,), "inputs": ("hand",)}},
        f"ppo, perceptron 74-8-87, {NATIVE}",
    ),
    "heads": ({"heads": {"wdl": 0.5}}, f"ppo, perceptron 19-64-64-13, {NATIVE}"),
    "by torch": (
        {"collect": {"cpu": "torch"}},
        f"ppo, perceptron 19-64-64-10, {TORCH} because collect.cpu is torch{HALF}",
    ),
    "recognized": ({"net": {"kind": "own_nets:Plain"}}, f"ppo, own_nets:Plain, {NATIVE}"),
    "not recognized": (
        {"net": {"kind": "own_nets:Gated"}},
        f"ppo, own_nets:Gated, {TORCH} because it is no plain perceptron (it has mul)",
    ),
    "bytes": (
        {"net": {"kind": "own_nets:Bytes"}},
        f"ppo, own_nets:Bytes, {TORCH} because it is no plain perceptron (it reads bytes)",
    ),
    "environment": (
        {"game": "own_envs:make_cards", "net": {"hidden": (8,)}},
        f"ppo, perceptron 25-8-13, {NATIVE}",
    ),
    "dqn": ({"algo": "dqn"}, f"dqn, perceptron 19-64-64-10, {NATIVE}"),
    "dqn, norm": (
        {"algo": "dqn", "net": {"norm": True}},
        f"dqn, perceptron 19-64-64-10, {TORCH} because net.norm has no native passes",
    ),
    "pqn": (
        {"algo": "dqn", "dqn": {"mode": "rollouts"}, "net": {"norm": False}},
        f"dqn, perceptron 19-64-64-10, {TORCH} because dqn.mode rollouts has no native passes",
    ),
    "sac": (HOCKEY, f"sac, perceptron 18-256-256-9, {NATIVE}"),
    "sac, critics": (
        {**HOCKEY, "sac": {"critic_norm": True}},
        f"sac, perceptron 18-256-256-9, {NATIVE}, critics by torch because "
        "sac.critic_norm has no native passes",
    ),
    "gumbel": (
        {"algo": "gumbel", "game": "tic_tac_toe", "net": {"hidden": (64, 64)}},
        f"gumbel, perceptron 19-64-64-10, {NATIVE}, losses by torch",
    ),
    "sac, discrete": (
        {"algo": "sac"},
        f"sac, perceptron 19-64-64-10, {NATIVE}, losses by torch",
    ),
    "roles": (
        {**SKULL_KING, "hierarchy": {"on": True}},
        f"ppo, manager: perceptron 159-128-128-87, worker: perceptron 531-256-256-87, {NATIVE}",
    ),
    "uneven roles": (
        {**SKULL_KING, "hierarchy": {"on": True}, "roles": ("worker.net.norm=true",)},
        f"ppo, manager: perceptron 159-128-128-87, {NATIVE}, played by torch because another "
        f"role's network has no native passes; worker: perceptron 531-256-256-87, {TORCH} because "
        f"net.norm has no native passes{HALF}",
    ),
    "a role of your own": (
        {**SKULL_KING, "hierarchy": {"on": True}, "roles": ("worker.net.kind=own_nets:Plain",)},
        f"ppo, manager: perceptron 159-128-128-87, worker: own_nets:Plain, {NATIVE}",
    ),
}
"""Settings, and the line that announces them."""


def computed_by(learner: Any, role: str) -> str:
    """What a learner has made of a network, whatever it announces."""
    part = learner.learners[role] if role else learner
    if part.forward.native is None:
        return "torch bf16" if part.forward.bf16 else "torch float32"
    name = f"native {part.forward.arithmetic}"
    if hasattr(learner, "q_nets"):  # SAC's critics, and its losses
        native = type(learner.q_nets).__name__ == "NativeCritics"
        whole = learner.native is not None
        return name if whole else f"{name}, {'losses' if native else 'critics'} by torch"
    if part.forward.native_grad:
        return f"{name}, losses by torch"
    return name if learner.forward.lean else f"{name}, played by torch"


@pytest.mark.few(14)
@pytest.mark.parametrize("cell", CELLS)
def test_what_is_announced_is_what_the_learner_does(cell: str) -> None:
    changes, line = CELLS[cell]
    session = prepared(**changes)
    found = session.announced
    if _native.has_amx() and cell == "by torch":  # the other way is bf16
        line = line.replace("half", "a quarter")
    assert found.line == line
    for path in found.paths:
        assert path.name == computed_by(session.learner, path.role)
        assert path.because or not path.name.startswith("torch"), "what is slower says why"


def test_a_module_that_our_passes_do_not_follow_is_announced_as_what_it_is() -> None:
    with pytest.warns(SparringWarning, match="own_nets:Lying is run by torch"):
        session = prepared(net={"kind": "own_nets:Lying"})
    assert [path.name for path in session.plan.paths] == [NATIVE], "as far as anybody knew"
    (path,) = session.announced.paths
    assert path.name == computed_by(session.learner, "") == TORCH
    assert path.because.startswith("the policy of its layers differs by")


def test_a_learner_of_your_own_has_a_path_of_its_own() -> None:
    session = prepared(algo="learn.reinforce:make")
    assert session.announced.line == "learn.reinforce:make, a custom learner"
    assert session.announced.plain() == {"path": session.announced.line, "paths": []}


# On a GPU; tests/cuda holds the same cells against learners there


@pytest.mark.parametrize("cell", FLAT)
def test_kernels_are_announced_where_networks_have_them(cell: str) -> None:
    changes, way = FLAT[cell]
    plan = prepared(**changes).plan
    plan = replace(plan, device="cuda", games_on="cuda", fused=True)
    (path,) = paths_of(str(changes.get("algo", "ppo")), plan, "")
    assert path.way == way


def test_populations_and_games_elsewhere_have_figures_of_their_own() -> None:
    plan = replace(prepared(net={"norm": True}).plan, device="cuda", games_on="cuda", fused=True)
    (four,) = paths_of("ppo", replace(plan, seeds=(1, 2, 3, 4)), "")
    assert four.way.endswith(": about a quarter of the speed")
    (two,) = paths_of("ppo", replace(plan, seeds=(1, 2)), "")
    assert two.speed is None
    (apart,) = paths_of("ppo", replace(plan, games_on="cpu", fused=False), "net.normalize plays")
    assert apart.way == "torch bf16, step by step because net.normalize plays"
    plain = replace(prepared().plan, device="cuda", games_on="cpu", fused=True)
    (beside,) = paths_of("ppo", plain, "")
    assert beside.way == "kernels bf16, games on the CPU because pool is cpu"


# Wherever people look

SLOWER = f"ppo, perceptron 19-16-10, {TORCH} because net.norm has no native passes{HALF}"
NORM = {"net": {"hidden": (16,), "norm": True}, "collect": {"cpu": "float32"}, "device": "cpu"}


def test_a_run_keeps_its_path_and_goes_on_with_it(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=1, **NORM)
    text = (agent.run / "config.toml").read_text()
    assert text.splitlines()[1] == f"# {SLOWER}"
    written = json.loads((agent.run / "network.json").read_text())
    assert written["path"] == SLOWER
    assert PathSummary("ppo", tuple(ComputePath(**one) for one in written["paths"])).line == SLOWER
    assert Overview(agent.run).plain()["path"] == SLOWER
    ended = resume(agent.run, updates=2, quiet=True)
    again = (ended.run / "config.toml").read_text()
    assert again.splitlines()[1] == f"# {SLOWER}" and tomllib.loads(again)["updates"] == 2
    other = complete("", str(ended.run / "config.toml"), {"name": "other"})
    assert (other.net.norm, other.updates) == (True, 2)


@pytest.mark.filterwarnings("error")
def test_training_begins_with_its_path_and_says_nothing_when_it_is_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, updates=1, **NORM)
    train_with(config)
    assert capsys.readouterr().err.startswith(f"{SLOWER}; ")
    train_with(config, quiet=True)
    assert capsys.readouterr().err == ""


def test_a_dry_run_tells_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "tic_tac_toe", "--dry-run", *WORDS, "--device", "cpu", "--runs"]
    words += [str(tmp_path / "runs"), "--collect.cpu", "float32", "--net.norm"]
    assert main(words) == 0
    assert f"\n{SLOWER}; " in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == SLOWER
    assert told["paths"][0]["speed"] == pytest.approx(0.56)


def test_roles_with_the_same_network_share_its_words() -> None:
    net = "perceptron 8-8-3"
    both = tuple(ComputePath(net, NATIVE, role=role) for role in ("bid", "play"))
    assert PathSummary("ppo", both).line == f"ppo, bid and play: {net}, {NATIVE}"


def test_what_no_terminal_and_no_file_can_have_is_spelled_out() -> None:
    odd = PathSummary("ppo", (ComputePath("a\nb:\x1b[31mNet", "torch float32"),))
    assert odd.line == "ppo, a\\nb:\\x1b[31mNet, torch float32"
    assert tomllib.loads(to_toml({"game": "x"}, odd.line)) == {"game": "x"}
