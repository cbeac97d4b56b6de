"""Mutations of files. Plain functions of a value, a text or bytes and a generator of lots.

`spoil_value` damages what JSON and TOML hold by its structure, `spoil_text` and `spoil_bytes`
whatever a file is. `to_json` and `to_toml` write values that no encoder would: `Raw` text stands
as it is.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Raw:
    """Text that stands in a file where a value is expected."""

    text: str


def nested(depth: int, opening: str = "[", closing: str = "]") -> Raw:
    """Lists in lists; in JSON also objects in objects."""
    return Raw(opening * depth + closing * depth)


ODD_NUMBERS = (0, -1, 1, 2, 255, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63, 2**64, -(2**63) - 1)
ODD_NUMBERS += (10**30, 10**400, 0.5, -0.0, 1e-320, 1e308, math.nan, math.inf, -math.inf)
ODD_TEXTS = ("", " ", "\0", "a\0b", "\ud800", "\n", "two\nlines", "\x1b[31m", "\u2028", "\u202e")
ODD_TEXTS += (
    "x" * 300,
    "y" * 100_000,
    "１２",
    "१",
    "²",
    "½",
    "①",
    "1e400",
    "nan",
    "NaN",
    "=",
    "a=b",
)
ODD_TEXTS += (
    "../../etc",
    "/dev/null",
    "~",
    "*",
    "os:system",
    "a.py:f",
    ":",
    "%s",
    "{0}",
    "-1",
    "+",
)
ODD_TEXTS += ("0x10", "1_000", "00000001", "True", "null", "😀", "e\u0301", "ＡＢＣ", "latest", ".")
ODD_VALUES: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": None}, [None], {"a": {"b": 1}})
ODD_VALUES += (*ODD_NUMBERS, *ODD_TEXTS, Raw("1e400"), Raw("-1e400"), Raw("9" * 5000))
ODD_VALUES += (nested(40), nested(1500), nested(100_000), nested(2000, '{"a":', "}"))
ODD_VALUES += (Raw('"\\ud800"'), Raw('{"a": 1, "a": 2}'), Raw("1 2"), Raw("NaN"), Raw("1979-05-27"))

Place = tuple[Any, Any]
"""A container and the key or index of something in it."""


def places_in(value: Any) -> Iterator[Place]:
    """Yield where every part of a value stands, the outer ones first."""
    keys: Any = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places_in(value[key])


def spoil_value(healthy: Any, by: random.Random) -> Any:
    """Return a copy of a value with one to three mistakes in it."""
    box = [copy.deepcopy(healthy)]
    for _ in range(by.choice((1, 1, 1, 2, 3))):
        if places := list(places_in(box)):
            by.choice(VALUE_MISTAKES)(*by.choice(places), by)
    return box[0] if box else Raw("")


def _replace(container: Any, key: Any, by: random.Random) -> None:
    container[key] = copy.deepcopy(by.choice(ODD_VALUES))


def _drop(container: Any, key: Any, _: random.Random) -> None:
    del container[key]


def _bend(container: Any, key: Any, by: random.Random) -> None:
    """Change a number or a word a little, so that more of it is read than of nonsense."""
    value = container[key]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        _replace(container, key, by)
    elif isinstance(value, str):
        container[key] = spoil_word(value, by)
    else:
        bent = (value + 1, value - 1, -value, value * 2, value * 1000, str(value), [value])
        container[key] = by.choice((*bent, 0.5, bool(value)))


def _rename(container: Any, key: Any, by: random.Random) -> None:
    if isinstance(container, dict):
        name = by.choice((spoil_word(str(key), by), by.choice(ODD_TEXTS), str(key).upper()))
        container[name] = container.pop(key)
    else:
        _replace(container, key, by)


def _wrap(container: Any, key: Any, by: random.Random) -> None:
    inner = container[key]
    container[key] = by.choice(([inner], {"a": inner}, [inner, inner], {str(key): inner}))


def _repeat(container: Any, key: Any, by: random.Random) -> None:
    if isinstance(container, list):
        container[key:key] = [copy.deepcopy(container[key])] * by.choice((1, 2, 30, 300))
    else:
        container[by.choice(ODD_TEXTS)] = copy.deepcopy(container[key])


def _exchange(container: Any, key: Any, by: random.Random) -> None:
    other = by.choice(list(container) if isinstance(container, dict) else range(len(container)))
    container[key], container[other] = container[other], container[key]


def _graft(container: Any, key: Any, by: random.Random) -> None:
    """Put a part of the value where another stands."""
    inside = list(places_in([container[key]]))
    source, at = by.choice([*inside, *places_in(container)])
    container[key] = copy.deepcopy(source[at])


VALUE_MISTAKES = (_replace, _replace, _replace, _drop, _bend, _bend, _bend, _rename, _wrap)
VALUE_MISTAKES += (_repeat, _exchange, _graft)


def spoil_word(word: str, by: random.Random) -> str:
    """Change a letter or two of a word."""
    at = by.randrange(len(word) + 1)
    letter = by.choice((*"=:,@/.-+ %0919aZ[]{}\"'#", "\0", "\n", "１", "é", by.choice(ODD_TEXTS)))
    end = at + by.choice((0, 0, 1, 1, 3, len(word)))
    return by.choice((word[:at] + letter + word[end:], word[:at], word[at:], word * 2))


def spoil_text(healthy: str, by: random.Random) -> bytes:
    """Return a text with one to three mistakes, some of them in its encoding."""
    text = healthy
    for _ in range(by.choice((1, 1, 1, 2, 3))):
        text = by.choice(TEXT_MISTAKES)(text, by)
    if by.random() < 0.8:
        return text.encode("utf-8", "surrogatepass")
    encoding = by.choice(("utf-16", "utf-16-le", "utf-8-sig", "cp932", "latin-1", "utf-32"))
    return text.encode(encoding, "replace")


def _letters(text: str, by: random.Random) -> str:
    for _ in range(by.choice((1, 2, 5))):
        at = by.randrange(len(text) + 1)
        part = spoil_word(text[at : at + 6], by)
        text = text[:at] + part + text[at + 6 :]
    return text


def _lines(text: str, by: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at, other = by.randrange(len(lines)), by.randrange(len(lines))
    kind = by.choice(("drop", "twice", "exchange", "many", "cut", "join", "odd"))
    if kind == "drop":
        del lines[at]
    elif kind == "twice":
        lines.insert(other, lines[at])
    elif kind == "exchange":
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "many":
        lines[at : at + 2] = lines[at : at + 2] * by.choice((3, 20, 100))
    elif kind == "cut":
        lines = lines[:at]
    elif kind == "join":
        lines[at] = lines[at].rstrip("\r\n") + by.choice(("", " ", "\t", "\u3000"))
    else:
        lines.insert(at, by.choice(ODD_TEXTS) + by.choice(("\n", "")))
    return "".join(lines)


def _blocks(text: str, by: random.Random) -> str:
    first, last = sorted(by.randrange(len(text) + 1) for _ in range(2))
    block = text[first:last][:20_000]
    return by.choice((text[:first] + text[last:], text[:last] + block + text[last:], block, ""))


DIGITS = ("０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "〇一二三四五六七八九", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _digits(text: str, by: random.Random) -> str:
    """Write numbers as other scripts do, or as nobody does."""
    if by.random() < 0.5:
        table = str.maketrans("0123456789", by.choice(DIGITS))
        at = by.randrange(len(text) + 1)
        return text[:at] + text[at : at + 40].translate(table) + text[at + 40 :]
    places = [at for at, letter in enumerate(text) if letter.isdecimal()]
    if not places:
        return text
    at = by.choice(places)
    return text[:at] + by.choice(("9" * 30, "9" * 5000, "-", "", "1e9", "0")) + text[at + 1 :]


def _ends(text: str, by: random.Random) -> str:
    end = by.choice(("\r\n", "\r", "\u2028", "\x0b", "\x1c", "\n\n\n", ""))
    return text.replace("\n", end)


TEXT_MISTAKES = (_letters, _letters, _lines, _lines, _blocks, _digits, _ends)


def spoil_bytes(healthy: bytes, by: random.Random) -> bytes:
    """Return bytes with one to four mistakes: flipped, cut, moved, repeated, spliced."""
    raw = bytearray(healthy)
    for _ in range(by.choice((1, 1, 2, 4))):
        at, other = (by.randrange(len(raw) + 1) for _ in range(2))
        length = by.choice((1, 1, 2, 8, 64))
        kind = by.choice(("flip", "flip", "set", "cut", "remove", "repeat", "move", "insert"))
        if kind == "flip" and at < len(raw):
            raw[at] ^= 1 << by.randrange(8)
        elif kind == "set":
            raw[at : at + length] = bytes([by.choice((0, 0x20, 0x7F, 0x80, 0xFF))] * length)
        elif kind == "cut":
            del raw[at:]
        elif kind == "remove":
            del raw[at : at + length]
        elif kind == "repeat":
            raw[at:at] = raw[at : at + length] * by.choice((1, 10, 500))
        elif kind == "move":
            raw[at : at + length] = raw[other : other + length]
        else:
            raw[at:at] = by.randbytes(length)
    return bytes(raw)


def to_json(value: Any) -> str:
    """Write a value as JSON, with what JSON does not have."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(str(k))}: {to_json(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(to_json, value))}]"
    return str(value) if is_long(value) else json.dumps(value)


