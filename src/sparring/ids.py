"""Names of Gymnasium and PettingZoo environments, converted to factory names.

    CartPole-v1, gym:CartPole-v1          a Gymnasium id
    ale_py:ALE/Pong-v5                    an id that a package registers when it is imported
    pettingzoo.classic.connect_four_v3    a module of PettingZoo, or of the same form

Each becomes a factory name, module:name (gymnasium:CartPole-v1,
pettingzoo.classic.connect_four_v3:env), so that trust, saved settings and other processes treat it
as any other factory.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.errors import ConfigError, closest, suggestion

GYMNASIUM = "gymnasium:"
"""Module part of the factory name of a Gymnasium id."""
PREFIXES = (GYMNASIUM, "gym:")
ID = re.compile(r"(?:[\w.]+:)?(?:[\w-]+/)?[\w.-]+-v\d+")
"""Matches Gymnasium ids only: no Python name contains a dash."""
MODULE = re.compile(r"\w+(?:\.\w+)+")
PARALLEL_ENV, TURN_BASED_ENV = "parallel_env", "env"
"""Functions of a PettingZoo module that make an environment: all seats act at once, or in turns."""


def to_factory(word: str) -> str:
    """Convert an id or a module to a factory name without importing it; other words stay."""
    for prefix in PREFIXES:
        if word.startswith(prefix):
            return GYMNASIUM + word.removeprefix(prefix)
    if ID.fullmatch(word):
        return GYMNASIUM + word
    if MODULE.fullmatch(word) and not word.endswith(".py"):
        return f"{word}:{find_env_maker(word)}"
    return word


def trust_typed(word: str) -> str:
    """Convert an id or a module that the user typed to a factory name, and allow it to run."""
    factory = to_factory(word)
    if factory != word:
        trusted.allow(factory)
    return factory


def is_id(factory: str) -> bool:
    return factory.startswith(GYMNASIUM)


def display_name(factory: str) -> str:
    """Name of a factory for display: a Gymnasium id without the module part."""
    return factory.removeprefix(GYMNASIUM)


def find_env_maker(module: str) -> str:
    """Find the function of a PettingZoo-like module that makes its environments."""
    files = trusted.source_files(module)
    if not files:
        raise ConfigError(f"game {module!r}: {missing_module_reason(module)}")
    text = Path(files[-1]).read_text("utf-8", "replace")
    makers = (PARALLEL_ENV, TURN_BASED_ENV)
    maker = next((name for name in makers if re.search(rf"\b{name}\b", text)), "")
    if not maker:
        raise ConfigError(
            f"game {module!r} has neither {TURN_BASED_ENV} nor {PARALLEL_ENV}, which PettingZoo "
            f"modules have; name the function that makes its environments: {module}:NAME"
        )
    return maker


def missing_module_reason(module: str) -> str:
    parent, _, name = module.rpartition(".")
    package = module.partition(".")[0]
    if not trusted.source_files(package):
        extra = "; pip install 'sparring[pettingzoo]'" if package == "pettingzoo" else ""
        return f"no package called {package!r} is installed{extra}"
    parent_files = trusted.source_files(parent)
    siblings = [file.stem for file in parent_files[-1].parent.glob("*.py")] if parent_files else []
    close = closest(name, sorted(siblings))
    hint = f"; did you mean {parent}.{close}?" if close else ""
    return f"{parent if parent_files else package} has no module of that name{hint}"


def make_by_id(factory: str, what: str) -> Callable[..., Any]:
    """Return the function that makes environments of a Gymnasium id."""
    name = factory.removeprefix(GYMNASIUM)
    try:
        gymnasium = importlib.import_module("gymnasium")
    except ImportError:
        raise ConfigError(
            f"{what} {name!r} is an environment of Gymnasium, which is not installed; "
            "pip install 'sparring[gymnasium]'"
        ) from None
    if ":" not in name and name not in gymnasium.registry:
        check_registered(name, what, list(gymnasium.registry))
    return partial(gymnasium.make, name, disable_env_checker=True)


def check_registered(name: str, what: str, known: Sequence[str]) -> None:
    """Refuse an id that no package has registered, and suggest the closest one."""
    namespace, slash, _ = name.rpartition("/")
    namespaces = {one.rpartition("/")[0] for one in known}
    if slash and namespace not in namespaces:
        raise ConfigError(
            f"{what} {name!r}: no installed package registers {namespace}/; install the package "
            f"and put its module in front, as in ale_py:ALE/Pong-v5"
        )
    versions = [one for one in known if one.rpartition("-v")[0] == name]
    if versions:  # without a version Gymnasium takes the newest
        return
    close = suggestion(name, known)
    hint = close if "did you mean" in close else "; gymnasium.pprint_registry() lists them"
    raise ConfigError(f"{what} {name!r} is not a Gymnasium id{hint}")


def install_hint(module: str) -> str:
    """Say what to install when a PettingZoo module lacks a dependency; "" for other modules."""
    library, _, rest = module.partition(".")
    family = rest.partition(".")[0]
    return f"; pip install 'pettingzoo[{family}]'" if library == "pettingzoo" and family else ""


def suggest_env(word: str) -> str:
    """Suggest a library environment whose name resembles an unknown game; "" if none does."""
    package = trusted.source_files("pettingzoo")
    for file in package[-1].parent.glob(f"*/{word}.py") if package and word.isidentifier() else ():
        return f"; PettingZoo has pettingzoo.{file.parent.name}.{word}"
    if not trusted.source_files("gymnasium") or not word.replace("-", "").isalnum():
        return ""
    registry = importlib.import_module("gymnasium").registry
    versions = [one for one in registry if one.rpartition("-v")[0].lower() == word.lower()]
    return f"; Gymnasium has {versions[-1]}" if versions else ""
