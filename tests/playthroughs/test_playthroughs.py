"""Whole games written down, so that a change of the rules shows up as a diff a person can read.

After a change that is meant: pytest tests/playthroughs --update-playthroughs
"""

from __future__ import annotations

import difflib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparring import Rules, State, new_state
from sparring.games.cage2 import WINNER
from sparring.games.kuhhandel import PRESETS
from sparring.games.terminal import terminal_of

FOLDER = Path(__file__).parent

# Name, game, flags, seed. Seats take the game's bots in turn, so that good and bad play meet.
GAMES: list[tuple[str, str, dict[str, Any], int]] = [
    ("tic_tac_toe", "tic_tac_toe", {}, 3),
    ("skull_king", "skull_king", {}, 11),
    ("skull_king_two_players", "skull_king", {"num_players": 2}, 12),
    (
        "skull_king_six_players_all_extras",
        "skull_king",
        {
            "num_players": 6,
            "abilities": 1,
            "scoring": "RASCAL",
            "cannonball": 1,
            "rounds": [2, 5, 8, 10],
        },
        16,
    ),
    ("cage2", "cage2", {"red": "B_LINE", "mask": 1, "max_steps": 30}, 5),
    (
        "cage2_challenge",
        "cage2",
        {
            **WINNER,
            "preset": "CHALLENGE",
            "red": "MEANDER",
            "green": 1,
            "mask": 1,
            "orders": "DRAWN",
        },
        6,
    ),
    ("connect_four", "connect_four", {}, 4),
    ("dark_hex", "dark_hex", {}, 3),
    ("goofspiel", "goofspiel", {}, 2),
    ("kuhhandel", "kuhhandel", {}, 27),
    ("kuhhandel_fast", "kuhhandel", {**PRESETS["FAST"], "reward": "SEED"}, 18),
    ("kuhn_poker", "kuhn_poker", {}, 1),
    ("kuhn_poker_3", "kuhn_poker_3", {}, 5),
    ("laser_hockey", "laser_hockey", {}, 0),
    ("laser_hockey_defense", "laser_hockey", {"mode": "TRAIN_DEFENSE"}, 1),
    ("leduc_poker", "leduc_poker", {}, 52),
    ("liars_dice", "liars_dice", {"dice": 2}, 7),
    ("phantom_tic_tac_toe", "phantom_tic_tac_toe", {}, 3),
    ("shogi", "shogi", {"max_plies": 60, "material": 0.2}, 2),
]


def playthrough(rules: Rules, seed: int) -> str:
    state = new_state(rules, seed=seed)
    terminal = terminal_of(rules, person=-1)
    bots = [rules.bots[-1 - seat % len(rules.bots)] for seat in range(rules.seats)]
    lines = [f"{rules.name}, rules version {rules.rules_version}, seed {seed}"]
    lines += [f"{key} = {value}" for key, value in rules.config.items()]
    lines += [f"seat {seat}: {bot}" for seat, bot in enumerate(bots)]
    if rules.rows > 1:
        return "\n".join(lines + moved_at_once(state, bots)) + "\n"
    shown, number = "", 0
    while not state.over:
        if opening(state) != shown:
            shown = opening(state)
            lines += ["", *state.text().splitlines(), ""]
        number += 1
        seat = state.seat
        legal = ", ".join(state.action_name(action) for action in state.legal())
        role = rules.roles[state.role]
        action = state.ask(bots[seat])
        lines.append(f"{number:3} seat {seat} {role}: {state.action_name(action)}  [{legal}]")
        before = state.clone()
        state.apply(action)
        told = terminal.narrate(before, action, state)
        if rules.name != "kuhhandel":  # the first line repeats the action
            told = told[1:]
        lines += [f"    {line.strip()}" for line in told if line]
        lines += paid(state)
    lines += ["", *state.text().splitlines(), "", f"end: {state.end}"]
    lines += [f"seat {seat}: {score:g}" for seat, score in enumerate(state.scores)]
    return "\n".join(lines) + "\n"


def moved_at_once(state: State, bots: list[str]) -> list[str]:
    """A match of two who act in every step: one line of observation each, the rink now and then."""
    lines: list[str] = []
    for number in itertools.count():
        if number % 25 == 0 or state.over:
            lines += ["", *state.text().splitlines(), ""]
        if state.over:
            break
        actions = np.array([state.ask(bot, seat) for seat, bot in enumerate(bots)])
        state.apply(actions)
        for seat in (0, 1):
            wish = " ".join(f"{value:5.2f}" for value in actions[seat])
            seen = " ".join(f"{value:6.2f}" for value in state.observe(seat))
            lines.append(f"{number + 1:3} seat {seat} does {wish}  sees {seen}")
        lines += paid(state)
    lines.append(f"end: {state.end}")
    return lines + [f"seat {seat}: {score:g}" for seat, score in enumerate(state.scores)]


def opening(state: State) -> str:
    """What a position is shown for: the start of a round, a turn, every position of a board."""
    if state.rules.name == "skull_king":
        return f"round {state.fields()['round'][0]}"
    if state.rules.name == "kuhhandel":
        return f"animals {state.fields()['animals'].tolist()}"
    if state.rules.name == "cage2":
        return f"step {state.fields()['steps'][0] // 10}"
    return state.text()


def paid(state: State) -> list[str]:
    rewards = state.rewards_by_role
    told = []
    for seat in np.flatnonzero(rewards.any(axis=1)):
        roles = sorted(set(rewards[seat].tolist()))
        told.append(f"seat {seat} {'/'.join(f'{reward:+g}' for reward in roles)}")
    return [f"    rewards: {', '.join(told)}"] if told else []


@pytest.mark.parametrize(("name", "game", "flags", "seed"), GAMES, ids=[g[0] for g in GAMES])
def test_playthrough_is_unchanged(
    name: str, game: str, flags: dict[str, Any], seed: int, request: pytest.FixtureRequest
) -> None:
    path = FOLDER / f"{name}.txt"
    played = playthrough(Rules(game, flags), seed)
    assert played.count("\n") < 1500
    if request.config.getoption("--update-playthroughs", default=False):
        path.write_text(played)
    written = path.read_text()
    changes = difflib.unified_diff(
        written.splitlines(), played.splitlines(), path.name, "now", lineterm="", n=2
    )
    assert played == written, "\n".join(list(changes)[:60])


def test_the_playthroughs_show_the_rare_things() -> None:
    """A playthrough that never meets a rule cannot guard it."""
    extras = (FOLDER / "skull_king_six_players_all_extras.txt").read_text()
    for rare in ("cannonball  [", "wager ", "lead yourself", "the bid  [", "saw:", "gone "):
        assert rare in extras, rare
    ghost = (FOLDER / "skull_king_two_players.txt").read_text()
    assert "in this order" in ghost
    for name in ("kuhhandel", "kuhhandel_fast"):
        played = (FOLDER / f"{name}.txt").read_text()
        for rare in ("both bid again", "accepts ", "buys ", "for nothing", "a donkey: "):
            assert rare in played, rare
        assert ("cannot pay" in played) == (name == "kuhhandel")
