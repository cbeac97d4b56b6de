"""The benchmark of searches over worlds; a search does not make agents easier to exploit."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

import sparring
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.store.policies import save_policy

PLACE = Path(__file__).parents[1] / "benchmarks" / "worlds.py"
TOLERANCE = 0.02
"""Chips by which an agent may be easier to exploit: 2,000 playouts sample."""


@pytest.fixture(scope="module")
def worlds() -> ModuleType:
    spec = importlib.util.spec_from_file_location("worlds_benchmark", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_row_per_budget_and_step_size(
    worlds: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    rules = sparring.Rules("kuhn_poker")
    net = make_net(rules, NetConfig(hidden=(8,)))
    save_policy(sparring.Policy(rules, net), tmp_path / "mine")
    words = f"{tmp_path / 'mine'} --search 16,64 --eta 0,1 --seeds 1 --json"
    assert worlds.main(words.split()) == 0
    (found,) = json.loads(capsys.readouterr().out)["agents"].values()
    assert list(found) == ["network", "16, eta 0", "16, eta 1", "64, eta 0", "64, eta 1"]
    assert worlds.main([str(tmp_path / "none")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_search_does_not_make_a_trained_agent_easier_to_exploit(
    worlds: ModuleType, tmp_path: Path, game: str, seed: int
) -> None:
    agent = sparring.train(
        game, decisions=1_500_000, seed=seed, runs=str(tmp_path), quiet=True, eval={"off": True}
    )
    found = worlds.measure(agent.policy, ["2000"], [worlds.Step()], 1)
    assert found["2000"] <= found["network"] + TOLERANCE
