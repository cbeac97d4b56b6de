"""Films of games, or of frames that an environment rendered: GIF, and MP4 with ffmpeg."""

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
"""Maximum number of frames from which the colors of a GIF are chosen."""
COLORS, FLAT_COLORS = 255, 64
"""Of a GIF, and how many of them are exact; one more means unchanged."""
MIN_COLOR_DISTANCE = 8
ROUNDING = 1e-6


@dataclass(frozen=True)
class FilmFrame:
    """A frame of a film with its time."""

    shown: Any
    """Shapes, or pixels."""
    start_s: float
    end_s: float


def sample_frames(film: Film, *, fps: float, speed: float) -> list[FilmFrame]:
    """Return the frames at a frame rate; equal neighbors become one frame."""
    per_frame = speed / film.frame_s / fps
    frames: list[FilmFrame] = []
    for at in range(math.ceil(len(film.frames) / per_frame - ROUNDING)):
        shapes = film.frames[int(at * per_frame + ROUNDING)]
        start_s, end_s = at / fps, (at + 1) / fps
        if frames and frames[-1].shown is shapes:
            frames[-1] = replace(frames[-1], end_s=end_s)
        else:
            frames.append(FilmFrame(shapes, start_s, end_s))
    return frames


class FrameSource:
    """Source of the frames of a film."""

    frames: Sequence[FilmFrame]
    """In the order of their times."""
    size: tuple[int, int]
    """Width and height in pixels."""

    def draw(self, frame: FilmFrame) -> Image.Image:
        raise NotImplementedError

    def sample(self) -> Sequence[FilmFrame]:
        """Return a few frames that have all the colors."""
        raise NotImplementedError

    def palette(self) -> Image.Image:
        """Return a palette for all frames."""
        chosen = self.sample()
        width, height = self.size
        strip = Image.new("RGB", (width, height * len(chosen)))
        for at, frame in enumerate(chosen):
            strip.paste(self.draw(frame), (0, at * height))
        return palette_of(strip)


class GameFrames(FrameSource):
    """Draws the frames of a game's film."""

    def __init__(self, film: Film, frames: Sequence[FilmFrame], width: int) -> None:
        self.canvas = Canvas(film.view, width)
        self.canvas.draw(film.backdrop)
        self.size = self.canvas.size
        self.backdrop, self.frames = self.canvas.image, frames

    def draw(self, frame: FilmFrame) -> Image.Image:
        self.canvas.image = self.backdrop.copy()
        self.canvas.draw(frame.shown)
        return self.canvas.finish()

    def sample(self) -> Sequence[FilmFrame]:
        """Return one frame for every set of shapes."""
        sets = {tuple(shape.key for shape in frame.shown): frame for frame in self.frames}
        return list(sets.values())[-SAMPLE:]


class RenderedFrames(FrameSource):
    """Frames that an environment rendered, all in the size of the first."""

    def __init__(self, frames: Sequence[Frame], fps: float, width: int = 0) -> None:
        """width: in pixels, 0 for that of the frames; sizes are even, as MP4 needs."""
        height, frame_width = frames[0].shape[:2]
        wide = width or frame_width
        tall = round(height * wide / frame_width)
        self.size = wide + wide % 2, tall + tall % 2
        self.frames = [FilmFrame(f, at / fps, (at + 1) / fps) for at, f in enumerate(frames)]

    def draw(self, frame: FilmFrame) -> Image.Image:
        image = Image.fromarray(frame.shown)
        return image if image.size == self.size else image.resize(self.size)

    def sample(self) -> Sequence[FilmFrame]:
        return self.frames[:: max(1, len(self.frames) // SAMPLE)]


def as_frame(given: Any) -> Frame | None:
    """Return a rendered frame as RGB pixels, None if it is not an image."""
    if not hasattr(given, "shape"):
        return None
    frame = np.asarray(given)
    if frame.ndim != 3 or frame.shape[2] not in (3, 4) or frame.dtype != np.uint8:
        return None
    return np.ascontiguousarray(frame[:, :, :3])


def palette_of(image: Image.Image) -> Image.Image:
    """Return a palette of the most common colors, and representatives of the rest."""
    counted: Any = image.getcolors(image.width * image.height)
    flat = np.array([color for _, color in sorted(counted, reverse=True)[:FLAT_COLORS]])
    mixed = image.quantize(COLORS - FLAT_COLORS, method=Image.Quantize.MEDIANCUT)
    others = np.array(mixed.getpalette()).reshape(-1, 3)
    # Pillow confuses colors that are this close.
    apart = np.abs(others[:, None] - flat).max(axis=2).min(axis=1) >= MIN_COLOR_DISTANCE
    made = Image.new("P", (1, 1))
    made.putpalette(np.vstack([flat, others[apart]]).ravel().tolist())
    return made


def write_gif(source: FrameSource, path: Path, tick: Callable[[], None]) -> None:
    """Write a film as a looping GIF file. tick: called before each frame."""
    palette, dither = source.palette(), Image.Dither.NONE

    def images() -> Iterator[Image.Image]:
        for frame in source.frames:
            tick()
            yield source.draw(frame).quantize(palette=palette, dither=dither)

    # The clock of a GIF durations 100 times a second; rounding the times keeps the sum right.
    durations = [round(100 * frame.end_s) - round(100 * frame.start_s) for frame in source.frames]
    drawn = images()
    next(drawn).save(
        path,
        "GIF",
        save_all=True,
        append_images=drawn,
        duration=[10 * duration for duration in durations],
        loop=0,
        optimize=True,
    )


def find_ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    if found is None:
        raise SparringError("an .mp4 needs the program ffmpeg: install ffmpeg, or use .gif")
    return found


def write_mp4(source: FrameSource, path: Path, fps: float, tick: Callable[[], None]) -> None:
    """Write a film as an MP4 file with ffmpeg. tick: called before each frame."""
    width, height = source.size
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}"]
    made = ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", "-y", str(path)]
    words = [find_ffmpeg(), "-loglevel", "error", *given, "-i", "-", "-an", *made]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
        assert ffmpeg.stdin is not None
        assert ffmpeg.stderr is not None
        with suppress(BrokenPipeError):  # ffmpeg has failed; its error is read below
            for frame in source.frames:
                tick()
                pixels = source.draw(frame).tobytes()
                for _ in range(round((frame.end_s - frame.start_s) * fps)):
                    ffmpeg.stdin.write(pixels)
            ffmpeg.stdin.close()
        errors = ffmpeg.stderr.read().decode(errors="replace").strip()
    if ffmpeg.returncode:
        why = errors.splitlines()[-1] if errors else f"exit code {ffmpeg.returncode}"
        raise SparringError(f"ffmpeg could not write the film: {why}; use .gif")
