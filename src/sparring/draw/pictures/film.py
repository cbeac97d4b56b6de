"""Films in pixels, of games and of frames that somebody else drew: GIF, and MP4 by ffmpeg."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from sparring.draw.pictures.pixels import Canvas
from sparring.errors import SparringError
from sparring.games.picture import Film

Frame = npt.NDArray[np.uint8]
"""[height, width, 3]."""
SAMPLE = 16
"""Most frames from which the colors of a GIF are chosen."""
COLORS, FLAT_COLORS = 255, 64
"""In a GIF, and how many of them are kept exactly; one more stands for what does not change."""
MIN_COLOR_DISTANCE = 8
ROUNDING = 1e-6


@dataclass(frozen=True)
class FilmFrame:
    """A frame of a film and when it is shown."""

    shown: Any
    """Shapes, or pixels."""
    start_s: float
    end_s: float


def sample_frames(film: Film, *, fps: float, speed: float) -> list[FilmFrame]:
    """Return the frames that are shown at a rate; a frame that lasts longer is one shot."""
    per_frame = speed / film.frame_s / fps
    shots: list[FilmFrame] = []
    for at in range(math.ceil(len(film.frames) / per_frame - ROUNDING)):
        shapes = film.frames[int(at * per_frame + ROUNDING)]
        start_s, end_s = at / fps, (at + 1) / fps
        if shots and shots[-1].shown is shapes:
            shots[-1] = replace(shots[-1], end_s=end_s)
        else:
            shots.append(FilmFrame(shapes, start_s, end_s))
    return shots


class FrameSource:
    """What is written as a film."""

    shots: Sequence[FilmFrame]
    """In the order of their times."""
    size: tuple[int, int]
    """Width and height in pixels."""

    def draw(self, shot: FilmFrame) -> Image.Image:
        raise NotImplementedError

    def sample(self) -> Sequence[FilmFrame]:
        """Return a few shots that have all the colors."""
        raise NotImplementedError

    def palette(self) -> Image.Image:
        """Return colors that suit all shots."""
        chosen = self.sample()
        width, height = self.size
        strip = Image.new("RGB", (width, height * len(chosen)))
        for at, shot in enumerate(chosen):
            strip.paste(self.draw(shot), (0, at * height))
        return palette_of(strip)


class GameFrames(FrameSource):
    """Draws the shots of a film."""

    def __init__(self, film: Film, shots: Sequence[FilmFrame], width: int) -> None:
        self.canvas = Canvas(film.view, width)
        self.canvas.draw(film.backdrop)
        self.size = self.canvas.size
        self.backdrop, self.shots = self.canvas.image, shots

    def draw(self, shot: FilmFrame) -> Image.Image:
        self.canvas.image = self.backdrop.copy()
        self.canvas.draw(shot.shown)
        return self.canvas.finish()

    def sample(self) -> Sequence[FilmFrame]:
        """Return one for every set of things that are shown."""
        sets = {tuple(shape.key for shape in shot.shown): shot for shot in self.shots}
        return list(sets.values())[-SAMPLE:]


class RenderedFrames(FrameSource):
    """Frames that somebody else drew, all in the size of the first."""

    def __init__(self, frames: Sequence[Frame], fps: float, width: int = 0) -> None:
        """width: pixels from left to right, 0 for the frames' own; sizes are even, as films are."""
        height, own = frames[0].shape[:2]
        wide = width or own
        tall = round(height * wide / own)
        self.size = wide + wide % 2, tall + tall % 2
        self.shots = [FilmFrame(f, at / fps, (at + 1) / fps) for at, f in enumerate(frames)]

    def draw(self, shot: FilmFrame) -> Image.Image:
        image = Image.fromarray(shot.shown)
        return image if image.size == self.size else image.resize(self.size)

    def sample(self) -> Sequence[FilmFrame]:
        return self.shots[:: max(1, len(self.shots) // SAMPLE)]


def as_frame(given: Any) -> Frame | None:
    """Return what an environment drew as pixels, None if it is no picture."""
    if not hasattr(given, "shape"):
        return None
    frame = np.asarray(given)
    if frame.ndim != 3 or frame.shape[2] not in (3, 4) or frame.dtype != np.uint8:
        return None
    return np.ascontiguousarray(frame[:, :, :3])


def palette_of(image: Image.Image) -> Image.Image:
    """Return the most common colors as they are, and others that stand for all the rest."""
    counted: Any = image.getcolors(image.width * image.height)
    flat = np.array([color for _, color in sorted(counted, reverse=True)[:FLAT_COLORS]])
    mixed = image.quantize(COLORS - FLAT_COLORS, method=Image.Quantize.MEDIANCUT)
    others = np.array(mixed.getpalette()).reshape(-1, 3)
    # Pillow does not tell apart what is this close, and would take the wrong one for the right one.
    apart = np.abs(others[:, None] - flat).max(axis=2).min(axis=1) >= MIN_COLOR_DISTANCE
    made = Image.new("P", (1, 1))
    made.putpalette(np.vstack([flat, others[apart]]).ravel().tolist())
    return made


def write_gif(studio: FrameSource, path: Path, tell: Callable[[], None]) -> None:
    """Write a film as a GIF file that plays over and over."""
    palette, dither = studio.palette(), Image.Dither.NONE

    def images() -> Iterator[Image.Image]:
        for shot in studio.shots:
            tell()
            yield studio.draw(shot).quantize(palette=palette, dither=dither)

    # The clock of a GIF ticks 100 times a second; rounding the times keeps the sum right.
    ticks = [round(100 * shot.end_s) - round(100 * shot.start_s) for shot in studio.shots]
    drawn = images()
    next(drawn).save(
        path,
        "GIF",
        save_all=True,
        append_images=drawn,
        duration=[10 * tick for tick in ticks],
        loop=0,
        optimize=True,
    )


def find_ffmpeg() -> str:
    """Return where the program is that writes MP4 files."""
    found = shutil.which("ffmpeg")
    if found is None:
        raise SparringError("an .mp4 needs the program ffmpeg: install ffmpeg, or use .gif")
    return found


def write_mp4(studio: FrameSource, path: Path, fps: float, tell: Callable[[], None]) -> None:
    """Write a film as an MP4 file: ffmpeg gets the pixels through a pipe."""
    width, height = studio.size
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}"]
    made = ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", "-y", str(path)]
    words = [find_ffmpeg(), "-loglevel", "error", *given, "-i", "-", "-an", *made]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
        assert ffmpeg.stdin is not None
        assert ffmpeg.stderr is not None
        with suppress(BrokenPipeError):  # it has given up, and says why
            for shot in studio.shots:
                tell()
                pixels = studio.draw(shot).tobytes()
                for _ in range(round((shot.end_s - shot.start_s) * fps)):
                    ffmpeg.stdin.write(pixels)
            ffmpeg.stdin.close()
        told = ffmpeg.stderr.read().decode(errors="replace").strip()
    if ffmpeg.returncode:
        why = told.splitlines()[-1] if told else f"exit code {ffmpeg.returncode}"
        raise SparringError(f"ffmpeg could not write the film: {why}; use .gif")
