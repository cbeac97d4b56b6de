"""The worth of what stands in an SFEN, as the specification has it."""

from __future__ import annotations

import re

VALUES = {"P": 90, "L": 315, "N": 405, "S": 495, "B": 855, "R": 990, "G": 540, "K": 0}
PROMOTED = {"P": 540, "L": 540, "N": 540, "S": 540, "B": 945, "R": 1395}


def balance(sfen: str) -> int:
    """What Black has on the board and in hand, less what White has."""
    board, _, hands, _ = sfen.split()
    total = 0
    for sign, letter in re.findall(r"(\+?)([A-Za-z])", board):
        worth = (PROMOTED if sign else VALUES)[letter.upper()]
        total += worth if letter.isupper() else -worth
    for count, letter in re.findall(r"(\d*)([A-Za-z])", hands):
        worth = int(count or 1) * VALUES[letter.upper()]
        total += worth if letter.isupper() else -worth
    return total
