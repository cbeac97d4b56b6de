"""What small games hide, read from the bytes of their states; test_heads.py has the large ones."""

from __future__ import annotations

from typing import Any

import pytest

from sparring import Pool, Rules
from sparring.capabilities.refusals import games_offering
from sparring.games.hidden import hidden_of, read_hidden

READABLE: dict[str, Any] = {
    "kuhn_poker": lambda f, seat: [f["cards"][1 - seat]],
    "kuhn_poker_3": lambda f, seat: [f["cards"][(seat + away) % 3] for away in (1, 2)],
    "leduc_poker": lambda f, seat: [f["cards"][1 - seat] // 2],
    "liars_dice": lambda f, seat: [f["dice"].reshape(2, 2)[1 - seat, 0] - 1],
    "goofspiel": lambda f, seat: f["bids"].reshape(2, 5)[1 - seat, :4].tolist(),
    "phantom_tic_tac_toe": lambda f, seat: [f["stones"][1 - seat] >> cell & 1 for cell in range(9)],
    "dark_hex": lambda f, seat: [f["stones"][1 - seat] >> cell & 1 for cell in range(9)],
}


@pytest.mark.parametrize("game", READABLE)
def test_what_small_games_hide_is_read_from_their_bytes(game: str) -> None:
    rules = Rules(game)
    hidden = hidden_of(rules)
    assert hidden is not None
    pool = Pool(rules, 8, seed=3, threads=1)
    batch = pool.reset()
    for _ in range(12):
        truth = read_hidden(rules, hidden, pool.tables, batch.seat)
        for number in range(8):
            fields = pool.state_of(number).fields()
            assert truth[number].tolist() == READABLE[game](fields, int(batch.seat[number]))
        batch = pool.step(pool.sample_actions())


def test_games_that_hide_something_declare_it() -> None:
    assert set(games_offering("hidden")) == {
        *("dark_hex", "goofspiel", "kuhhandel", "kuhn_poker", "kuhn_poker_3", "leduc_poker"),
        *("liars_dice", "phantom_tic_tac_toe", "skull_king"),
    }
