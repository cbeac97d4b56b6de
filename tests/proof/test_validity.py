"""A pool is measured only if it plays whole games."""

from __future__ import annotations

import pytest

from sparring import Rules
from sparring.proof import validity


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({}, 260),
        ({"num_players": 2}, 130),
        ({"num_players": 2, "ghost": 0}, 130),
        ({"num_players": 8}, 496),
        ({"num_players": 8, "cap8": 9}, 512),
        ({"num_players": 7, "deck": "CLASSIC66"}, 448),
        ({"scoring": "RASCAL", "cannonball": 1}, 300),
        ({"rounds": [5, 5, 5]}, 72),
    ],
)
def test_games_have_the_length_of_their_rules(config: dict, length: int) -> None:
    proof = validity.Proof()
    validity.play_whole_games(Rules("skull_king", config), 3, proof)
    assert proof.problems == []
    assert (proof.shortest, proof.longest) == (length, length)


def test_play_decides_the_length_with_abilities() -> None:
    proof = validity.Proof()
    validity.play_whole_games(Rules("skull_king", {"abilities": 1}), 3, proof)
    assert proof.problems == []
    assert proof.shortest < proof.longest


def test_nine_rounds_of_ten_are_not_measured() -> None:
    broken = Rules("skull_king")
    assert broken.config["rounds"][-1] == 10
    broken.native = Rules("skull_king", {"rounds": list(range(1, 10))}).native
    proof = validity.prove(broken, 0)
    assert proof.problems == ["games have 216..216 decisions, the rules make it 260 in every game"]
