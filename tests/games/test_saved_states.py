"""Saved states may come from anybody: what is no position of a game is refused in one line."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparring import Pool, _native, load_state, new_state
from sparring.errors import ConfigError, StateError
from sparring.games.rules import Rules
from sparring.games.starts import SavedPosition
from sparring.pools.starts import Start

GAMES = _native.game_names()
CASES = Path(__file__).with_name("mutated_states.py")


def changed(raw: bytes, changes: dict[str, Any], body: bytes | None = None) -> bytes:
    """A saved state with other entries in its header; None takes one out."""
    head, _, kept = raw.partition(b"\n")
    body = kept if body is None else body
    header = json.loads(head) | changes | {"sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps({k: v for k, v in header.items() if v is not None}).encode() + b"\n" + body


def refused(raw: bytes) -> str:
    with pytest.raises(StateError) as wrong:
        load_state(raw)
    assert "\n" not in str(wrong.value) and len(str(wrong.value)) < 400
    return str(wrong.value)


def run_cases(game: str, first: int, count: int) -> None:
    """Run mutated states in a process of their own, so that a crash is a failure with a number."""
    ran = subprocess.run(
        [sys.executable, str(CASES), game, str(first), str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    *cases, told = ran.stdout.splitlines() or [""]
    last = told if ran.returncode else cases[-1]
    assert ran.returncode == 0, f"{game}: case {last} ended with {ran.returncode}\n{ran.stderr}"
    assert "refused" in told, f"{game}: nothing was refused in {count} cases: {told}"


@pytest.mark.few(8)
@pytest.mark.parametrize("game", GAMES)
def test_mutated_states_are_refused_or_can_be_played(game: str) -> None:
    run_cases(game, 0, 20)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_many_mutated_states_are_refused_or_can_be_played(game: str) -> None:
    run_cases(game, 20, 2000)


@pytest.mark.parametrize("game", GAMES)
def test_every_byte_of_a_game_has_bounds(game: str) -> None:
    rules = Rules(game)
    assert rules.native.first_undeclared == rules.native.game_bytes


def test_an_odd_end_is_refused() -> None:
    state = new_state("tic_tac_toe")
    for move in (0, 3, 1, 4, 2):
        state.apply(move)
    body = state.native.serialize()
    told = set()
    for at in range(len(body)):
        other = body[:at] + b"\x63" + body[at + 1 :]
        try:
            assert load_state(changed(state.serialize(), {}, other)).end == "three in a row"
        except StateError as wrong:
            told.add(str(wrong))
    assert any("the reason of the end does not exist" in line for line in told)


def test_a_refused_state_changes_nothing() -> None:
    state = new_state("skull_king")
    before = state.native.serialize()
    assert state.native.load(b"\xff" * len(before)) != ""
    assert state.native.load(before[:-1]) == "it was saved by another build"
    assert state.native.serialize() == before


DEEP = b'{"a":' + b"[" * 100_000
HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"game": ["tic_tac_toe"]}, "game"),
    ({"game": None}, "game"),
    ({"game": "x" * 10_000}, "game"),
    ({"game": "nothing:here"}, "no game that is here"),
    ({"config": [1]}, "config"),
    ({"config": None}, "config"),
    ({"config": {"unknown": 1}}, "no flag"),
    ({"config": {"skip_forced": {"a": 1}}}, "skip_forced"),
    ({"config": {"skip_forced": [[[[1]]]]}}, "not a saved state"),
    ({"config": {"skip_forced": 1e400}}, "skip_forced"),
    ({"rules_version": None}, "rules version"),
    ({"rules_version": [1] * 9000}, "rules version"),
    ({"seed": None}, "seed"),
    ({"seed": "1"}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"seed": True}, "seed"),
    ({"seed": 2**64}, "seed"),
    ({"seed": -(2**63) - 1}, "seed"),
    ({"weights": None}, "weights"),
    ({"weights": "1"}, "weights"),
    ({"weights": []}, "weights"),
    ({"weights": [1.0, 1.0]}, "weights"),
    ({"weights": ["1"]}, "weights"),
    ({"weights": [float("nan")]}, "weights"),
    ({"weights": [1e39]}, "weights"),
    ({"weights": [0] * 1_000_000}, "not a saved state"),
    ({"index": -1}, "index"),
    ({"index": 2**32}, "index"),
    ({"index": "0"}, "index"),
    ({"setup": 1}, "setup"),
    ({"setup": [1.5]}, "setup"),
    ({"setup": [2**63]}, "setup"),
]


@pytest.mark.parametrize(("changes", "told"), HEADERS, ids=lambda value: str(value)[:40])
def test_odd_headers_of_a_state_are_refused(changes: dict[str, Any], told: str) -> None:
    assert told in refused(changed(new_state("tic_tac_toe").serialize(), changes))


@pytest.mark.parametrize("raw", [b"", b"\n", b"[]\n", b"null\n", b"\xff\n", DEEP + b"\n", b"{}\n"])
def test_what_has_no_header_is_no_state(raw: bytes) -> None:
    assert refused(raw) == "these bytes are not a saved state"


@pytest.mark.parametrize(
    "changes",
    [{"seed": "1"}, {"seed": None}, {"seed": 2**64}, {"games": [4]}, {"table": "x"}, {"config": 1}],
)
def test_odd_headers_of_a_pool_are_refused_and_nothing_changes(changes: dict[str, Any]) -> None:
    pool = Pool("tic_tac_toe", 4, threads=1)
    pool.reset()
    before = pool.state()
    with pytest.raises(StateError):
        pool.load_state(changed(before, changes))
    assert pool.state() == before


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "leduc_poker", "duel"])
def test_a_pool_takes_over_all_tables_or_none(game: str) -> None:
    pool = Pool(game, 8, seed=1, threads=1)
    pool.reset()
    pool.run_random(20)
    sound = pool.state()
    body = bytearray(sound.partition(b"\n")[2])
    at = 7 * pool.tables.shape[1]  # the last game's first bytes
    body[at : at + 4] = b"\xff" * 4
    pool.run_random(7)
    before = pool.state()
    with pytest.raises(StateError, match="game 7: "):
        pool.load_state(changed(sound, {}, bytes(body)))
    assert pool.state() == before
    pool.load_state(sound)
    assert pool.state() == sound


@pytest.mark.parametrize("player", [-1, -7, -32768])
def test_a_seat_of_somebody_who_cannot_play_is_refused(player: int) -> None:
    state = new_state("tic_tac_toe")
    body = np.frombuffer(state.native.serialize(), np.int16)
    seats = np.flatnonzero(np.lib.stride_tricks.sliding_window_view(body == 0, 2).all(axis=1))
    told = set()
    for at in seats:
        other = body.copy()
        other[at] = player
        told.add(state.native.load(other.tobytes()))
    assert "a seat is held by nobody who can play" in told


def test_tables_cannot_be_written_to() -> None:
    pool = Pool("kuhhandel", 2, threads=1)
    pool.reset()
    for array in (pool.tables, pool._native.extra, pool._native.legal, pool._native.setting):
        assert not array.flags.writeable


def test_a_start_that_is_no_position_is_refused() -> None:
    state = new_state("skull_king")
    position, side = state.native.position()
    pool = Pool("skull_king", 2, threads=1)
    with pytest.raises(ConfigError, match=r"start 0: hand has a bit above 73"):
        pool.set_starts([Start(SavedPosition(b"\xff" * 16 + position[16:], side))])


def test_weights_of_rewards_are_counted_before_they_are_used() -> None:
    rules = Rules("tic_tac_toe")
    with pytest.raises(ValueError, match=r"rewards have 1 weights, .* not 1000000"):
        _native.make_state(rules.native, 0, 0, False, [0.0] * 1_000_000)
