"""Rules compiled by Numba to functions of C's calling convention, without the interpreter's lock.

This module imports Numba; the others of the package do not. The functions of the rules are compiled
as they are; small generated functions around them unpack `ScriptCall` (csrc/core/scripted.hpp).
Machine code is cached in the user's cache folder, under the hash of everything that it depends on.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import carray, cfunc, from_dtype, njit, types
from numba.core.errors import TypingError
from numba.extending import (
    intrinsic,
    models,
    overload,
    overload_method,
    register_model,
)

from sparring.errors import RulesError
from sparring.pygames import draws
from sparring.pygames.compile_errors import explain
from sparring.pygames.declare import RULES, Declaration
from sparring.pygames.interpreted import CALL
from sparring.pygames.scan import check_functions, source_hash

OPTIONS = {"error_model": "python", "fastmath": False, "boundscheck": True}
"""Divisions by zero and indices past an end fail, as in the interpreter. Checking costs little, and
without it a mistake could write anywhere in the program's memory."""
CALL_TYPE = from_dtype(CALL)
SIGNATURE = types.int32(types.CPointer(CALL_TYPE))


class RngType(types.Type):  # type: ignore[misc]
    """Address of the core's generator."""

    def __init__(self) -> None:
        super().__init__(name="Rng")


RNG = RngType()
register_model(RngType)(models.OpaqueModel)


@intrinsic  # type: ignore[untyped-decorator]
def pointer_to(context: Any, address: Any) -> Any:
    """The address of memory as a pointer."""

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], target.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def rng_at(context: Any, address: Any) -> Any:
    """The generator at an address."""

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], target.get_value_type(RNG))

    return RNG(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def words_of(context: Any, rng: Any) -> Any:
    """The words of a generator."""
    words = types.CPointer(types.int32)

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], target.get_value_type(words))

    return words(rng), generate


def copied(function: Callable[..., Any], **names: Any) -> Any:
    """Compile a function of `draws` that calls others of it."""
    made = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    return njit(**OPTIONS)(made)


signed = copied(draws.signed)
philox = copied(draws.philox)
next_word = copied(draws.next_word, philox=philox, signed=signed)
draw_below = copied(draws.draw_below, next_word=next_word)
draw_uniform = copied(draws.draw_uniform, next_word=next_word)


@overload_method(RngType, "below")  # type: ignore[untyped-decorator]
def rng_below(rng: Any, count: Any) -> Any:
    if not isinstance(count, types.Integer):
        raise TypingError(f"rng.below(n) needs a whole number, not {count}")

    def below(rng: Any, count: Any) -> Any:
        return draw_below(carray(words_of(rng), 12), np.int64(count))

    return below


@overload_method(RngType, "uniform")  # type: ignore[untyped-decorator]
def rng_uniform(rng: Any) -> Any:
    def uniform(rng: Any) -> Any:
        return draw_uniform(carray(words_of(rng), 12))

    return uniform


def end_number(answer: Any) -> Any:
    """The number of an end that `step` returned."""


@overload(end_number)  # type: ignore[untyped-decorator]
def number_of_end(answer: Any) -> Any:
    kind = answer.type if isinstance(answer, types.Optional) else answer
    if not isinstance(kind, types.Integer | types.Boolean | types.NoneType):
        raise TypingError(f"step returns 0, or the number of an end, not {kind}")

    def nothing(answer: Any) -> Any:
        return 0

    def maybe(answer: Any) -> Any:
        return 0 if answer is None else np.int64(answer)

    def number(answer: Any) -> Any:
        return np.int64(answer)

    if isinstance(answer, types.NoneType):
        return nothing
    return maybe if isinstance(answer, types.Optional) else number


UNPACKED = {
    "state": "carray(pointer_to(call.state), 1, STATE)[0]",
    "flags": "carray(pointer_to(call.flags), 1, FLAGS)[0]",
    "rng": "rng_at(call.rng)",
    "mask": "carray(pointer_to(call.mask), ACTIONS, MASK)",
    "obs": "carray(pointer_to(call.row), 1, OBSERVATION)[0]",
    "rewards": "carray(pointer_to(call.reward), 1, REWARDS)[0]",
    "counts": "carray(pointer_to(call.count), 1, COUNTS)[0]",
    "seat": "call.seat",
    "action": "call.action",
}
"""How a wrapper makes each argument."""
ANSWERS = {
    "step": "call.answer = end_number({})",
    "score": "call.number = float({})",
    "bot": "call.answer = int({})",
    "valid": "call.answer = bool({})",
}
WRAPPER = """\
def call_{rule}(given):
    call = carray(given, 1)[0]
    try:
{body}
    except Exception:
        return 1
    return 0
"""


