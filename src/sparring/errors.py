"""Errors and warnings of the package. Each message says what to do next."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable

SIMILAR, VERY_SIMILAR = 0.6, 0.7
"""Similarity from which a word is suggested: if the first letters agree (tpi, tpe), and if they
differ (a2c, sac)."""
MAX_CHARACTERS = 600
"""Longest error text: an error that quotes a file still fits a terminal."""


class SparringError(Exception):
    """The base of every error this package raises on purpose. Its text is always one line."""

    def __str__(self) -> str:
        return in_one_line(super().__str__())


class ConfigError(SparringError, ValueError):
    """A configuration key or value that does not exist or does not fit."""


class UntrustedError(ConfigError):
    """Code that a file names and the user has not trusted. It was not run."""


class VectorError(ConfigError):
    """A factory makes a vector of environments where single ones are needed."""


class RulesError(ConfigError):
    """Rules in Python that are declared wrong, cannot be compiled, or failed in a game."""


class EnvError(SparringError):
    """A custom environment failed. What was learned before can still be saved."""


class IllegalActionError(SparringError, ValueError):
    """An action that the rules do not allow. The state did not change."""


class StateError(SparringError, ValueError):
    """Saved bytes that do not belong to this game, configuration or rules version."""


USER_CODE_ERRORS = (Exception, SystemExit)
"""Errors caught around user code: every exception, and `sys.exit`. Ctrl-C passes through."""


class SparringWarning(UserWarning):
    """Something works, but not as well as it could."""


def warn(text: str) -> None:
    """Warn that something works, but not as well as it could."""
    warnings.warn(SparringWarning(text), stacklevel=3)


def in_one_line(text: str) -> str:
    """Return a text as one line; the middle of a long text is left out."""
    if len(text) > MAX_CHARACTERS:
        text = f"{text[: MAX_CHARACTERS // 2]} ... {text[-MAX_CHARACTERS // 3 :]}"
    return text if text.isprintable() else printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Escape the characters of a text that would control the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Return "; did you mean X?" for the closest choice, or the list of all of them."""
    known = list(choices)
    if close := closest(word, known):
        return f"; did you mean {close!r}?"
    return f"; there are: {', '.join(known)}" if known else "; there are none"


def closest(word: str, choices: Iterable[str], similarity: float = SIMILAR) -> str:
    """Return the choice most similar to a word, ignoring case; "" if none is similar."""
    word, lowered = word.lower(), {choice.lower(): choice for choice in choices}
    for close in difflib.get_close_matches(word, lowered, 3, similarity):
        ratio = difflib.SequenceMatcher(None, word, close).ratio()
        if ratio >= VERY_SIMILAR or word[:1] == close[:1]:
            return lowered[close]
    return ""
