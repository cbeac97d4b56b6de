"""Mistakes in rules: each is told in one line, with its place, and nothing crashes."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparring
from sparring import trusted
from sparring.errors import RulesError
from sparring.proof.python_rules import PythonRules
from sparring.pygames.registry import register

RULES = """\
import math
import random
import time
import numpy as np
from sparring.pygames import Block, Float, Game, Int

CELLS = 9
SEEN = []
CACHE = {}
PRIZES = np.array([1, 2, 3])
COUNT = 0


def taken(board):
    count = 0
    for cell in range(CELLS):
        count += board[cell] != 0
    return count


class Rules(Game):
    \"\"\"Nine cells, taken in turns; the last one pays.\"\"\"

    seats = 2
    actions = CELLS
    state = {"board": Int(0, 2, shape=CELLS), "last": Int(0, 8), "share": Float(0, 1)}
    observation = {"own": CELLS, "other": CELLS}
    ends = ("full", "too long")
    limits = ("too long",)
    zero_sum = True

    def reset(state, rng):
        state.seat = rng.below(2)

    def legal(state, mask):
        for cell in range(CELLS):
            mask[cell] = state.board[cell] == 0

    def observe(state, seat, obs):
        for cell in range(CELLS):
            obs.own[cell] = state.board[cell] == seat + 1
            obs.other[cell] = state.board[cell] == 2 - seat

    def step(state, action, rewards):
        me = state.seat
        state.board[action] = me + 1
        state.last = action
        state.seat = 1 - me
        if taken(state.board) == CELLS:
            rewards[me] = 1
            rewards[1 - me] = -1
            return 1
        return 0

    def careful(state, mask, rng):
        for cell in range(CELLS):
            if mask[cell]:
                return cell
        return 0

    bots = (careful,)