class Compiled:
    """The compiled functions of a declaration; kept as long as their addresses are used."""

    def __init__(self, declared: Declaration, *, quiet: bool = False) -> None:
        """Compile, or load from the cache."""
        began = time.monotonic()
        self.declared = declared
        functions = [*declared.functions.values(), *declared.bots.values()]
        helpers = check_functions(functions)
        self.key = self.fingerprint([*functions, *helpers])
        self.file = cache_folder() / f"{self.key}.py"
        known = self.file.with_suffix(".done").is_file()
        if not known and not quiet:
            print(f"compiling {declared.name}, once per machine ...", file=sys.stderr, flush=True)
        self.jitted = linked_copies([*functions, *helpers], njit(**OPTIONS))
        if not known:
            self.check_types()
        self.functions = self.wrap(self.write_source())
        if not known:
            self.file.with_suffix(".done").touch()
            if not quiet:
                took = time.monotonic() - began
                print(f"compiled in {took:.1f} s", file=sys.stderr, flush=True)

    @property
    def addresses(self) -> list[int]:
        """Addresses of the functions, 0 for those that the rules do not have."""
        return [self.functions[rule].address if rule in self.functions else 0 for rule in RULES]

    def fingerprint(self, functions: list[FunctionType]) -> str:
        """Hash of all that machine code depends on."""
        declared, cpu = self.declared, llvmlite.binding.get_host_cpu_name()
        layout = (
            str(declared.state_dtype),
            str(declared.observation_dtype),
            str(declared.rewards_dtype),
            str(declared.counts_dtype),
            str(declared.flags_dtype),
            declared.actions,
            list(declared.bots),
            [(f.__module__, f.__code__.co_filename) for f in functions],
            (numba.__version__, llvmlite.__version__, np.__version__, sys.version, cpu),
            Path(__file__).read_text(),
            Path(draws.__file__).read_text(),
        )
        return hashlib.sha256(source_hash(functions, layout)).hexdigest()[:32]

    def rules(self) -> list[tuple[str, FunctionType]]:
        """The functions with the rule that they are."""
        bots = [("bot", bot) for bot in self.declared.bots.values()]
        return [*self.declared.functions.items(), *bots]

    def check_types(self) -> None:
        """Compile every function on its own, so that errors are about its own lines."""
        kinds = {
            "state": from_dtype(self.declared.state_dtype),
            "flags": from_dtype(self.declared.flags_dtype) if self.declared.flags else types.none,
            "rng": RNG,
            "mask": types.Array(types.uint8, 1, "C"),
            "obs": from_dtype(self.declared.observation_dtype),
            "rewards": self.rewards_type(),
            "counts": from_dtype(self.declared.counts_dtype)
            if self.declared.cls.counters
            else types.none,
            "seat": types.int64,
            "action": types.int64,
        }
        for rule, function in self.rules():
            names = arguments(function)
            try:
                self.jitted[function].compile(tuple(kinds[name] for name in names))
                check_answer(rule, function, self.jitted[function])
            except RulesError:
                raise
            except Exception as error:  # Numba raises many kinds
                raise explain(error, function) from None

    def rewards_type(self) -> Any:
        if len(self.declared.parts) > 1:
            return from_dtype(self.declared.rewards_dtype)
        return types.Array(types.float32, 1, "C")

    def write_source(self) -> str:
        """Write the wrappers to the file that Numba's cache belongs to; return their text."""
        text = "\n\n".join(self.wrapper(rule) for rule in RULES if self.has(rule))
        if not self.file.is_file():
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = self.file.with_suffix(f".{os.getpid()}")
            part.write_text(text)
            part.replace(self.file)
        return text

    def has(self, rule: str) -> bool:
        return bool(self.declared.bots) if rule == "bot" else rule in self.declared.functions

    def wrapper(self, rule: str) -> str:
        answer, lines = ANSWERS.get(rule, "{}"), []
        if rule == "bot":
            for i, bot in enumerate(self.declared.bots.values()):
                lines += [
                    f"if call.bot == {i}:",
                    f"    {answer.format(self.text(f'bot_{i}', bot))}",
                ]
        else:
            lines = [answer.format(self.text(rule, self.declared.functions[rule]))]
        return WRAPPER.format(rule=rule, body="\n".join(f"        {line}" for line in lines))

    def text(self, name: str, function: FunctionType) -> str:
        """Text of the call of a function."""
        single = len(self.declared.parts) == 1
        part = f".{next(iter(self.declared.parts))}" if single else ""
        given = [
            UNPACKED[word] + (part if word == "rewards" else "") for word in arguments(function)
        ]
        return f"{name}({', '.join(given)})"

    def wrap(self, text: str) -> dict[str, Any]:
        """Compile the wrappers. The text is run as it was made, never as a file has it."""
        declared = self.declared
        names: dict[str, Any] = {
            "carray": carray,
            "pointer_to": pointer_to,
            "rng_at": rng_at,
            "end_number": end_number,
            "ACTIONS": declared.actions,
            "MASK": np.dtype(np.uint8),
            "STATE": declared.state_dtype,
            "OBSERVATION": declared.observation_dtype,
            "REWARDS": declared.rewards_dtype,
            "FLAGS": declared.flags_dtype,
            "COUNTS": declared.counts_dtype,
            "__name__": f"sparring_rules_{self.key}",
            **{rule: self.jitted[f] for rule, f in declared.functions.items()},
            **{f"bot_{i}": self.jitted[f] for i, f in enumerate(declared.bots.values())},
        }
        linecache.cache[str(self.file)] = (len(text), None, text.splitlines(True), str(self.file))
        module = ModuleType(str(names["__name__"]))
        module.__dict__.update(names)
        sys.modules[module.__name__] = module  # where Numba finds it when it reads its cache
        names = module.__dict__
        exec(compile(text, str(self.file), "exec"), names)
        made: dict[str, Any] = {}
        for rule in RULES:
            if self.has(rule):
                function = names[f"call_{rule}"]
                try:
                    made[rule] = cfunc(SIGNATURE, cache=True, **OPTIONS)(function)
                except Exception as error:
                    of = declared.functions.get(rule) or next(iter(declared.bots.values()))
                    raise explain(error, of) from None
        return made


