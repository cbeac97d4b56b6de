"""The film of the README: champions play three games side by side.

python scripts/film.py [FILE]     default: docs/images/film.gif
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

import sparring
from sparring.commands.render import play
from sparring.config.tools import RenderConfig
from sparring.draw.pictures.film import FilmFrame, FrameSource, GameFrames, write_gif
from sparring.games.picture import picture_of

OUT = Path(__file__).parents[1] / "docs/images/film.gif"
SECONDS, FPS = 20, 10
HEIGHT, GAP = 300, 6
PAPER = "#f3f5f9"


@dataclass(frozen=True)
class Panel:
    """One game of the strip: who plays, and which part of the film at which speed."""

    game: str
    rivals: tuple[str, ...]
    speed: float = 1.0
    last_s: float = 0.0
    """Only the end of the film; 0: all of it."""
    episodes: int = 1
    seed: int = 0


PANELS = (
    Panel("skull_king", ("captain",) * 3, speed=2.0, last_s=38.0, seed=1),
    Panel("laser_hockey", ("strong",), episodes=9, seed=2),
    Panel("connect_four", ("ab6",), speed=1.15),
)


def shot(panel: Panel) -> list[Image.Image]:
    """Play a champion against bots and draw what a strip shows of it."""
    champion = sparring.load(f"{panel.game}:champion")
    rules = champion.rules
    episodes, _ = play(
        rules,
        (champion, *panel.rivals),
        RenderConfig("champion", episodes=panel.episodes, seed=panel.seed),
    )
    names = ("champion", *panel.rivals)
    picture: Any = picture_of(rules)
    film = picture.film([replace(one, names=names) for one in episodes])
    width = round(HEIGHT * film.view.width / film.view.height)
    drawn = GameFrames(film, [], width)
    times = [int(at / FPS * panel.speed / film.frame_s) for at in range(SECONDS * FPS)]
    last = len(film.frames) - 1
    skip = last - int(panel.last_s / film.frame_s) if panel.last_s else 0
    kept: dict[int, Image.Image] = {}
    images = []
    for time in times:
        at = min(skip + time, last)
        if at not in kept:
            kept[at] = drawn.draw(FilmFrame(film.frames[at], 0, 0)).resize((width, HEIGHT))
        images.append(kept[at])
    return images


class Strip(FrameSource):
    """Films side by side."""

    def __init__(self, films: Sequence[Sequence[Image.Image]]) -> None:
        self.films = films
        self.frames = [
            FilmFrame(at, at / FPS, (at + 1) / FPS) for at in range(min(map(len, films)))
        ]
        self.size = sum(film[0].width + GAP for film in films) - GAP, HEIGHT

    def draw(self, frame: FilmFrame) -> Image.Image:
        strip, left = Image.new("RGB", self.size, PAPER), 0
        for film in self.films:
            strip.paste(film[frame.shown], (left, 0))
            left += film[0].width + GAP
        return strip

    def sample(self) -> Sequence[FilmFrame]:
        return self.frames[:: len(self.frames) // 16]


def main() -> None:
    out = Path(sys.argv[1]) if sys.argv[1:] else OUT
    strip = Strip([shot(panel) for panel in PANELS])
    write_gif(strip, out, lambda: None)
    print(
        f"{out}: {strip.size[0]} x {strip.size[1]}, {len(strip.frames)} frames, "
        f"{out.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
