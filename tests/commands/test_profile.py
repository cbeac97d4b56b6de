"""`sparring profile`: a short training, and a run that is going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from sparring.cli import main
from sparring.processes import Parent
from sparring.speed import profiled_process, profiling, sampling
from sparring.speed.evidence import processes_of
from sparring.usage import is_running

SMALL = ["--change", "net.hidden=[8]", "collect.games=8", "collect.steps=16", "ppo.minibatch=64"]
FILES = {"report.md", "flame.html", "profile.speedscope.json", "profile.json"}


OTHERS: set[int] = set()
"""What other tests have started in this process and keep."""


def children() -> set[int]:
    """The processes that this one has started."""
    return set(processes_of(os.getpid())) - {os.getpid()}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real training, looked at for some updates."""
    out = tmp_path_factory.mktemp("profile") / "ours"
    OTHERS.update(children())
    words = ["--updates", "20", "--native", "off", "--no-try-out", "--threads", "1"]
    assert main(["profile", "tic_tac_toe", *words, "--out", str(out), *SMALL, "--json"]) == 0
    return out


def test_all_files_are_there_and_agree(profiled: Path) -> None:
    assert {path.name for path in profiled.iterdir()} == FILES
    plain: dict[str, Any] = json.loads((profiled / "profile.json").read_text())
    assert plain["decisions_per_s"] > 0
    assert sum(plain["phases"].values()) == pytest.approx(1, abs=0.02)
    assert plain["config"]["ppo"]["minibatch"] == 64
    assert not plain["attached"]
    assert plain["path"].startswith("ppo, perceptron 19-")
    top = plain["functions"]["self"][0]
    report = (profiled / "report.md").read_text()
    assert f"\n{plain['path']}\n" in report
    assert f"`{top['name'][:60]}" in report
    assert report.index(plain["verdicts"][0]["text"]) < report.index("## Where the time goes")
    frames = plain["stacks"]["frames"]
    names = {name for name, place, _ in frames if place.startswith(("torch/", "sparring/learn"))}
    assert {"PPO.iterate", "NativeBackend.step"} <= names
    flame = (profiled / "flame.html").read_text()
    assert all(json.dumps(name)[1:-1].replace("<", "\\u003c") in flame for name in names)
    scope = json.loads((profiled / "profile.speedscope.json").read_text())
    assert sum(sum(one["weights"]) for one in scope["profiles"]) == pytest.approx(
        sum(one["samples"] for one in plain["stacks"]["stacks"]) / plain["sampling"]["rate"]
    )


def test_updates_say_how_long_it_is_looked_at(profiled: Path) -> None:
    plain: dict[str, Any] = json.loads((profiled / "profile.json").read_text())
    assert plain["sampling"]["updates"] >= 20
    assert plain["sampling"]["samples"] > 5
    assert f"({plain['sampling']['updates']:,} updates)" in (profiled / "report.md").read_text()


def test_looking_from_within_ends_after_as_many_updates() -> None:
    sampler = profiled_process.SelfSampling(cast(Parent, None))
    sampler.after_update()
    never, soon = sampler.event_after(0), sampler.event_after(2)
    for is_over in (False, True):
        sampler.after_update()
        assert soon.is_set() == is_over
    assert not never.is_set()


def test_nothing_goes_on_behind_it(profiled: Path) -> None:
    assert children() <= OTHERS
    assert not list(Path().glob("runs/profiled*"))


@pytest.mark.slow
def test_without_py_spy_it_looks_from_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sampling, "NAME", "no-such-program")
    monkeypatch.chdir(tmp_path)
    words = ["--updates", "200", "--no-try-out", "--threads", "1", *SMALL]
    assert main(["profile", "tic_tac_toe", *words]) == 0
    assert "pip install 'sparring[profile]'" in capsys.readouterr().out
    plain = json.loads(Path("profile-tic_tac_toe/profile.json").read_text())
    assert plain["sampling"]["samples"] > 5
    assert plain["sampling"]["rate"] == 100
    assert "Trainer._update" in {frame[0] for frame in plain["stacks"]["frames"]}
    assert children() <= OTHERS


STUCK = """
import time
import gymnasium
import numpy as np

class Stuck(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        time.sleep(3600)

def make():
    return Stuck()
"""


@pytest.mark.slow
def test_a_step_that_does_not_end_is_looked_at_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sparring.speed.profiled.WARM_LIMIT_S", 2.0)
    monkeypatch.setattr(profiling, "UPDATE_TIMEOUT_S", 1.0)
    Path("stuck.py").write_text(STUCK)
    words = ["--seconds", "1", "--native", "off", "--no-try-out", "--threads", "1"]
    assert main(["profile", "stuck.py:make", *words, "--out", "seen", "--json"]) == 0
    plain = json.loads(Path("seen/profile.json").read_text())
    assert plain["verdicts"][0]["cause"] == "an environment that waits"
    assert "Stuck.step (stuck.py:14)" in plain["verdicts"][0]["text"]
    assert any("no update ended" in text for text in plain["not_seen"])


@pytest.mark.slow
def test_a_training_that_is_refused_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only the training itself finds out is one line as well."""
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "tic_tac_toe", "--change", "collect.games=1000000000"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "GiB" in said[-1]
    assert not list(tmp_path.iterdir())
    assert children() <= OTHERS


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    words = ["profile", "tic_tac_toe", "--seconds", "60", "--threads", "1"]
    command = [sys.executable, "-m", "sparring", *words]
    ours = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        until = time.monotonic() + 40
        while not list(tmp_path.glob("*/profiled/config.toml")):
            assert ours.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        family = set(processes_of(ours.pid)) - {ours.pid}
        ours.send_signal(signal.SIGINT)
        assert ours.wait(20) == 130
    finally:
        ours.kill()
    assert family
    assert not any(map(is_running, family))
    assert not list(tmp_path.glob("sparring-*"))
    assert not list(tmp_path.glob("profile-*"))


@pytest.mark.slow
def test_a_run_that_goes_on_is_looked_at_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if sampling.find_py_spy() is None:
        pytest.skip("needs py-spy")
    words = "train tic_tac_toe --minutes 5 --name mine --threads 1 --json --net.hidden 8"
    run = subprocess.Popen([sys.executable, "-m", "sparring", *words.split()])
    try:
        wait_for_updates(tmp_path / "runs/mine", run)
        code = main(["profile", "mine", "--seconds", "3", "--out", "seen", "--json"])
        assert run.poll() is None, "the run goes on"
        if code == 2:
            pytest.skip("py-spy may not look here")
        assert code == 0
        plain = json.loads(Path("seen/profile.json").read_text())
        assert plain["attached"]
        assert plain["path"].startswith("ppo, perceptron 19-8-10, native ")
        assert plain["processes"][str(run.pid)] == "training"
        assert "evaluation" in plain["processes"].values()
        assert plain["decisions_per_s"] > 0
        assert "Trainer._update" in {frame[0] for frame in plain["stacks"]["frames"]}
    finally:
        run.terminate()
        run.wait(60)


def wait_for_updates(folder: Path, run: subprocess.Popen[bytes]) -> None:
    """Wait until curves of some updates can be read."""
    from sparring.speed.curves import CurveReader

    progress = CurveReader(folder)
    until = time.monotonic() + 40
    while progress.last_update() < 5:
        assert run.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)
