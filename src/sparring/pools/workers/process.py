"""A worker: makes environments by their factory's name and steps them when it is told to."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from sparring.errors import ConfigError, SparringError, VectorError
from sparring.factories import describe_error
from sparring.messages import Message, error_reply
from sparring.pools.custom.buffers import SharedBuffers
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.seats import TablePool
from sparring.pools.custom.stepper import Playing
from sparring.pools.workers.parts import CONTROL, code, codes, shared_shapes
from sparring.processes import Parent, SharedArrays, exit_with_children

READ_BYTES = 4096


class Service:
    """Plays the parts of one worker."""

    def __init__(self, job: Mapping[str, Any], pool: TablePool, memory: SharedArrays) -> None:
        self.pool, self.memory, mine = pool, memory, job["worker"]
        self.action = memory["action"]
        beat, self.busy = memoryview(memory["beat"][mine]), memory["busy"][mine]
        self.ended = memory["ended"][mine]

        def answered() -> None:
            beat[0] += 1

        buffers, rows = SharedBuffers.of(memory.items()), pool.rules.rows
        self.parts: dict[int, tuple[Playing, slice]] = {}
        for index, first, games in job["parts"]:
            local = first - job["first"]
            own, again = buffers.part(rows, first, games), job.get("again", True)
            playing = pool.playing(local, games, own, answered, again=again)
            self.parts[index] = playing, slice(first * rows, (first + games) * rows)

    def step(self, part: int) -> None:
        """Step the games of a part with the actions that lie in the memory."""
        playing, rows = self.parts[part]
        before = playing.ended
        playing.step(self.action[rows])
        self.ended[0] += playing.ended - before

    def hear(self, message: Message) -> Message | None:
        """Do what was said; return an answer, None where a part's number is one."""
        facts = message.payload
        try:
            if message.name == "start":
                self.parts[facts["part"]][0].start(facts["seeds"])
                return None
            if message.name == "flags":
                self.pool.set_config(**facts["flags"])
            else:
                self.pool.check_flags(facts["flags"])
        except ConfigError as wrong:
            if message.name == "start":
                raise
            return Message("answer", {"refused": str(wrong)})
        return Message("answer", {"refused": ""})


def serve(service: Service, parent: Parent) -> None:
    """Work until nobody is there any more."""
    busy, clock, (go, done) = service.busy, time.perf_counter, parent.fds
    while raw := os.read(go, READ_BYTES):
        for told in codes(raw):
            began, part = clock(), told
            if told == CONTROL:
                message = next(parent, None)
                if message is None:
                    return
                part = message.payload.get("part", CONTROL)
                answer = service.hear(message)
                if answer:
                    parent.send(answer)
            else:
                service.step(told)
            busy[0] += clock() - began
            if part != CONTROL:
                os.write(done, code(part))


def make(job: Mapping[str, Any]) -> TablePool:
    """Make the environments; vectors are refused."""
    pool = make_pool(job["word"], copies=job["games"])  # seeds come when games begin
    if not isinstance(pool, TablePool):
        raise VectorError(
            f"workers: {job['word']} makes a vector of {pool.num_games} envs, which steps them "
            "itself; give a factory of single envs, or --workers 0"
        )
    for table in pool.tables:
        table.index += job["first"]
    return pool


def work(parent: Parent) -> None:
    """Make environments, say what they are, play."""
    job = next(parent).payload
    os.chdir(job["folder"])
    pool = make(job)
    if job["flags"]:
        pool.set_config(**job["flags"])
    agents = [str(agent) for agent in pool.agents]
    parent.send(Message("hello", {"hello": pool.rules.plain(), "agents": agents}))
    if next(parent, None) is None:
        return
    (fd,), rules = parent.channel.fds, pool.rules
    shapes = shared_shapes(rules, job["all_games"], job["workers"], job["memory"])
    try:
        serve(Service(job, pool, SharedArrays(shapes, fd)), parent)
    finally:
        pool.close()


def leave() -> None:
    """Take along what environments have started: the pool may be dead and cannot do it."""
    sys.stdout.flush()
    exit_with_children()


def main() -> int:
    parent = Parent()
    atexit.register(leave)  # before all others, so that it is called behind them
    try:
        work(parent)
    except BaseException as wrong:  # the pool tells it, once
        said = wrong if isinstance(wrong, SparringError) else SparringError(describe_error(wrong))
        parent.send(error_reply(said))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
