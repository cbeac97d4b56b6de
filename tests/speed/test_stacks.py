"""Stacks are read, counted and written as they were sampled."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Any

import pytest

from sparring.config import TrainConfig
from sparring.errors import SparringError
from sparring.speed.evidence import CallStack, CallStacks, Evidence, Frame, shorten_path
from sparring.speed.functions import costliest, flame_blocks, function_costs, to_speedscope
from sparring.speed.report import top_functions
from sparring.speed.sampling import (
    NO_SYMBOL,
    StackSampler,
    drop_waits,
    read_stacks,
    short_name,
)

MAIN, STEP, OBSERVE = (
    Frame("main", "/home/me/program.py", 3),
    Frame("Env.step", "/home/me/env.py", 10),
    Frame("Env.observe", "/home/me/env.py", 20),
)


def spied(profiles: dict[str, list[list[int]]]) -> dict[str, Any]:
    """A file as py-spy writes it."""
    frames = [
        {"name": 'process 7:"python -m sparring"', "file": "", "line": 0, "col": None},
        {"name": "main", "file": "/home/me/program.py", "line": 3, "col": None},
        {"name": "Env.step", "file": "/home/me/env.py", "line": 10, "col": None},
        {"name": "at::add<float>(at::Tensor const&)", "file": "/x/libtorch_cpu.so", "line": 0},
        {"name": "0x7f48d7c4524a", "file": "/usr/lib/libc.so.6", "line": 0},
    ]
    return {
        "shared": {"frames": frames},
        "profiles": [
            {"type": "sampled", "name": name, "samples": samples, "weights": [0.01] * len(samples)}
            for name, samples in profiles.items()
        ],
    }


def test_equal_stacks_are_counted_together() -> None:
    plain = spied(
        {
            'Process 7 Thread 7 "MainThread"': [[0, 1, 2], [0, 1, 3], [0, 1, 2]],
            'Process 9 Thread 9 "MainThread"': [[1, 4]],
        }
    )
    stacks = read_stacks(plain, 50)
    assert stacks.rate == 50
    assert stacks.stacks == (
        CallStack((MAIN, STEP), 2, "MainThread", 7),
        CallStack((MAIN, Frame("at::add", "libtorch_cpu.so")), 1, "MainThread", 7),
        CallStack((MAIN, Frame(NO_SYMBOL, "libc.so.6")), 1, "MainThread", 9),
    )
    assert [frame.native for frame in stacks.stacks[1].frames] == [False, True]


def test_a_file_that_is_something_else_is_refused() -> None:
    with pytest.raises(SparringError, match="cannot be read"):
        read_stacks({"profiles": [{"name": "x", "samples": [[5]]}], "shared": {"frames": []}}, 10)


def test_threads_that_wait_are_left_out_and_the_main_one_never() -> None:
    """Thread 8 has worked for 0.02 s: two of its samples at 100 Hz, those off its usual place."""
    plain = spied(
        {
            'Process 7 Thread 7 "MainThread"': [[1, 2]] * 5,
            'Process 7 Thread 8 "metrics"': [[1, 4]] * 8 + [[1, 3]] * 2,
            'Process 9 Thread 9 "MainThread"': [[1, 4]] * 10,
        }
    )
    kept = read_stacks(plain, 100, 7, {(7, 7): 0.0, (7, 8): 0.02}).stacks
    assert [(one.thread, one.samples) for one in kept] == [("MainThread", 5), ("metrics", 2)]
    assert kept[1].frames[-1].file == "libtorch_cpu.so"
    assert without_waiting([[1], [2]], 2) == [[1], [2]]


def without_waiting(samples: list[list[int]], allowed: int) -> list[list[int]]:
    counted = Counter(map(tuple, samples))
    drop_waits(counted, allowed)
    return sorted(map(list, counted.elements()))


def test_a_thread_that_spins_in_one_place_keeps_what_it_has_worked() -> None:
    """Nine tenths of the time on one line: that does not go with the tenth in which it waits."""
    assert without_waiting([[1, 2]] * 10, 9) == [[1, 2]] * 9
    assert without_waiting([[1, 2]] * 6 + [[1, 3]] * 4, 5) == [[1, 2]] + [[1, 3]] * 4


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("read", "read"),
        ("at::_ops::addmm::call(at::Tensor const&, long)", "at::_ops::addmm::call"),
        ("std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"),
        ("at::(anonymous namespace)::add", "at::(anonymous namespace)::add"),
        ("Sum::operator()(int) const", "Sum::operator() const"),
    ],
)
def test_native_names_are_short(name: str, short: str) -> None:
    assert short_name(name) == short


def test_costs_are_those_counted_by_hand() -> None:
    """observe calls itself once: it is on the stack, not twice in the sum."""
    stacks = CallStacks(
        (
            CallStack((MAIN, STEP, OBSERVE), 5),
            CallStack((MAIN, STEP, OBSERVE, Frame("Env.observe", "/home/me/env.py", 22)), 1),
            CallStack((MAIN, Frame("Env.step", "/home/me/env.py", 12)), 3),
            CallStack((MAIN,), 1),
        )
    )
    found = {one.name: one for one in function_costs(stacks)}
    assert (found["main"].self_share, found["main"].total_share) == (0.1, 1.0)
    assert (found["Env.step"].self_share, found["Env.step"].total_share) == (0.3, 0.9)
    assert (found["Env.observe"].self_share, found["Env.observe"].total_share) == (0.6, 0.6)
    assert found["Env.observe"].line == 20
    assert found["Env.step"].line == 12, "where it is itself, not where it calls"
    by_self = [one.name for one in costliest(found.values(), 2, by="self")]
    assert by_self == ["Env.observe", "Env.step"]
    assert [one.name for one in top_functions(list(found.values()), "total")] == [
        "Env.step",
        "Env.observe",
    ]


def test_a_flame_has_all_samples_of_all_processes() -> None:
    stacks = CallStacks(
        (CallStack((MAIN, STEP), 4, "MainThread", 7), CallStack((MAIN,), 1, "metrics", 7))
    )
    beside = CallStacks((CallStack((MAIN, OBSERVE), 3, "MainThread", 9),))
    named = {7: "training", 9: "worker"}
    seen = Evidence(TrainConfig(), {}, 0.0, 0.0, 1.0, stacks, beside, named)
    root = flame_blocks(seen)
    assert root.total == 8
    tops = [(block.name, block.total) for block in root.blocks.values()]
    assert tops == [
        ("training, MainThread", 4),
        ("training, metrics", 1),
        ("worker, MainThread", 3),
    ]
    main = next(iter(next(iter(root.blocks.values())).blocks.values()))
    assert (main.name, main.kind, main.total) == ("main", "yours", 4)


def test_what_is_written_can_be_read_again() -> None:
    stacks = CallStacks(
        (CallStack((MAIN, STEP), 4, "MainThread", 7), CallStack((MAIN,), 6, "MainThread", 7)), 20
    )
    plain = to_speedscope(stacks, "a game", {7: "training"})
    assert plain["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    (profile,) = plain["profiles"]
    needed = {"endValue", "name", "samples", "startValue", "type", "unit", "weights"}
    assert set(profile) == needed, "what the published schema asks for, and nothing else"
    assert (profile["type"], profile["unit"]) == ("sampled", "seconds")
    assert profile["weights"] == [0.2, 0.3]
    assert profile["endValue"] == 0.5
    frames = plain["shared"]["frames"]
    assert all(set(frame) == {"name", "file", "line"} for frame in frames)
    again = [[frames[at]["name"] for at in sample] for sample in profile["samples"]]
    assert again == [["main", "Env.step"], ["main"]]


def test_a_thread_within_sees_where_the_others_are() -> None:
    """The main thread waits here for the one that looks, and is seen all the same."""
    sampler = StackSampler(100)

    def look() -> None:
        sampler.sample_once()

    looking = threading.Thread(target=look)
    looking.start()
    looking.join()
    (stack,) = sampler.sample(0.0).stacks
    assert (stack.thread, stack.process, stack.samples) == ("MainThread", os.getpid(), 1)
    again = CallStacks.read(sampler.sample(0.0).plain(), 100)
    assert again.stacks == (stack,)
    assert any(
        frame.name == test_a_thread_within_sees_where_the_others_are.__qualname__
        for frame in stack.frames
    )


def test_places_begin_at_the_package() -> None:
    assert shorten_path("/usr/lib/python3.11/json/decoder.py") == "json/decoder.py"
    assert shorten_path("/v/lib/python3.11/site-packages/torch/nn/functional.py") == (
        "torch/nn/functional.py"
    )
    assert shorten_path(function_costs.__code__.co_filename) == "sparring/speed/functions.py"
    assert shorten_path("<frozen runpy>") == "<frozen runpy>"
