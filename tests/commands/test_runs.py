"""`sparring runs`: what it lists, and that it removes only what it was asked to."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.run_helpers import make_run, write_events, write_results
from sparring.cli import main
from sparring.training import status
from sparring.training.records import metrics, strength
from sparring.training.records.run import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: the newest is called beta."""
    root = tmp_path_factory.mktemp("model")
    make_run(root, "alpha", {5: 0.4, 10: 0.7}, age_s=100)
    make_run(root, "beta", {10: 0.5}, updates=20, seed=1)
    make_run(root, "gamma", {}, age_s=200, game="skull_king")
    return root


@pytest.fixture
def here(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in ./runs."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(model, tmp_path / "runs"))


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["runs", *words, "--json"]) == 0
    runs: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return runs


def test_runs_are_listed_newest_first(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    head, *lines, last = capsys.readouterr().out.splitlines()
    wanted = "name game algo state minutes decisions strength parameters size date"
    assert head.split() == wanted.split()
    assert [line.split()[0] for line in lines[:3]] == ["beta", "alpha", "gamma"]
    assert lines[1].split()[:7] == ["alpha", "tic_tac_toe", "ppo", "unmeasured", "10.0", "10", "k"]
    assert "careful 0.700" in lines[1]
    assert "–" in lines[2]
    assert lines[3:] == [
        f"{name} is not measured: sparring resume runs/{name}"
        for name in ("beta", "alpha", "gamma")
    ]
    assert last.startswith("3 runs in runs, ")
    assert last.endswith("latest: beta")


def test_filter_and_order(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(*words: str) -> list[str]:
        return [run["name"] for run in listed(capsys, *words)]

    assert names("--game", "tic_tac_toe") == ["beta", "alpha"]
    assert names("lph", "gam") == ["alpha", "gamma"]
    assert names("--sort", "name") == ["alpha", "beta", "gamma"]
    assert names("--sort", "strength") == ["alpha", "beta", "gamma"]
    assert names("--sort", "decisions")[0] == "beta"
    assert names("--runs", str(here)) == ["beta", "alpha", "gamma"]
    assert names("--game", "shogi") == []


def test_the_state_says_how_a_run_ended(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def states() -> dict[str, str]:
        return {run["name"]: run["state"] for run in listed(capsys)}

    # They trained to their end, and were killed before that was measured.
    assert states() == dict.fromkeys(("alpha", "beta", "gamma"), "unmeasured")
    write_results(here / "alpha", random=0.5)
    assert states()["alpha"] == "done"
    write_results(here / "alpha", "SIGTERM", random=0.5)
    write_events(here / "beta", ["best", "diverged"])
    (here / "gamma" / "results.json").write_text(
        '{"results": {}, "not_measured": "a step\\nfailed"}'
    )
    assert main(["runs", "gamma"]) == 0
    line = "gamma is not measured: sparring resume runs/gamma (a step failed)"
    assert line in capsys.readouterr().out.splitlines()
    (here / "gamma" / "results.json").unlink()
    write_events(here / "gamma", ["stopped"])
    assert states() == {"alpha": "stopped", "beta": "failed", "gamma": "stopped"}
    write_results(here / "gamma", random=0.5)
    (here / "beta" / "config.toml").write_bytes(b"\xff\x00 not toml")
    with Run(here / "alpha", {}).lock():
        assert states() == {"alpha": "running", "beta": "damaged", "gamma": "done"}
    (here / "alpha" / "metrics.sqlite").write_bytes(b"no database at all, but 40 bytes or more")
    assert states()["alpha"] == "damaged"


def test_strength_is_the_share_won_against_the_best_bot_whoever_else_was_met(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alpha, beta = here / "alpha", here / "beta"
    write_results(alpha, careful=0.5, random=0.7)
    write_results(beta, careful=0.5)
    found = {run["name"]: (run["strength"], run["measure"]) for run in listed(capsys)}
    assert found["alpha"] == found["beta"] == (0.5, "careful")
    assert found["gamma"] == (None, "captain")
    write_results(alpha, random=1.0)  # which says nothing about careful; the evaluation does
    assert listed(capsys, "alpha")[0]["strength"] == 0.7
    curves = dict.fromkeys([f"eval/{status.PREVIOUS_BEST}/win", "eval/random/win"])
    assert strength.opponents_of(curves) == ("random",)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--game tictactoe", "did you mean 'tic_tac_toe'?"),
        ("alpah", "did you mean 'alpha'"),
        ("zzz", "runs in runs: beta, alpha, gamma"),
        ("--sort stregth", "did you mean 'strength'?"),
        ("--runs nowhere", "no such folder"),
        ("--yes", "--remove"),
        ("--remove", "names of runs"),
        ("--remove alpha", "add --yes"),
        ("--remove alpha --game shogi --yes", "--game is for listing"),
        ("--remove alpha alpah --yes", "did you mean 'alpha'"),
        ("--remove runs --yes", "is not a run"),
        ("--remove linked --yes", "is a link"),
        ("--remove papers --yes", "is not a run"),
    ],
)
def test_a_mistake_is_one_line_and_removes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: str, hint: str
) -> None:
    (here.parent / "linked").symlink_to(here / "alpha")
    papers = here.parent / "papers"
    (papers / "checkpoints").mkdir(parents=True)
    (papers / "config.toml").write_text("title = 'mine'")
    before = sorted(here.parent.rglob("*"))
    assert main(["runs", *words.split()]) == 2
    shown = capsys.readouterr()
    assert len(shown.err.splitlines()) == 1
    assert hint in shown.err
    assert sorted(here.parent.rglob("*")) == before


def test_removing_says_what_it_freed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {run["name"]: run["size"] for run in listed(capsys)}
    make_run(here, "beta-2", {})
    assert main(["runs", "--remove", "beta", "gam", "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(one["run"]).name for one in told["removed"]] == ["beta", "gamma"]
    assert abs(told["freed"] - sizes["beta"] - sizes["gamma"]) < 10_000
    assert sorted(path.name for path in here.iterdir()) == ["alpha", "beta-2"]


def test_a_run_that_goes_on_stays_and_so_do_the_others(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Run(here / "beta", {}).lock():
        assert main(["runs", "--remove", "alpha", "beta", "--yes"]) == 2
    assert "is being trained" in capsys.readouterr().err
    assert (here / "alpha" / "config.toml").exists()
    nested = make_run(here / "alpha", "inner", {})
    assert main(["runs", "--remove", "alpha", "--yes"]) == 2
    assert nested.exists()


@pytest.mark.parametrize(("answer", "left"), [(b"\n", True), (b"n\n", True), (b"y\n", False)])
def test_a_person_is_asked(
    here: Path,
    answer: bytes,
    left: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert main(["runs", "--remove", "latest"]) == 0
    os.close(ours)
    shown = capsys.readouterr().out
    assert "beta: tic_tac_toe, 20.0 minutes, careful 0.500" in shown
    assert "[y/N]" in shown
    assert ("nothing was removed" in shown) == left
    assert (here / "beta").exists() == left


def test_no_runs_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    assert "sparring train" in capsys.readouterr().out
    assert listed(capsys) == []


def test_a_narrow_terminal_gets_fewer_columns(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("TERM", "xterm")
    assert main(["runs"]) == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines[:-2])) <= 44
    assert lines[0].split()[:2] == ["name", "state"]
    assert any("beta" in line and "0.500" in line for line in lines)
    shown = " ".join(lines)
    assert "wider terminals also show: " in shown
    assert "algo" not in lines[0]


def test_no_learning_library_is_needed(here: Path) -> None:
    text = (
        "import sys; from sparring.cli import main\n"
        "assert main(['runs']) == 0 and main(['compare', 'alpha']) == 2\n"
        "from sparring.commands import compare; compare.compare(compare.runs_meant(['al', 'be']))\n"
        "sys.exit(', '.join(m for m in ('torch', 'tensorboard') if m in sys.modules) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_list_reads_only_the_curves_that_it_needs(here: Path) -> None:
    some = metrics.read(here / "alpha", "charts/decisions", "eval/r*")
    assert set(some) == {"charts/decisions", "eval/random/win", "eval/random/score"}
    assert some["eval/random/win"][2].tolist() == [0.4, 0.7]
    assert len(metrics.read(here / "alpha")) > len(some)


def test_notes_and_tags_are_written_listed_and_taken_back(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "alpha", "--note", "a wide net", "--tag", "good, wide"]) == 0
    assert main(["runs", "alpha", "beta", "--tag", "seen"]) == 0
    assert main(["runs", "alpha", "--untag", "wide,never"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == "alpha: tags good, seen; note: a wide net"
    found = {run["name"]: (run["note"], run["tags"]) for run in listed(capsys)}
    assert found["alpha"] == ("a wide net", ["good", "seen"])
    assert found["beta"] == ("", ["seen"])
    assert found["gamma"] == ("", [])
    assert main(["runs"]) == 0
    head, *lines, _ = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["tags", "note"]
    assert lines[1].endswith("good,seen  a wide net")
    assert main(["runs", "alpha", "--note", ""]) == 0
    capsys.readouterr()
    assert listed(capsys, "alpha")[0]["note"] == ""


def test_runs_are_listed_by_their_tags(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "alpha", "beta", "--tag", "good"]) == 0
    assert main(["runs", "beta", "--tag", "wide"]) == 0
    capsys.readouterr()
    assert [run["name"] for run in listed(capsys, "--tagged", "good")] == ["beta", "alpha"]
    assert [run["name"] for run in listed(capsys, "--tagged", "good,wide")] == ["beta"]
    assert main(["runs", "--tagged", "goood"]) == 2
    assert "did you mean 'good'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--tag", "good"], "sparring runs NAME --tag good"),
        (["alpha", "--tag", "two words"], "'two words', not a tag"),
        (["alpha", "--note", "x" * 2001], "at most 2000 letters"),
        (["alpha", "nothere", "--tag", "good"], "no run 'nothere'"),
        (["--note", "alpha", "text"], 'sparring runs alpha --note "text"'),
        (["alpha", "--tag", "good", "--tagged", "x"], "are for listing"),
    ],
)
def test_labels_that_cannot_be_written_leave_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["runs", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not [*here.glob("*/labels.json")]


def test_labels_that_cannot_be_read_are_not_written_over(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "alpha" / "labels.json").write_text('{"note": 1}')
    assert main(["runs", "alpha", "--tag", "good"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "labels.json of alpha cannot be read: note is 1, not a note" in line
    found = {run["name"]: run["trouble"] for run in listed(capsys)}
    assert found["alpha"].startswith("labels.json: note is 1")
