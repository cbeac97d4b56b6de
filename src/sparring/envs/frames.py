"""Positions as Gymnasium renders them: text, or pixels where a game has a picture."""

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
"""Of a frame, in pixels."""
USUAL_FPS = 2
"""Of a game without a clock of its own."""

Frame = str | npt.NDArray[np.uint8]


def render_modes(rules: Rules) -> list[str]:
    """Return how a game can be shown; pictures that are whole documents have no pixels."""
    module = game_module(rules.name, "picture")
    drawn = module is not None and not isinstance(module.PICTURE, SvgPicture)
    return [ANSI, RGB_ARRAY] if drawn else [ANSI]


def metadata_of(rules: Rules, mode: str | None) -> dict[str, Any]:
    """Return what an environment says of its rendering; refuse a mode that a game does not have."""
    modes = render_modes(rules)
    if mode is not None and mode not in modes:
        known = ", ".join(map(repr, modes))
        raise ConfigError(f"render_mode={mode!r}: {rules.name} has None, {known}")
    fps = round(1 / film_of(new_state(rules)).frame_s) if mode == RGB_ARRAY else USUAL_FPS
    return {"render_modes": modes, "render_fps": max(fps, 1)}


def frame(state: State, mode: str, names: tuple[str, ...]) -> Frame:
    """Return the whole position, hidden things included, as text or as pixels [h, w, 3]."""
    if mode == ANSI:
        return state.text()
    film = film_of(state, names)
    shown = film.frames[-1 if state.over else 0]  # what follows the position is its result
    image = GameFrames(film, [], WIDTH).draw(FilmFrame(shown, 0.0, film.frame_s))
    return np.asarray(image, np.uint8)


def film_of(state: State, names: tuple[str, ...] = ()) -> Film:
    """Return a film of one position."""
    picture = picture_of(state.rules)
    assert not isinstance(picture, SvgPicture), "render_modes has no pixels for it"
    seats = range(state.rules.seats)
    named = names or tuple(f"seat {seat}" for seat in seats)
    return picture.film([RecordedEpisode([state], named, tuple(0 for _ in seats))])
