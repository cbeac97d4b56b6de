"""Evaluation beside training: a process of low priority that plays matches on request.

It loads torch, and plays what is marked as urgent, at the priority of its parent: at a low one that
takes a minute beside training on every core.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring import trusted
from sparring.errors import USER_CODE_ERRORS, SparringError, warn
from sparring.messages import Message
from sparring.processes import CLOSE_S, Child, Parent

if TYPE_CHECKING:
    from sparring.store.archive import Archive

Answer = dict[str, Any]

LOADED, BEGAN = "loaded", "began"
"""What the process says once it can answer, and when it begins with a request."""
PAIRS = "pairs"
"""Of a match: how often the challenger was ahead of, level with and behind another seat."""
STDERR_TAIL = 2000
"""Characters of a dead worker's last words that are shown."""
DRAIN_EVERY_S = 0.02
OVERTIME = 3.0
"""A match that takes so many times its limit has an environment that hangs: after the limit no
episode begins, and after twice as long none is waited for."""
MAKING_S = 30.0
"""Seconds besides, in which environments are made and a policy is loaded."""


class EvalWorker:
    """Hands requests to the process and collects its answers, without ever waiting for it.

    A request is {"id", "checkpoint", "opponents": [bots or checkpoints], "games", "seed"},
    "greedy" if actions are to be drawn (false), "urgent" if somebody waits for the answer, and for
    a user's environment "timeout_s" and "paths", where its module may lie. Each gets one answer:
    {"id", "results": {opponent:
    MatchResult.summary()}, "seconds"}, or {"id", "error"}. "keep" is a file for all that was found.
    A process that is far beyond the limit is ended: a step that hangs never looks at the clock.
    """

    def __init__(self, *, nice: int = 19, idle: bool = True, threads: int = 1) -> None:
        """Start nothing yet.

        nice, idle: the priority from the first request on that is not urgent. idle: take only CPU
            time that nobody wants. Where all cores are busy all the time, that is next to none;
            with False a nice value of 10 gets about a tenth of one core.
        threads: for games and networks. More than 1 only where training leaves cores free.
        """
        self._begin = {"nice": nice, "idle": idle, "threads": threads}
        self._folder = Path.cwd()
        self._process: Child | None = None
        self._loaded = False
        self._open: dict[Any, float] = {}
        """Seconds that each request without an answer may take."""
        self._playing: tuple[Any, float] | None = None
        """The request that is being played, and since when."""
        self._answers: list[Answer] = []
        self._trust: Mapping[str, str] = {}
        """Whose code the process may run."""

    def __enter__(self) -> EvalWorker:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    @property
    def busy(self) -> bool:
        """Whether a request is still without an answer."""
        return bool(self._open)

    @property
    def loading(self) -> bool:
        """Whether the process has been started and could not answer yet."""
        return self._process is not None and not self._loaded

    @property
    def pid(self) -> int | None:
        """The process, once there is one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process before there is anything to ask: it takes seconds to load torch."""
        if self._process is None:
            self._loaded, self._trust = False, trusted.environment()
            # A new session would keep Ctrl-C away too, but Linux gives each session an equal share
            # of the CPU whatever the priorities within it.
            self._process = Child(
                "sparring.training.evaluate", threads=self._begin["threads"], cwd=self._folder
            )
            self._process.send(Message("begin", self._begin))

    def submit(self, request: Mapping[str, Any]) -> None:
        """Ask for an evaluation; the process is started if there is none."""
        number = request.get("id")
        if number is None or number in self._open:
            raise SparringError(f"request id {number!r}: give every request an id of its own")
        self._exchange()
        self.start()
        assert self._process
        self._process.send(Message("play", request))
        self._open[number] = max_seconds(request)
        self._exchange()

    def poll(self) -> list[Answer]:
        """Return the answers that have come since the last call."""
        self._exchange()
        answers, self._answers = self._answers, []
        return answers

    def drain(self, timeout_s: float) -> list[Answer]:
        """Wait until every request is answered or the time is over; return the answers."""
        until = time.monotonic() + timeout_s
        answers = self.poll()
        while self.busy and time.monotonic() < until:
            time.sleep(DRAIN_EVERY_S)
            answers += self.poll()
        return answers

    def close(self, timeout_s: float = 5.0) -> None:
        """End the process; requests without an answer are dropped."""
        process, self._process = self._process, None
        self._open.clear()
        self._playing = None
        if process is not None:
            process.end(timeout_s)

    def serves(self, threads: int) -> bool:
        """Whether a worker that was started early is what would be started now."""
        same = self._begin["threads"] == threads and self._folder == Path.cwd()
        return same and self.pid is not None and self._trust == trusted.environment()

    def _exchange(self) -> None:
        """Move words as far as they go, and notice a process that died."""
        if self._process is None:
            return
        for message in self._process.receive():
            if message.name == LOADED:
                self._loaded = True
            elif message.name == BEGAN:
                self._playing = message.payload["id"], time.monotonic()
            else:
                self._playing = None
                self._open.pop(message.payload["id"], None)
                self._answers.append(dict(message.payload))
        if self._process.has_ended:
            self._bury(self._process)
        elif self._playing is not None:
            self._end_if_hung(*self._playing)

    def _end_if_hung(self, number: Any, since: float) -> None:
        """End a process that is far beyond what a request may take; the next one starts another."""
        passed, most = time.monotonic() - since, self._open.get(number, math.inf)
        if passed <= most:
            return
        why = (
            f"it was still playing after {passed:.0f} s, far beyond eval.timeout_s: a step or "
            "reset of the environment hangs; the process was ended, the next evaluation starts "
            "another"
        )
        self._answers += [{"id": open_, "error": why} for open_ in self._open]
        self.close(timeout_s=0.0)

    def _bury(self, process: Child) -> None:
        """Say once why the process died, and answer what it leaves behind."""
        process.end(CLOSE_S)
        said = process.output_tail[-STDERR_TAIL:].decode(errors="replace").strip()
        lost = f"the evaluation process {process.pid} ended with {process.exit_status}"
        self._answers += [{"id": number, "error": lost} for number in self._open]
        self.close()
        warn(f"{lost}; the next request starts another. Its last words: {said!r}")


