"""Main program of a worker: makes environments by their factory's name and steps them."""

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
from sparring.pools.custom.stepper import TableStepper
from sparring.pools.workers.parts import CONTROL, code, codes, shared_shapes
from sparring.processes import Parent, SharedArrays, exit_with_children

READ_BYTES = 4096


class WorkerService:
    """The environments of one worker, in parts that are stepped separately."""

    def __init__(self, job: Mapping[str, Any], pool: TablePool, memory: SharedArrays) -> None:
        self.pool, self.memory, mine = pool, memory, job["worker"]
        self.action = memory["action"]
        beat, self.busy = memoryview(memory["beat"][mine]), memory["busy"][mine]
        self.ended = memory["ended"][mine]

        def count_beat() -> None:
            beat[0] += 1

        buffers, rows = SharedBuffers.of(memory.items()), pool.rules.rows
        self.parts: dict[int, tuple[TableStepper, slice]] = {}
        for index, first, games in job["parts"]:
            local, again = first - job["first"], job.get("again", True)
            part = buffers.part(rows, first, games)
            stepper = pool.stepper(local, games, part, count_beat, again=again)
            self.parts[index] = stepper, slice(first * rows, (first + games) * rows)

    def step(self, part: int) -> None:
        """Step the games of a part with the actions in shared memory."""
        stepper, rows = self.parts[part]
        before = stepper.ended
        stepper.step(self.action[rows])
        self.ended[0] += stepper.ended - before

    def handle(self, message: Message) -> Message | None:
        """Handle a message; return a reply, or None where the index of a part is the reply."""
        payload = message.payload
        try:
            if message.name == "start":
                self.parts[payload["part"]][0].start(payload["seeds"])
                return None
            if message.name == "flags":
                self.pool.set_config(**payload["flags"])
            else:
                self.pool.check_flags(payload["flags"])
        except ConfigError as wrong:
            if message.name == "start":
                raise
            return Message("reply", {"refused": str(wrong)})
        return Message("reply", {"refused": ""})


def serve(service: WorkerService, parent: Parent) -> None:
    """Step parts and handle messages until the pool closes the pipe."""
    busy, clock, (commands, done) = service.busy, time.perf_counter, parent.fds
    while raw := os.read(commands, READ_BYTES):
        for command in codes(raw):
            began, part = clock(), command
            if command == CONTROL:
                message = next(parent, None)
                if message is None:
                    return
                part = message.payload.get("part", CONTROL)
                reply = service.handle(message)
                if reply:
                    parent.send(reply)
            else:
                service.step(command)
            busy[0] += clock() - began
            if part != CONTROL:
                os.write(done, code(part))


def make(job: Mapping[str, Any]) -> TablePool:
    """Make the environments; vectors are refused."""
    pool = make_pool(job["word"], copies=job["games"])  # seeds come when games start
    if not isinstance(pool, TablePool):
        raise VectorError(
            f"workers: {job['word']} makes a vector of {pool.num_games} envs, which steps them "
            "itself; give a factory of single envs, or --workers 0"
        )
    for table in pool.tables:
        table.index += job["first"]
    return pool


def work(parent: Parent) -> None:
    """Make environments, describe them to the pool, and serve."""
    job = next(parent).payload
    os.chdir(job["folder"])
    pool = make(job)
    if job["flags"]:
        pool.set_config(**job["flags"])
    agents = [str(agent) for agent in pool.agents]
    parent.send(Message("rules", {"rules": pool.rules.plain(), "agents": agents}))
    if next(parent, None) is None:
        return
    (fd,), rules = parent.channel.fds, pool.rules
    shapes = shared_shapes(rules, job["all_games"], job["workers"], job["memory"])
    try:
        serve(WorkerService(job, pool, SharedArrays(shapes, fd)), parent)
    finally:
        pool.close()


def leave() -> None:
    """Kill processes that environments have started: the pool may have died."""
    sys.stdout.flush()
    exit_with_children()


def main() -> int:
    parent = Parent()
    atexit.register(leave)  # registered first, so that it is called last
    try:
        work(parent)
    except BaseException as wrong:  # reported by the pool
        error = wrong if isinstance(wrong, SparringError) else SparringError(describe_error(wrong))
        parent.send(error_reply(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
