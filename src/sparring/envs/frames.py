"""Renders states for Gymnasium: text, or pixels for games with a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.draw.pictures.film import FilmFrame, GameFrames
from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.picture import Film, RecordedEpisode, SvgPicture, picture_of
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

ANSI, RGB_ARRAY = "ansi", "rgb_array"
WIDTH = 480
"""Width of a frame in pixels."""
DEFAULT_FPS = 2
"""Frames per second of a game without real time."""

Frame = str | npt.NDArray[np.uint8]


def render_modes(rules: Rules) -> list[str]:
    """Return the render modes of a game; SVG pictures have no pixels."""
    module = game_module(rules.name, "picture")
    drawn = module is not None and not isinstance(module.PICTURE, SvgPicture)
    return [ANSI, RGB_ARRAY] if drawn else [ANSI]


def metadata_of(rules: Rules, mode: str | None) -> dict[str, Any]:
    """Return the metadata of an environment; raise for an unknown mode."""
    modes = render_modes(rules)
    if mode is not None and mode not in modes:
        known = ", ".join(map(repr, modes))
        raise ConfigError(f"render_mode={mode!r}: {rules.name} has None, {known}")
    fps = round(1 / make_film(new_state(rules)).frame_s) if mode == RGB_ARRAY else DEFAULT_FPS
    return {"render_modes": modes, "render_fps": max(fps, 1)}


def frame(state: State, mode: str, names: tuple[str, ...]) -> Frame:
    """Return a state, hidden information included, as text or pixels [h, w, 3]."""
    if mode == ANSI:
        return state.text()
    film = make_film(state, names)
    shown = film.frames[-1 if state.over else 0]  # what follows the position is its result
    image = GameFrames(film, [], WIDTH).draw(FilmFrame(shown, 0.0, film.frame_s))
    return np.asarray(image, np.uint8)


def make_film(state: State, names: tuple[str, ...] = ()) -> Film:
    """Return a film of one state."""
    picture = picture_of(state.rules)
    assert not isinstance(picture, SvgPicture), "render_modes has no pixels for it"
    seats = range(state.rules.seats)
    named = names or tuple(f"seat {seat}" for seat in seats)
    return picture.film([RecordedEpisode([state], named, tuple(0 for _ in seats))])
