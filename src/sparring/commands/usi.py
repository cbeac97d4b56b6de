"""`sparring usi`: a player for any program that runs Shogi engines, over stdin and stdout."""

from __future__ import annotations

import io
import sys
import threading

from sparring.commands.shared.players import who_plays, with_search
from sparring.config.commands import UsiConfig
from sparring.league.usi import GAME
from sparring.league.usi.server import UsiServer


def run(config: UsiConfig) -> int:
    """Answer lines until `quit` or the end of the input."""
    players, rules = who_plays([config.player], GAME, config.set)
    (player,) = with_search(players, config.search)
    one_at_a_time = threading.Lock()

    def send(line: str) -> None:
        with one_at_a_time:
            print(line, flush=True)

    server = UsiServer(player, rules, seed=config.seed, sampled=config.sampled, send=send)
    set_streams()
    while not server.finished and (line := sys.stdin.readline()):
        for reply in server.answer(line):
            send(reply)
    server.wait()
    return 0


def set_streams() -> None:
    """Use UTF-8, line by line, in any locale. An invalid byte does not end the session."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
