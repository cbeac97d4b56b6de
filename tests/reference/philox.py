"""Philox4x32-10, the counter-based generator behind every random draw.

Draw number n depends only on (seed, game, episode, stream, n), so two implementations agree on
every draw without sharing any state.
"""

from __future__ import annotations

from typing import Protocol

CHANCE, BOTS, LINEUPS, SAMPLING = range(4)

MASK = 0xFFFFFFFF
MULTIPLIER_0 = 0xD2511F53
MULTIPLIER_1 = 0xCD9E8D57
WEYL_0 = 0x9E3779B9
WEYL_1 = 0xBB67AE85
ROUNDS = 10


class Rng(Protocol):
    """What a game or a bot draws from; tests put scripted numbers in its place."""

    def u32(self) -> int: ...

    def below(self, m: int) -> int: ...


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, ...]:
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product0 = MULTIPLIER_0 * c0
        product1 = MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & MASK,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & MASK,
        )
        k0 = (k0 + WEYL_0) & MASK
        k1 = (k1 + WEYL_1) & MASK
    return c0, c1, c2, c3


class Philox:
    def __init__(self, seed: int, game: int, episode: int, stream: int, drawn: int = 0) -> None:
        self.key = (seed & MASK, (seed >> 32) & MASK)
        self.game = game & MASK
        self.episode = episode & MASK
        self.stream = stream & MASK
        self.drawn = drawn
        self._block: tuple[int, ...] = ()

    def u32(self) -> int:
        word = self.drawn % 4
        if word == 0 or not self._block:
            counter = (self.drawn // 4 & MASK, self.stream, self.episode, self.game)
            self._block = philox4x32(counter, self.key)
        self.drawn += 1
        return self._block[word]

    def below(self, m: int) -> int:
        """Unbiased draw from 0..m-1 by Lemire's rejection; below(1) consumes a draw too."""
        if not 0 < m <= 1 << 32:
            raise ValueError(f"below({m}): the bound must be in 1..2**32")
        product = self.u32() * m
        if product & MASK < m:
            threshold = ((1 << 32) - m) % m
            while product & MASK < threshold:
                product = self.u32() * m
        return product >> 32
