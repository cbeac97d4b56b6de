"""One odd folder takes nothing from the others: pages and commands answer, the rest is whole."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sparring.cli import main
from sparring.training.records.overview import STATES
from web.made_runs import make_run
from web.poisons import INVENTED, KNOWN, MEANWHILE, NAMES

PATIENCE_S = 60.0
"""Far beyond any answer; whoever hangs fails instead of hanging the test."""
OF_ALL = ("/api/runs", "/api/players?game=tic_tac_toe", "/api/replays", "/api/runs/fine")
OF_ONE = ("", "/curves", "/league")


class Asked:
    """A server over a folder with a healthy run, asked as a page does."""

    def __init__(self, root: Path, host: str, log: Path) -> None:
        self.root, self.host, self.log = root, host, log

    def get(self, path: str) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; of a stream its first event."""
        asked = HTTPConnection(self.host, timeout=PATIENCE_S)
        try:
            asked.request("GET", path)
            answer = asked.getresponse()
            if answer.getheader("content-type", "").startswith("text/event-stream"):
                assert answer.readline().startswith(b"event: ")
                return answer.status, json.loads(answer.readline().removeprefix(b"data: "))
            return answer.status, json.loads(answer.read())
        finally:
            asked.close()

    def listed(self) -> dict[str, dict[str, Any]]:
        """Return all runs of the list; the stream begins with the same ones."""
        status, told = self.get("/api/runs")
        assert status == 200, told
        names = [run["name"] for run in told["runs"]]
        status, first = self.get("/api/live")
        assert (status, [run["name"] for run in first["runs"]]) == (200, names)
        return {run["name"]: run for run in told["runs"]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """One server for all poisons: what one of them breaks, the next one meets."""
    root, log = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("log") / "stderr"
    make_run(root, "fine")
    command = [sys.executable, "-m", "sparring", "serve", str(root), "--port", "0", "--json"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout
        said = ""
        while not said.rstrip().endswith("}"):
            said += process.stdout.readline()
        yield Asked(root, json.loads(said)["address"].removeprefix("http://"), log)
        process.terminate()
        assert process.wait(10) is not None


@pytest.fixture
def bad(served: Asked) -> Iterator[Path]:
    """A run that is to be poisoned."""
    run = make_run(served.root, "bad")
    yield run
    removed(run)
    removed(served.root / "replays")


def removed(folder: Path) -> None:
    """Remove a folder whatever is in it, also deeper than paths can be."""
    if not folder.exists():
        return
    for path in folder.glob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IRWXU)
    subprocess.run(["rm", "-rf", "--", os.fspath(folder)], check=True)


def bounded(work: Callable[[], Any]) -> Any:
    """Return what a function returns, unless it hangs."""
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert made, "no answer, or an error that nobody caught"
    return made[0]


def check(served: Asked, capsys: pytest.CaptureFixture[str], name: str = "bad") -> None:
    """Ask for everything that there is."""
    whole = {"name": "fine", "state": "done", "updates": 40, "decisions": 4000, "trouble": ""}
    for path in OF_ALL:
        assert served.get(path)[0] == 200, path
    told = served.listed()
    assert whole.items() <= told["fine"].items()
    if name in told:
        assert told[name]["state"] in STATES
        assert (told[name]["state"] == "damaged") <= bool(told[name]["trouble"])
        assert "\n" not in told[name]["trouble"]
    for page in OF_ONE:
        status, answer = served.get(f"/api/runs/{quote(name, errors='surrogateescape')}{page}")
        assert status in (200, 404, 409, 400), (page, answer)
        assert status == 200 or "\n" not in answer["error"]
    capsys.readouterr()
    assert bounded(lambda: main(["runs", "--runs", str(served.root)])) == 0
    printed = capsys.readouterr()
    (line,) = [line for line in printed.out.splitlines() if line.startswith("fine ")]
    assert "done" in line
    letters = (printed.out + printed.err).replace("\n", "")
    assert letters.isprintable(), ascii(letters)
    assert bounded(lambda: main(["runs", "--runs", str(served.root), "--json"])) == 0
    listed = {run["name"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert whole.items() <= listed["fine"].items()
    assert "Traceback" not in served.log.read_text()


@pytest.mark.few(12)
@pytest.mark.parametrize("poison", [*KNOWN, *INVENTED])
def test_a_poisoned_run_takes_nothing_from_the_others(
    poison: str, served: Asked, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    {**KNOWN, **INVENTED}[poison](bad)
    check(served, capsys)


SLOW = {"curves that somebody keeps": [pytest.mark.slow]}
"""Every page waits two seconds for these; test_metrics looks at the limit itself."""


@pytest.mark.parametrize(
    "poison", [pytest.param(one, marks=SLOW.get(one, [])) for one in MEANWHILE]
)
def test_nor_does_one_that_changes_meanwhile(
    poison: str, served: Asked, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MEANWHILE[poison](bad):
        check(served, capsys)


@pytest.mark.parametrize("name", NAMES)
def test_nor_does_an_odd_name(name: str, served: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(served.root, name)
    try:
        check(served, capsys, name)
        shown = name.encode("utf-8", "replace").decode()
        assert shown in served.listed()
    finally:
        shutil.rmtree(run)


def test_links_in_a_circle_are_no_runs(served: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    for one, two in (("here", "there"), ("there", "here")):
        (served.root / one).symlink_to(two)
    try:
        check(served, capsys, "here")
        assert "here" not in served.listed()
    finally:
        (served.root / "here").unlink()
        (served.root / "there").unlink()


def test_a_damaged_run_says_why(served: Asked, bad: Path) -> None:
    KNOWN["events that are a FIFO"](bad)
    told = served.listed()["bad"]
    assert (told["state"], told["trouble"]) == ("damaged", "events.json: not a regular file")
    status, page = served.get("/api/runs/bad")
    assert (status, page["overview"]["trouble"]) == (200, told["trouble"])
