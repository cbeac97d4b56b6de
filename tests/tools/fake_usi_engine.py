"""A USI engine that misbehaves as its first argument says; otherwise it plays by the alphabet."""

from __future__ import annotations

import sys
import time

from sparring.games import shogi
from sparring.games.rules import Rules
from sparring.games.shogi_usi import read_position, replay

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
RULES = Rules("shogi")


def best(words: list[str]) -> str:
    start, moves = read_position(words)
    legal = sorted(shogi.moves(replay(RULES, start, moves)))
    if MODE == "once" and not moves:
        return "9i9i"
    return {"illegal": "5e5d", "resign": "resign", "win": "win"}.get(MODE, legal[0])


def main() -> None:
    position: list[str] = []
    for line in sys.stdin:
        command, *words = line.split()
        if command == "usi":
            print("id name fake\noption name Full Name type string default x\nusiok", flush=True)
        elif command == "setoption":
            print(f"info string {line.strip()}", file=sys.stderr, flush=True)
        elif command == "isready" and MODE != "deaf":
            print("readyok", flush=True)
        elif command == "position":
            position = words
        elif command == "go":
            if MODE == "crash":
                print("out of luck", file=sys.stderr)
                sys.exit(7)
            if MODE == "silent":
                continue
            print(f"info depth 1\nbestmove {best(position)} ponder 1a1b", flush=True)
        elif command == "quit":
            while MODE == "stubborn":
                time.sleep(1)
            return


main()
