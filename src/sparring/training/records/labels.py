"""What people write about a run: a note and tags, in one small file of its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.store.files import write_atomic
from sparring.store.schema import list_of, object_with, string_matching
from sparring.store.text_files import read_json

FILE = "labels.json"
MAX_BYTES = 64 * 2**10
MAX_TAGS = 32
MAX_LETTERS = 2000
TAG = string_matching(r"[^\W_][\w.+-]{0,39}", "a tag: at most 40 letters, digits and . _ + -")
STEERING = r"\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069"
"""Characters that would steer a terminal or turn a line around; lines may be broken."""
NOTE = string_matching(
    rf"[^{STEERING}]{{0,{MAX_LETTERS}}}",
    f"a note: at most {MAX_LETTERS} letters, no control characters",
)
SHAPE = object_with({"note": NOTE, "tags": list_of(TAG, MAX_TAGS)}, closed=True)


@dataclass(frozen=True)
class Labels:
    """A note, "" without one, and tags without repetitions in the order in which they came."""

    note: str = ""
    tags: tuple[str, ...] = ()

    @staticmethod
    def of(value: Any) -> Labels:
        """Take what JSON has; a ValueError says what is wrong with it."""
        SHAPE(value, "")
        return Labels(value["note"].strip(), tuple(dict.fromkeys(value["tags"])))

    def changed(
        self, note: str | None = None, add: Iterable[str] = (), drop: Iterable[str] = ()
    ) -> Labels:
        """Return the labels with another note, more tags, fewer tags; None leaves the note."""
        gone = set(drop)
        tags = [tag for tag in (*self.tags, *add) if tag not in gone]
        return Labels.of({"note": self.note if note is None else note, "tags": tags})


def read_labels(run: Path) -> Labels:
    """Return the labels of a run; ValueError or OSError tells what is wrong with its file."""
    try:
        return Labels.of(read_json(run / FILE, MAX_BYTES))
    except FileNotFoundError:
        return Labels()


def write_labels(run: Path, labels: Labels) -> None:
    data = json.dumps(asdict(labels), ensure_ascii=False, indent=1) + "\n"
    try:
        write_atomic(run / FILE, data.encode())
    except OSError as error:
        raise SparringError(
            f"cannot write {FILE} of {run.name}: {error.strerror or error}; check who may write "
            "there"
        ) from error


def label(
    run: Path, note: str | None = None, add: Iterable[str] = (), drop: Iterable[str] = ()
) -> Labels:
    """Return the labels of a run as they would be after a change; nothing is written."""
    try:
        before = read_labels(run)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{FILE} of {run.name} cannot be read: {why}; remove the file to begin anew"
        ) from None
    try:
        return before.changed(note, add, drop)
    except ValueError as error:
        raise ConfigError(str(error)) from None