def to_toml(table: Any, above: str = "") -> str:
    """Write tables as TOML, with what TOML does not have."""
    if not isinstance(table, Mapping):
        return f"a = {in_toml(table)}\n"
    lines, tables = [], []
    for key, value in table.items():
        name = json.dumps(str(key))
        if isinstance(value, Mapping):
            tables.append(f"[{above}{name}]\n{to_toml(value, f'{above}{name}.')}")
        elif is_tables(value):
            head = f"[[{above}{name}]]\n"
            tables += [head + to_toml(inner, f"{above}{name}.") for inner in value]
        else:
            lines.append(f"{name} = {in_toml(value)}\n")
    return "".join((*lines, *tables))


def is_tables(value: Any) -> bool:
    """Whether TOML has this as an array of tables."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def in_toml(value: Any) -> str:
    """Write a value of a TOML file."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(str(k))} = {in_toml(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if is_long(value) else json.dumps(value)


def is_long(value: Any) -> bool:
    """Whether a number has more digits than fit into a register."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**64


def spoil_file(healthy: Any, write: Callable[[Any], str], by: random.Random) -> bytes:
    """Damage what a file holds by its structure, its text or its bytes."""
    how = by.random()
    if how < 0.75:
        return write(spoil_value(healthy, by)).encode("utf-8", "surrogatepass")
    if how < 0.9:
        return spoil_text(write(healthy), by)
    return spoil_bytes(write(healthy).encode(), by)


def spoil_lines(healthy: Sequence[Any], by: random.Random) -> bytes:
    """Damage a file of JSON objects, one per line."""
    lines = [to_json(value) for value in healthy]
    if by.random() < 0.75:
        at = by.randrange(len(lines))
        lines[at] = to_json(spoil_value(healthy[at], by))
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    return spoil_text("".join(f"{line}\n" for line in lines), by)
