"""Evaluation during training: a process of low priority that plays matches on request.

It loads torch and plays urgent requests at the priority of its parent: with a low priority that
would take a minute while training uses every core.
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
from sparring.training.exact import ExactMeter

if TYPE_CHECKING:
    from sparring.store.archive import Archive

Answer = dict[str, Any]

LOADED, BEGAN = "loaded", "began"
"""Messages of the process: ready for requests; a request was started."""
PAIRS = "pairs"
"""Key of a match's win, draw and loss counts of the challenger against other seats."""
STDERR_TAIL = 2000
"""Characters of a dead worker's stderr in the warning."""
DRAIN_EVERY_S = 0.02
OVERTIME = 3.0
"""A match that takes this many times its timeout hangs: after the timeout no episode starts, and
after twice the timeout no episode is awaited."""
MAKING_S = 30.0
"""Additional seconds for creating environments and loading the policy."""


class EvalWorker:
    """Sends requests to the evaluation process and collects its answers without blocking.

    A request is {"id", "checkpoint", "opponents": [bots or checkpoints], "games", "seed"}, with
    "greedy" false to sample actions, "urgent" to play it at normal priority, and for a custom
    environment "timeout_s" and "paths" (additions to sys.path). Each gets one answer: {"id",
    "results": {opponent: MatchResult.summary()}, "seconds"}, or {"id", "error"}; with "exact" also
    what `ExactMeter.measure` returns. "keep" is a folder for the complete results. A process that
    exceeds its timeout by far is killed.
    """

    def __init__(self, *, nice: int = 19, idle: bool = True, threads: int = 1) -> None:
        """Create the worker; `start` starts its process.

        nice, idle: priority from the first request on that is not urgent. idle: use only idle CPU
            time, which is next to none if all cores are busy; without it, a nice value of 10 gets
            about a tenth of one core.
        threads: for games and networks; more than 1 only if training leaves cores free.
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

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def busy(self) -> bool:
        """Whether a request is still without an answer."""
        return bool(self._open)

    @property
    def loading(self) -> bool:
        """Whether the process was started and is not ready yet."""
        return self._process is not None and not self._loaded

    @property
    def pid(self) -> int | None:
        """Id of the process, if it is running."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process ahead of the first request: it takes seconds to load torch."""
        if self._process is None:
            self._loaded, self._trust = False, trusted.environment()
            # A new session would keep Ctrl-C away too, but Linux gives each session an equal share
            # of the CPU whatever the priorities within it.
            self._process = Child(
                "sparring.training.evaluate", threads=self._begin["threads"], cwd=self._folder
            )
            self._process.send(Message("begin", self._begin))

    def submit(self, request: Mapping[str, Any]) -> None:
        """Send a request; start the process if it is not running."""
        number = request.get("id")
        if number is None or number in self._open:
            raise SparringError(f"request id {number!r}: give every request a unique id")
        self._exchange()
        self.start()
        assert self._process
        self._process.send(Message("play", request))
        self._open[number] = max_seconds(request)
        self._exchange()

    def poll(self) -> list[Answer]:
        """Return the answers since the last call."""
        self._exchange()
        answers, self._answers = self._answers, []
        return answers

    def drain(self, timeout_s: float) -> list[Answer]:
        """Wait until all requests are answered, at most `timeout_s`; return the answers."""
        until = time.monotonic() + timeout_s
        answers = self.poll()
        while self.busy and time.monotonic() < until:
            time.sleep(DRAIN_EVERY_S)
            answers += self.poll()
        return answers

    def close(self, timeout_s: float = 5.0) -> None:
        """End the process; drop requests without an answer."""
        process, self._process = self._process, None
        self._open.clear()
        self._playing = None
        if process is not None:
            process.end(timeout_s)

    def serves(self, threads: int) -> bool:
        """Whether this worker is the same as a new one would be."""
        same = self._begin["threads"] == threads and self._folder == Path.cwd()
        return same and self.pid is not None and self._trust == trusted.environment()

    def _exchange(self) -> None:
        """Receive messages, and handle a process that died or hangs."""
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
        """Kill a process that exceeds a timeout by far; the next request starts another."""
        passed, most = time.monotonic() - since, self._open.get(number, math.inf)
        if passed <= most:
            return
        why = (
            f"it was still playing after {passed:.0f} s, far beyond eval.timeout_s: a step or "
            "reset of the environment hangs; the process was killed, the next evaluation starts "
            "another"
        )
        self._answers += [{"id": open_, "error": why} for open_ in self._open]
        self.close(timeout_s=0.0)

    def _bury(self, process: Child) -> None:
        """Warn why the process died, and answer its open requests with the error."""
        process.end(CLOSE_S)
        said = process.output_tail[-STDERR_TAIL:].decode(errors="replace").strip()
        lost = f"the evaluation process {process.pid} ended with {process.exit_status}"
        self._answers += [{"id": number, "error": lost} for number in self._open]
        self.close()
        warn(f"{lost}; the next request starts another. Its last words: {said!r}")


