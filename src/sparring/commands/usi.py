"""`sparring usi`: a player for any program that runs Shogi engines, over stdin and stdout."""

from __future__ import annotations

import io
import sys

from sparring.commands.shared.players import who_plays
from sparring.config.commands import UsiConfig
from sparring.league.usi import GAME
from sparring.league.usi.server import UsiServer


def run(config: UsiConfig) -> int:
    """Answer lines until `quit` or the end of the input."""
    (player,), rules = who_plays([config.player], GAME, config.set)
    server = UsiServer(player, rules, seed=config.seed, sampled=config.sampled)
    set_streams()
    while not server.finished and (line := sys.stdin.readline()):
        for reply in server.answer(line):
            print(reply, flush=True)
    return 0


def set_streams() -> None:
    """Use UTF-8, line by line, in any locale. An invalid byte does not end the session."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
