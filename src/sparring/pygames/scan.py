"""What functions of rules may use: their arguments, constants, helpers, `math` and `numpy`.

Rules are functions of the state and of `rng`. Whatever else they read could differ between two
calls, or between the interpreter and compiled code, which takes constants as they are when it is
compiled. So this is refused when a game is loaded.
"""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import hashlib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from sparring.errors import RulesError

DRAW = "draw from rng: rng.below(n), rng.uniform()"
MODULES = {
    "random": f"it draws differently every time; {DRAW}",
    "secrets": f"it draws differently every time; {DRAW}",
    "time": "it is another one in every game; count steps in the state",
    "datetime": "it is another one in every game; count steps in the state",
}
"""Modules that rules must not use, and what to do instead."""
NUMPY_ATTRIBUTES = {"random": DRAW}
BUILTINS = {
    "open": "rules read no files; read the file in front of the class, into a constant",
    "input": "rules ask nobody",
    "globals": "rules have no global state; declare a field of the state",
    "id": "addresses differ from game to game",
    "hash": "hashes differ from program to program",
}


def check_functions(functions: Iterable[FunctionType]) -> tuple[FunctionType, ...]:
    """Check functions and all helpers that they call; return the helpers, each once."""
    seen: dict[FunctionType, None] = {}
    waiting = list(functions)
    given = set(waiting)
    while waiting:
        function = waiting.pop()
        for helper in check_function(function):
            if helper not in seen and helper not in given:
                seen[helper] = None
                waiting.append(helper)
    return tuple(seen)


def check_function(function: FunctionType) -> list[FunctionType]:
    """Check one function; return the helpers that it names."""
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise refused(function, function.__code__.co_firstlineno, f"uses {names} of a function")
    return [
        found
        for line, name, attribute in global_names(function.__code__)
        if isinstance(found := check_name(function, line, name, attribute), FunctionType)
    ]


def check_name(function: FunctionType, line: int, name: str, attribute: str) -> Any:
    """Check a global name that a function reads; return its value."""
    if name not in function.__globals__:
        if name in BUILTINS:
            raise refused(function, line, f"uses {name}(): {BUILTINS[name]}")
        if not hasattr(builtins, name):
            raise refused(function, line, f"{name!r} is not defined")
        return None
    value = function.__globals__[name]
    if isinstance(value, ModuleType):
        check_module(function, line, value, attribute)
    elif isinstance(value, FunctionType):
        if (value.__module__ or "").partition(".")[0] in MODULES:
            check_module(function, line, inspect.getmodule(value), attribute)
    elif isinstance(value, np.ndarray):
        value.flags.writeable = False  # compiled code has a copy: nobody may change it any more
    elif getattr(type(value), "__module__", "") == "random" or (
        getattr(getattr(value, "__self__", None), "__module__", "") == "random"
    ):
        raise refused(function, line, f"uses random.{name}: {MODULES['random']}")
    elif not is_constant(value):
        raise refused(
            function,
            line,
            f"uses the global {name}, a {type(value).__name__}: it would last from game to game; "
            "declare a field of the state, or make it a tuple or an array if it never changes",
        )
    return value


def check_module(function: FunctionType, line: int, module: Any, attribute: str) -> None:
    name = module.__name__
    if name in MODULES:
        raise refused(function, line, f"uses {name}: {MODULES[name]}")
    if name == "numpy":
        if attribute in NUMPY_ATTRIBUTES:
            raise refused(function, line, f"uses numpy.{attribute}: {NUMPY_ATTRIBUTES[attribute]}")
    elif name == "numpy.random":
        raise refused(function, line, f"uses numpy.random: {DRAW}")
    elif name != "math":
        raise refused(
            function,
            line,
            f"uses the module {name}; rules know math and numpy, and functions that are imported "
            f"by name: from {name} import ...",
        )


def is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(is_constant, value))
    if isinstance(value, type):
        return issubclass(value, enum.IntEnum) or value.__module__ in ("builtins", "numpy")
    plain = (bool, int, float, str, np.generic, type(None))
    return isinstance(value, plain) or type(value).__name__ == "ufunc" or callable_of_math(value)


def callable_of_math(value: Any) -> bool:
    return callable(value) and getattr(value, "__module__", "") in ("math", "numpy", "builtins")


def global_names(code: CodeType) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and the attribute taken of it, for every global that code reads."""
    line = code.co_firstlineno
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    for at, step in enumerate(steps):
        line = step.positions.lineno or line if step.positions else line
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise RulesError(
                f"{Path(code.co_filename).name}:{line}: {code.co_name} changes the global "
                f"{step.argval}: it would last from game to game; declare a field of the state"
            )
        if step.opname == "IMPORT_NAME":
            raise RulesError(
                f"{Path(code.co_filename).name}:{line}: {code.co_name} imports {step.argval}: "
                "import in front of the class"
            )
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            after = steps[at + 1] if at + 1 < len(steps) else step
            taken = after.argval if after.opname in ("LOAD_ATTR", "LOAD_METHOD") else ""
            yield line, step.argval, taken
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from global_names(constant)


def refused(function: FunctionType, line: int, text: str) -> RulesError:
    file = Path(function.__code__.co_filename).name
    return RulesError(f"{file}:{line}: {function.__name__} {text}")


def source_hash(functions: Iterable[FunctionType], more: object) -> bytes:
    """Hash of what functions do: their text without comments, and the constants they read."""
    total = hashlib.sha256(repr(more).encode())
    for function in functions:
        total.update(source_text(function).encode())
        for _, name, _ in global_names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, np.ndarray):
                total.update(repr((name, value.dtype.str, value.shape)).encode() + value.tobytes())
            elif is_constant(value) and not callable(value):
                total.update(repr((name, value)).encode())
    return total.digest()


def source_text(function: FunctionType) -> str:
    with suppress(OSError, TypeError, SyntaxError):
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and len(node.body) > 1:
                del node.body[0]
        return ast.dump(tree)
    return repr((function.__code__.co_code, function.__code__.co_names))
