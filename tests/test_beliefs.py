"""The benchmark of beliefs: what it counts."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
import torch

from sparring import Rules
from sparring.config import HeadsConfig, NetConfig
from sparring.nets.heads import head_widths
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.schedule import Schedule
from sparring.store.policies import save_policy

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "beliefs.py"


@pytest.fixture(autouse=True)
def beside_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find those in their own folder."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))


def run(tmp_path: Path, heads: HeadsConfig) -> int:
    rules = Rules("skull_king", {"rounds": [3]})
    torch.manual_seed(0)
    net = make_net(rules, NetConfig(hidden=(16,)), heads=head_widths(rules, heads))
    save_policy(Policy(rules, net), tmp_path / "policy")
    words = [str(tmp_path / "policy"), "--decisions", "64", "--worlds", "16", "--json"]
    code: int = runpy.run_path(str(SCRIPT))["main"](words)
    return code


def test_an_untrained_head_is_held_against_the_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, HeadsConfig(hidden=Schedule.constant(1.0))) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["decisions"] == 32
    found = record["found"]
    assert {"uniform deals", "head at temperature 1", "deals at temperature 1"} <= set(found)
    assert all(0 <= row["error"] <= 1 and 0 <= row["right"] <= 1 for row in found.values())


def test_an_agent_without_the_head_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, HeadsConfig(wdl=Schedule.constant(1.0))) == 2
    told = capsys.readouterr().err
    assert told.strip().endswith("has no belief; train it with --heads.hidden")
