"""Estimated width of text, and truncation to a width.

Pictures are drawn with Pillow's font or a browser's. The widths are those of a wide sans-serif
font, so that a text which fits here fits with either.
"""

from __future__ import annotations

NARROW = {0.29: "'ijl", 0.33: "I ,./:;\\|·", 0.41: "()-[]f!tr", 0.55: '"*?Jcsz`_'}
WIDE = {0.7: "ABCKRVXZ", 0.79: "&DGHNOQU", 0.87: "#+<=>M^w~", 1.0: "%@Wm…"}
DEFAULT_WIDTH, NON_ASCII_WIDTH, BOLD_FACTOR = 0.64, 1.0, 1.12
"""Width of ordinary letters and digits, of non-ASCII letters, and factor of bold text."""
WIDTHS = {
    **{chr(code): DEFAULT_WIDTH for code in range(32, 127)},
    **{letter: width for width, letters in (NARROW | WIDE).items() for letter in letters},
}
ELLIPSIS = "…"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the largest width of a line of text, in units of its size."""
    return (
        size
        * sum(WIDTHS.get(letter, NON_ASCII_WIDTH) for letter in text)
        * (BOLD_FACTOR if bold else 1.0)
    )


def truncate_text(text: str, size: float, max_width: float, *, bold: bool = False) -> str:
    """Return a text that fits; a long one loses its middle."""
    if text_width(text, size, bold=bold) <= max_width:
        return text
    for length in range(len(text) - 1, 0, -1):
        front, back = length // 2, length - length // 2
        shorter = f"{text[:front].rstrip()}{ELLIPSIS}{text[len(text) - back :].lstrip()}"
        if text_width(shorter, size, bold=bold) <= max_width:
            return shorter
    return ELLIPSIS if text_width(ELLIPSIS, size, bold=bold) <= max_width else ""
