"""Films of frames that somebody else drew: pixels as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sparring.draw.pictures.film import SAMPLE, palette_of
from sparring.draw.pictures.pixels import pillow

if TYPE_CHECKING:
    from PIL.Image import Image

Frame = npt.NDArray[np.uint8]
"""[height, width, 3]."""


@dataclass(frozen=True)
class FrameShot:
    """A frame and when it is shown."""

    frame: Frame
    start_s: float
    end_s: float


class FrameReel:
    """Frames as `write_gif` and `write_mp4` take them, all in the size of the first."""

    def __init__(self, frames: Sequence[Frame], fps: float, width: int = 0) -> None:
        """width: pixels from left to right, 0 for the frames' own; sizes are even, as films are."""
        height, own = frames[0].shape[:2]
        wide = width or own
        tall = round(height * wide / own)
        self.size = wide + wide % 2, tall + tall % 2
        self.shots = [FrameShot(f, at / fps, (at + 1) / fps) for at, f in enumerate(frames)]

    def draw(self, shot: FrameShot) -> Image:
        """Return the image of a shot."""
        image: Image = pillow().image.fromarray(shot.frame)
        return image if image.size == self.size else image.resize(self.size)

    def palette(self) -> Image:
        """Return colours that suit all shots, from some all over the film."""
        chosen = self.shots[:: max(1, len(self.shots) // SAMPLE)]
        width, height = self.size
        strip: Image = pillow().image.new("RGB", (width, height * len(chosen)))
        for at, shot in enumerate(chosen):
            strip.paste(self.draw(shot), (0, at * height))
        return palette_of(strip)


def as_frame(given: Any) -> Frame | None:
    """Return what an environment drew as pixels, None if it is no picture."""
    if not hasattr(given, "shape"):
        return None
    frame = np.asarray(given)
    if frame.ndim != 3 or frame.shape[2] not in (3, 4) or frame.dtype != np.uint8:
        return None
    return np.ascontiguousarray(frame[:, :, :3])
