"""The benchmark beside mctx: what its sides search, and what it makes of their times."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SMALL = {"device": "cpu", "batch": 4, "threads": 1, "simulations": 6, "hidden": [8]}
RATES = ("simulations_per_s", "network_rows_per_s", "free_per_s")


@pytest.fixture(scope="module")
def part() -> Iterator[Any]:
    """Imports a module of the benchmark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module


def served(part: Any, case: dict[str, Any], asked: list[str]) -> list[dict[str, Any]]:
    """Return what our side answers."""
    ours, cases = part("searches.ours"), part("searches.cases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ours", json.dumps(case)])
        patch.setattr(sys, "stdin", io.StringIO("\n".join(asked)))
        patch.setattr(sys, "stdout", said := io.StringIO())
        cases.serve(ours.OnCPU)
    return [json.loads(line) for line in said.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("game", "more"),
    [("tic_tac_toe", {}), ("connect_four", {}), ("shogi", {"channels": 4, "blocks": 1})],
)
def test_our_side_answers_every_work(part: Any, game: str, more: dict[str, int]) -> None:
    works = part("searches.cases").WORKS
    facts, *turns = served(part, {"game": game, **SMALL, **more}, [f"{work} 0" for work in works])
    assert len(turns) == len(works)
    assert all(turn["wall"] > 0 and turn["cpu"] >= 0 for turn in turns)
    assert 4 < facts["rows"] <= 4 * (6 + 1)  # ends of games are not evaluated
    assert facts["bytes_per_node"] > 0


def test_a_free_evaluator_is_large_enough_for_a_round(part: Any) -> None:
    """All candidates of all trees are evaluated together."""
    ours, cases = part("searches.ours"), part("searches.cases")
    side = ours.OnCPU(cases.Case("shogi", "cpu", 3, 1, simulations=16, channels=4, blocks=1))
    side.works["free"]()
    assert max(side.batches) == 3 * 16


def test_rates_shares_and_ratios_are_those_of_the_turns(part: Any) -> None:
    contest, case = part("searches.contest"), part("searches.cases").Case("shogi", "cpu", 8, 1)
    taken = {"search": [2.0, 4.0, 1.0], "network": [1.0, 1.0, 1.0], "free": [0.5, 0.5, 0.5]}
    ours = contest.figures_of(case, {"rows": 100}, taken)
    assert ours["simulations_per_s"]["rounds"] == [128, 64, 256]
    assert ours["network_rows_per_s"]["median"] == 100
    assert ours["free_per_s"]["median"] == 512
    assert ours["share"]["rounds"] == [0.5, 0.25, 1.0]
    slow = {work: [8.0, 8.0, 8.0] for work in taken}
    theirs = contest.figures_of(case, {"rows": 264}, slow)
    ratio = contest.compare({"sparring": ours, "mctx": theirs})
    assert ratio["simulations_per_s"] == {
        "median": 4.0,
        "min": 2.0,
        "max": 8.0,
        "rounds": [4.0, 2.0, 8.0],
    }


def test_a_side_that_ends_has_no_figures(
    part: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    contest, case = part("searches.contest"), part("searches.cases").Case("shogi", "cpu", 8, 1)
    monkeypatch.setitem(contest.MODULES, "mctx", "searches.no_such_module")
    terms = {"rounds": 1, "seconds": 0.0, "clock": "wall", "limit_s": 60.0}
    record = contest.contest(case, {"mctx": sys.executable}, **terms)
    assert "mctx" not in record
    assert "ratio" not in record
    assert "mctx stopped with code 1" in capsys.readouterr().err
    shown = part("searches.figures").cells({"cases": [record]})
    assert [row[0] for row in shown[1:]] == ["Shogi, 256-256, 8", "Shogi, free, 8"]
    assert not any("".join(row[1:]) for row in shown[1:])


@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four"])
def test_visits_are_those_of_a_search_with_the_table(part: Any, game: str) -> None:
    agreement, case = part("searches.agreement"), part("searches.cases").Case(game, "cpu", 2, 1)
    found = agreement.ours(case, [(), (0, 1, 2)])
    assert [sum(visits) for visits in found["visits"]] == [32, 32]
    assert all(visits[a] == max(visits) for visits, a in zip(*found.values(), strict=True))
    other = {"visits": [found["visits"][0], []], "actions": found["actions"]}
    assert agreement.compare(found, other) == {
        "positions": 2,
        "same_visits": 1,
        "same_actions": 2,
        "different": [1],
    }


def test_the_docs_show_what_is_stored(part: Any) -> None:
    pages, docs = part("pages"), ROOT / "docs/guides/search.md"
    records = pages.stored("search")
    for record in records:
        for case in record["cases"]:
            for name in RATES if "ratio" in case else ():
                pair = [case[side][name]["rounds"] for side in ("sparring", "mctx")]
                assert case["ratio"][name]["rounds"] == pytest.approx(np.divide(*pair), rel=0.01)
    figures: ModuleType = part("searches.figures")
    shown = pages.with_table(docs, "search figures", figures.docs_figures(records))
    assert docs.read_text() == shown, (
        "run: python benchmarks/search_peers.py --stored --update-docs"
    )
