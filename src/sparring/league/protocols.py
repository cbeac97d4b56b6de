"""Published ways to measure a game, found by name: NAME_challenge.py in this folder."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

from sparring import league


def protocols() -> dict[str, ModuleType]:
    """Return the modules that play them, by the `GAME` that each names."""
    names = [found.name for found in pkgutil.iter_modules(league.__path__)]
    found = [import_module(f"{league.__name__}.{n}") for n in names if n.endswith("_challenge")]
    return {module.GAME: module for module in found}
