from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.commands.bench.configs import summary
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.speed import run_processes
from sparring.speed.configs import BenchProgress, cost, read_named
from sparring.speed.run_processes import threads_of

FILE = """
game = "tic_tac_toe"
updates = 4
seeds = 2
threads = 1
targets = [0.01, 0.999]
tensorboard = false
eval = {games = 16, final_games = 16, every_decisions = 512}
collect = {games = 16, steps = 16}
[ppo]
minibatch = 64
[configs.a]
net.hidden = [8]
[configs.b]
net.hidden = [16]
seed = 5
[configs.c]
algo = "dqn"
"""
LIMIT_S = 120.0


def written(folder: Path, text: str = FILE) -> str:
    path = folder / "nets.toml"
    path.write_text(text)
    return str(path)


def test_settings_of_all_and_of_each_become_runs_in_turn(tmp_path: Path) -> None:
    named = read_named(written(tmp_path))
    runs = named.runs(tmp_path / "out")
    assert [run.name for run in runs] == ["a-s0", "b-s5", "c-s0", "a-s1", "b-s6", "c-s1"]
    first, second, third = (run.config for run in runs[:3])
    assert (first.net.hidden, second.net.hidden) == ((8,), (16,))
    assert first.ppo.minibatch == 64
    assert third.algo == "dqn"
    assert first.eval.target == named.targets == (0.01, 0.999)
    assert second.seed == 5
    assert "6 with a budget in decisions" in cost(runs)
    timed = read_named(written(tmp_path), minutes=2, seeds=1).runs(tmp_path)
    assert (timed[0].config.minutes, timed[0].config.updates) == (2, 0)
    assert cost(timed).startswith("3 runs to train: 6 minutes of training")
    assert cost([]) == "nothing is left to train"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", "is not TOML"),
        ("game = 'tic_tac_toe'", "no [configs.NAME] tables"),
        ("[configs]", "configs is empty"),
        ("[configs.a]\nnet.hiden = [8]", "configs.a: train: no setting 'hiden'"),
        ("[configs.a]\ngame = 'nope'", "no game called 'nope'"),
        ("[configs.a]\nalgo = 'dqn'\nppo.lr = 1e-3", "configs.a: train: ppo.lr: of PPO"),
        ("[configs.a]\nvary = ['ppo.lr=1,2']", "vary cannot be set here"),
        ("[configs.a]\neval.off = true", "eval.off"),
        ("[configs.'a/b']", "letters, digits"),
        ("seeds = 0\n[configs.a]", "seeds 0 must be a whole number"),
        ("targets = 'x'\n[configs.a]", "targets 'x' must be a list of numbers"),
        ("[configs.a]\nopponents = ['nobody=1']", "nobody"),
    ],
)
def test_what_would_be_refused_later_is_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as wrong:
        read_named(written(tmp_path, text))
    assert why in str(wrong.value)
    assert "nets.toml" in str(wrong.value)
    assert [path.name for path in tmp_path.iterdir()] == ["nets.toml"]


