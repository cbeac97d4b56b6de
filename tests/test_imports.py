"""Imports run one way: no circles of files, and no package knows one that lies above it.

Every import counts, wherever it stands: at the top of a file, under TYPE_CHECKING and inside
functions. So does a module that is named in a string, as `import_module` takes it. The order of the
packages is written in pyproject.toml, for the linter, which sees neither strings nor circles.
The package root stands above everything: it lists names by their homes and loads none of them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = "sparring"
NAMED = re.compile(rf"{PACKAGE}(\.\w+)+")
START = f"{PACKAGE}.__main__"
"""What `python -m sparring` runs."""
ASKED_OF_ROOT = {
    f"{PACKAGE}.{name}" for name in ("_native", "__file__", "__version__", "PLACED_LEARNERS")
}
"""What the root has for everybody, besides modules."""

NAMED_ABOVE = {}
"""Packages above whose modules a string names, with the reason. The list may only shrink."""

Arrows = Mapping[str, set[str]]


def module_of(file: Path) -> str:
    """The name that a file is imported by."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    module_of(file): file
    for file in sorted((SOURCE / PACKAGE).rglob("*.py"))
    if "template" not in file.parts
}
"""All but those that `sparring new-game` copies: they are its user's."""


@dataclass
class Seen:
    """What a file knows of others."""

    imports: set[str] = field(default_factory=set)
    """Modules of the package that it imports, in whatever scope."""
    names: set[str] = field(default_factory=set)
    """Those that its strings name: "a.b", "a.b:c", or f"a.b.{c}"."""
    asked: set[str] = field(default_factory=set)
    """What it takes from the root that is no module."""

    @classmethod
    def of(cls, text: str) -> Seen:
        """Look at a file, or a part of one."""
        seen = cls()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                seen.imports |= {alias.name for alias in node.names if alias.name in FILES}
            elif isinstance(node, ast.ImportFrom) and node.module in FILES:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                seen.imports |= {name if name in FILES else node.module for name in full}
                if node.module == PACKAGE:
                    seen.asked |= full - {*FILES}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == PACKAGE:
                    seen.asked |= {f"{PACKAGE}.{node.attr}"} - {*FILES}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                home = node.value.partition(":")[0].removesuffix(".")
                if NAMED.fullmatch(home) and home in FILES:
                    seen.names.add(home)
        seen.imports.discard(PACKAGE)
        return seen


@cache
def files() -> dict[str, Seen]:
    """All files below the root."""
    return {name: Seen.of(file.read_text()) for name, file in FILES.items() if name != PACKAGE}


def imports() -> Arrows:
    """Who imports whom."""
    return {name: seen.imports - {name} for name, seen in files().items()}


def circles(arrows: Arrows) -> list[list[str]]:
    """Everything that leads back to itself: strongly connected components, by Tarjan."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        waiting.append(name)
        for other in sorted(arrows.get(name, ())):
            if other not in number:
                visit(other)
            if other in waiting:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            at = waiting.index(name)
            if len(waiting) - at > 1:
                found.append(sorted(waiting[at:]))
            del waiting[at:]

    for name in arrows:
        if name not in number:
            visit(name)
    return found


def within(folder: str, arrows: Arrows) -> Arrows:
    """Who imports whom of a folder's files and subfolders, each of which counts as one."""
    inside = folder + "."

    def part_of(module: str) -> str:
        return inside + module.removeprefix(inside).partition(".")[0]

    found: dict[str, set[str]] = {}
    for name, others in arrows.items():
        if name.startswith(inside):
            near = {part_of(other) for other in others if other.startswith(inside)}
            found.setdefault(part_of(name), set()).update(near - {part_of(name)})
    return found


def unit(module: str) -> str:
    """The package or root module that a module belongs to."""
    return module.split(".")[1]


def layers() -> dict[str, int]:
    """The place of every package and root module in the order of imports; 0 is at the top."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (order,) = (one for one in linter["contracts"] if one["name"] == "imports run one way")
    return {
        unit(name.strip()): depth
        for depth, layer in enumerate(order["layers"])
        for name in layer.split("|")
    }


def running_up(arrows: Arrows, place: Mapping[str, int]) -> list[tuple[str, str]]:
    """Arrows between packages that do not lead down."""
    pairs = ((name, other) for name, others in arrows.items() for other in others if name != START)
    return sorted(
        (name, other)
        for name, other in pairs
        if unit(name) != unit(other) and place[unit(name)] >= place[unit(other)]
    )


def test_an_import_counts_wherever_it_stands() -> None:
    text = """
def late():
    from sparring.games import rules
if TYPE_CHECKING:
    import sparring.pools
    from sparring import train
load("sparring.games.rules:Rules", f"sparring.games.{name}", "sparring.train")
"""
    seen = Seen.of(text)
    assert seen.imports == {"sparring.games.rules", "sparring.pools"}
    assert seen.names == {"sparring.games.rules", "sparring.games"}
    assert seen.asked == {"sparring.train"}


def test_a_circle_is_found_and_what_leads_into_it_is_none() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}) == [["b", "c", "d"]]


def test_no_circle_of_files() -> None:
    assert circles(imports()) == []


def test_no_circle_of_a_folder_with_its_neighbors() -> None:
    folders = [name for name, file in FILES.items() if file.name == "__init__.py"]
    assert [found for folder in folders for found in circles(within(folder, imports()))] == []


def test_every_package_has_its_place_in_the_order() -> None:
    assert {unit(name) for name in files() if name != START} == {*layers()}


def test_no_import_runs_up() -> None:
    assert running_up(imports(), layers()) == []


def test_no_name_runs_up() -> None:
    names = {name: seen.names for name, seen in files().items()}
    up = {(unit(name), unit(other)) for name, other in running_up(names, layers())}
    assert up == {*NAMED_ABOVE}


def test_nobody_asks_the_root_for_what_a_package_owns() -> None:
    asked = {name: seen.asked - ASKED_OF_ROOT for name, seen in files().items()}
    assert {name: found for name, found in asked.items() if found} == {}


def test_the_tree_in_the_docs_is_in_the_order_of_imports() -> None:
    text = (ROOT / "docs/inside/design.md").read_text()
    tree = text.partition("src/sparring/\n")[2].partition("\ntests/")[0]
    shown = re.findall(r"^  (\w+)(?:/|\.py) ", tree, re.MULTILINE)
    assert sorted(shown) == sorted(layers())
    assert running_up(imports(), {name: place for place, name in enumerate(shown)}) == []
