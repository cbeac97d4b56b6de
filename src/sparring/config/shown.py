"""What the commands take that show games: as pictures, and again after they were recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional

from sparring.config.ranges import Checked, Seed, between


@dataclass(frozen=True)
class RenderConfig(Checked):
    """Draw a game between policies or bots as a film or a picture."""

    players: Positional[str]
    """A run, checkpoint, policy or bot (bot:NAME too) for seat 0, or one per seat: latest,weak."""
    out: str = "game.gif"
    """The file: .gif, .mp4 (needs ffmpeg), .svg (moves in any browser) or .png (a still)."""
    game: str = ""
    """The game, where all players are bots."""
    against: str = ""
    """Who sits in the other seats, where one player is given. Left out: the best bot."""
    episodes: Annotated[int, between(1, 100)] = 1
    """Games, one after the other."""
    seed: Seed = 0
    """Which game is dealt; the next ones have the numbers after it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one."""
    still: bool = False
    """One picture of the whole game. A .png is always that."""
    speed: Annotated[float, between(0.01, 100)] = 1.0
    """How fast the film runs. 0.5: half as fast as the game."""
    fps: Annotated[float, between(0, 240)] = 0.0
    """Frames per second of a .gif or .mp4. More are smoother and larger. 0: 25 and 50."""
    width: Annotated[int, between(160, 3840)] = 760
    """Pixels from left to right."""
    save: str = ""
    """A file for the game itself, which `sparring replay` plays again; -2, -3 for further ones."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class ReplayFileConfig(Checked):
    """Look at a recorded game: step by step, as text, as a film, or only whether it comes out."""

    file: Positional[str]
    """A file that play, render, eval, arena or a page has saved."""
    seat: Annotated[int, between(-1, 255)] = -1
    """Whose eyes: what this seat knew. -1: everything."""
    text: bool = False
    """Print the whole game instead of stepping through it."""
    check: bool = False
    """Only say whether it comes out as the file says; another result is exit code 3."""
    out: str = ""
    """A film or picture instead: .gif, .mp4, .svg or .png; of Shogi .kif, .csa or .usi too."""
    still: bool = False
    """Of --out: one picture of the whole game. A .png is always that."""
    speed: Annotated[float, between(0.01, 100)] = 1.0
    """Of --out: how fast the film runs."""
    fps: Annotated[float, between(0, 240)] = 0.0
    """Of --out: frames per second of a .gif or .mp4. 0: 25 and 50."""
    width: Annotated[int, between(160, 3840)] = 760
    """Of --out: pixels from left to right."""
    json: bool = False
    """Print the facts as one JSON object."""
