"""Shows docstrings of sparring on the site: a paragraph of `name: text` lines becomes a list."""

from __future__ import annotations

import re
from typing import Any

import griffe

PARAMETER = re.compile(r"\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*: ")
"""What a description of parameters begins with: `games, seed: `."""


class ParameterLists(griffe.Extension):  # type: ignore[misc]
    """Turns descriptions of parameters into Markdown lists."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a function or class."""
        if obj.docstring:
            obj.docstring.value = with_lists(obj.docstring.value)


def with_lists(text: str) -> str:
    """Return a docstring with a list in place of the lines that describe parameters."""
    return "\n\n".join(listed(one) for one in re.split(r"\n\s*\n", text))


def listed(paragraph: str) -> str:
    """Return a paragraph whose last lines, from the first `name: text` on, are a list."""
    lines = paragraph.split("\n")
    first = next((at for at, line in enumerate(lines) if PARAMETER.match(line)), len(lines))
    if not all(PARAMETER.match(line) or line.startswith("    ") for line in lines[first:]):
        return paragraph
    found = [*lines[:first], ""] if 0 < first < len(lines) else lines[:first]
    for line in lines[first:]:
        begins = PARAMETER.match(line)
        names = begins[0].removesuffix(": ").split(", ") if begins else []
        shown = ", ".join(f"`{name}`" for name in names)
        found.append(f"- {shown}: {line[begins.end() :]}" if begins else line)
    return "\n".join(found)
