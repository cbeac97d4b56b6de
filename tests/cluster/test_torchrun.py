"""The processes of a run, started by torchrun: the same as those that a run starts itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.store.policies import load_policy
from sparring.training.planning.gpus import check_torchrun

SMALL = ["train", "tic_tac_toe", "--device", "cpu", "--threads", "2", "--net.hidden", "16"]
SMALL += ["--collect.games", "16", "--collect.steps", "12", "--ppo.minibatch", "64"]
SMALL += ["--eval.off", "--eval.final-games", "2"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "torchrun has started 3 processes, and the run has 1; add --devices 0,1,2, or"),
        ({"replicas": 2}, "torchrun has started 3 processes, and the run has 2; add"),
        ({"devices": "0,1"}, "torchrun has started 3 processes, and the run has 2; add"),
        ({"replicas": 3}, ""),
        ({"devices": "0,1,2"}, ""),
    ],
)
def test_torchrun_starts_as_many_processes_as_there_are_learners(
    given: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(**given)  # type: ignore[arg-type]
    check_torchrun(config)  # nothing was started by torchrun
    for name, value in {"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    if not message:
        check_torchrun(config)
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
        message = "torchrun: all processes have to be on one machine"
    with pytest.raises(ConfigError, match=message):
        check_torchrun(config)


def start(folder: Path, *words: str, processes: int = 2) -> subprocess.Popen[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command = [*launcher, "-m", "sparring", *SMALL, *words, "--runs", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
def test_a_run_of_torchrun_is_that_of_replicas(tmp_path: Path) -> None:
    process = start(tmp_path / "a", "--replicas", "2", "--updates", "3", "--name", "one")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    other = [sys.executable, "-m", "sparring", *SMALL, "--replicas", "2", "--updates", "3"]
    subprocess.run([*other, "--name", "one", "--runs", str(tmp_path / "b")], check=True, timeout=90)
    mine, theirs = (load_policy(tmp_path / name / "one").net.state_dict() for name in "ab")
    assert all(mine[name].equal(theirs[name]) for name in mine)


@pytest.mark.slow
def test_a_run_whose_other_process_dies_is_saved_and_nothing_is_left(tmp_path: Path) -> None:
    process = start(tmp_path, "--replicas", "2", "--minutes", "3", "--name", "one")
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "one" / "metrics.sqlite").exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.2)
        children = workers(process.pid)
        assert len(children) == 2
        os.kill(children[-1], signal.SIGKILL)
        output, _ = process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode != 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()], output


def workers(parent: int) -> list[int]:
    """Processes that torchrun started, by rank."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            owner = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (folder / "environ").read_bytes().split(b"\0")
        except (OSError, IndexError):
            continue
        rank = [word for word in words if word.startswith(b"RANK=")]
        if owner == parent and rank:
            found.append((int(rank[0][5:]), int(folder.name)))
    return [pid for _, pid in sorted(found)]
