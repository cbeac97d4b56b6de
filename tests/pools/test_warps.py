"""How games are shared out among the warps of a GPU; no GPU is needed to count."""

from __future__ import annotations

import pytest

from sparring.pools.cuda.sizes import LEAST_GAMES, WARP, even_rounds, warps_for

AT_ONCE = 660
"""Warps of Skull King on an H200: five on each of 132 multiprocessors."""


@pytest.mark.parametrize("members", [1, 8])
@pytest.mark.parametrize("each", [32, 1000, 4096, 16384, 22000, 65536, 84480, 86000, 262144])
def test_games_take_no_more_rounds_than_full_warps_would(each: int, members: int) -> None:
    games = even_rounds(each, members, AT_ONCE)
    assert LEAST_GAMES <= games <= WARP
    full = -(-members * warps_for(each, WARP) // AT_ONCE)
    assert -(-members * warps_for(each, games) // AT_ONCE) == full


def test_the_last_round_is_as_full_as_the_others() -> None:
    """65,536 games fill three rounds of full warps and a tenth of a fourth."""
    games = even_rounds(65536, 1, AT_ONCE)
    assert games == 25
    assert warps_for(65536, games) > 3.9 * AT_ONCE
    assert even_rounds(63360, 1, AT_ONCE) == WARP  # three full rounds are as good as it gets
