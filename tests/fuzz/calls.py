"""Calls native code with odd arguments, in a process of its own: it may crash or hang.

Run as `python -m fuzz.calls SEED FIRST COUNT SECONDS STATUS [EXTENSION]`. STATUS is a file that
always holds the call under way, EXTENSION another build of `_native`. The last line that is printed
says what came of the calls, as JSON.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

MAX_TOLD = 2000
PUBLIC = 0.35
"""The share of calls of public classes."""
READ_AGAIN = 0.8
"""How often something else is called instead of what takes no arguments."""
NANOBIND = ("incompatible function arguments", "Unable to convert function return value")
"""A page of nanobind's about kinds of arguments; the private bindings may answer with it."""


def load_extension(path: str) -> None:
    """Take another build of the native core than the one that is installed."""
    spec = importlib.util.spec_from_file_location("sparring._native", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sparring._native"] = module
    spec.loader.exec_module(module)


def spoil(lots: Any, call: Any, others: list[Any]) -> list[Any]:
    """Return the arguments of a call with one of them odd, sometimes none, two, or one missing."""
    from fuzz.odd import odd

    given = list(call.arguments)
    spoiled = int(lots.choice([0, 1, 2], p=[0.1, 0.75, 0.15]))
    for at in lots.permutation(len(given))[:spoiled]:
        given[at] = odd(lots, given[at], others)
        if call.most is not None and isinstance(given[at], int) and given[at] > call.most:
            given[at] = call.most
    if lots.random() < 0.03:
        given = [*given, None] if lots.random() < 0.5 else given[:-1]
    return given


def fault_of(error: Exception, *, public: bool) -> str | None:
    """Say what is not clean about an answer; None if nothing is."""
    from sparring.errors import SparringError

    text = str(error)
    if not isinstance(error, SparringError | TypeError | ValueError | IndexError):
        return f"{type(error).__name__}: {text[:200]}"
    page = any(words in text for words in NANOBIND)
    if ("\n" in text or page) and (public or not page):
        return f"{type(error).__name__} of several lines: {text[:200]}"
    return None


def main(seed: int, first: int, count: int, seconds: float, status: Path) -> None:
    """Make the calls."""
    from fuzz.native_calls import Workshop, bindings
    from fuzz.public_calls import PublicWorkshop, methods

    warnings.simplefilter("ignore")
    names = {False: list(bindings()), True: list(methods())}
    shops = {
        False: Workshop(np.random.default_rng(seed)),
        True: PublicWorkshop(np.random.default_rng(seed)),
    }
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    with status.open("w", buffering=1) as told:
        for number in range(first, first + count):
            lots = np.random.default_rng([seed, number])
            public = bool(lots.random() < PUBLIC)
            shop: Any = shops[public]
            shop.lots = lots
            faulthandler.dump_traceback_later(seconds, exit=True)
            call = None
            while call is None or (not call.arguments and lots.random() < READ_AGAIN):
                name = names[public][int(lots.integers(len(names[public])))]
                tell(told, f"{number} {name}: making it")
                call = shop.make(name)
            given = spoil(lots, call, shop.others())
            text = f"{number} {name}({', '.join(brief(one) for one in given)})"
            tell(told, text)
            try:
                call.function(*given)
                outcomes["answered"] += 1
            except Exception as error:
                fault = fault_of(error, public=public)
                outcomes["fault" if fault else "refused"] += 1
                if fault:
                    faults.append(f"{text[:300]} -> {fault}")
            finally:
                faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"outcomes": outcomes, "faults": faults}))


def tell(told: Any, text: str) -> None:
    """Write the call under way over the one before."""
    told.seek(0)
    told.write(text[:MAX_TOLD].ljust(MAX_TOLD) + "\n")


def brief(value: Any) -> str:
    """Return a value on a line."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    try:
        return " ".join(repr(value)[:80].split())
    except ValueError:
        return "a long number"


if __name__ == "__main__":
    faulthandler.enable()
    if len(sys.argv) > 6:
        load_extension(sys.argv[6])
    main(
        int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5])
    )
