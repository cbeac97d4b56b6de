"""Native code trusts nobody: odd arguments are refused in a line, and nothing crashes or hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparring
from fuzz.native_calls import Workshop, bindings
from sparring import _native
from sparring.errors import SparringError
from sparring.games.rules import game_names
from sparring.pools.native import Pool

ROOT = Path(__file__).parents[2]
SANITIZED = ROOT / "build" / "sanitize-python"
"""Where `make sanitize` builds the extension."""
SEED = 35
MAX_CRASHES = 10


@dataclass
class Found:
    """What came of many calls."""

    outcomes: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    """Calls that crashed, hung, or were answered by something else than a line."""


def call_often(
    status: Path, count: int, *, seconds: float, extension: str = "", **env: str
) -> Found:
    """Make odd calls in a process of their own; behind one that ends it, go on in another."""
    found, first = Found(), 0
    while first < count and len(found.wrong) < MAX_CRASHES:
        given = [SEED, first, count - first, seconds, status, *([extension] if extension else [])]
        ended = subprocess.run(
            [sys.executable, "-m", "fuzz.calls", *map(str, given)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode == 0:
            told = json.loads(ended.stdout.splitlines()[-1])
            found.outcomes = told["outcomes"]
            found.wrong += told["faults"]
            return found
        under_way = status.read_text().strip()
        found.wrong.append(f"{under_way} -> ended with {ended.returncode}: {ended.stderr[-3000:]}")
        first = int(under_way.split()[0]) + 1
    return found


def library(name: str) -> str:
    """Return where the compiler has a library."""
    asked = ["g++", f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def test_every_binding_is_called() -> None:
    workshop = Workshop(np.random.default_rng(0))
    assert [name for name in bindings() if not workshop.knows(name)] == []


def test_odd_calls_are_refused_in_a_line(tmp_path: Path) -> None:
    found = call_often(tmp_path / "call", 300, seconds=30)
    assert found.wrong == []
    assert found.outcomes["refused"] > 60
    assert found.outcomes["answered"] > 60


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_odd_calls_stay_inside_their_memory(tmp_path: Path) -> None:
    """20,000 calls under AddressSanitizer, which sees what a crash may not show."""
    (built,) = SANITIZED.glob("_native*.so")
    found = call_often(
        tmp_path / "call",
        20_000,
        seconds=120,
        extension=str(built),
        LD_PRELOAD=f"{library('libasan.so')} {library('libstdc++.so')}",  # it asks for the latter
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=8192",
        UBSAN_OPTIONS="print_stacktrace=1",
    )
    print(found.outcomes)
    assert found.wrong == []


@pytest.mark.parametrize("script", [-1, 10**6, 2**40, None, "x"])
def test_a_script_that_nobody_registered_has_no_failure(script: Any) -> None:
    with pytest.raises((IndexError, TypeError, ValueError)) as refused:
        _native.take_script_failure(script)
    assert "terminate" not in str(refused.value)


HUGE: list[Any] = [99, -1, 2**31 - 1, -(2**31), 2**40, 2**64, 10**5000, 0.5, None, "x"]


@pytest.mark.parametrize("game", game_names())
@pytest.mark.parametrize("row", HUGE, ids=lambda row: str(row)[:12] if row != HUGE[6] else "long")
def test_a_state_has_no_other_rows_and_seats(game: str, row: Any) -> None:
    state = sparring.new_state(game)
    calls = (
        state.legal,
        state.decision,
        lambda number: state.ask("random", number),
        state.observe,
        lambda number: state.resample_hidden(number, 1),
    )
    for call in calls:
        with pytest.raises(SparringError) as refused:
            call(row)
        assert "\n" not in str(refused.value)


def test_a_binding_says_which_array_is_too_short() -> None:
    state = sparring.new_state("skull_king").native
    with pytest.raises(ValueError, match=r"^State.observe: out has 1 numbers, \d+ are needed$"):
        state.observe(0, np.zeros(1, np.uint8))
    with pytest.raises(TypeError, match="out must be a writable array of uint8 without gaps"):
        state.observe(0, np.zeros(1))


@pytest.mark.parametrize("game", game_names())
def test_native_states_check_what_they_are_asked(game: str) -> None:
    state = sparring.new_state(game).native
    for bad in (lambda: state.apply_discrete([]), lambda: state.apply_box([])):
        with pytest.raises(ValueError, match=r"are needed|another kind"):
            bad()
    for bad in (
        lambda: state.score(-(2**31)),
        lambda: state.bot_action(99, 0),
        lambda: state.seat(99),
    ):
        with pytest.raises(IndexError, match="is outside"):
            bad()


def test_links_are_held_against_the_places_that_there_are() -> None:
    workshop = Workshop(np.random.default_rng(0))
    given = workshop.of_estimate_advantages()
    following = given[10]
    following[0] = len(following)
    with pytest.raises(ValueError, match="next names a place that there is not"):
        _native.estimate_advantages(*given)


def test_hindsight_draws_among_places_that_there_are() -> None:
    record, drawn = np.ones(3, np.uint32), np.zeros(2, np.uint8)
    with pytest.raises(IndexError, match=r"among\[1\], 3, is outside 0\.\.2"):
        _native.draw_hindsight(record, np.array([0, 3]), 1, 1, 0.5, drawn)


def test_a_pool_shows_what_decides_over_actions_and_lets_nobody_write_it() -> None:
    pool = Pool("tic_tac_toe", 2)
    batch = pool.reset()
    for view in (batch.policy, batch.seat, pool._native.legal, pool._native.setting):
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0


def test_a_pool_steps_only_what_it_has_accepted() -> None:
    pool = Pool("tic_tac_toe", 4, slots=2)
    native = pool._native
    with pytest.raises(ValueError, match="no game has started"):
        native.sample_discrete(0, np.zeros(2, np.int32))
    pool.reset()
    with pytest.raises(ValueError, match="no actions were accepted"):
        native.send(0)
    native.accept_discrete(0, np.zeros(2, np.int32))
    native.reset()
    with pytest.raises(ValueError, match="no actions were accepted"):
        native.send(0)


def test_a_running_pool_keeps_its_shape() -> None:
    pool = Pool("skull_king", 2)
    more = sparring.Rules("skull_king", {"num_players": 8})
    for rules in (more, sparring.Rules("tic_tac_toe")):
        with pytest.raises(ValueError, match=r"cannot change|another game"):
            pool._native.set_config(rules.native)


@pytest.mark.parametrize("games", [2**40, 2**31 - 1])
def test_games_that_fit_into_no_memory_are_refused_before_it_is_taken(games: int) -> None:
    rules = sparring.Rules("skull_king").native
    with pytest.raises(ValueError, match=r"outside|do not fit"):
        _native.make_pool(rules, games, 0, 0, 1, 1, False, True, 0, False, 0)


def test_a_pool_that_was_never_made_is_refused() -> None:
    with pytest.raises(TypeError, match="never made"):
        _ = _native.Pool.__new__(_native.Pool).obs