def test_runs_of_other_settings_are_not_taken_for_finished(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = read_named(written(tmp_path)).runs(out)[0]
    progress = BenchProgress(out)
    (out / run.name).mkdir(parents=True)
    with pytest.raises(ConfigError, match="not from this bench"):
        progress.check_same(run)
    progress.save(run, facts={})
    again = BenchProgress.read(out)
    again.check_same(run)
    assert again.has_ended(run)
    other = read_named(written(tmp_path, FILE.replace("[8]", "[9]"))).runs(out)[0]
    with pytest.raises(ConfigError, match=r"net.hidden was \[8\], is \[9\]"):
        again.check_same(other)
    (out / run.name).rmdir()
    assert not again.has_ended(run)


def test_a_configuration_is_summed_up_over_its_runs() -> None:
    run = {
        **dict.fromkeys(("minutes", "decisions", "cpu_cores", "gpu_busy"), 1.0),
        **{"decisions_per_s": 10.0, "samples_per_s": 5.0, "memory_bytes": 7, "gpu_bytes": 0},
        **{"score_per_hour": 3.0, "score_per_million": None, "targets": {"0.5": 60.0}},
        **{"strength": 0.5, "strength_low": 0.4, "strength_high": 0.6},
    }
    other = {**run, "decisions_per_s": 20.0, "memory_bytes": 9, "targets": {}, "strength": 0.7}
    alone, both = summary([run], (0.5, 0.9)), summary([run, other], (0.5, 0.9))
    assert alone["strength"] == {"value": 0.5, "low": 0.4, "high": 0.6, "over": "games"}
    assert both["strength"]["value"] == pytest.approx(0.6)
    assert both["strength"]["over"] == "seeds"
    assert (both["decisions_per_s"], both["memory_bytes"]) == (15.0, 9)
    assert both["targets"] == {
        "0.5": {"seconds": 60.0, "reached": 1, "runs": 2},
        "0.9": {"seconds": None, "reached": 0, "runs": 2},
    }
    assert both["score_per_hour"] == 3.0
    assert both["score_per_million"] is None
    assert summary([], (0.5,)) == {"runs": 0}


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_all_are_trained_one_that_diverges_is_said_and_nothing_is_trained_twice(
    together: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.replace("seeds = 2", "seeds = 1").replace('algo = "dqn"', "ppo.lr = 1e12")
    words = ["bench", "configs", written(tmp_path, text), "--out", str(tmp_path / "out")]
    words += ["--together", str(together)]
    assert main([*words, "--dry-run"]) == 0
    assert not (tmp_path / "out").exists()
    capsys.readouterr()
    assert main([*words, "--games", "16", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert list(told["failed"]) == ["c-s0"]
    assert "diverged" in told["failed"]["c-s0"]
    for name in ("a", "b"):
        found = told["configs"][name]
        assert found["runs"] == 1
        assert found["decisions_per_s"] > 0
        assert found["memory_bytes"] > 2**20
        assert found["targets"]["0.01"]["reached"] == 1
        assert found["targets"]["0.999"]["reached"] == 0
    (compared,) = told["comparisons"]
    assert [group["group"] for group in compared["groups"]] == ["a", "b"]
    assert (tmp_path / "out" / "compare.png").exists()
    before = (tmp_path / "out" / "trained.json").read_bytes()
    assert main([*words, "--games", "0", "--record", str(tmp_path / "out" / "bench.json")]) == 3
    assert (tmp_path / "out" / "trained.json").read_bytes() == before
    shown = capsys.readouterr()
    assert "nothing is left to train; 3 are done already" in shown.err
    assert ("3 runs trained at a time" in shown.out) == (together == 3)
    assert "cannot tell: 1.00 (one round gives no interval)" in shown.out


def test_runs_that_do_not_fit_together_are_refused_before_any_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_processes, "free_memory", lambda: 1 << 30)
    words = ["bench", "configs", written(tmp_path), "--out", str(tmp_path / "out"), "--together"]
    assert main([*words, "2", "--dry-run"]) == 0
    assert "2 at a time: a-s0, b-s5, c-s0, a-s1, b-s6, c-s1" in capsys.readouterr().out
    assert main([*words, "4", "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert "together 4: the largest runs need 1." in said and "and 1.0 GiB are free" in said
    assert threads_of(TrainConfig(threads=3), 2) == 3
    assert threads_of(TrainConfig(), 64) == 1


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 3])
def test_an_interrupted_bench_goes_on_where_it_was(together: int, tmp_path: Path) -> None:
    text = FILE.replace("updates = 4", "updates = 100000").replace("seeds = 2", "seeds = 1")
    file, out = written(tmp_path, text), tmp_path / "out"
    words = [sys.executable, "-m", "sparring", "bench", "configs", file, "--out", str(out)]
    words += ["--together", str(together)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr
        try:
            for line in program.stderr:  # a line comes every ten seconds
                if line.count("decisions/s") == together:
                    break
            program.send_signal(signal.SIGTERM)
            rest = program.stderr.read()
            assert program.wait(LIMIT_S) == 128 + signal.SIGTERM
        finally:
            program.kill()
    assert "the same command continues" in rest
    progress = BenchProgress.read(out)
    for run in read_named(file).runs(out)[:together]:
        assert list((out / run.name / "checkpoints").iterdir())
        assert run.name in progress.runs
        assert not progress.has_ended(run)