_early: list[EvalWorker] = []
"""The worker that loads already, until somebody takes it."""


def evaluator(threads: int) -> EvalWorker:
    """Return who evaluates a run beside its training: the one that loads already, if it fits.

    The very lowest priority would starve beside training that uses every core.
    """
    while _early:
        worker = _early.pop()
        if worker.serves(threads):
            return worker
        worker.close(timeout_s=0.0)
    return EvalWorker(nice=10, idle=False, threads=threads)


@contextlib.contextmanager
def loading_early() -> Iterator[None]:
    """Let a worker load torch while this process does, for the training that is about to begin."""
    worker = EvalWorker(nice=10, idle=False)
    worker.start()
    _early.append(worker)
    try:
        yield
    finally:
        if worker in _early:
            _early.remove(worker)
            worker.close(timeout_s=0.0)


def main() -> None:
    """Answer requests until nobody is there: that ends the process, in a match too."""
    parent, told = Parent(), queue.SimpleQueue[Message]()
    parent.listen(told.put)
    begin = told.get().payload
    threads = begin["threads"]

    import torch

    import sparring.league.arena  # noqa: F401  (before somebody waits for an answer)

    torch.set_num_threads(threads)
    parent.send(Message(LOADED))
    in_front = True
    while True:
        request = told.get().payload
        if in_front and not request.get("urgent"):
            in_front = False
            step_back(begin["nice"], begin["idle"])
        parent.send(Message(BEGAN, {"id": request["id"]}))
        parent.send(Message("answer", answer(request, threads)))


def max_seconds(request: Mapping[str, Any]) -> float:
    """How long a request may take before somebody has to end it: a limit for every match."""
    met = len(request.get("opponents", ())) + len(request.get("rivals", ()))
    return MAKING_S + OVERTIME * float(request.get("timeout_s", math.inf)) * max(met, 1)


def step_back(nice: int, idle: bool) -> None:
    """Leave the CPU to the training, with every thread: on Linux each has a priority of its own."""
    tasks = Path("/proc/self/task")
    for task in [int(one.name) for one in tasks.iterdir()] if tasks.is_dir() else [0]:
        # A thread may end meanwhile, and a sandbox may forbid it: then what is left has to do.
        with contextlib.suppress(OSError):
            lower = os.getpriority(os.PRIO_PROCESS, task) + nice
            os.setpriority(os.PRIO_PROCESS, task, lower)
            if idle and hasattr(os, "SCHED_IDLE"):
                os.sched_setscheduler(task, os.SCHED_IDLE, os.sched_param(0))


def answer(request: Mapping[str, Any], threads: int = 1) -> Answer:
    """Play what one request asks for. Whatever is wrong with it becomes its answer."""
    started, number = time.monotonic(), request["id"]
    try:
        results = play(request, threads)
    except SparringError as wrong:
        return {"id": number, "error": str(wrong)}
    except USER_CODE_ERRORS as wrong:
        return {"id": number, "error": f"{type(wrong).__name__}: {wrong}"}
    return {"id": number, "results": results, "seconds": time.monotonic() - started}


def play(request: Mapping[str, Any], threads: int = 1) -> dict[str, Any]:
    """Evaluate one checkpoint against every opponent."""
    from sparring.league.arena import evaluate
    from sparring.league.ladder import count_pairs
    from sparring.league.results import save_result
    from sparring.league.seating import load_player
    from sparring.store.policies import load_policy

    sys.path += [place for place in request.get("paths", ()) if place not in sys.path]
    named = {"name": request["name"]} if "name" in request else {}
    policy = load_policy(request["checkpoint"], threads=threads, **named)
    rules = policy.rules
    opponents = [load_player(name, rules, threads=threads) for name in request["opponents"]]
    for name in request.get("rivals", ()):
        with contextlib.suppress(SparringError):  # damaged or gone: the others are met all the same
            opponents.append(load_player(name, rules, threads=threads))
    results = evaluate(
        policy,
        opponents,
        games=request["games"],
        seed=request["seed"],
        threads=threads,
        greedy=request.get("greedy", True),
        timeout_s=request.get("timeout_s", math.inf),
    )
    if "keep" in request:
        for number, result in enumerate(results.values()):
            save_result(Path(request["keep"]) / f"{number}.npz", result)
    if "league" in request:
        rate_again(Path(request["league"]), policy.rules.bots, request)
    return {
        name: {**result.summary(), PAIRS: count_pairs(result.record)}
        for name, result in results.items()
    }


def rate_again(folder: Path, bots: Sequence[str], request: Mapping[str, Any]) -> None:
    """Rate a run's league here, where training does not wait for it; a full disk is no reason."""
    from sparring.store.archive import Archive, ArchiveError

    with contextlib.suppress(ArchiveError):
        write_ratings(Archive(folder, max_bytes=0), bots, request["update"], request["decisions"])


def write_ratings(archive: Archive, bots: Sequence[str], update: int, decisions: int) -> None:
    """Write down what everybody in a league is worth by now."""
    from sparring.league.ladder import rate_league

    found = rate_league(archive, bots, seed=update)
    rated = {each.player: (each.elo, each.low, each.high) for each in found}
    if rated:
        archive.rate(update, decisions, rated)


if __name__ == "__main__":
    main()
