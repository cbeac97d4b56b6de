"""Whose code a frame is, and what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparring
from sparring.speed.code import (
    LOGGING,
    OURS,
    READING,
    STDLIB,
    USER,
    WAITING,
    owner,
    work_of,
)
from sparring.speed.evidence import Frame

HOME = str(Path(sparring.__file__).parent)
LIB = "/usr/lib/python3.11"


def test_whose_code_it_is() -> None:
    files = {
        f"{HOME}/learn/ppo.py": OURS,
        "sparring/learn/ppo.py": OURS,
        f"{LIB}/json/encoder.py": STDLIB,
        "json/encoder.py": STDLIB,
        "/home/me/games/my_env.py": USER,
        "my_env.py": USER,
    }
    for file, whose in files.items():
        assert owner(Frame("step", file)) == whose


def test_a_line_tells_what_it_calls_where_no_native_code_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "chatty.py"
    file.write_text("def step():\n    print('hello', flush=True)\n    return 1\n")
    assert work_of([Frame("step", str(file), 2)]) == LOGGING
    assert work_of([Frame("step", str(file), 3)]) == ""


LINES = {
    "self.rules = json.load(open(self.path))": READING,
    "with open(self.path) as file:": READING,
    "with open(self.path, 'rb') as file:": READING,
    "text = file.read()": READING,
    "rows = np.load(self.path)": READING,
    "rows = np.loadtxt(os.path.join(here, 'depths.txt'))": READING,
    "rules = tomllib.loads(self.path.read_text())": READING,
    "table = pd.read_csv(self.path)": READING,
    "with open(os.path.join(here, 'log.txt'), 'a') as file:": LOGGING,
    "with path.open('wb') as file:": LOGGING,
    "file.write(json.dumps(facts))": LOGGING,
    "np.save(self.path, rows)": LOGGING,
    "answer = self.engine.stdout.readline()": WAITING,
    "self.engine.stdin.write(move)": WAITING,
    "sys.stdout.write(text)": LOGGING,
    "level = self.sensor.read()": "",
}


@pytest.mark.parametrize("line", LINES)
def test_reading_writing_and_waiting_are_told_apart_by_the_line(line: str, tmp_path: Path) -> None:
    file = tmp_path / "env.py"
    file.write_text(f"{line}\n")
    assert work_of([Frame("step", str(file), 1)]) == LINES[line]


@pytest.mark.parametrize(
    ("name", "line", "work"),
    [("read_text", "path.read_text()", READING), ("open", "path.open('w')", LOGGING)],
)
def test_python_s_own_library_is_told_by_who_calls_it(
    name: str, line: str, work: str, tmp_path: Path
) -> None:
    file = tmp_path / "env.py"
    file.write_text(f"{line}\n")
    assert work_of([Frame("step", str(file), 1), Frame(name, f"{LIB}/pathlib.py", 1)]) == work
