"""What can go wrong, each with a message that says what to do."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable

LIKE, ALIKE = 0.6, 0.7
"""How similar a word is to what may be meant: where they begin alike, as tpi and tpe do, and where
they do not, as a2c and sac."""
LONGEST = 600
"""Characters of an error's text: whatever a file has in it, the error about it fits a terminal."""


class SparringError(Exception):
    """The base of every error this package raises on purpose. Its text is always one line."""

    def __str__(self) -> str:
        return in_one_line(super().__str__())


class ConfigError(SparringError, ValueError):
    """A configuration key or value that does not exist or does not fit."""


class UntrustedError(ConfigError):
    """Code that a file asks for and that nobody has named. It was not run."""


class VectorError(ConfigError):
    """A factory of environments makes a vector of them where single ones are needed."""


class EnvError(SparringError):
    """An environment of somebody's own has failed. What was learned before can still be saved."""


class IllegalActionError(SparringError, ValueError):
    """An action that the rules do not allow. Nothing was changed."""


class StateError(SparringError, ValueError):
    """Saved bytes that do not belong to this game, configuration or rules version."""


RAISED = (Exception, SystemExit)
"""What is caught of somebody's own code: every error, and `sys.exit`. Ctrl-C is the person's."""


class SparringWarning(UserWarning):
    """Something works, but not as well as it could."""


def warn(text: str) -> None:
    """Say that something works, but not as well as it could; the caller goes on."""
    warnings.warn(SparringWarning(text), stacklevel=3)


def in_one_line(text: str) -> str:
    """Return text that quotes anything as one line, the middle of a long one left out."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 3 :]}"
    return text if text.isprintable() else printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Return a text as a terminal may have it: what would steer the terminal is spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return "; did you mean X?" for the closest choice, or the list of all of them."""
    known = list(choices)
    if close := closest(word, known):
        return f"; did you mean {close!r}?"
    return f"; there are: {', '.join(known)}" if known else "; there are none"


def closest(word: str, choices: Iterable[str], like: float = LIKE) -> str:
    """Return the choice that is most like a word, in capitals or not, "" if none is like it."""
    word, lowered = word.lower(), {choice.lower(): choice for choice in choices}
    for close in difflib.get_close_matches(word, lowered, 3, like):
        ratio = difflib.SequenceMatcher(None, word, close).ratio()
        if ratio >= ALIKE or word[:1] == close[:1]:
            return lowered[close]
    return ""