def linked_copies(
    functions: list[FunctionType], jit: Callable[[FunctionType], Any]
) -> dict[FunctionType, Any]:
    """Make functions that call each other compilable."""
    jitted: dict[FunctionType, Any] = {}
    tables: dict[FunctionType, dict[str, Any]] = {}
    for function in functions:
        tables[function] = dict(function.__globals__)
        copy = FunctionType(
            function.__code__, tables[function], function.__name__, function.__defaults__
        )
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        copy.__kwdefaults__ = function.__kwdefaults__
        jitted[function] = jit(copy)
    for function in functions:
        for name, value in function.__globals__.items():
            if isinstance(value, FunctionType) and value in jitted:
                tables[function][name] = jitted[value]
    return jitted


def arguments(function: FunctionType) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


RETURNS = {
    "step": (types.Integer | types.Boolean | types.NoneType, "0, or the number of an end"),
    "score": (types.Integer | types.Boolean | types.Float, "a number"),
    "bot": (types.Integer, "an action"),
    "valid": (types.Boolean | types.Integer, "True or False"),
}


def check_answer(rule: str, function: FunctionType, jitted: Any) -> None:
    """Refuse a function that returns something else than its rule has to."""
    if rule not in RETURNS:
        return
    kind = jitted.nopython_signatures[-1].return_type
    plain = kind.type if isinstance(kind, types.Optional) and rule == "step" else kind
    allowed, what = RETURNS[rule]
    if not isinstance(plain, allowed):
        shown = "nothing on some way" if isinstance(kind, types.Optional) else f"{kind}"
        if isinstance(kind, types.NoneType):
            shown = "nothing"
        file, line = Path(function.__code__.co_filename).name, function.__code__.co_firstlineno
        raise RulesError(f"{file}:{line}: {function.__name__} returns {shown}; it returns {what}")


def cache_folder() -> Path:
    """Folder of compiled rules."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sparring" / "python-games"
