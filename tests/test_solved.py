"""The benchmark of solved positions: what it counts, and what search adds."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from search.positions import keeps_value, positions
from sparring import Rules
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def solved() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        place = ROOT / "benchmarks" / "solved.py"
        spec = importlib.util.spec_from_file_location("solved", place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a policy that has learned nothing."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rules = Rules("tic_tac_toe")
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(16,))))
    return str(save_policy(policy, tmp_path_factory.mktemp("policies") / "fresh"))


def test_shares_are_those_of_single_positions(
    solved: ModuleType, fresh: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "solved.json"
    words = ["tic_tac_toe", fresh, "--search", "2,16", "--json", "--out", str(file)]
    assert solved.main(words) == 0
    record: Any = json.loads(capsys.readouterr().out)
    assert record == json.loads(file.read_text())
    assert record["positions"] == 4520
    alone, two, sixteen = record["players"].values()
    policy = solved.load_player(fresh, Rules("tic_tac_toe"))
    for ply in (0, 8):
        same = [p for p in positions("tic_tac_toe") if len(p.moves) == ply]
        kept = [keeps_value(p, policy.action(p.state())) for p in same]
        assert alone["by_ply"][str(ply)] == pytest.approx(sum(kept) / len(kept), abs=1e-4)
    assert alone["kept"] == pytest.approx(1 - len(alone["lost"]) / 4520, abs=1e-4)
    assert alone["kept"] < two["kept"] < sixteen["kept"]  # ends of games are seen in the tree


def test_the_table_has_a_row_per_ply(
    solved: ModuleType, fresh: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert solved.main(["tic_tac_toe", fresh, "--search", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ply", "network", "2"]
    assert any(line.split()[:1] == ["all"] for line in lines)
    assert lines[-1].startswith("4,520 positions of tic_tac_toe; network: ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("tic_tac_toe random", "random is a bot; give a run or a policy"),
        ("tic_tac_toe FRESH --search 0", "the budget must be above 0"),
        ("connect_four FRESH", "connect_four"),
    ],
)
def test_mistakes(
    solved: ModuleType, fresh: str, words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert solved.main(words.replace("FRESH", fresh).split()) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert hint in shown.err
