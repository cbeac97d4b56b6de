"""Small games with hidden information: consistent, OpenSpiel's rules, and known exploitability."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparring
from proof.open_spiel import THEIRS, ours_of, rules_of, table_of
from proof.poker_helpers import at_random, uniform
from reference.exploitability import SlowTree, slow_exploitability
from sparring import Rules, new_state
from sparring.proof.exploitability import Tree, deals, exploitability

GAMES = ["dark_hex", "goofspiel", "kuhn_poker_3", "liars_dice", "phantom_tic_tac_toe"]
FLAGS: list[tuple[str, dict[str, Any]]] = [
    *((game, {}) for game in GAMES),
    ("liars_dice", {"dice": 2}),
    ("liars_dice", {"dice": 2, "faces": 3}),
    ("goofspiel", {"cards": 5, "order": "DRAWN"}),
    ("goofspiel", {"cards": 5, "hidden": 0}),
    ("phantom_tic_tac_toe", {"abrupt": 1}),
    ("dark_hex", {"abrupt": 0}),
]
SMALL = ["kuhn_poker", "leduc_poker", "kuhn_poker_3", "liars_dice", "goofspiel", "goofspiel drawn"]


@pytest.mark.few(5)
@pytest.mark.parametrize(("game", "flags"), FLAGS)
def test_the_games_are_consistent(game: str, flags: dict[str, Any]) -> None:
    report = sparring.check(game, config=flags, games=10)
    assert report.passed, report


# From OpenSpiel 2.0.2: value of a best response of every seat to the uniform policy.
@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("kuhn_poker", (0.5, 0.4166666666666666)),
        ("leduc_poker", (2.0875, 2.6597222222222223)),
        ("kuhn_poker_3", (0.7812499999999998, 0.6458333333333334, 0.6354166666666665)),
        ("goofspiel", (0.7083333333333333, 0.7083333333333333)),
        ("goofspiel drawn", (0.7083333333333333, 0.7083333333333333)),
        ("liars_dice", (0.7954916225749558, 0.7659970238095238)),
    ],
)
def test_best_responses_to_uniform_win_what_open_spiel_says(
    name: str, best: tuple[float, ...]
) -> None:
    found = exploitability(rules_of(name), uniform)
    assert found.best == pytest.approx(best, abs=1e-9)
    assert sum(found.values) == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_best_responses_to_any_policy_win_what_open_spiel_says(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="needs OpenSpiel: pip install open_spiel")
    game, tree = pyspiel.load_game(THEIRS[name][0]), Tree(rules_of(name))
    for policy in (uniform, at_random(1), at_random(2), at_random(3)):
        table = pyspiel.TabularPolicy(table_of(name, game, policy))
        root = game.new_initial_state()
        theirs = [
            pyspiel.TabularBestResponse(game, seat, table).value(root.history_str())
            for seat in range(game.num_players())
        ]
        assert exploitability(tree, policy).best == pytest.approx(theirs, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", THEIRS)
def test_random_games_are_open_spiels(name: str) -> None:
    """10,000 games: who is to move, what is legal, who wins, and that nobody sees more."""
    pyspiel = pytest.importorskip("pyspiel", reason="needs OpenSpiel: pip install open_spiel")
    game, by = pyspiel.load_game(THEIRS[name][0]), random.Random(5)
    seen: dict[tuple[int, str], bytes] = {}
    for _ in range(10_000):
        path = [game.new_initial_state()]
        while not path[-1].is_terminal():
            path.append(path[-1].child(by.choice(path[-1].legal_actions())))
        ended = ours_of(name, path[-1])
        assert ended.over and ended.scores == path[-1].returns() == ended.rewards.tolist()
        theirs = by.choice([state for state in path[:-1] if not state.is_chance_node()])
        ours = ours_of(name, theirs)
        assert not ours.over and ours.seat == theirs.current_player()
        assert ours.legal() == theirs.legal_actions()
        if name != "goofspiel open":  # nothing is hidden, and their text leaves rounds out
            obs = ours.observe_bytes(ours.seat).tobytes()
            known = ours.seat, theirs.information_state_string()
            assert seen.setdefault(known, obs) == obs
    assert len(seen) < 10_000  # positions that look alike came up


def test_three_seats_are_measured_as_by_the_slow_tree() -> None:
    rules = Rules("kuhn_poker_3")
    slow, tree = SlowTree(rules), Tree(rules)
    for policy in (uniform, at_random(4)):
        found = exploitability(tree, policy)
        expected = slow_exploitability(slow, np.asarray(policy(slow.obs, slow.mask)))
        assert found.values == pytest.approx(expected.values, abs=1e-12)
        assert found.best == pytest.approx(expected.best, abs=1e-12)


@pytest.mark.parametrize(
    ("game", "flags"),
    [("goofspiel", {"cards": 3, "order": "DRAWN"}), ("liars_dice", {"dice": 2, "faces": 2})],
)
def test_chance_is_enumerated_as_far_as_the_flags_have_deals(
    game: str, flags: dict[str, Any]
) -> None:
    rules = Rules(game, flags)
    assert len(deals(rules)) == {"goofspiel": 6, "liars_dice": 16}[game]
    slow, tree = SlowTree(rules), Tree(rules)
    found = exploitability(tree, at_random(3))
    expected = slow_exploitability(slow, np.asarray(at_random(3)(slow.obs, slow.mask)))
    assert found.best == pytest.approx(expected.best, abs=1e-12)


@pytest.mark.parametrize("game", ["dark_hex", "phantom_tic_tac_toe"])
@pytest.mark.parametrize("abrupt", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_hidden_stones_are_measured_as_by_the_slow_tree(game: str, abrupt: int) -> None:
    """Late positions as deals: ours are kept once, those of the slow tree by every way to them."""
    starts, seed = [], 0
    while len(starts) < 2:
        state, seed = new_state(game, seed=seed, config={"abrupt": abrupt}), seed + 1
        for _ in range(7):
            if not state.over:
                state.apply(state.ask("random"))
        if not state.over:
            starts.append(state)
    slow = SlowTree(starts[0].rules, starts)
    tree = Tree(starts[0].rules, starts=starts)
    for policy in (uniform, at_random(6)):
        found = exploitability(tree, policy)
        expected = slow_exploitability(slow, np.asarray(policy(slow.obs, slow.mask)))
        assert found.values == pytest.approx(expected.values, abs=1e-12)
        assert found.best == pytest.approx(expected.best, abs=1e-12)


def test_wild_dice_count_for_every_face() -> None:
    rules = Rules("liars_dice", {"deal": 5 + 6 * 2})  # a six and a three
    state = new_state(rules)
    state.apply(6 + 2)  # two threes
    state.apply(12)
    assert state.scores == [1.0, -1.0] and state.end == "bid was true"


@pytest.mark.parametrize("game", GAMES)
def test_the_page_lists_every_flag_block_and_bot(game: str) -> None:
    page = (Path(__file__).parents[2] / "docs/games/yardsticks.md").read_text()
    part = page.split(f"library: `{game}`", 1)[1].split("\n## ", 1)[0]
    rules = Rules(game)
    flags = [flag for flag in rules.config if flag not in ("skip_forced",)]
    for name in (*flags, *rules.bots[1:], *(block.name for block in rules.blocks)):
        assert f"`{name}`" in part, name