"""
STEP = "        me = state.seat\n"
MISTAKES = {
    "no step": ("def step(", "def _step(", "has no function step"),
    "misspelled": ("def observe(", "def obsrve(", "did you mean 'observe'"),
    "a type for a range": ("Int(0, 8)", "np.int8", "declare a range"),
    "empty range": ("Int(0, 8)", "Int(8, 0)", "is empty"),
    "dtype of a block": ('"own": CELLS', '"own": Block(CELLS, dtype="float64")', "float64"),
    "too many seats": ("seats = 2", "seats = 12", "seats is 12"),
    "limit without end": ('("too long",)', '("to long",)', "did you mean 'too long'"),
    "self": ("def legal(state, mask)", "def legal(self, state, mask)", "without self"),
    "field of the library": ('"last": Int', '"seat": Int', "has seat anyway"),
    "random": (STEP, STEP + "        random.random()\n", "rng.below(n)"),
    "numpy.random": (STEP, STEP + "        np.random.rand()\n", "numpy.random"),
    "time": (STEP, STEP + "        time.time()\n", "uses time"),
    "global number": (STEP, "        global COUNT\n        COUNT += 1\n" + STEP, "global COUNT"),
    "global list": (STEP, STEP + "        SEEN.append(action)\n", "global SEEN, a list"),
    "global table": (STEP, STEP + "        CACHE[action] = 1\n", "global CACHE, a dict"),
    "import": (STEP, "        import os\n" + STEP, "imports os"),
    "no such name": ("state.last = action", "state.last = actoin", "'actoin' is not defined"),
    "reads a file": (STEP, STEP + "        open('x')\n", "uses open()"),
    "mask never set": ("mask[cell] = state.board[cell] == 0", "pass", "no action is legal"),
    "past the end": (
        "state.board[action] = me + 1",
        "state.board[action + 9] = 1",
        "out of bounds",
    ),
    "float for int": ("state.last = action", "state.last = action / 2", "is a float"),
    "float in an array": (
        "state.board[action] = me + 1",
        "state.board[action] = 0.5",
        "is a float",
    ),
    "out of range": ("state.board[action] = me + 1", "state.board[action] = 3", "0..2"),
    "too large": ("state.last = action", "state.last = action + 300", "300|30[0-9] out of bounds"),
    "exception": (STEP, STEP + "        raise ValueError('not yet')\n", "ValueError: not yet"),
    "division by zero": ("state.last = action", "state.last = 1 // (action * 0)", "ZeroDivision"),
    "no such field": ("state.last = action", "state.lst = action", "did you mean 'last'"),
    "reads no such field": (STEP, "        me = state.saet\n", "did you mean 'seat'"),
    "no end": ("state.board[action] = me + 1", "pass", "did not end within 5,000 decisions"),
    "seat": ("state.seat = 1 - me", "state.seat = me + 1", "state.seat is 2"),
    "end": ("            return 1\n", "            return 3\n", "returned the end 3"),
    "text for an end": ("            return 1\n", "            return 'full'\n", "not 'full'"),
    "legal writes": ("mask[cell] = state", "state.last = 0; mask[cell] = state", "read-only"),
    "constant changed": (STEP, STEP + "        PRIZES[0] = 2\n", "read-only"),
    "not finite": ("rewards[me] = 1", "rewards[me] = math.inf", "not finite"),
    "observation": ("state.board[cell] == seat + 1", "state.board[cell] - 3", "-3 out of bounds"),
    "bot": ("                return cell\n", "                return 9 + cell\n", "chose action"),
}
COMPILED = {
    "a function of objects": ("state.last = sorted([action], key=str)[0]", "cannot be compiled"),
    "text": ("state.last = int(f'{action:03d}')", "cannot be compiled"),
    "an object": ("state.last = type('Box', (), {'at': action}).at", "cannot be compiled"),
}
"""What the interpreter plays and Numba does not compile."""


def write(tmp_path: Path, name: str, source: str) -> str:
    """Write rules to a file of their own name, and trust them."""
    file = tmp_path / f"{''.join(c if c.isalnum() else '_' for c in name)}_{tmp_path.name}.py"
    file.write_text(source)
    word = f"{file}:Rules"
    trusted.allow(word)
    return word


def told(word: str) -> str:
    """What check says of rules."""
    try:
        report = sparring.check(word, games=1)
    except RulesError as error:
        return str(error)
    wrong = [finding.detail for finding in report.findings if not finding.passed]
    assert len(wrong) == 1, wrong
    return wrong[0]


def assert_alive() -> None:
    pool = sparring.Pool("tic_tac_toe", 4, threads=2)
    pool.reset()
    pool.step(pool.sample_actions())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARRING_INTERPRETED", "1")
    old, new, words = MISTAKES[name]
    assert RULES.count(old) >= 1
    text = told(write(tmp_path, name, RULES.replace(old, new, 1)))
    assert any(word in text for word in words.split("|")), text
    assert "\n" not in text
    if name not in ("out of range", "no end"):
        assert f"{name.replace(' ', '_').replace('.', '_')}" in text, text  # the file
    assert_alive()


@pytest.mark.parametrize("name", COMPILED)
def test_what_numba_does_not_compile_is_told(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    new, words = COMPILED[name]
    text = told(write(tmp_path, name, RULES.replace("state.last = action", new, 1)))
    assert words in text, text
    assert ".py:47: step cannot be compiled" in text, text
    assert_alive()


def test_the_interpreter_plays_rules_without_a_mistake(tmp_path: Path) -> None:
    steps = PythonRules(write(tmp_path, "fine", RULES), None, games=2, seed=0)
    assert steps.check_interpreted().startswith("2 games, longest 9 decisions")


def test_a_pool_goes_on_after_its_rules_failed(tmp_path: Path) -> None:
    source = RULES.replace(STEP, STEP + "        if taken(state.board) == 5:\n            1 // 0\n")
    name = register(write(tmp_path, "late", source), interpreted=True)
    pool = sparring.Pool(name, 4, seed=1, threads=2)
    pool.reset()
    with pytest.raises(RulesError, match=r"late_.*\.py:\d+: step: ZeroDivisionError"):
        for _ in range(9):
            pool.step(pool.sample_actions())
    with pytest.raises(sparring.ConfigError):
        pool.step(pool.sample_actions())
    pool.reset()
    pool.step(pool.sample_actions())
