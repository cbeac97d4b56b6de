"""Runs in a browser: listed, watched while they train, compared, stopped and resumed by clicks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparring.cli import main
from sparring.training.records import metrics
from sparring.training.records.overview import Overview

QUICK = [
    *("--updates", "40", "--threads", "1", "--device", "cpu", "--no-tensorboard"),
    *("--net.hidden", "16", "--collect.games", "64", "--collect.steps", "16"),
    *("--ppo.minibatch", "256", "--eval.every-decisions", "4000"),
    *("--eval.games", "32", "--eval.final-games", "16"),
]
MARKUP = "<img src=x onerror=boom()> & <b>bold"
"""A folder may be called so, whatever `sparring train --name` takes."""
PHONE = {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of one setting, one of another with a league, and one with markup in its name."""
    root = tmp_path_factory.mktemp("dashboard") / "runs"
    league = ["--opponents", "self=1", "past=1", "--league.every_decisions", "5"]
    for seed, (name, words) in enumerate({"seed-1": [], "seed-2": [], "league": league}.items()):
        told = ["--runs", str(root), "--name", name, "--seed", str(seed)]
        assert main(["train", "tic_tac_toe", *told, *QUICK, *words]) == 0
    shutil.copytree(root / "seed-1", root / MARKUP)
    return root


@pytest.fixture(scope="module")
def address(runs: Path, serve: Callable[..., str]) -> str:
    """A server over the finished runs."""
    return serve(runs)


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """A run that trains while it is watched."""
    root = tmp_path / "runs"
    words = ["train", "tic_tac_toe", "--runs", str(root), "--name", "growing", "--minutes", "3"]
    words += ["--threads", "1", "--device", "cpu", "--no-tensorboard", "--eval.every-s", "0.5"]
    words += ["--eval.games", "32", "--eval.final-games", "16", "--net.hidden", "16"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sparring", *words], stdout=subprocess.DEVNULL
    )
    run = root / "growing"
    until(lambda: "eval/strength" in metrics.read(run) if run.is_dir() else False)
    yield run
    if process.poll() is None:
        process.kill()
    process.wait(10)
    if Overview(run).state == "running":  # resumed by a click
        os.kill(int((run / ".lock").read_text().split()[0]), signal.SIGKILL)


