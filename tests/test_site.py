"""The site is built strictly and asks no other host for anything; generated pages are current."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
EXTRA = ("mkdocs", "material", "mkdocstrings", "mike")
MAX_PAGE = 600_000
"""Bytes of a page: the reference of Python is the largest."""
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Attributes whose address a browser loads without being asked."""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("yaml", reason="needs the extra docs: make install")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("reference_pages")


def build(folder: Path) -> None:
    for name in EXTRA:
        pytest.importorskip(name, reason="needs the extra docs: make install")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr


class Page(HTMLParser):
    """Title, headings, ids, and what a page loads and links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.headings = 0
        self.title, self._open = "", ""
        self.description = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self._open = tag
        self.headings += tag == "h1"
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag in LOADING and (tag != "link" or given.get("rel") != "canonical"):
            self.loads.append(given.get(LOADING[tag], ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "meta" and given.get("name") == "description":
            self.description = given.get("content", "")

    def handle_data(self, data: str) -> None:
        if self._open == "title" and not self.title:
            self.title = data.strip()

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def test_the_site(tmp_path: Path) -> None:
    """One build for all that is looked at: it takes most of the time."""
    build(tmp_path)
    texts = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*.html")}
    assert len(texts) > 100
    assert {name for name, text in texts.items() if len(text) > MAX_PAGE} == set()
    copies = re.compile(r"files/(src|csrc|tests|benchmarks)/|play/")  # many, or not of the theme
    pages = {name: Page(text) for name, text in texts.items() if not copies.match(name)}
    loads_nothing_from_other_hosts(tmp_path, texts, pages)
    has_titles(pages)
    leads_somewhere(tmp_path, pages)
    for name in ("CONTRIBUTING", "CHANGELOG", "LICENSE"):
        assert f"files/{name}/index.html" in pages, name
    assert "highlight" in texts["files/examples/more/breakout.py/index.html"]
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", (tmp_path / "llms.txt").read_text(), re.M)
    assert len(links) > 50
    assert all((tmp_path / link).is_file() for link in links)


def loads_nothing_from_other_hosts(
    site: Path, texts: dict[str, str], pages: dict[str, Page]
) -> None:
    for name, page in pages.items():
        for address in page.loads:
            assert not urlsplit(address).netloc, f"{name} loads {address}"
    for name, text in texts.items():
        # The theme would fetch a drawing library, or figures of a repository.
        assert 'class="mermaid"' not in text and 'data-md-component="source"' not in text, name
    for sheet in site.rglob("*.css"):
        for address in re.findall(r"url\(([^)]*)\)|@import\s+([^;]+)", sheet.read_text()):
            assert not re.match(r"[\"']?(https?:)?//", "".join(address)), f"{sheet}: {address}"


def has_titles(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert page.title, name
        assert page.headings == 1 or name == "404.html", f"{name} has {page.headings} h1"
        assert page.description or name == "404.html", f"{name} has no description"


def leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    """Check links that hooks and plugins write too, which the strict build does not see."""
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name == "404.html":
                continue
            target = ((site / name).parent / unquote(parts.path)).resolve()
            file = target / "index.html" if parts.path else site / name
            file = file if file.is_file() else target
            assert file.is_file(), f"{name}: {link}"
            linked = pages.get(str(file.relative_to(site)))
            if parts.fragment and linked:
                assert unquote(parts.fragment) in linked.ids, f"{name}: {link}"


def test_generated_pages_are_current(scripts: ModuleType) -> None:
    for name, text in scripts.pages().items():
        assert (ROOT / name).read_text() == text, f"{name} is old; run: make docs"


def test_the_python_reference_has_every_public_name() -> None:
    import sparring

    shown = set(re.findall(r"^::: ([\w.]+)", (ROOT / "docs/reference/python.md").read_text(), re.M))
    assert {f"sparring.{name}" for name in sparring.__all__} <= shown


@pytest.mark.slow
def test_versions_stand_side_by_side(tmp_path: Path) -> None:
    """As the workflow docs.yml keeps them: a menu file names them, `latest` moves on."""
    for name in EXTRA:
        pytest.importorskip(name, reason="needs the extra docs: make install")
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    env |= {f"GIT_{who}_NAME": "somebody" for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_EMAIL": "somebody@example.org" for who in ("AUTHOR", "COMMITTER")}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    mike = [shutil.which("mike", path=env["PATH"]) or "mike"]
    for words in (["dev"], ["--update-aliases", "0.1.0", "latest"]):
        subprocess.run([*mike, "deploy", *words], cwd=tree, env=env, check=True)
    subprocess.run([*mike, "set-default", "latest"], cwd=tree, env=env, check=True)
    subprocess.run(["git", "checkout", "-q", "gh-pages"], cwd=tree, check=True)
    listed = (tree / "versions.json").read_text()
    assert set(re.findall(r'"version": "([^"]+)"', listed)) == {"dev", "0.1.0"}
    for version in ("dev", "0.1.0", "latest"):
        assert (tree / version / "guides/training/index.html").is_file(), version
    assert "latest/" in (tree / "index.html").read_text()
