"""Random draws: Philox4x32-10, the counter-based generator of the native core, in plain Python.

`philox` is the same text for the interpreter and for Numba: whole numbers of 64 bits with a sign,
masked after every product, so that neither overflow nor promotion can differ.
"""

from __future__ import annotations

from typing import Any

MASK = 0xFFFFFFFF
WORDS = 12
"""Words of 32 bits in the core's generator: seed (2), game, episode, stream, draws, block number,
block (4), padding."""
SEED, GAME, EPISODE, STREAM, DRAWN, NUMBER, BLOCK = 0, 2, 3, 4, 5, 6, 7


def philox(c0: Any, c1: Any, c2: Any, c3: Any, key: Any) -> Any:
    """Return the four words of a counter and a key of two words."""
    k0, k1 = key
    for _ in range(10):
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0 = ((p1 >> 32) & 0xFFFFFFFF) ^ c1 ^ k0
        c2 = ((p0 >> 32) & 0xFFFFFFFF) ^ c3 ^ k1
        c1 = p1 & 0xFFFFFFFF
        c3 = p0 & 0xFFFFFFFF
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def next_word(words: Any) -> Any:
    """Draw the next word of 32 bits; `words` is the state of the core's generator, as int32."""
    drawn = words[5] & 0xFFFFFFFF
    number = drawn >> 2
    if number != words[6] & 0xFFFFFFFF:
        block = philox(
            number,
            words[4] & 0xFFFFFFFF,
            words[3] & 0xFFFFFFFF,
            words[2] & 0xFFFFFFFF,
            (words[0] & 0xFFFFFFFF, words[1] & 0xFFFFFFFF),
        )
        words[7] = signed(block[0])
        words[8] = signed(block[1])
        words[9] = signed(block[2])
        words[10] = signed(block[3])
        words[6] = signed(number)
    words[5] = signed(drawn + 1)
    return words[7 + (drawn & 3)] & 0xFFFFFFFF


def signed(word: Any) -> Any:
    """The number of 32 bits with a sign that has the same bits."""
    return ((word & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def draw_below(words: Any, count: Any) -> Any:
    """Draw a whole number below `count`, all equally likely."""
    if count < 1 or count > 0x7FFFFFFF:
        raise ValueError("rng.below(n) needs n from 1 to 2147483647")
    product = next_word(words) * count
    if product & 0xFFFFFFFF < count:
        threshold = (0x100000000 - count) % count
        while product & 0xFFFFFFFF < threshold:
            product = next_word(words) * count
    return product >> 32


def draw_uniform(words: Any) -> Any:
    """Draw a number from 0 to 1, 1 excluded, in steps of 2**-24."""
    return (next_word(words) >> 8) * (1.0 / 16777216.0)


class Rng:
    """Random draws of a rule, as the interpreter sees them; compiled code has the same methods."""

    __slots__ = ("_words",)

    def __init__(self, words: Any) -> None:
        """words: a writable buffer of 12 numbers of type int32."""
        self._words = words

    def below(self, count: int) -> int:
        """Draw a whole number from 0 to count - 1."""
        if not isinstance(count, int):
            raise TypeError(f"rng.below({count!r}): give a whole number")
        return int(draw_below(self._words, count))

    def uniform(self) -> float:
        """Draw a number from 0 to 1, 1 excluded."""
        return float(draw_uniform(self._words))