def until(there: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = there()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError("it did not come")


def open_page(page: Any, address: str, route: str) -> None:
    """Show a route."""
    page.goto(f"{address}/#{route}")


def points(page: Any, chart: str) -> int:
    """Return how many points the lines of a chart have."""
    paths = page.locator(f'[data-chart="{chart}"] path.line')
    drawn = "".join(paths.evaluate_all("all => all.map((one) => one.getAttribute('d'))"))
    return len(re.findall("[ML]", drawn))


def sideways(page: Any) -> int:
    """Return by how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_runs_are_listed_sorted_and_filtered(page, address) -> None:
    open_page(page, address, "/runs")
    rows = page.locator("table.runs tbody tr")
    page.wait_for_selector('tr[data-run="league"]')
    assert rows.count() == 4
    assert "%" in page.locator('tr[data-run="league"] .col-strength').inner_text()
    page.click("th.col-name button")
    names = page.locator("table.runs tbody th a").all_inner_texts()
    assert names == sorted(names)
    page.click("th.col-name button")
    assert page.locator("table.runs tbody th a").all_inner_texts() == names[::-1]
    assert page.get_attribute("th.col-name", "aria-sort") == "descending"
    page.fill("input[type=search]", "seed-")
    assert rows.count() == 2
    page.reload()
    page.wait_for_selector('tr[data-run="seed-1"]')
    assert rows.count() == 2, "a search is part of the address"


def test_a_name_with_markup_is_text(page, address) -> None:
    open_page(page, address, "/runs")
    page.click(f"table.runs a:text-is('{MARKUP}')")
    page.wait_for_selector('[data-chart="Wins against each opponent"]')
    assert MARKUP in page.locator("h1").inner_text()
    assert page.locator("main img, h1 b").count() == 0
    page.click("text=Checkpoints")
    page.wait_for_selector("text=download weights")
    page.goto(page.url.split("#")[0] + "#/compare/seed-2/" + page.url.split("#/runs/")[1])
    page.wait_for_selector("table td.wrap a")
    assert page.locator("main img").count() == 0


def test_a_folder_without_runs_says_what_to_type(page, serve, tmp_path) -> None:
    open_page(page, serve(tmp_path), "/runs")
    page.wait_for_selector("text=sparring train tic_tac_toe")


def test_a_run_has_its_curves_and_everything_else(page, address) -> None:
    open_page(page, address, "/runs/league")
    page.wait_for_selector('[data-chart="Wins against each opponent"] path.line[d^="M"]')
    for chart in ("Where the time goes", "Policy loss", "Speed, learning included"):
        assert page.locator(f'[data-chart="{chart}"]').count() == 1
    told = page.locator('[data-chart="Wins against each opponent"] desc').inner_html()
    assert "Last values: " in told
    assert "%" in told
    page.click('[data-chart="Wins against each opponent"] button:text("numbers")')
    page.wait_for_selector('[data-chart="Wins against each opponent"] .numbers tbody tr')
    by_minutes = page.locator('[data-chart="Policy loss"] path.line').get_attribute("d")
    page.click("button:text('updates')")
    page.locator('[data-chart="Policy loss"]').scroll_into_view_if_needed()
    page.wait_for_function(
        "old => document.querySelector('[data-chart=\"Policy loss\"] path.line')"
        ".getAttribute('d') !== old",
        arg=by_minutes,
    )
    for tab, text in {
        "Results": "careful",
        "Checkpoints": "best",
        "Settings": "collect.games",
        "Events": "Ended: ",
        "Machine": "Python",
    }.items():
        page.click(f"[role=tab]:text-is('{tab}')")
        page.wait_for_selector(f"[role=tabpanel] >> text={text}")
    page.click("[role=tab]:text-is('Settings')")
    first = page.locator("table.settings tbody tr").first
    assert "changed" in first.get_attribute("class"), "what differs comes first"
    page.fill("[aria-label='Find a setting']", "ppo.clip")
    assert page.locator("table.settings tbody tr").count() >= 1
    assert "probability" in page.locator("table.settings tbody").inner_text()


def test_all_charts_share_the_pointer_and_the_zoom(page, address) -> None:
    open_page(page, address, "/runs/seed-1")
    page.wait_for_selector('[data-chart="Wins against each opponent"] path.line[d^="M"]')
    over = page.locator('[data-chart="Wins against each opponent"] .over')
    box = over.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    page.wait_for_function(
        "() => document.querySelectorAll('.cross[visibility=visible]').length > 1"
    )
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=4)
    page.mouse.up()
    page.click("button:text('Show all of it')")
    assert page.locator("button:text('Show all of it')").is_hidden()
    over.focus()
    page.keyboard.press("ArrowLeft")
    assert "minutes: " in over.get_attribute("aria-valuetext")


def test_seeds_are_compared_as_a_group(page, address) -> None:
    open_page(page, address, "/compare/seed-1/seed-2/league")
    page.wait_for_selector("table td.wrap a")
    assert page.locator(".sheet table").first.locator("tbody tr").count() == 2
    page.wait_for_selector(".chart.wide path.band[d^='M']")
    page.click("button:text('each run')")
    page.wait_for_function(
        "() => document.querySelectorAll('.sheet table')[0].tBodies[0].rows.length === 3"
    )
    page.wait_for_selector('[data-chart="Policy loss"]')


def test_what_cannot_be_compared_is_said(page, address) -> None:
    page.on("console", lambda said: page.complaints.clear())  # a browser logs every 404
    open_page(page, address, "/compare/seed-1/nobody")
    page.wait_for_selector("[role=alert] >> text=nobody")
    page.complaints.clear()


def test_a_league_is_a_ladder_and_a_matrix(page, address) -> None:
    open_page(page, address, "/league/league")
    page.wait_for_selector("table.payoff")
    players = page.locator(".sheet table").first.locator("tbody th").all_inner_texts()
    assert sum(name.startswith("past/") for name in players) >= 5, "a snapshot every five updates"
    page.hover("table.payoff tbody tr:nth-child(1) td:nth-child(3)")
    page.wait_for_selector(".status-line >> text=past/0")
    page.focus("table.payoff [data-at='0 1']")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.at") == "1 1"


def test_curves_grow_for_two_viewers_and_a_run_stops_and_goes_on(
    page, browser, serve, growing
) -> None:
    address = serve(growing.parent)
    context = browser.new_context()
    other = context.new_page()
    chart = "Speed, learning included"
    for one in (page, other):
        open_page(one, address, "/runs/growing")
        one.locator(f'[data-chart="{chart}"]').scroll_into_view_if_needed()
        one.wait_for_selector(f'[data-chart="{chart}"] path.line[d^="M"]')
    told = {one: one.locator(".tile:has-text('Updates') b").inner_text() for one in (page, other)}
    for one in (page, other):
        one.wait_for_function(
            "old => document.querySelectorAll('.tile')[3].querySelector('b').textContent !== old",
            arg=told[one],
        )
        before = points(one, chart)
        until(lambda one=one, before=before: points(one, chart) != before, 20)
    context.close()

    page.click("button[data-order=stop]")
    page.click("dialog button.primary")  # without the token of the printed address
    page.wait_for_selector("dialog [role=alert]:visible >> text=token")
    page.complaints.clear()  # a browser logs every refusal
    page.goto(serve.pages[address])
    page.wait_for_function("location.search === ''")
    open_page(page, address, "/runs/growing")
    page.click("button[data-order=stop]")
    page.keyboard.press("Escape")
    assert page.locator("dialog").count() == 0
    page.click("button[data-order=stop]")
    page.click("dialog button.primary")
    page.wait_for_selector("button[data-order=resume]", timeout=30000)
    assert Overview(growing).state == "stopped"
    page.click("button[data-order=resume]")
    page.click("dialog button.primary")
    page.wait_for_selector(".state-running", timeout=60000)
    page.wait_for_selector("button[data-order=stop]")


def test_an_order_that_is_refused_is_told_in_words(page, serve, runs, tmp_path) -> None:
    shutil.copytree(runs / "seed-1", tmp_path / "broken")
    (tmp_path / "broken" / "results.json").unlink()
    (tmp_path / "broken" / "events.json").write_text('[{"update": 3, "event": "stopped"}]')
    address = serve(tmp_path)
    page.goto(serve.pages[address])
    open_page(page, address, "/runs/broken")
    page.wait_for_selector("button[data-order=resume]")
    shutil.rmtree(tmp_path / "broken" / "checkpoints")
    (tmp_path / "broken" / "checkpoints").mkdir()
    page.click("button[data-order=resume]")
    page.click("dialog button.primary")
    page.wait_for_selector("dialog [role=alert]:visible", timeout=60000)
    assert len(page.locator("dialog [role=alert]").inner_text()) > 10
    page.complaints.clear()  # a browser logs every refusal


def test_everything_goes_by_keys(page, address) -> None:
    open_page(page, address, "/runs")
    page.wait_for_selector('tr[data-run="seed-1"]')
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("seed")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("c")
    page.wait_for_selector("table td.wrap a")
    page.go_back()
    page.wait_for_selector('tr[data-run="seed-1"]')
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=tab]")
    page.focus("[role=tab][aria-selected=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("[role=tabpanel] >> text=careful")
    page.reload()
    page.wait_for_selector("[role=tab]")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page", "the skip link skips"


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_never_scrolls_sideways(page, address, dark) -> None:
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark" if dark else "light")
    for route, there in {
        "/runs": "table.runs tbody tr",
        "/runs/league": '[data-chart="Wins against each opponent"] path.line[d^="M"]',
        "/runs/league?tab=results": "[role=tabpanel] table",
        "/runs/league?tab=checkpoints": "[role=tabpanel] table",
        "/runs/league?tab=settings": "table.settings",
        "/runs/league?tab=events": ".timeline",
        "/compare/seed-1/league": "table td.wrap a",
        "/league/league": "table.payoff",
    }.items():
        open_page(page, address, route)
        page.wait_for_selector(there)
        assert sideways(page) <= 0, route


def test_dark_is_chosen_and_remembered(page, address) -> None:
    page.emulate_media(color_scheme="light")
    open_page(page, address, "/runs")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark
    page.click("#theme")
    assert page.evaluate(paper) == light


def test_the_first_picture_comes_soon_and_needs_no_data(page, address) -> None:
    page.route("**/api/**", lambda route: None)  # the server never answers
    open_page(page, address, "/runs/league")
    page.wait_for_selector(".skeleton")
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    assert until(lambda: page.evaluate(paint), 10) > 0
