"""How wide writing is, so that it fits where it is put, whatever draws it.

A picture is drawn with Pillow's font or with whichever one a browser has. The widths here are those
of a wide sans-serif font, so that what fits by them fits in all of them.
"""

from __future__ import annotations

NARROW = {0.29: "'ijl", 0.33: "I ,./:;\\|·", 0.41: "()-[]f!tr", 0.55: '"*?Jcsz`_'}
WIDE = {0.7: "ABCKRVXZ", 0.79: "&DGHNOQU", 0.87: "#+<=>M^w~", 1.0: "%@Wm…"}
DEFAULT_WIDTH, NON_ASCII_WIDTH, BOLD_FACTOR = 0.64, 1.0, 1.12
"""Widths of most letters and digits and of what is not in ASCII; how much wider bold is."""
WIDTHS = {
    **{chr(code): DEFAULT_WIDTH for code in range(32, 127)},
    **{letter: width for width, letters in (NARROW | WIDE).items() for letter in letters},
}
ELLIPSIS = "…"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a line of text is at most, in the units of its size."""
    return (
        size
        * sum(WIDTHS.get(letter, NON_ASCII_WIDTH) for letter in text)
        * (BOLD_FACTOR if bold else 1.0)
    )


def truncate_text(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """Return a text that fits: of a long one the beginning and the end, which say most."""
    if text_width(text, size, bold=bold) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        front, back = kept // 2, kept - kept // 2
        shorter = f"{text[:front].rstrip()}{ELLIPSIS}{text[len(text) - back :].lstrip()}"
        if text_width(shorter, size, bold=bold) <= room:
            return shorter
    return ELLIPSIS if text_width(ELLIPSIS, size, bold=bold) <= room else ""
