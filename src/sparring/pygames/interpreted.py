"""Rules run by the interpreter: slow, obvious, with print and breakpoints; the reference."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from sparring.pygames.declare import RULES, Declaration
from sparring.pygames.draws import WORDS, Rng
from sparring.pygames.views import Fields, cells_at, fields_at, memory

CALL = np.dtype(
    [
        *((name, "i8") for name in ("state", "flags", "rng", "row", "mask", "reward", "count")),
        ("number", "f8"),
        *((name, "i8") for name in ("seat", "action", "bot", "answer")),
    ]
)
"""`ScriptCall` of csrc/core/scripted.hpp."""
WRITERS = ("reset", "step", "resample")
"""Rules that may change the state."""
Prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Interpreter:
    """Calls the functions of a declaration on memory of the core."""

    def __init__(self, declared: Declaration) -> None:
        self.declared = declared
        self.dtypes = {
            "state": declared.state_dtype,
            "flags": declared.flags_dtype,
            "row": declared.observation_dtype,
            "reward": declared.rewards_dtype,
            "count": declared.counts_dtype,
        }
        self.bots = list(declared.bots.values())
        self.error: BaseException | None = None
        """The last exception of the rules."""
        self._callbacks = [self._callback(rule) for rule in RULES]

    @property
    def addresses(self) -> list[int]:
        """Addresses of the functions, 0 for those that the rules do not have."""
        return [
            ctypes.cast(call, ctypes.c_void_p).value or 0 if call else 0 for call in self._callbacks
        ]

    def _callback(self, rule: str) -> Any:
        if not (self.bots if rule == "bot" else rule in self.declared.functions):
            return None

        def run(address: int) -> int:
            try:
                self.call(rule, memory(address, CALL)[0])
            except BaseException as error:  # nothing may pass through the core's frames
                self.error = error
                return 1
            return 0

        return Prototype(run)

    def call(self, rule: str, call: Any) -> None:
        """Call a rule with the arguments that it takes, and keep its answer."""
        function = self.bots[int(call["bot"])] if rule == "bot" else self.declared.functions[rule]
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        answer = function(*(self.argument(rule, name, call) for name in names))
        if rule == "step":
            call["answer"] = end_number(answer)
        elif rule == "score":
            call["number"] = float(answer)
        elif rule == "bot":
            call["answer"] = whole(answer, "a bot returns an action")
        elif rule == "valid":
            call["answer"] = bool(answer)

    def argument(self, rule: str, name: str, call: Any) -> Any:
        """Make the argument of a rule."""
        declared, dtypes = self.declared, self.dtypes

        def fields(place: str, *, writable: bool = True) -> Fields:
            return fields_at(int(call[place]), dtypes[place], writable=writable)

        if name == "mask":
            writable = rule == "legal"
            return cells_at(int(call["mask"]), np.uint8, declared.actions, writable=writable)
        if name == "rng":
            return Rng(memory(int(call["rng"]), np.int32, WORDS).view(Signed))
        if name == "rewards" and len(declared.parts) == 1:
            return getattr(fields("reward"), next(iter(declared.parts)))
        if name == "state":
            return fields("state", writable=rule in WRITERS)
        places = {"obs": "row", "rewards": "reward", "counts": "count", "flags": "flags"}
        if name in places:
            return fields(places[name], writable=name != "flags")
        return int(call[name])  # seat, action


class Signed(np.ndarray[Any, Any]):
    """Words of 32 bits that are read as Python numbers."""

    def __getitem__(self, key: Any) -> Any:
        return int(super().__getitem__(key))


def end_number(answer: Any) -> int:
    """The number of an end; 0 while the game goes on."""
    return 0 if answer is None else whole(answer, "step returns 0, or the number of an end")


def whole(answer: Any, what: str) -> int:
    if isinstance(answer, bool | int | np.integer | np.bool_):
        return int(answer)
    raise TypeError(f"{what}, not {answer!r}")


def repeated(
    interpreter: Interpreter, rule: str, given: dict[str, int], buffers: dict[str, Any]
) -> None:
    """Call a rule once more on copies. buffers: arrays by the name of their address."""
    call = np.zeros(1, CALL)
    for name, number in given.items():
        call[name] = number
    for name, array in buffers.items():
        call[name] = array.ctypes.data
    interpreter.call(rule, call[0])
