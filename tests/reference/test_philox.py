"""The generator of the slow twins against known answers."""

from __future__ import annotations

from reference.philox import BOTS, Philox, philox4x32


def test_philox_known_answers() -> None:
    assert philox4x32((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = 0xFFFFFFFF
    known = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    assert philox4x32((ones,) * 4, (ones, ones)) == known
    pi_counter = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    known = (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    assert philox4x32(pi_counter, (0xA4093822, 0x299F31D0)) == known


def test_philox_draws_walk_through_the_blocks() -> None:
    rng = Philox(0x0123456789ABCDEF, game=7, episode=3, stream=BOTS)
    drawn = [rng.u32() for _ in range(9)]
    key = (0x89ABCDEF, 0x01234567)
    expected = [word for block in range(3) for word in philox4x32((block, BOTS, 3, 7), key)]
    assert drawn == expected[:9]
    assert rng.drawn == 9
    assert rng.below(1) == 0
    assert rng.drawn == 10
    assert {rng.below(6) for _ in range(200)} == set(range(6))
