"""Whatever a file holds, the error about it is one line that a terminal can show."""

from __future__ import annotations

import pytest

from sparring.errors import MAX_CHARACTERS, ConfigError, in_one_line


@pytest.mark.parametrize("quoted", ["a\nb", "\x1b[31m", "\0", "\u202e", "\ud800", "\u2028", "\r"])
def test_control_characters_are_spelled_out(quoted: str) -> None:
    told = str(ConfigError(f"no game {quoted}; there is tic_tac_toe"))
    assert told.isprintable()
    assert told.startswith("no game")
    assert told.endswith("tic_tac_toe")


def test_a_long_value_leaves_the_beginning_and_the_advice() -> None:
    told = str(ConfigError(f"no game {'y' * 10**6}; there is tic_tac_toe"))
    assert len(told) <= MAX_CHARACTERS
    assert told.startswith("no game yyy")
    assert told.endswith("; there is tic_tac_toe")


@pytest.mark.parametrize(
    "text", ["", "two  spaces stay", "KIF: 先手 is unknown", "x" * MAX_CHARACTERS]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert in_one_line(text) == text
