"""Errors of Numba in the words of who wrote the rules: the line, what is wrong, how to write it."""

from __future__ import annotations

import re
from pathlib import Path
from types import FunctionType

from sparring.errors import RulesError

KINDS = {
    r"Record\([^>]*?\)": "a record",
    r"Literal\[(?:int|str|bool)\]\(([^)]*)\)": r"\1",
    r"array\((\w+), (\d)d, \w+\)": r"an array of \1",
    r"unicode_type": "text",
    r"reflected list\((\w+)\)<iv=[^>]*>": r"a list of \1",
    r"Tuple\(\)|UniTuple\((\w+) x \d+\)": "a tuple",
    r"none": "None",
}
"""Names of types, as Numba writes them and as we do."""
ADVICE = (
    (
        r"Field '(?P<a>\w+)' was not found in record|"
        r"Unknown attribute '(?P<b>\w+)' of type Record",
        "there is no field {0!r}; declare it in state or observation",
    ),
    (
        r"Unknown attribute '?(?P<a>\w+)'? of type Rng",
        "rng has no {0}; it has rng.below(n) and rng.uniform()",
    ),
    (
        r"Unknown attribute '?(?P<a>\w+)'? of type Module\((?P<b>\S+)\)",
        "{1} has no {0} that can be compiled",
    ),
    (r"Unknown attribute '?(?P<a>\w+)'? of type (?P<b>.+)", "{0} of {1} cannot be compiled"),
    (
        r"Cannot unify (?P<a>.+?) and (?P<b>.+?) for '(?P<c>[\w.]+)'",
        "{2} is {0} on one way and {1} on another; give it one type",
    ),
    (r"[Uu]nable to unify|Can't unify return type", "it returns values of different types"),
    (
        r"Untyped global name '?(?P<a>\w+)'?",
        "{0} cannot be compiled; rules know numbers, tuples, arrays, math and numpy",
    ),
    (
        r"Cannot modify readonly array|immutable",
        "a constant or an argument that is only read is changed",
    ),
    (
        r"Use of unsupported NumPy function '(?P<a>[\w.]+)'",
        "{0} cannot be compiled, or not with these arguments; write the loop",
    ),
    (r"NRT required but not enabled", "it makes a list or an array"),
    (r"variable '(?P<a>\w+)' referenced before assignment", "{0} has no value yet"),
    (r"Use of unsupported opcode|[Uu]nsupported opcode", "such a statement cannot be compiled"),
    (
        r"No implementation of function Function\(<built-in function (?P<a>\w+)>\) found for "
        r"signature:\s+>>> \w+\((?P<b>.*?)\)\s*$",
        "{0} of {1} is not possible",
    ),
    (
        r"No implementation of function Function\(<\w+ (?P<a>'?[\w. ]+).*?found for "
        r"signature:\s+>>> (?P<c>\w+)\((?P<b>.*?)\)\s*$",
        "{2}() cannot be compiled for {1}",
    ),
)
"""Messages of Numba, and what they mean; groups are in the order a, b, c."""
OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "getitem": "indexing",
    "setitem": "writing an element",
}


def explain(error: BaseException, function: FunctionType) -> RulesError:
    """Make one line of an error: the place in the author's file, and what cannot be typed."""
    text = str(error)
    file, line = place(text, function)
    shown = source_line(file, line)
    at = f"{file.name}:{line}: {function.__name__} cannot be compiled: {meaning(text)}"
    return RulesError(f"{at}{f'; the line: {shown}' if shown else ''}")


def place(text: str, function: FunctionType) -> tuple[Path, int]:
    """The innermost line of the author's files that the error names."""
    own = Path(function.__code__.co_filename)
    ours = Path(__file__).parent
    quoted = re.findall(r'File "([^"]+)", line (\d+)', text)
    for file, line in [*quoted, *re.findall(r"(\S+\.py) \((\d+)\)", text)]:
        found = Path(file)
        found = found if found.is_absolute() else Path.cwd() / found
        inside = "site-packages" not in found.parts and ours not in found.resolve().parents
        if inside and found.is_file():
            return found, int(line)
    return own, function.__code__.co_firstlineno


def source_line(file: Path, line: int) -> str:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    return lines[line - 1].strip()[:80] if 0 < line <= len(lines) else ""


def meaning(text: str) -> str:
    """What went wrong, without Numba's words where they are known."""
    for pattern, words in ADVICE:
        if found := re.search(pattern, text, re.MULTILINE | re.DOTALL):
            groups = {k: v for k, v in found.groupdict().items() if v is not None}
            values = [plain(OPERATORS.get(groups[k], groups[k])) for k in sorted(groups)]
            return words.format(*values) if values else words
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    told = [
        each
        for each in lines
        if not each.startswith(("Failed in", "During:", "File ", "- Resolution"))
    ]
    told = [re.sub(r"\W*Raised from .*", "", each) for each in told]
    return plain(" ".join(told[:2]) if told else type(text).__name__)[:300]


def plain(text: str) -> str:
    for pattern, word in KINDS.items():
        text = re.sub(pattern, word, text)
    return " ".join(text.split())
