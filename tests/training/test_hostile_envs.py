"""Environments that end the program, leave its folder, fail for ever: the run stays whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sparring
from sparring.cli import main
from sparring.pools.workers import WorkerPool
from sparring.store import checkpoint as checkpoints
from sparring.training.records.metrics import read

pytestmark = pytest.mark.filterwarnings("always::sparring.errors.SparringWarning")
QUICK = ["--collect.games", "2", "--collect.steps", "8", "--net.hidden", "8", "--threads", "1"]
QUICK += ["--no-tensorboard", "--eval.final-games", "4"]
OFF = "--eval.off"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are typed in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(factory: str, *words: str, updates: int = 4) -> int:
    """Train on one of `hostile_envs` in a run called r; returns the exit code."""
    game = ["train", f"hostile_envs:{factory}", "--name", "r", "--updates", str(updates)]
    return main([*game, *QUICK, *words])


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a command that failed; nothing else may look like an error."""
    said = capsys.readouterr().err
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.startswith("sparring: ")]
    found = [line for line in lines if not line.startswith("sparring: warning: ")]
    assert len(found) == 1, said
    return found[0]


def saved(run: Path) -> list[int]:
    """The whole checkpoints of a run, by number."""
    return [n for n in checkpoints.checkpoint_numbers(run / "checkpoints") if whole(run, n)]


def whole(run: Path, number: int) -> bool:
    """Whether a checkpoint can be read."""
    return checkpoints.is_valid(run / "checkpoints" / f"{number:08d}")


@pytest.mark.parametrize(
    "closed", [pytest.param(">&- 2>&-", marks=pytest.mark.slow), "<&- >&- 2>&-"]
)
def test_descriptors_that_are_closed_do_not_end_a_training(closed: str, tmp_path: Path) -> None:
    """Files of the run would get their numbers, and what is printed would go into these."""
    words = ["train", "tic_tac_toe", "--name", "r", "--updates", "2", OFF, *QUICK]
    command = [sys.executable, "-m", "sparring", *words]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    assert subprocess.run(shell, cwd=tmp_path, timeout=120, check=False).returncode == 0
    assert (tmp_path / "runs/r/results.json").is_file()


# Environments that end the program


