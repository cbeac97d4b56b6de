"""Without torch everything but learning works, and what needs it says so in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAVED = Path(__file__).parent / "store" / "policies_57c4c850"
BLOCKED = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "tensorboard"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
"""
COMMANDS = """
import io, json, sys
from sparring.cli import main

def typed(line, code=0, keys=""):
    sys.stdin = io.StringIO(keys)
    got = main(line.split())
    assert got == code, (line, got)

typed("games skull_king")
typed("play mine --seed 1", keys="1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n" * 3)
typed("eval mine --games 32 --save-games kept")
typed("eval residual@sampled --against random --games 16")
typed("arena mine@greedy mine@8 mine@level3 careful --games 8")
typed("replay kept/careful/tic_tac_toe-0-0-seat0.json")
typed("render mine --out game.svg --still")
typed("check tic_tac_toe --games 2")
typed("bench pool tic_tac_toe --seconds 0.05 --rounds 1 --games 64")
typed("demo kuhn_poker --games 16")
typed("zoo")
typed("zoo tic_tac_toe --verify")
typed("arena champion captain --game skull_king --games 8")
typed("eval champion@8 --game connect_four --games 2")
typed("ladder tic_tac_toe --games 8")
typed("runs")
typed("plot mine")
typed("usi random", keys="usi\\nquit\\n")
typed("doctor --json")
typed("completion bash")
"""
SERVED = """
from pathlib import Path
from starlette.testclient import TestClient
from sparring.web.guard import Guard
from sparring.web.server import make_app

app = make_app(Path("runs"), guard=Guard("127.0.0.1", 80, "t" * 24, reads_freely=True))
with TestClient(app, base_url="http://127.0.0.1") as client:
    assert "mine" in client.get("/api/runs").text
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a run of a perceptron and a saved residual network, and no torch in reach."""
    shutil.copytree(SAVED / "run" / "run", tmp_path / "runs" / "mine")
    shutil.copytree(SAVED / "residual" / "policy", tmp_path / "residual")
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "sitecustomize.py").write_text(BLOCKED)
    return tmp_path


def without_torch(place: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python where torch cannot be imported."""
    paths = os.pathsep.join([str(place / "blocked"), str(Path(__file__).parent)])
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize("code", [COMMANDS, SERVED], ids=["commands", "served"])
def test_commands_that_do_not_learn_work(place: Path, code: str) -> None:
    done = without_torch(place, code)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    "typed", ["train tic_tac_toe", "resume mine", "bench train tic_tac_toe", "exploit mine"]
)
def test_what_learns_names_the_extra_in_one_line(place: Path, typed: str) -> None:
    code = f"import sys; from sparring.cli import main; sys.exit(main({typed.split()}))"
    done = without_torch(place, code)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("needs torch, which is not installed: pip install 'sparring[train]'")
    assert not (place / "runs" / "tic_tac_toe-ppo-1").exists()


def test_saved_policies_answer_as_with_torch(place: Path) -> None:
    done = without_torch(
        place,
        "from store.test_older_policies import NAMES, demand_answers, loaded\n"
        "from sparring import ConfigError\n"
        "refused = []\n"
        "for name in NAMES:\n"
        "    try:\n"
        "        demand_answers(*loaded(name))\n"
        "    except ConfigError as error:\n"
        "        assert 'sparring[train]' in str(error)\n"
        "        refused.append(name)\n"
        "print(*refused)\n",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["attention", "attention_skull_king", "own_net"]
