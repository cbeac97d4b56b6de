"""Our small hidden games beside OpenSpiel's: the same histories, and policies as its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from proof.poker_helpers import from_open_spiel, history
from sparring import Rules, State, new_state
from sparring.proof.exploitability import Probabilities

TURNS = "turn_based_simultaneous_game(game={})"
THEIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "kuhn_poker": ("kuhn_poker", {}),
    "leduc_poker": ("leduc_poker", {}),
    "kuhn_poker_3": ("kuhn_poker(players=3)", {}),
    "liars_dice": ("liars_dice", {}),
    "liars_dice 2": ("liars_dice(numdice=2)", {"dice": 2}),
    "goofspiel": (
        TURNS.format("goofspiel(imp_info=True,num_cards=4,points_order=descending)"),
        {},
    ),
    "goofspiel drawn": (
        TURNS.format("goofspiel(imp_info=True,num_cards=4,points_order=random)"),
        {"order": "DRAWN"},
    ),
    "goofspiel open": (
        TURNS.format("goofspiel(imp_info=False,num_cards=5,points_order=ascending)"),
        {"cards": 5, "order": "ASCENDING", "hidden": 0},
    ),
    "phantom_tic_tac_toe": ("phantom_ttt", {}),
    "phantom_tic_tac_toe abrupt": ("phantom_ttt(gameversion=abrupt)", {"abrupt": 1}),
    "dark_hex": ("dark_hex(gameversion=adh)", {}),
    "dark_hex classical": ("dark_hex(gameversion=cdh)", {"abrupt": 0}),
}
"""OpenSpiel's games, and our flags."""


def rules_of(name: str) -> Rules:
    return Rules(name.split(maxsplit=1)[0], THEIRS[name][1])


def ours_of(name: str, theirs: Any) -> State:
    """Our state with OpenSpiel's dice, prizes and moves."""
    if name in ("kuhn_poker", "leduc_poker"):
        return from_open_spiel(theirs)
    steps = history(theirs)
    chance = [action for player, action in steps if player < 0]
    rules = rules_of(name)
    flags = {**THEIRS[name][1], **deal_of(rules, chance)}
    state = new_state(Rules(rules.name, flags))
    moves = [action for player, action in steps if player >= 0]
    for move in moves:
        state.apply(move)
    return state


def deal_of(rules: Rules, chance: list[int]) -> dict[str, int]:
    """The deal that begins with these draws."""
    if not rules.chance:
        return {}
    if rules.name == "liars_dice":
        number = sum(face * 6**at for at, face in enumerate(chance))
        return {"deal": number}
    cards = 4
    left, deal, scale = list(range(cards)), 0, 1
    for card in chance[: 3 if rules.name == "kuhn_poker_3" else cards]:
        deal += scale * left.index(card)
        scale *= len(left)
        left.remove(card)
    if rules.name == "goofspiel":
        return {"deal": deal}
    first, second, third = deal % 4, deal // 4 % 3, deal // 12
    return {"deal": 6 * first + 2 * second + third}


def states_of(root: Any) -> Iterator[Any]:
    """Every decision below a state of OpenSpiel."""
    ahead = [root]
    while ahead:
        state = ahead.pop()
        if state.is_terminal():
            continue
        if not state.is_chance_node():
            yield state
        ahead += [state.child(action) for action in state.legal_actions()]


def table_of(name: str, game: Any, policy: Probabilities) -> dict[str, list[tuple[int, float]]]:
    """A policy as OpenSpiel's table: what ours plays where its seat sees the same."""
    rows: dict[str, tuple[np.ndarray[Any, Any], list[int]]] = {}
    for theirs in states_of(game.new_initial_state()):
        key = theirs.information_state_string()
        if key not in rows:
            ours = ours_of(name, theirs)
            rows[key] = ours.observe_bytes(theirs.current_player()), theirs.legal_actions()
    mask = np.zeros((len(rows), rules_of(name).actions), np.uint8)
    for at, (_, legal) in enumerate(rows.values()):
        mask[at, legal] = 1
    shares = policy(np.array([obs for obs, _ in rows.values()]), mask)
    return {
        key: [(action, float(row[action])) for action in legal]
        for (key, (_, legal)), row in zip(rows.items(), shares, strict=True)
    }