@pytest.mark.parametrize(
    ("factory", "told", "algo"),
    [
        ("make_leaving", "Hostile failed in step 21: SystemExit: 3 (hostile_envs.py:", "ppo"),
        ("make_leaving_at_reset", "Hostile failed in step 20: SystemExit: 3", "ppo"),
        ("make_failing", "Hostile failed in step 21: ValueError: the simulator lost", "dqn"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_env_that_exits_on_the_way_is_told_and_the_run_is_saved(
    factory: str, told: str, algo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(factory, OFF, "--algo", algo) == 3
    assert told in complaint(capsys)
    run = Path("runs/r")
    assert saved(run)
    events = json.loads((run / "events.json").read_text())
    assert told in next(event["why"] for event in events if event["event"] == "lost")
    if algo == "ppo":
        assert saved(run) == [2]
        assert sparring.resume("runs/r", updates=3, quiet=True).policy.meta["update"] == 3


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("leave_factory", "cannot be made: SystemExit: 3"),
        ("make_leaving_at_once", "cannot be reset: SystemExit: 3"),
        ("make_leaving_at_close", "cannot be closed: SystemExit: 3"),
    ],
)
def test_an_env_that_exits_at_once_is_refused(
    factory: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(factory, OFF) == 2
    assert told in complaint(capsys)
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("folder")
def test_an_interrupt_is_the_persons(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("make_interrupting", OFF) == 130
    assert "interrupted" in complaint(capsys)


def test_check_says_that_an_env_exits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "hostile_envs:make_leaving_at_once", "--seconds", "1"]) == 3
    assert "raised SystemExit: 3" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_reward_beyond_all_bounds_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Without numpy's warnings and lines of our sources before it."""
    assert train("make_rich", OFF) == 3
    said = capsys.readouterr().err
    assert "RuntimeWarning" not in said
    assert "the loss is inf" in said.splitlines()[-1]


# Environments that fail for ever


@pytest.mark.usefixtures("folder")
def test_an_env_that_always_fails_in_workers_ends_the_run_in_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What one update brought is saved; the next ones never come."""
    words = ["--workers", "1", "--env.max-restarts-in-a-row", "2", "--collect.steps", "2"]
    assert train("make_always_failing", OFF, *words, updates=100) == 3
    told = complaint(capsys)
    assert "make_always_failing failed 3 times in a row without an episode that ended" in told
    assert "more than env.max_restarts_in_a_row 2: ValueError: the simulator lost its way" in told
    (last,) = saved(Path("runs/r"))
    assert last >= 1
    config = (Path("runs/r") / "config.toml").read_text()
    assert "max_restarts_in_a_row = 2" in config


def test_an_episode_that_ends_forgives_failures() -> None:
    """A worker that fails after every few episodes is bounded by env.max_restarts alone."""
    with WorkerPool("hostile_envs:make_failing", 1, workers=1, max_restarts_in_a_row=1) as pool:
        pool.reset()
        for _ in range(50):
            pool.step([0])
        assert pool.restarts == 2


# Environments that go to another folder


@pytest.mark.parametrize(
    "words",
    [
        [],
        pytest.param(["--workers", "1"], marks=pytest.mark.slow),
        pytest.param(["--actors", "1"], marks=pytest.mark.slow),
    ],
)
def test_an_env_that_changes_the_folder_keeps_its_run(
    words: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every file is where the command was typed, and what it prints can be typed there."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    extra = ["--csv", "--episodes-csv", "--eval.every-decisions", "16", "--checkpoint-every-s", "0"]
    assert train("make_moving", *words, *extra, "--eval.games", "2") == 0
    shown = capsys.readouterr()
    assert "not written" not in shown.err
    assert "run: runs/r; next: " in shown.out
    assert Path.cwd() == folder
    run = folder / "runs/r"
    assert saved(run)[-1] == 4
    names = ["best.json", "metrics.csv", "episodes.csv", "results.json", "plot.png"]
    assert [name for name in names if not (run / name).is_file()] == []
    curves = read(run)
    assert curves["charts/decisions"][0].tolist() == [1, 2, 3, 4]
    assert "eval/alone/score" in curves
    assert [path.name for path in folder.iterdir()] == ["runs"]


@pytest.mark.usefixtures("folder")
def test_a_run_of_such_an_env_goes_on_by_its_relative_path() -> None:
    off = {"eval": {"off": True}, "tensorboard": False}
    small = {"collect": {"games": 2, "steps": 8}, "net": {"hidden": (8,)}, "threads": 1, **off}
    sparring.train("hostile_envs:make_moving", name="r", updates=1, quiet=True, **small)
    agent = sparring.resume("runs/r", updates=2, quiet=True)
    assert agent.run == Path.cwd() / "runs/r"
    assert saved(agent.run)[-1] == 2


# Environments that fail when they are measured


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("measure_vanishing", "ended with exit code 5"),
        pytest.param("measure_crashing", "killed by SIGSEGV", marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_run_that_cannot_be_measured_is_whole(
    factory: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(factory, OFF) == 3
    shown = capsys.readouterr()
    (line,) = [line for line in shown.err.splitlines() if line.startswith("sparring: runs/r")]
    assert (
        line == f"sparring: runs/r was not measured: game 'hostile_envs:{factory}' failed: {told}"
    )
    assert "Traceback" not in shown.err
    assert "run: runs/r; next: " in shown.out
    run = Path("runs/r")
    results = json.loads((run / "results.json").read_text())
    assert results["results"] == {}
    assert told in results["not_measured"]
    assert saved(run)[-1] == 4
    assert main(["eval", "runs/r", "--games", "2"]) == 3
    assert complaint(capsys) == f"sparring: game 'hostile_envs:{factory}' failed: {told}"
