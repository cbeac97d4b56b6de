"""A USI engine that misbehaves as its first argument says; otherwise it plays by the alphabet.

Some ways need a second argument: a file to write to.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from sparring.games import shogi
from sparring.games.rules import Rules
from sparring.games.shogi.protocol import read_position, replay

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
FILE = Path(sys.argv[2]) if len(sys.argv) > 2 else None
RULES = Rules("shogi")
SLOW_S = 0.4


def best(words: list[str]) -> str:
    start, moves = read_position(words)
    legal = sorted(shogi.moves(replay(RULES, start, moves)))
    if MODE == "once" and not moves:
        return "9i9i"
    return {"illegal": "5e5d", "resign": "resign", "win": "win"}.get(MODE, legal[0])


def begin() -> None:
    """Do what some engines do before they listen."""
    if MODE == "mortal":  # the second start fails
        if FILE.exists():
            print("no second life", file=sys.stderr)
            sys.exit(9)
        FILE.touch()
    if MODE == "parent":
        child = subprocess.Popen(["sleep", "1000"])
        FILE.write_text(str(child.pid))
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def main() -> None:
    position: list[str] = []
    begin()
    for line in sys.stdin:
        command, *words = line.split()
        if MODE == "log":
            with FILE.open("a") as log:
                log.write(line)
        if command == "usi":
            print("id name fake\noption name Full Name type string default x\nusiok", flush=True)
        elif command == "setoption":
            print(f"info string {line.strip()}", file=sys.stderr, flush=True)
        elif command == "isready" and MODE != "deaf":
            print("readyok", flush=True)
        elif command == "position":
            position = words
        elif command == "go":
            if MODE in ("crash", "mortal"):
                print("out of luck", file=sys.stderr)
                sys.exit(7)
            if MODE == "silent":
                continue
            if MODE == "chatty":  # never quiet, and late
                end = time.monotonic() + SLOW_S
                while time.monotonic() < end:
                    print("info depth 1", flush=True)
            print(f"info depth 1\nbestmove {best(position)} ponder 1a1b", flush=True)
        elif command == "quit":
            while MODE == "stubborn":
                time.sleep(1)
            return


main()
