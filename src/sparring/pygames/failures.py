"""What failed in rules: the failed call is repeated by the interpreter, which knows the line."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from sparring import _native
from sparring.errors import RulesError
from sparring.pygames.declare import RULES, Declaration, file_of
from sparring.pygames.draws import WORDS
from sparring.pygames.interpreted import Interpreter, repeated

_declared: dict[int, Declaration] = {}
"""Declarations by the number of their script."""
HINTS = {
    "assignment destination is read-only": "only reset, step and resample may change the state, "
    "only legal the mask; constants never change",
}


def remember(script: int, declared: Declaration) -> None:
    _declared[script] = declared


def explain(script: int) -> RulesError:
    """Return the error of the call that failed last; the core raises it."""
    rule, argument, bot, reason, state, flags, rng = _native.take_script_failure(script)
    declared = _declared[script]
    name = RULES[rule]
    given = {"seat": argument, "action": argument, "bot": bot}
    if reason:
        return told(declared, name, bot, reason, given)
    try:
        repeat(declared, name, given, {"state": state, "flags": flags, "rng": rng})
    except BaseException as error:
        return RulesError(describe(error, declared, name))
    return told(
        declared,
        name,
        bot,
        "it fails when compiled, not when interpreted: a division by zero, or a whole number of "
        "more than 64 bits",
        given,
    )


def told(
    declared: Declaration, rule: str, bot: int, reason: str, given: dict[str, int]
) -> RulesError:
    """An error without an exception of the rules."""
    bots = list(declared.bots.values())
    function = bots[bot] if rule == "bot" else declared.functions[rule]
    code = function.__code__
    with_action = f" (action {given['action']})" if rule == "step" else ""
    return RulesError(
        f"{Path(code.co_filename).name}:{code.co_firstlineno}: {code.co_name}{with_action}: "
        f"{reason}"
    )


def repeat(
    declared: Declaration,
    rule: str,
    given: dict[str, int],
    saved: dict[str, Any],
) -> None:
    """Call a rule with what it was given when it failed."""
    mask = np.zeros(declared.actions + 8, np.uint8)
    buffers: dict[str, Any] = {
        "state": np.frombuffer(bytearray(saved["state"]), np.uint8),
        "flags": np.array(saved["flags"], np.int32),
        "rng": np.array(saved["rng"] or [0] * WORDS, np.uint32),
        "mask": mask,
        "row": np.zeros(declared.observation_dtype.itemsize, np.uint8),
        "reward": np.zeros(declared.rewards_dtype.itemsize, np.uint8),
        "count": np.zeros(max(declared.counts_dtype.itemsize, 8), np.uint8),
    }
    interpreter = Interpreter(declared)
    if rule == "bot":
        repeated(interpreter, "legal", given, buffers)
    repeated(interpreter, rule, given, buffers)


def describe(error: BaseException, declared: Declaration, rule: str) -> str:
    """File, line, function and message of an exception in rules."""
    ours = Path(__file__).parent
    frames = [f for f in extract_tb(error.__traceback__) if ours not in Path(f.filename).parents]
    frames = [f for f in frames if "site-packages" not in f.filename] or frames
    own = file_of(declared.cls)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else own
    inside = frames[-1].name if frames else rule
    within = f" (in {rule})" if inside != rule else ""
    text = (str(error).splitlines() or [""])[0]
    hint = next((f"; {more}" for words, more in HINTS.items() if words in text), "")
    line = f"; the line: {frames[-1].line}" if frames and frames[-1].line else ""
    return f"{where}: {inside}{within}: {type(error).__name__}: {text}{hint}{line}"
