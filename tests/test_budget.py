"""Packages keep to the lines of Python that pyproject.toml gives them: features pay for room."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sparring"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["sparring"]
BUDGET: dict[str, int] = SETTINGS["max-lines"]
SLACK = 0.02
"""Who saves more than that lowers the budget, so that the room is not taken by the next change."""


def lines_in(place: Path) -> int:
    """Lines of all Python files of a package, or of one file."""
    files = place.rglob("*.py") if place.is_dir() else [place]
    return sum(len(file.read_text().splitlines()) for file in files)


def lines_of(name: str) -> int:
    if name == "benchmarks":
        return lines_in(ROOT / "benchmarks")
    if name == "root":
        return sum(lines_in(file) for file in SOURCE.glob("*.py"))
    return lines_in(SOURCE / name)


def test_every_package_has_a_budget() -> None:
    packages = {folder.name for folder in SOURCE.iterdir() if any(folder.rglob("*.py"))}
    assert set(BUDGET) == packages | {"root", "benchmarks"}


@pytest.mark.parametrize("name", BUDGET)
def test_a_package_keeps_to_its_budget(name: str) -> None:
    found, most = lines_of(name), BUDGET[name]
    assert found <= most, (
        f"{name} has {found:,} lines, its budget is {most:,}: make room, or raise the number in "
        "pyproject.toml and say in the commit what it buys"
    )
    assert found >= (1 - SLACK) * most - 20, (
        f"{name} has only {found:,} lines: lower its budget of {most:,} in pyproject.toml"
    )
