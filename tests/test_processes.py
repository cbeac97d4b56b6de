"""A process that works for another one: what it says, how it ends, and what is left of it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pools.workers.helpers import alive, gone, open_files
from sparring.errors import ConfigError, StateError
from sparring.messages import Message
from sparring.processes import (
    MAX_OUTPUT_BYTES,
    OUTPUT_TAIL_BYTES,
    Child,
    ProcessEndedError,
    SharedArrays,
    wait_any,
)

CHILD = '''
import os, subprocess, sys, time
from sparring.errors import ConfigError, SparringError
from sparring.messages import Message
from sparring.processes import Parent, SharedArrays

class OwnError(SparringError):
    """Nobody else knows it."""

def answer(message):
    facts = message.payload
    if message.name == "refuse":
        raise {"ConfigError": ConfigError, "OwnError": OwnError}[facts["kind"]](facts["text"])
    if message.name == "raise":
        print("before the end", file=sys.stderr)
        raise ValueError("the simulator lost its way")
    if message.name == "exit":
        os._exit(facts["code"])
    if message.name == "crash":
        import ctypes
        ctypes.string_at(0)
    if message.name == "say":
        print(facts["text"], flush=True)
    if message.name == "sleep":
        time.sleep(facts["s"])
    if message.name == "simulator":
        return Message("simulator", {"pid": subprocess.Popen(["sleep", "1000"]).pid})
    if message.name == "memory":
        memory = SharedArrays({"a": ("int32", (4,))}, parent.channel.fds.pop())
        memory["a"][0] = 7
    if message.name == "path":
        return Message("path", {"path": sys.path, "threads": os.environ["OMP_NUM_THREADS"]})
    return message

if __name__ == "__main__":
    parent = Parent()
    parent.serve(answer)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a_child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    return "a_child"


@pytest.fixture
def child(module: str) -> Iterator[Child]:
    with Child(module) as started:
        yield started


def test_it_answers_until_it_is_let_go_and_leaves_nothing(module: str) -> None:
    before = open_files()
    with Child(module, threads=3) as child:
        arrays = {"x": np.arange(500_000, dtype=np.float32), "none": np.zeros((0, 2), np.uint8)}
        said = child.request(Message("echo", {"a": [1, "b"]}, arrays), 60)
        assert said.payload == {"a": [1, "b"]}
        assert (said.arrays["x"] == arrays["x"]).all()
        assert said.arrays["none"].shape == (0, 2)
        found = child.request(Message("path"), 60).payload
        assert found == {"path": sys.path, "threads": "3"}
        pid = child.pid
    assert not alive(pid)
    assert open_files() == before


def test_kinds_of_errors_survive_the_trip(child: Child) -> None:
    with pytest.raises(ConfigError, match="minibatch 0"):
        child.request(Message("refuse", {"kind": "ConfigError", "text": "minibatch 0"}), 60)
    with pytest.raises(Exception, match="elsewhere") as wrong:
        child.request(Message("refuse", {"kind": "OwnError", "text": "elsewhere"}), 60)
    assert type(wrong.value).__name__ == "SparringError"  # a kind that is not known here
    assert child.request(Message("echo"), 60).name == "echo"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Message("raise"), "ended with exit code 1: ValueError: the simulator lost its way"),
        (Message("exit", {"code": 3}), "ended with exit code 3: it printed nothing"),
        (Message("crash"), r"ended with signal SIGSEGV: in __init__.py:\d+"),
    ],
)
def test_a_dead_process_has_last_words(module: str, message: Message, said: str) -> None:
    before = open_files()
    child = Child(module)
    with pytest.raises(ProcessEndedError, match=said):
        child.request(message, 60)
    with pytest.raises(ProcessEndedError, match=said):  # and goes on saying so
        child.request(Message("echo"), 60)
    assert open_files() == before


def test_a_killed_one_is_told_as_such_and_what_it_said_before_is_heard(child: Child) -> None:
    child.send(Message("echo", {"n": 1}))
    child.send(Message("sleep", {"s": 1000}))
    assert child.next_message(60).payload == {"n": 1}
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ProcessEndedError, match="was killed, as happens when memory runs out"):
        child.next_message(60)


def test_nobody_waits_for_ever(child: Child) -> None:
    child.request(Message("echo"), 60)
    with pytest.raises(TimeoutError):
        child.request(Message("sleep", {"s": 1000}), 0.2)
    assert not alive(child.pid)  # its answer would be taken for another one


def test_telling_never_waits(child: Child) -> None:
    child.request(Message("echo"), 60)
    os.kill(child.pid, signal.SIGSTOP)
    began = time.monotonic()
    for n in range(4):
        child.send(Message("echo", {"n": n}, {"x": np.zeros(1 << 20, np.uint8)}))
        assert child.receive() == []
    assert time.monotonic() - began < 5
    os.kill(child.pid, signal.SIGCONT)
    assert [child.next_message(60).payload["n"] for _ in range(4)] == [0, 1, 2, 3]


def test_files_and_memory_go_along(child: Child) -> None:
    memory = SharedArrays({"a": (np.int32, (4,))})
    child.send(Message("memory"), [memory.fd])
    child.next_message(60)
    assert memory["a"].tolist() == [7, 0, 0, 0]
    memory.close()


def test_what_it_prints_is_overheard_and_fills_no_disk(child: Child) -> None:
    child.request(Message("say", {"text": "a word"}), 60)
    assert child.read_output() == b"a word\n"
    assert child.read_output() == b""
    child.request(Message("say", {"text": "x" * MAX_OUTPUT_BYTES}), 60)
    assert len(child.read_output()) == MAX_OUTPUT_BYTES + 1
    child.request(Message("say", {"text": "the last"}), 60)
    assert child.read_output() == b"the last\n"
    assert len(child.output_tail) == OUTPUT_TAIL_BYTES


def test_several_are_waited_for_at_once(module: str) -> None:
    with Child(module) as one, Child(module) as other:
        for each in (one, other):
            each.request(Message("echo"), 60)
        assert wait_any([one, other], 0.0) == []
        one.send(Message("sleep", {"s": 1000}))
        other.send(Message("echo"))
        while not (found := wait_any([one, other], 1.0)):
            pass
        assert found == [other]
        other.next_message()
        os.kill(one.pid, signal.SIGKILL)
        while not (found := wait_any([one, other], 1.0)):
            pass
        assert found == [one]
        assert one.receive() == []
        assert one.has_ended


def test_what_it_has_started_ends_with_it(child: Child) -> None:
    simulator = child.request(Message("simulator"), 60).payload["pid"]
    assert alive(simulator)
    child.end()
    assert gone([simulator])


def test_it_ends_with_whoever_has_it(module: str) -> None:
    child = Child(module)
    child.request(Message("echo"), 60)
    pid = child.pid
    del child
    gc.collect()
    assert gone([pid])


PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from sparring.messages import Message
from sparring.processes import Child
child = Child("a_child")
print(child.pid, child.request(Message("simulator")).payload["pid"], flush=True)
child.request(Message("sleep", {"s": 1000}))
"""


@pytest.mark.parametrize("killed_by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_orphan_is_left(module: str, killed_by: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert parent.stdout
    with parent, parent.stdout:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        parent.send_signal(killed_by)
        parent.wait(20)
        assert gone(pids)


def test_a_message_that_is_none_is_refused() -> None:
    with pytest.raises(StateError, match="cannot be read"):
        Message.unpack(b"\x05\0\0\0\0\0\0\0[1, 2")
