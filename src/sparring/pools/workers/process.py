"""A worker: makes environments by their factory's name and steps them when it is told to."""

from __future__ import annotations

import atexit
import faulthandler
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from sparring.errors import ConfigError, SparringError, VectorError
from sparring.factories import in_a_line
from sparring.pools.foreign.make import make_pool
from sparring.pools.foreign.playing import Playing
from sparring.pools.foreign.rules import ForeignRules
from sparring.pools.foreign.seats import TablesPool
from sparring.pools.foreign.sheet import Sheet
from sparring.pools.workers.lines import CONTROL, Lines, code, codes
from sparring.pools.workers.parts import shared_shapes
from sparring.processes import SharedArrays, end_with_children, follow_parent

READ_BYTES = 4096


class Service:
    """Plays the parts of one worker."""

    def __init__(self, job: dict[str, Any], pool: TablesPool, memory: SharedArrays) -> None:
        self.pool, self.memory, mine = pool, memory, job["worker"]
        self.action = memory["action"]
        beat, self.busy = memoryview(memory["beat"][mine]), memory["busy"][mine]
        self.ended = memory["ended"][mine]

        def answered() -> None:
            beat[0] += 1

        sheet, rows = Sheet.of(memory.items()), pool.rules.rows
        self.parts: dict[int, tuple[Playing, slice]] = {}
        for index, first, games in job["parts"]:
            local = first - job["first"]
            own, again = sheet.part(rows, first, games), job.get("again", True)
            playing = pool.playing(local, games, own, answered, again=again)
            self.parts[index] = playing, slice(first * rows, (first + games) * rows)

    def step(self, part: int) -> None:
        """Step the games of a part with the actions that lie in the memory."""
        playing, rows = self.parts[part]
        before = playing.ended
        playing.step(self.action[rows])
        self.ended[0] += playing.ended - before

    def hear(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what was said in a line; return an answer, empty where a part's number is one."""
        if "start" in message:
            playing, _ = self.parts[message["start"]]
            playing.start(message["seeds"])
            return {}
        do: Callable[[], Any] = (
            (lambda: self.pool.set_config(**message["flags"]))
            if "flags" in message
            else (lambda: self.pool.demand_flags(message["demand"]))
        )
        try:
            do()
        except ConfigError as wrong:
            return {"answer": str(wrong)}
        return {"answer": ""}


def serve(service: Service, lines: Lines, go: int, done: int) -> None:
    """Work until nobody is there any more."""
    busy, clock = service.busy, time.perf_counter
    while raw := os.read(go, READ_BYTES):
        for told in codes(raw):
            began, part = clock(), told
            if told == CONTROL:
                message = lines.receive()
                if message is None:
                    return
                part = message.get("start", CONTROL)
                answer = service.hear(message)
                if answer:
                    lines.send(answer)
            else:
                service.step(told)
            busy[0] += clock() - began
            if part != CONTROL:
                os.write(done, code(part))


def make(job: dict[str, Any]) -> TablesPool:
    """Make the environments; vectors are refused."""
    pool = make_pool(job["word"], copies=job["games"])  # seeds come when games begin
    if not isinstance(pool, TablesPool):
        raise VectorError(
            f"workers: {job['word']} makes a vector of {pool.num_games} envs, which steps them "
            "itself; give a factory of single envs, or --workers 0"
        )
    for table in pool.tables:
        table.index += job["first"]
    return pool


def last_words(wrong: BaseException) -> dict[str, Any]:
    """What is told of a fault: the last line of it, and where in somebody's code it was."""
    told = str(wrong) if isinstance(wrong, SparringError) else in_a_line(wrong)
    refused, vector = (isinstance(wrong, kind) for kind in (ConfigError, VectorError))
    return {"raised": told, "refused": refused, "vector": vector}


def work(lines: Lines, go: int, done: int) -> None:
    """Make environments, say what they are, play."""
    job = lines.receive()
    if job is None:
        return
    os.chdir(job["folder"])
    sys.path[:] = job["path"]
    pool = make(job)
    if job["flags"]:
        pool.set_config(**job["flags"])
    lines.send({"hello": pool.rules.plain(), "agents": [str(agent) for agent in pool.agents]})
    _, (fd, *_), _, _ = socket.recv_fds(lines.end, 1, 1)
    rules: ForeignRules = pool.rules
    shapes = shared_shapes(rules, job["all_games"], job["workers"], job["memory"])
    try:
        serve(Service(job, pool, SharedArrays(shapes, fd)), lines, go, done)
    finally:
        pool.close()


def leave() -> None:
    """Take along what environments have started: the pool may be dead and cannot do it."""
    sys.stdout.flush()
    end_with_children()


def main(words: list[str]) -> int:
    """Be a worker. words: the parent's number, and the files that were inherited."""
    parent, control, go, done = map(int, words)
    follow_parent(parent)
    atexit.register(leave)  # before all others, so that it is called behind them
    for fd in (control, go, done):  # what an env starts shall not hold them
        os.set_inheritable(fd, False)
    faulthandler.enable()
    lines = Lines(socket.socket(fileno=control))
    try:
        work(lines, go, done)
    except BaseException as wrong:  # the pool tells it, once
        lines.send(last_words(wrong))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
