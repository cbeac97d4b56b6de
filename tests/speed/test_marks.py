"""Verdicts look for our own code by file and function: what they look for has to be there."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import sparring
from sparring.speed.evidence import DOES
from sparring.speed.functions import LOOP
from sparring.speed.verdicts.places import MARKS, ROOTS, WORKER

SOURCE = Path(sparring.__file__).parent


@cache
def functions_in(path: Path) -> frozenset[str]:
    """Names of functions in a file, those of methods with and without their class."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            found |= {f"{node.name}.{name}" for name in inner}
    return frozenset(found)


def files_of(start: str) -> list[Path]:
    """The files whose path in the package begins so."""
    return [
        path
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).as_posix().startswith(start)
    ]


@pytest.mark.parametrize(("start", "names", "place"), MARKS)
def test_what_a_stack_is_told_by_is_there(start: str, names: frozenset[str], place: str) -> None:
    """Otherwise code that moved would be 'elsewhere', and a verdict would be missing."""
    files = files_of(start)
    assert files, f"{place}: no file of ours begins with {start}"
    there = frozenset().union(*map(functions_in, files))
    assert names <= there, f"{place}: {start} has no function {sorted(names - there)}"


@pytest.mark.parametrize("start", [*ROOTS, WORKER])
def test_the_files_of_every_training_are_there(start: str) -> None:
    assert files_of(start)


def test_the_function_that_trains_is_there() -> None:
    name, place = LOOP
    assert name in functions_in(SOURCE.parent / place)


@pytest.mark.parametrize("module", DOES)
def test_processes_of_a_training_are_modules_of_ours(module: str) -> None:
    assert find_spec(module) is not None
