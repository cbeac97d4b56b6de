"""What is checked and said before the learning library is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from commands.run_helpers import make_run, write_results
from sparring.cli import find, parse, words_of
from sparring.commands.shared import opening
from sparring.commands.shared.opening import read_typed
from sparring.config import TrainConfig
from sparring.training.budget import BUDGETS

ASKED = """
import contextlib, io, json, sys
from sparring.cli import main
said = {}
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words.split())
    said[words] = [code, out.getvalue(), err.getvalue(), "torch" in sys.modules]
print(json.dumps(said))
"""
REFUSED = {
    "train skul_king": "did you mean 'skull_king'?",
    "train skull_king --set num_playes=3": "did you mean 'num_players'?",
    "train tic_tac_toe --name a/b": "cannot be a run's",
    "train tic_tac_toe --seeds 2 --name a/b": "cannot be a run's",
    "train tic_tac_toe --learning-rate 3": "did you mean --ppo.lr?",
    "train tic_tac_toe --algo ppp": "algo 'ppp' is unknown",
    "train tic_tac_toe --ppo.lr nan": "ppo.lr",
    "tune skul_king": "did you mean 'skull_king'?",
    "bench train skul_king": "did you mean 'skull_king'?",
    "eval latest --game skul_king": "did you mean 'skull_king'?",
    "exploit latest --game skul_king": "did you mean 'skull_king'?",
    "eval captan": "did you mean 'captain'",
    "exploit nothere": "no player 'nothere'",
    "arena captain nothere": "no player 'nothere'",
    "ladder skul_king": "did you mean 'skull_king'?",
    "ladder skull_king --submit nothere": "no player 'nothere'",
    "play nothere": "no game or run 'nothere'",
    "profile nothere": "no game or run 'nothere'",
    "resume nothere": "no run 'nothere'",
    "resume --run nothere": "it is positional: sparring resume RUN",
    "serve --runs x": "x: no such folder",
    "sweep nothere.toml": "cannot read nothere.toml",
    "bench configs nothere.toml": "cannot read nothere.toml",
}
HELPED = ("train --help", "train --help-all", "help resume", "help bench train", "completion bash")


def test_wrong_names_are_refused_and_help_is_shown_without_torch(tmp_path: Path) -> None:
    lines = json.dumps([*REFUSED, *HELPED])
    words = [sys.executable, "-c", ASKED, lines]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for words, hint in REFUSED.items():
        code, out, err, torch = said[words]
        assert (code, out, torch) == (2, "", False), (words, err)
        assert hint in err
        assert len(err.splitlines()) == 1, err
    for words in HELPED:
        code, out, err, torch = said[words]
        assert (code, err, torch) == (0, "", False), words
        assert out
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_done_says_so_without_torch(tmp_path: Path) -> None:
    write_results(make_run(tmp_path / "runs", "first", {10: 0.5}), careful=0.5)
    words = [sys.executable, "-c", ASKED, json.dumps(["resume first", "resume first --json"])]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    for code, out, _, torch in json.loads(done.stdout).values():
        assert (code, torch) == (0, False)
        assert "done: 10 of 10 updates; give more: sparring resume runs/first --updates 20" in out


def test_a_line_says_what_begins_before_torch_is_loaded() -> None:
    """The last line of a process that stops where torch would be imported."""
    asked = """
import importlib.machinery
import sys
class Stop:
    def find_spec(self, name, *_):
        if name == "torch":
            return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        raise KeyboardInterrupt
    def exec_module(self, module):
        pass
sys.meta_path.insert(0, Stop())
from sparring.cli import main
sys.exit(main(sys.argv[1:]))
"""
    words = "train tic_tac_toe --minutes 1 --threads 2 --name first"
    for extra, lines in (
        ("", ["tic_tac_toe: PPO, 2 threads, 1 minute, runs/first", "", "sparring: interrupted"]),
        ("--json", ["", "sparring: interrupted"]),
    ):
        command = [sys.executable, "-c", asked, *words.split(), *extra.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stderr.splitlines() == lines
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "tic_tac_toe: PPO, 2 threads, 5 minutes, runs/tic_tac_toe-ppo-..."),
        ({"updates": 1, "threads": 1}, "PPO, 1 thread, 1 update, "),
        ({"decisions": 2_000_000, "algo": "dqn"}, "DQN, 2 threads, 2,000,000 decisions, "),
        ({"seeds": 3, "name": "x"}, "3 runs, PPO, 2 threads, 5 minutes, runs/x"),
    ],
)
def test_the_line_has_the_budget_and_the_place(changes: dict[str, object], line: str) -> None:
    settings = {"game": "tic_tac_toe", "threads": 2, **changes}
    assert line in opening.training_line(TrainConfig(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        "skull_king",
        "--minutes 0.5 tic_tac_toe",
        "tic_tac_toe --updates=1_000 --algo dqn --dqn.mode rollouts",
        "--set num_players=3 rounds=2 skull_king --net.hidden 64,32 --decisions 1e6",
        "--opponents self=1 captain=1 --league generations skull_king --eval.off",
        "--hierarchy.on skull_king --algo sac --algo ppo",
        "--curriculum c.toml --config my.toml --ppo.lr 1e-4 --episodes 7",
    ],
)
def test_what_chooses_presets_is_read_as_the_parser_reads_it(line: str) -> None:
    command = find(["train"])[0]
    config, words = words_of(command, line.split())
    slow = parse(command, config, words, replace(TrainConfig(), game="", algo=""))
    fast = read_typed(words)
    for name in ("game", "config", "algo", "curriculum", *BUDGETS):
        assert getattr(fast, name) == getattr(slow, name), name
    assert fast.league.preset == slow.league.preset
    assert fast.dqn.mode == slow.dqn.mode
    assert fast.hierarchy.on == slow.hierarchy.on


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "switch",
    ["eval.off", "hierarchy.on", "hindsight.on", "distributed.trusted_network"],
)
def test_what_is_on_already_can_be_switched_on_and_off(switch: str) -> None:
    section, name = switch.split(".")
    usual = TrainConfig(game="skull_king")
    on = replace(usual, **{section: replace(getattr(usual, section), **{name: True})})
    for word, value in ((f"--{switch}", True), (f"--{section}.no-{name}", False)):
        config = parse(find(["train"])[0], TrainConfig, ["skull_king", word], on)
        assert getattr(getattr(config, section), name) is value