EXACT = ExactMeter()
"""Of this process: it keeps the tree of the game."""
_early: list[EvalWorker] = []
"""A worker that is already loading, until `evaluator` returns it."""


def evaluator(threads: int) -> EvalWorker:
    """Return a worker for evaluation during training: the one that is already loading, if it fits.

    Not at the lowest priority, which would get no time while training uses every core.
    """
    while _early:
        worker = _early.pop()
        if worker.serves(threads):
            return worker
        worker.close(timeout_s=0.0)
    return EvalWorker(nice=10, idle=False, threads=threads)


@contextlib.contextmanager
def loading_early() -> Iterator[None]:
    """Let a worker load torch while this process does, before training begins."""
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
    """Answer requests until the parent closes the connection, which ends the process."""
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
    """Return the seconds after which a request counts as hanging."""
    met = len(request.get("opponents", ())) + len(request.get("rivals", ()))
    return MAKING_S + OVERTIME * float(request.get("timeout_s", math.inf)) * max(met, 1)


def step_back(nice: int, idle: bool) -> None:
    """Lower the priority of all threads; on Linux each thread has its priority."""
    tasks = Path("/proc/self/task")
    for task in [int(one.name) for one in tasks.iterdir()] if tasks.is_dir() else [0]:
        # A thread may have ended, and a sandbox may forbid it.
        with contextlib.suppress(OSError):
            lower = os.getpriority(os.PRIO_PROCESS, task) + nice
            os.setpriority(os.PRIO_PROCESS, task, lower)
            if idle and hasattr(os, "SCHED_IDLE"):
                os.sched_setscheduler(task, os.SCHED_IDLE, os.sched_param(0))


def answer(request: Mapping[str, Any], threads: int = 1) -> Answer:
    """Play one request; an error becomes its answer."""
    started, number = time.monotonic(), request["id"]
    try:
        results = play(request, threads)
        exact = EXACT.measure(request) if "exact" in request else {}
    except SparringError as error:
        return {"id": number, "error": str(error)}
    except USER_CODE_ERRORS as error:
        return {"id": number, "error": f"{type(error).__name__}: {error}"}
    return {"id": number, "results": results, "seconds": time.monotonic() - started, **exact}


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
        with contextlib.suppress(SparringError):  # damaged or missing: play the others
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
    """Rate a run's league in this process, so that training does not wait; ignore a full disk."""
    from sparring.store.archive import Archive, ArchiveError

    with contextlib.suppress(ArchiveError):
        write_ratings(Archive(folder, max_bytes=0), bots, request["update"], request["decisions"])


def write_ratings(archive: Archive, bots: Sequence[str], update: int, decisions: int) -> None:
    """Write the current ratings of all players of a league."""
    from sparring.league.ladder import rate_league

    found = rate_league(archive, bots, seed=update)
    rated = {each.player: (each.elo, each.low, each.high) for each in found}
    if rated:
        archive.rate(update, decisions, rated)


if __name__ == "__main__":
    main()
