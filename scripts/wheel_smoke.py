#!/usr/bin/env python3
"""Use a wheel in a bare environment: scripts/wheel_smoke.py [WHEEL] [--train].

Without WHEEL one is built first. The environment has no compiler and no torch: only what
`pip install sparring` brings. Prints the seconds of every step, and the megabytes that were
downloaded. With --train, the extras train and plot are installed too and used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = "Scripts" if sys.platform == "win32" else "bin"
KEYS = "".join(f"{number}\n" for number in range(1, 10)) * 5
"""Choices for a game of tic-tac-toe; those that are not there are asked for again."""
IMPORTED = """
import sys, sparring
from importlib.metadata import version
assert sparring.__file__.startswith(sys.prefix), sparring.__file__
assert sparring.__version__ == version("sparring"), sparring.__version__
assert not {"torch", "numpy"} & set(sys.modules)
"""
MODULES = """
from sparring.games import game_names
from sparring.web.description import wasm_file
for game in game_names():
    assert wasm_file(game).read_bytes().startswith(b"\\0asm"), game
"""
SERVED = """
import json, subprocess, sys, urllib.request
server = subprocess.Popen(
    [sys.executable, "-m", "sparring", "serve", "--port", "0", "--json"], stdout=subprocess.PIPE
)
try:
    text = ""
    while not text.rstrip().endswith("}"):
        text += server.stdout.readline().decode()
    with urllib.request.urlopen(json.loads(text)["address"]) as page:
        assert page.status == 200 and b"<html" in page.read()
finally:
    server.kill()
    server.wait()
"""


def main() -> int:
    """Build, install and use; exit code 1 if a step fails."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("wheel", nargs="?", default="", help="left out, one is built")
    parser.add_argument("--train", action="store_true", help="use the extra that trains, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        try:
            smoke(Path(place), options.wheel, train=options.train)
        except subprocess.CalledProcessError as wrong:
            print(f"failed: {' '.join(map(str, wrong.cmd))}", file=sys.stderr)
            return 1
    print("the wheel works")
    return 0


def smoke(work: Path, named: str, *, train: bool) -> None:
    wheel = Path(named).resolve() if named else build(work)
    print(f"{wheel.name}: {megabytes([wheel])}")
    bare = Bare(work)
    bare.install(str(wheel), "sparring")
    bare.python("import sparring", IMPORTED)
    bare.python("games for browsers", MODULES)
    bare.sparring("--help")
    bare.sparring("games")
    bare.sparring("check tic_tac_toe --games 20")
    played = bare.sparring("play tic_tac_toe", keys=KEYS)
    assert "Play it again" in played, played
    bare.sparring("arena captain rule_hard random --game skull_king --games 240")
    bare.python("sparring serve, and a request", SERVED)
    bare.sparring("render captain --game skull_king --out table.svg --still")
    told = bare.sparring("train tic_tac_toe", code=2)
    assert "pip install 'sparring[train]'" in told, told
    if not train:
        return
    bare.install(f"{wheel}[train,plot]", "sparring[train,plot]")
    bare.sparring("train tic_tac_toe --updates 2 --collect.games 16 --eval.final-games 32")
    bare.sparring("eval latest --games 32")
    bare.sparring("resume latest --updates 3")
    bare.sparring("plot latest")
    bare.sparring("render latest --out game.png")


def build(work: Path) -> Path:
    """Return a wheel of this tree, as `pip wheel .` builds it."""
    venv.create(work / "build", with_pip=True)
    pip = [work / "build" / BIN / "python", "-m", "pip", "wheel", "-q", "--no-deps"]
    step("pip wheel .", [*pip, "-w", work / "dist", ROOT], os.environ.copy())
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel


class Bare:
    """An environment whose programs find nothing but each other."""

    def __init__(self, work: Path) -> None:
        venv.create(work / "bare", with_pip=True)
        self.work, self.programs = work, work / "bare" / BIN
        self.elsewhere = work / "elsewhere"
        self.elsewhere.mkdir()
        kept = ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SYSTEMROOT", "LANG")
        self.environment = {key: os.environ[key] for key in kept if key in os.environ}
        self.environment |= {"PATH": str(self.programs), "HOME": str(work), "PYTHONUTF8": "1"}

    def install(self, what: str, name: str) -> None:
        """Download what a package needs, and install it."""
        files = self.work / f"files-{len(list(self.work.iterdir()))}"
        pip = [self.programs / "python", "-m", "pip"]
        limits = ["-c", ROOT / "constraints.txt", "--disable-pip-version-check"]
        download = [*pip, "download", "-q", "--no-cache-dir", "-d", files, *limits, what]
        environment = {**os.environ, **self.environment, "PATH": str(self.programs)}
        step(f"download {name}", download, environment)
        print(f"          {megabytes(files.iterdir())} downloaded, the wheel included")
        offline = ["install", "-q", "--no-index", "--find-links", files]
        step(f"install {name}", [*pip, *offline, *limits, what], environment)

    def sparring(self, line: str, *, keys: str = "", code: int = 0) -> str:
        """Type a command; return what it printed."""
        command = [self.programs / "sparring", *line.split()]
        name = f"sparring {line}"
        return step(name, command, self.environment, cwd=self.elsewhere, keys=keys, code=code)

    def python(self, name: str, code: str) -> None:
        command = [self.programs / "python", "-c", code]
        step(name, command, self.environment, cwd=self.elsewhere)


def step(
    name: str,
    command: Sequence[object],
    environment: dict[str, str],
    *,
    cwd: Path = ROOT,
    keys: str = "",
    code: int = 0,
) -> str:
    """Run a program, print its seconds, and return its output; raise if it ends otherwise."""
    began = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        input=keys,
        timeout=1800,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    print(f"{time.perf_counter() - began:7.2f} s  {name}", flush=True)
    if done.returncode != code:
        print(done.stdout, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, [name])
    return done.stdout


def megabytes(files: Iterable[Path]) -> str:
    return f"{sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
