"""Flags and presets of Kuhhandel do what they say, and bad positions are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import sparring
from games.kuhhandel_helpers import FULL_FARM, lay, opened, play
from sparring.games.kuhhandel import KuhhandelPosition, load_position, read
from vectors import kuhhandel as vectors
from vectors.kuhhandel import H, action


def test_flags_of_section_9() -> None:
    """Each option does what its line says; the defaults are in the vectors."""
    farms = [{"cow": 1}, {"cow": 1}, {"cow": 2}]

    def traded(offer: Sequence[int], counter: Sequence[int], **config: Any) -> KuhhandelPosition:
        state = load_position(farms, config=config)
        state.apply(9)
        lay(state, offer)
        state.apply(action("COUNTER"))
        lay(state, counter)
        return read(state)

    ten = [0, 1, 0, 0, 0, 0]
    # K8: tied piles go back, and nobody has learned anything.
    back = traded(ten, [1, 1, 0, 0, 0, 0], tie_money="TAKE_BACK")
    assert (back.ties, back.money) == (1, [tuple(H)] * 3)
    assert back.known[2][0] == back.known[0][1] == tuple(H)
    # K11: zeros return to their owners.
    zeros = traded([2, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], zeros_return=1)
    assert zeros.money[0] == (2, 3, 1, 0, 0, 0)
    assert zeros.money[1] == (2, 5, 1, 0, 0, 0)
    # K7: a pile may be empty.
    empty = traded([0] * 6, [0] * 6, empty_offer=1, tie_rounds=1)
    assert empty.animals[0][8] == 2
    # K6: everybody sees what is paid.
    vector = vectors.Auction("", "", config={"open_pay": 1})
    state = opened(vector)
    play(state, "1 RAISE, 2 RAISE, 1 PASS, 0 SELL, 2 NUM 0")
    at = read(state)
    assert at.known[1] == at.money
    # K2: HARD passes stay, but a repeated auction starts from zero for everybody.
    state = opened(vectors.Auction("", "", config={"pass_mode": "HARD"}))
    play(state, "1 PASS, 2 NUM 2, 2 NUM 0, 0 SELL")
    assert (state.seat, read(state).phase, read(state).passed) == (1, "bid", [])


def test_k14_the_limit_cuts_or_scores() -> None:
    for at_limit, terminated in (("CUT", False), ("SCORE", True)):
        config = {"max_decisions": 300, "at_limit": at_limit}
        state = sparring.new_state("kuhhandel", seed=2, config=config)
        rng = np.random.default_rng(0)
        decisions = 0
        while not state.over:
            assert not state.rewards.any()
            state.apply(int(rng.choice(state.legal())))
            decisions += 1
        assert decisions == 300
        assert (state.terminated, state.truncated) == (terminated, not terminated)
        assert state.end == "decision limit"
        assert state.rewards.any() == terminated
        assert state.audit() == ""


def test_presets() -> None:
    from sparring.games.kuhhandel import PRESETS

    fast = sparring.Rules("kuhhandel", PRESETS["FAST"]).config
    assert (fast["bluff"], fast["pay_mode"], fast["pass_mode"]) == ("FORBID", "AUTO", "HARD")
    seed = sparring.Rules("kuhhandel", PRESETS["SEED"]).config
    assert (seed["bluff"], seed["pay_mode"], seed["pass_mode"]) == ("FORBID", "AUTO", "SOFT")
    assert (seed["tie_rounds"], seed["empty_offer"]) == (1, 1)
    assert PRESETS["OFFICIAL"] == {}
    with pytest.raises(sparring.ConfigError, match="edition=1 is outside"):
        sparring.Rules("kuhhandel", {"edition": 1})


@pytest.mark.parametrize(
    ("farms", "change", "message"),
    [
        ([{}, {}], {}, "num_players=2 is outside 3..5"),
        ([{"yak": 1}, {}, {}], {}, "no animal called 'yak'"),
        ([{"cow": 3}, {"cow": 2}, {}], {}, "four of cow"),
        ([{}, {}, {}], {"turn": 3}, "turn must be 0..2"),
        ([{}, {}, {}], {"deck": ["cow"] * 5}, "at most 40 cards"),
        ([{}, {}, {}], {"money": [H, H]}, "3 players need 3 farms and hands"),
        ([{}, {}, {}], {"money": [[11, 0, 0, 0, 0, 0], H, H]}, "counts of money"),
        (
            [{}, {}, {}],
            {"money": [[0, 0, 0, 0, 0, 5], [0, 0, 0, 0, 0, 5], H]},
            "fewer cards of 500",
        ),
        ([FULL_FARM, {}, {}], {}, "can do nothing"),
    ],
)
def test_bad_positions_are_refused(
    farms: list[dict[str, int]], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(sparring.ConfigError, match=message):
        load_position(farms, **change)
