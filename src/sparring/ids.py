"""Environments of libraries by the names that people know them by.

    CartPole-v1, gym:CartPole-v1          a Gymnasium id
    ale_py:ALE/Pong-v5                    the same, of a package that registers it when imported
    pettingzoo.classic.connect_four_v3    a module of PettingZoo's, or of that form

Each is written as a factory, module:name, so that it is trusted, remembered and found by other
processes as any other: gymnasium:CartPole-v1, pettingzoo.classic.connect_four_v3:env.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.errors import ConfigError, closest, nearest

GYMNASIUM = "gymnasium:"
"""In front of an id."""
PREFIXES = (GYMNASIUM, "gym:")
ID = re.compile(r"(?:[\w.]+:)?(?:[\w-]+/)?[\w.-]+-v\d+")
"""What only an id can be: no name of Python's has a dash in it."""
MODULE = re.compile(r"\w+(?:\.\w+)+")
TOGETHER, TURNS = "parallel_env", "env"
"""What modules of PettingZoo's are called by: all seats act at once, or in turns."""


def canonical(word: str) -> str:
    """Return an id or a module as a factory; any other word stays as it is. Nothing is imported."""
    for prefix in PREFIXES:
        if word.startswith(prefix):
            return GYMNASIUM + word.removeprefix(prefix)
    if ID.fullmatch(word):
        return GYMNASIUM + word
    if MODULE.fullmatch(word) and not word.endswith(".py"):
        return f"{word}:{maker_in(word)}"
    return word


def named(word: str) -> str:
    """Return an id or a module as a factory that may run, because the person named it."""
    factory = canonical(word)
    if factory != word:
        trusted.name(factory)
    return factory


def is_id(factory: str) -> bool:
    return factory.startswith(GYMNASIUM)


def shown(factory: str) -> str:
    """Return a factory as people call it: an id without the library in front."""
    return factory.removeprefix(GYMNASIUM)


def maker_in(module: str) -> str:
    """Return what a module calls the function that makes its environments."""
    files = trusted.sources_of(module)
    if not files:
        raise ConfigError(f"game {module!r}: {why_no_module(module)}")
    text = Path(files[-1]).read_text("utf-8", "replace")
    maker = next((name for name in (TOGETHER, TURNS) if re.search(rf"\b{name}\b", text)), "")
    if not maker:
        raise ConfigError(
            f"game {module!r} has neither {TURNS} nor {TOGETHER}, as PettingZoo's modules have; "
            f"name what makes its environments: {module}:NAME"
        )
    return maker


def why_no_module(module: str) -> str:
    """Say what to do about a module that is not there."""
    parent, _, name = module.rpartition(".")
    package = module.partition(".")[0]
    if not trusted.sources_of(package):
        extra = "; pip install 'sparring[pettingzoo]'" if package == "pettingzoo" else ""
        return f"no package called {package!r} is installed{extra}"
    around = trusted.sources_of(parent)
    there = [file.stem for file in around[-1].parent.glob("*.py")] if around else []
    close = closest(name, sorted(there))
    hint = f"; did you mean {parent}.{close}?" if close else ""
    return f"{parent if around else package} has no module of that name{hint}"


def made_by_id(factory: str, what: str) -> Callable[..., Any]:
    """Return what makes environments of a Gymnasium id, which has been named."""
    name = factory.removeprefix(GYMNASIUM)
    try:
        gymnasium = importlib.import_module("gymnasium")
    except ImportError:
        raise ConfigError(
            f"{what} {name!r} is an environment of Gymnasium, which is not installed; "
            "pip install 'sparring[gymnasium]'"
        ) from None
    if ":" not in name and name not in gymnasium.registry:
        check_known(name, what, list(gymnasium.registry))
    return partial(gymnasium.make, name, disable_env_checker=True)


def check_known(name: str, what: str, known: Sequence[str]) -> None:
    """Refuse an id that nobody has registered, with the nearest one."""
    space, slash, _ = name.rpartition("/")
    spaces = {one.rpartition("/")[0] for one in known}
    if slash and space not in spaces:
        raise ConfigError(
            f"{what} {name!r}: no package has registered {space}/; install the one that has, and "
            f"name its module in front, as in ale_py:ALE/Pong-v5"
        )
    newest = [one for one in known if one.rpartition("-v")[0] == name]
    if newest:  # without a version Gymnasium takes the newest one
        return
    close = nearest(name, known)
    hint = close if "did you mean" in close else "; gymnasium.pprint_registry() lists them"
    raise ConfigError(f"{what} {name!r} is no id of Gymnasium{hint}")


def missing(module: str) -> str:
    """Say what to install for a module of PettingZoo's that another package is missing for."""
    library, _, rest = module.partition(".")
    family = rest.partition(".")[0]
    return f"; pip install 'pettingzoo[{family}]'" if library == "pettingzoo" and family else ""


def like(word: str) -> str:
    """Say which environment of a library a word may mean that is no game, "" if none."""
    package = trusted.sources_of("pettingzoo")
    for file in package[-1].parent.glob(f"*/{word}.py") if package and word.isidentifier() else ():
        return f"; PettingZoo has pettingzoo.{file.parent.name}.{word}"
    if not trusted.sources_of("gymnasium") or not word.replace("-", "").isalnum():
        return ""
    registry = importlib.import_module("gymnasium").registry
    versions = [one for one in registry if one.rpartition("-v")[0].lower() == word.lower()]
    return f"; Gymnasium has {versions[-1]}" if versions else ""
