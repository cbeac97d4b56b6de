"""Skull King at the terminal: what is typed, what is told, and what stays secret."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from sparring import Rules, new_state
from sparring.games.skull_king import load_round, read
from sparring.games.skull_king.terminal import SkullKingTerminal
from sparring.games.terminal import match_choices


def test_a_bid_is_typed_as_its_number() -> None:
    state = load_round(2, [["G1", "T"], ["G2", "G3"], ["G4", "G5"], ["G6", "G7"]], 0)
    choices = SkullKingTerminal(state.rules, 0).choices(state)
    assert [match_choices(str(bid), choices)[0].action for bid in range(3)] == [0, 1, 2]


def random_games(config: dict[str, Any], seeds: range) -> Any:
    """Yield (before, action, after) of random games."""
    rules = Rules("skull_king", config)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        state = new_state(rules, seed=seed)
        while not state.over:
            before, action = state.clone(), int(rng.choice(state.legal()))
            state.apply(action)
            yield before, action, state.clone()


@pytest.mark.parametrize(
    "config",
    [
        {"num_players": 2, "rounds": [5, 7]},
        pytest.param({"rounds": [4, 6, 3]}, marks=pytest.mark.slow),
        pytest.param({"num_players": 7, "abilities": 1, "rounds": [8]}, marks=pytest.mark.slow),
    ],
)
def test_the_story_of_the_tricks_is_true(config: dict[str, Any]) -> None:
    """Told wins are the wins of the score sheet; told leaders lead."""
    told: dict[str, int] = {}
    destroyed = 0
    for before, action, after in random_games(config, range(8)):
        was, now = read(before), read(after)
        terminal = SkullKingTerminal(before.rules, person=-1)
        lines = terminal.narrate(before, action, after)
        for line in lines:
            if told_line := re.match(r"  (seat \d|the ghost) wins the trick with (\w+)", line):
                told[told_line[1]] = told.get(told_line[1], 0) + 1
            if told_line := re.match(r"  the trick is destroyed(; (.*) leads next)?", line):
                destroyed += 1
                if told_line[2]:
                    assert told_line[2] == terminal.name(now.leader)
        if now.round != was.round or now.phase == "over":
            won = now.by_seat["last_won"]
            assert [told.get(f"seat {s}", 0) for s in range(was.players)] == won[: was.players]
            assert sum(told.values()) + destroyed == was.cards
            told, destroyed = {}, 0


@pytest.mark.slow
def test_the_story_keeps_secrets() -> None:
    """What a person reads does not depend on what that seat cannot know."""
    config = {"num_players": 5, "abilities": 1, "scoring": "RASCAL", "cannonball": 1}
    different = 0
    for at, (before, action, after) in enumerate(random_games(config, range(1))):
        person = (before.seat + 1 + at % 4) % 5
        terminal = SkullKingTerminal(before.rules, person)
        other = after.clone()
        other.resample_hidden(person, seed=at)
        different += other.native.serialize() != after.native.serialize()
        if read(before).phase in ("bid", "cannon") and read(after).phase == read(before).phase:
            hidden = next(legal for legal in before.legal() if legal != action)
            told = terminal.narrate(before, action, after)
            assert terminal.narrate(before, hidden, other) == told
        elif read(before).phase == "discard":
            assert "a card" in terminal.narrate(before, action, other)[0]
        if not after.over:
            assert terminal.show(other) == terminal.show(after)
    assert different > 50
