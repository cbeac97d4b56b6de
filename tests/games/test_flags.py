"""Words of the form key=value are read in one way, wherever they are typed."""

from __future__ import annotations

import pytest

from sparring import Rules
from sparring.errors import ConfigError
from sparring.games.flags import (
    changed_flags,
    flags_as_options,
    read_pair,
    read_rules,
    scheduled_flags,
)
from sparring.league.seating import read_lineups
from sparring.league.usi.match import read_options
from sparring.training.planning.settings import read_varied


def test_the_first_equals_sign_parts_a_word() -> None:
    assert read_pair("Hash=a=b", "engine-option") == ("Hash", "a=b")
    assert read_pair("Book=", "engine-option") == ("Book", "")


@pytest.mark.parametrize("word", ["six", "=6", ""])
def test_every_reader_refuses_in_the_same_words(word: str) -> None:
    told = f"{word!r} is not key=value; give a name, = and a value"
    for where, read in (
        ("set", lambda: read_rules("skull_king", [word])),
        ("vary", lambda: read_varied(word)),
        ("engine-option", lambda: read_options([word])),
    ):
        with pytest.raises(ConfigError) as refused:
            read()
        assert str(refused.value) == f"{where}: {told}"


def test_an_opponent_may_leave_out_its_weight() -> None:
    rules = Rules("tic_tac_toe")
    assert read_lineups(rules, ["random"])[0].weight == read_lineups(rules, ["random=1"])[0].weight
    with pytest.raises(ConfigError, match="opponents: '=2' is not key=value"):
        read_lineups(rules, ["=2"])


def test_flags_are_typed_as_they_are_read() -> None:
    rules = read_rules("skull_king", ["num_players=6", "rounds=1,2,3", "skip_forced=1"])
    typed = flags_as_options(changed_flags(rules))
    assert read_rules("skull_king", typed).config == rules.config


def test_a_list_is_no_schedule_of_a_run() -> None:
    with pytest.raises(
        ConfigError, match="round_weights is a list, which can change only in phases"
    ):
        scheduled_flags(Rules("skull_king"), ["episode=ROUND", "round_weights=0:1,5000:0"])
