"""The course in examples: every file runs as its first lines say, and shows what it promises."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparring

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
COURSE = sorted(EXAMPLES.glob("[0-9][0-9]_*.py"))
NOTEBOOK = EXAMPLES / "first_agent.ipynb"
PUBLIC = {"sparring", "sparring.cli", "sparring.proof.exploitability"}
"""What a reader of the course has to know of the package; the latter two for one file each."""
QUICK = {
    "01_first_agent": "--updates 4 --games 64",
    "02_your_environment": "--decisions 3000 --days 3",
    "03_your_game": "--decisions 4096 --games 8",
    "04_your_network": "--updates 1 --games 32",
    "05_your_algorithm": "--updates 2 --games 32",
    "06_exploitability": "--updates 4 --points 4",
    "07_recorded_games": "--recorded 12 --epochs 1 --games 32",
    "08_search": "--updates 1 --simulations 16 --games 8",
    "09_browser": "--updates 2 --games 32",
    "10_ppo_on_one_page": "--updates 1 --points 1 --games 16",
}
"""Arguments with which a file takes seconds."""


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(name)


def run(name: str, words: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    """Run a file in an empty folder as the command line does; return what its `main` returns."""
    monkeypatch.chdir(folder)
    main: Callable[..., Any] = load(name, monkeypatch).main
    return main(words.split())


def test_the_course_has_ten_files_in_order() -> None:
    assert [path.name[:3] for path in COURSE] == [f"{number:02}_" for number in range(1, 11)]
    assert [path.stem for path in COURSE] == sorted(QUICK)


@pytest.mark.parametrize("name", QUICK)
def test_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    run(name, QUICK[name], monkeypatch, tmp_path)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_says_how_to_run_it_how_long_it_takes_and_what_it_prints(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert said.startswith(f"{int(path.name[:2])}. ")
    assert f"python examples/{path.name}" in said
    assert re.search(r"\d+ s(econds)? of processor time", said), "measured, on two cores"


@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_needs_public_names_alone(path: Path) -> None:
    tree = ast.parse(path.read_text())
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found |= {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    assert {name for name in found if str(name).startswith("sparring")} <= PUBLIC
    assert len(path.read_text().splitlines()) <= 315


def test_the_table_has_every_file_in_order() -> None:
    table = (EXAMPLES / "README.md").read_text()
    assert re.findall(r"^\| \[\d+\]\((\d\d_\w+\.py)\)", table, re.M) == [p.name for p in COURSE]
    for target in re.findall(r"\]\(([^)#:]+)\)", table):
        assert (EXAMPLES / target).exists(), target


def test_without_games_for_browsers_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    from sparring.web import description

    monkeypatch.setattr(description, "MODULES", tmp_path)
    assert run("09_browser", QUICK["09_browser"], monkeypatch, tmp_path) is None
    said = capsys.readouterr()
    assert "make web" in said.err and "sparring play latest" in said.out


# The notebook


def cells() -> list[dict[str, Any]]:
    content = json.loads(NOTEBOOK.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    return list(content["cells"])


def test_the_notebook_runs_cell_by_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    pictures = 0
    for cell in (cell for cell in cells() if cell["cell_type"] == "code"):
        *before, last = ast.parse("".join(cell["source"])).body
        shown = None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(before, []), "<cell>", "exec"), names)
                shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            else:
                exec(compile(ast.Module([*before, last], []), "<cell>", "exec"), names)
        assert bool(printed.getvalue()) == any(o["name"] == "stdout" for o in streams(cell))
        if hasattr(shown, "_repr_svg_"):
            pictures += "<svg" in shown._repr_svg_()
    assert pictures == 1


def streams(cell: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for output in cell["outputs"] if output["output_type"] == "stream"]


def test_the_notebook_is_whole_and_says_nothing_of_a_machine() -> None:
    ids = [cell["id"] for cell in cells()]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[\w-]{1,64}", name) for name in ids)
    ran = [cell for cell in cells() if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in ran] == list(range(1, len(ran) + 1))
    outputs = [output for cell in ran for output in cell["outputs"]]
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)
    assert not re.search(r"/(home|root|work|tmp|Users)/", NOTEBOOK.read_text())
    assert NOTEBOOK.stat().st_size < 40_000


# What files claim, at full length


@pytest.mark.slow
def test_the_first_agent_beats_random_play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shares = run("01_first_agent", "", monkeypatch, tmp_path)
    assert shares["random"] > 0.9 and shares["careful"] > 0.5


@pytest.mark.slow
def test_the_lift_learns_more_than_the_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    means = run("02_your_environment", "", monkeypatch, tmp_path)
    assert means["random"] < means["by the book"] < means["trained"]


@pytest.mark.slow
def test_nim_is_learned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    share, right = run("03_your_game", "", monkeypatch, tmp_path)
    assert share > 0.85 and right > 0.7


@pytest.mark.slow
def test_reinforce_learns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scores = run("05_your_algorithm", "", monkeypatch, tmp_path)
    assert scores[-1] > scores[0] + 0.2


@pytest.mark.slow
def test_small_steps_are_less_exploitable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run("06_exploitability", "", monkeypatch, tmp_path)
    assert found["magnet"][-2] < 0.5 * found["self-play"][-2]
    assert found["self-play"][-1] < found["self-play"][-2]


@pytest.mark.slow
def test_the_clone_plays_better_than_self_play_of_ten_times_as_much(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shares = run("07_recorded_games", "", monkeypatch, tmp_path)
    assert shares["clone"] > shares["self-play"]


@pytest.mark.slow
def test_search_makes_the_agent_stronger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shares = run("08_search", "", monkeypatch, tmp_path)
    assert shares["searching"] > shares["network alone"] + 0.1


# The citation


def test_the_citation_is_of_this_version() -> None:
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0"
    assert str(cited["version"]) == sparring.__version__
    assert (cited["title"], cited["license"], cited["type"]) == ("sparring", "MIT", "software")
    assert cited["message"] and cited["authors"] == [{"name": "The sparring developers"}]
    assert not {"doi", "url", "identifiers", "repository-code"} & set(cited)
