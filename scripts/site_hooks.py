"""What `mkdocs build` does beyond its settings: copies of files that pages link to, and the games.

Pages link to sources, examples and CONTRIBUTING.md as files of the repository, which works in an
editor and wherever the repository is shown. The site has a page with a copy of each such file.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from sparring.errors import SparringError
from sparring.store.champions import champion_games
from sparring.web.description import wasm_file
from sparring.web.site import write_site

sys.path.insert(0, str(Path(__file__).parent))
from llms import first_sentence

ROOT = Path(__file__).resolve().parents[1]
COPIES = "files"
"""Folder of the copies in the site."""
ALWAYS = ("CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
"""Files that the navigation lists."""
ICON = "src/sparring/web/app/icon.svg"
MAX_BYTES = 100_000
"""A larger file is copied as it is, without a page around it."""
LANGUAGES = {".hpp": "cpp", ".cuh": "cpp", ".md": "", ".txt": "text", "": "text"}
"""Languages of code whose name is not the file's suffix; a Markdown file becomes a page."""
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s:#]+)((?:#[^)\s]*)?\))")
UP = '<!doctype html><title>Play</title><meta http-equiv="refresh" content="0; url=../">\n'
"""A page that leads to the one above it."""
log = logging.getLogger("mkdocs.hooks.site")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the icon, and a copy of every file outside docs/ that a page or a copy links to."""
    files.append(File.generated(config, "images/icon.svg", abs_src_path=str(ROOT / ICON)))
    wanted = [ROOT / name for name in ALWAYS]
    for page in files.documentation_pages():
        wanted += linked_files(page.src_uri, page.content_string)
    while wanted:
        path = wanted.pop()
        copy = copy_of(path, config)
        if files.get_file_from_path(copy.src_uri) is None:
            files.append(copy)
            if path.suffix == ".md":
                wanted += linked_files(copy.src_uri, copy.content_string)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files outside docs/ to their copies; describe the page by a sentence."""
    here = page.file.src_uri
    if page.is_homepage:
        page.meta.setdefault("hide", ["navigation"])
    page.meta.setdefault("description", first_sentence(markdown).replace("`", ""))

    def lead(link: re.Match[str]) -> str:
        path = target(here, link[2])
        if path is None:
            return link[0]
        uri = uri_of(path)
        return f"{link[1]}{posixpath.relpath(uri, posixpath.dirname(here) or '.')}{link[3]}"

    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(lead, markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(lead, markdown[at:])])


def on_post_build(config: MkDocsConfig) -> None:
    """Put the games to play into the site, if they are there, and the pages' sources.

    llms.txt links to the sources, which programs read more easily than pages.
    """
    write_games(Path(config.site_dir) / "play")
    docs = Path(config.docs_dir)
    for page in docs.rglob("*.md"):
        shutil.copy(page, Path(config.site_dir) / page.relative_to(docs))


def write_games(folder: Path) -> None:
    """Write the pages that play into a folder of the site, in place of `docs/play.md`.

    That page stays where the games are not built for browsers: it says how to get them, and the
    addresses of games lead to it.
    """
    try:
        for game in champion_games():
            wasm_file(game)
    except SparringError as missing:
        log.info(f"play/ has no games: {missing}")
        for game in champion_games():
            (folder / game).mkdir()
            (folder / game / "index.html").write_text(UP)
        return
    shutil.rmtree(folder)
    write_site(folder, home="../")


def linked_files(uri: str, text: str) -> list[Path]:
    """Return the files outside docs/ that a page links to."""
    paths = (target(uri, link[2]) for link in LINK.finditer(FENCE.sub("", text)))
    return [path for path in dict.fromkeys(paths) if path is not None]


def target(uri: str, link: str) -> Path | None:
    """Return the file or folder of the repository that a link of a page means, None in docs/."""
    inside = f"{COPIES}/"
    copied = uri.startswith(inside)
    here = ROOT / (uri.removeprefix(inside) if copied else f"docs/{uri}")
    path = Path(posixpath.normpath(posixpath.join(here.parent.as_posix(), link)))
    if not path.exists() or not path.is_relative_to(ROOT):
        return None
    return path if copied or not path.is_relative_to(ROOT / "docs") else None


def uri_of(path: Path) -> str:
    """Return where the site has a file of the repository, as a path in docs/."""
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    name = path.relative_to(ROOT).as_posix()
    whole = path.suffix == ".md" or (path.is_file() and path.stat().st_size > MAX_BYTES)
    return f"{COPIES}/{name}" if whole else f"{COPIES}/{name}.md"


def copy_of(path: Path, config: MkDocsConfig) -> File:
    """Return a page with a file of the repository, or the file itself if it is large."""
    uri = uri_of(path)
    if uri.endswith(".md"):
        return File.generated(
            config, uri, content=page_of(path), inclusion=InclusionLevel.NOT_IN_NAV
        )
    return File.generated(config, uri, abs_src_path=str(path))


def page_of(path: Path) -> str:
    """Return a file as Markdown, a folder as a list of what is in it."""
    head = "---\nsearch:\n  exclude: true\n---\n\n"
    if path.suffix == ".md":
        return head + path.read_text()
    head += f"# {path.name}\n\n`{path.relative_to(ROOT).as_posix()}`, as of this version.\n\n"
    if path.is_dir():
        names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in path.iterdir())
        return head + "".join(f"- `{name}`\n" for name in names if name != "__pycache__/")
    language = LANGUAGES.get(path.suffix, path.suffix.removeprefix("."))
    return f"{head}``````{language}\n{path.read_text()}``````\n"
