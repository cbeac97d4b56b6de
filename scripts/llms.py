"""docs/llms.txt: the pages by door with a sentence each, for programs that read (llmstxt.org)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

SUMMARY = """# sparring

> A Python library and command line with a C++20 core that trains game-playing agents by self-play:
> PPO, DQN, QR-DQN, SAC, REDQ, TD3 and Gumbel AlphaZero, on CPU threads and on a GPU, on the bundled
> games or on your Gymnasium or PettingZoo environment.

`pip install 'sparring[train]'` installs it; `sparring train GAME` trains and measures an agent;
`sparring COMMAND --help` explains a command. Links lead to the Markdown of each page.
"""
FENCE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
NO_PROSE = ("#", "|", "!", "-", "<", ":::", "1.", ">")
"""Beginnings of paragraphs that are headings, tables, pictures, lists and the like."""


def llms_text(root: Path, generated: Mapping[str, str]) -> str:
    """Return the file. generated: texts of pages that are not written yet, by path."""
    return "\n".join([SUMMARY, *lines(root, generated)])


def lines(root: Path, generated: Mapping[str, str]) -> Iterator[str]:
    nav = (root / "mkdocs.yml").read_text().partition("\nnav:")[2]
    doors: dict[str, list[str]] = {}
    for entry in yaml.safe_load(nav):
        for door, path in pages_of(entry):
            if (root / "docs" / path).exists():  # not a copy of a file outside docs/
                doors.setdefault(door, []).append(path)
    for door, paths in doors.items():
        yield f"## {door}\n"
        for path in paths:
            name = f"docs/{path}"
            text = generated.get(name) or (root / name).read_text()
            sentence = first_sentence(text)
            yield f"- [{title_of(text)}]({path}){f': {sentence}' if sentence else ''}"
        yield ""


def pages_of(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield door and path of the pages of an entry of the navigation."""
    ((door, inside),) = entry.items()
    if isinstance(inside, str):
        yield "Home", inside
        return
    for one in inside:
        yield door, one if isinstance(one, str) else next(iter(one.values()))


def title_of(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.M)
    return plain(found[1]) if found else ""


def first_sentence(text: str) -> str:
    """Return the first sentence of prose below the title, "" if there is none."""
    for paragraph in re.split(r"\n\s*\n", FENCE.sub("", text)):
        words = " ".join(paragraph.split())
        if words and not words.startswith(NO_PROSE):
            sentence = plain(re.split(r"(?<=[.!?])\s", words)[0])
            return f"{sentence[:-1]}." if sentence.endswith(":") else sentence
    return ""


def plain(words: str) -> str:
    """Return Markdown without links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
