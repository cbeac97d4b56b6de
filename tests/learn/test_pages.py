"""An algorithm is one page: short, without a class tree, and an update stays within few files."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import sparring
import sparring.learn
from sparring.cluster.actors.learner import DistributedLearner
from sparring.cluster.replicas.learner import ReplicatedPPO
from sparring.cluster.wrapper import LearnerWrapper
from sparring.config import TrainConfig
from sparring.learn.algos import factory_of
from sparring.learn.ppo import PPO
from sparring.training.planning.settings import merged
from sparring.training.planning.training import plan_training

ROOT = Path(sparring.__file__).resolve().parent
PAGES = {
    "ppo": "PPO",
    "dqn": "DQN",
    "pqn": "PQN",
    "qrdqn": "QRDQN",
    "sac": "SAC",
    "td3": "TD3",
    "gumbel": "Gumbel",
    "imitation": "BehaviorCloning",
}
"""Files of `learn`, and the class that each is about."""
MAX_LINES = 350
MAX_FILES = 12
"""Of the package, that an update of PPO enters on a CPU."""
DEEPEST = 1
SMALL = {
    "game": "tic_tac_toe",
    "device": "cpu",
    "threads": 1,
    "updates": 10,
    "net": {"hidden": (16, 16)},
    "collect": {"games": 16, "steps": 16, "cpu": "float32"},
    "ppo": {"epochs": 2, "minibatch": 64},
}


def classes() -> Iterator[type]:
    """Those that modules of `learn` define."""
    for found in pkgutil.walk_packages(sparring.learn.__path__, "sparring.learn."):
        module = importlib.import_module(found.name)
        for _, one in inspect.getmembers(module, inspect.isclass):
            if one.__module__ == found.name and not issubclass(one, BaseException):
                yield one


def bases(one: type) -> list[type]:
    """What a class inherits code from: protocols and the standard library's forms are no classes
    that somebody has to read.
    """
    forms = {"builtins", "typing", "abc", "enum", "collections", "dataclasses"}
    return [
        base
        for base in one.__bases__
        if base.__module__ not in forms and not getattr(base, "_is_protocol", False)
    ]


def depth(one: type) -> int:
    """Classes above one of ours; above one of somebody else's nobody looks."""
    if not one.__module__.startswith("sparring"):
        return 0
    return max((1 + depth(base) for base in bases(one)), default=0)


@pytest.mark.parametrize("page", PAGES)
def test_an_algorithm_is_a_page_without_a_base_class(page: str) -> None:
    file = ROOT / "learn" / f"{page}.py"
    text = file.read_text()
    assert len(text.splitlines()) < MAX_LINES
    defined = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    learner = getattr(importlib.import_module(f"sparring.learn.{page}"), PAGES[page])
    assert PAGES[page] in defined
    assert bases(learner) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_learns_from_no_other_page(page: str) -> None:
    tree = ast.parse((ROOT / "learn" / f"{page}.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    others = {f"sparring.learn.{other}" for other in PAGES if other != page}
    assert not modules & others


def test_no_class_of_a_learner_has_a_grandparent() -> None:
    deep = {f"{one.__module__}.{one.__qualname__}": depth(one) for one in classes()}
    assert len(deep) > 50
    assert {name: found for name, found in deep.items() if found > DEEPEST} == {}


def test_learners_of_several_processes_own_the_algorithm() -> None:
    assert bases(DistributedLearner) == bases(ReplicatedPPO) == [LearnerWrapper]
    assert not issubclass(LearnerWrapper, PPO)


def entered(learner: Any) -> list[str]:
    """Files of the package that an update enters."""
    found: set[str] = set()

    def see(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        learner.iterate(0.5)
    finally:
        sys.setprofile(before)
    files = (Path(name).resolve() for name in found)
    return sorted(str(file.relative_to(ROOT)) for file in files if file.is_relative_to(ROOT))


def test_an_update_of_ppo_stays_within_few_files() -> None:
    config: TrainConfig = merged(TrainConfig(), SMALL, "test")
    learner = factory_of("ppo")(plan_training([config]).learning)
    for number in range(3):
        reports = learner.iterate(number / 10)
    assert reports[0].stats["learning/native"] == 1
    files = entered(learner)
    assert "learn/ppo.py" in files and "learn/collect.py" in files
    assert len(files) <= MAX_FILES, files
