"""A real browser against a real server. Both are missing on most machines: `make web` adds them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def browser():
    """Chromium, once for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="make web installs Playwright")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here; on Debian: apt install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A new page. What it complains about fails the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    opened.on(
        "console", lambda said: complaints.append(said.text) if said.type == "error" else None
    )
    opened.complaints = complaints
    yield opened
    context.close()
    assert not complaints


@pytest.fixture(scope="session")
def serve(tmp_path_factory) -> Iterator[Callable[..., str]]:
    """Start `sparring serve` over a folder of runs, with more options; returns the address.

    `serve.pages` has the page's own address with the token, by that address.
    """
    started: list[subprocess.Popen[str]] = []

    def start(runs: Path | None = None, *options: str) -> str:
        folder = runs or tmp_path_factory.mktemp("runs")
        command = [sys.executable, "-m", "sparring", "serve", str(folder), "--port", "0"]
        process = subprocess.Popen(
            [*command, *options, "--json"], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout
        said = ""
        while not said.rstrip().endswith("}"):
            said += process.stdout.readline()
            assert said
        told = json.loads(said)
        start.pages[told["address"]] = told["page"]
        return str(told["address"])

    start.pages = {}
    yield start
    for process in started:
        process.terminate()
        process.wait(10)
