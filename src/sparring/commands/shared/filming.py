"""Films and pictures of games: the --out of `sparring render` and `sparring replay`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sparring.commands.shared.printing import ProgressBar
from sparring.config.tools import RenderConfig, ReplayFileConfig
from sparring.draw.pictures import film as films
from sparring.draw.pictures import pixels, svg
from sparring.errors import ConfigError
from sparring.games import Rules
from sparring.games.picture import Film, Picture, RecordedEpisode, SvgPicture
from sparring.output_files import check_file, writing
from sparring.store.files import temp_name

FPS = {".gif": 25.0, ".mp4": 50.0}
MAX_FPS = {".gif": 50.0, ".mp4": 240.0}
"""Browsers slow down GIFs whose frames are shorter than 0.02 s."""
SUFFIXES = (".gif", ".mp4", ".svg", ".png")
USUAL_WIDTH = RenderConfig.width


FilmOptions = RenderConfig | ReplayFileConfig


def check_options(config: FilmOptions, out: Path) -> None:
    """Refuse options that cannot be drawn, before anything takes time."""
    check_file(out, "--out", suffixes=SUFFIXES)
    if config.width % 2:
        raise ConfigError(f"--width {config.width} must be an even number; try {config.width + 1}")
    check_timing(config, out.suffix)
    if out.suffix == ".mp4":
        films.find_ffmpeg()


def check_timing(config: FilmOptions, kind: str) -> None:
    """Refuse options of films for stills and vice versa, and speeds out of range."""
    if config.still and kind in FPS:
        raise ConfigError(f"a {kind} is a film; for --still write .png or .svg")
    if (config.still or kind == ".png") and (config.fps or config.speed != 1):
        raise ConfigError("--fps and --speed are for films; leave them out, or write .gif")
    if kind == ".svg" and config.fps:
        raise ConfigError("--fps is for .gif and .mp4; an .svg moves smoothly without it")
    if kind in FPS and config.fps and not 1 <= config.fps <= MAX_FPS[kind]:
        raise ConfigError(f"--fps {config.fps:g} is outside 1..{MAX_FPS[kind]:g} of a {kind}")


def check_documents(config: FilmOptions, rules: Rules, out: Path) -> None:
    """Refuse options that a game with its own SVG documents does not support."""
    if out.suffix != ".svg":
        raise ConfigError(f"{rules.name} is drawn as SVG alone: --out {out.with_suffix('.svg')}")
    if config.width != USUAL_WIDTH:
        raise ConfigError(f"the picture of {rules.name} has a fixed size; leave out --width")


@contextmanager
def finished(path: Path) -> Iterator[Path]:
    """Yield a temporary path; the file is renamed when it is complete, or removed."""
    unfinished = path.with_name(temp_name(path.name))
    try:
        with writing(path, "--out"):
            yield unfinished
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def draw(
    picture: Picture | SvgPicture,
    episodes: Sequence[RecordedEpisode],
    config: FilmOptions,
    path: Path,
) -> dict[str, Any]:
    """Write the file and return its facts: frames (none in a still) and seconds."""
    kind = Path(config.out).suffix
    if isinstance(picture, SvgPicture):
        return draw_pages(picture, episodes, config, path)
    if kind == ".png" or config.still:
        drawing = picture.still(episodes[0])
        if kind == ".png":
            path.write_bytes(pixels.draw_png(drawing, config.width))
        else:
            path.write_text(svg.draw_svg(drawing, config.width), "utf-8")
        return {"frames": 0, "seconds": 0.0}
    film = picture.film(episodes)
    seconds = len(film.frames) * film.frame_s / config.speed
    if kind == ".svg":
        path.write_text(svg.animate_svg(film, config.width, seconds), "utf-8")
        return {"frames": len(film.frames), "seconds": seconds}
    return shoot(film, config, path)


def draw_pages(
    picture: SvgPicture, episodes: Sequence[RecordedEpisode], config: FilmOptions, path: Path
) -> dict[str, Any]:
    if config.still:
        path.write_text(picture.svg(episodes[0].states[-1]), "utf-8")
        return {"frames": 0, "seconds": 0.0}
    pages = [picture.svg(state) for episode in episodes for state in episode.states]
    seconds = len(pages) * picture.frame_s / config.speed
    path.write_text(svg.flip_through(pages, seconds), "utf-8")
    return {"frames": len(pages), "seconds": seconds}


def shoot(film: Film, config: FilmOptions, path: Path) -> dict[str, Any]:
    kind = Path(config.out).suffix
    fps = config.fps or FPS[kind]
    shots = films.sample_frames(film, fps=fps, speed=config.speed)
    write_reel(films.GameFrames(film, shots, config.width), path, kind, fps)
    return {"frames": len(shots), "seconds": shots[-1].end_s}


def write_reel(reel: films.FrameSource, path: Path, kind: str, fps: float) -> None:
    with ProgressBar("drawing", len(reel.frames)) as steps:
        count = partial(steps.next, "frames")
        if kind == ".gif":
            films.write_gif(reel, path, count)
        else:
            films.write_mp4(reel, path, fps, count)


def result_line(
    rules: Rules, steps: int, end: str | None, names: Sequence[str], scores: Sequence[float]
) -> str:
    """Return one line about a game: steps, end and scores."""
    results = ", ".join(f"{name} {score:g}" for name, score in zip(names, scores, strict=True))
    return f"{rules.name}, {steps} steps, {end or 'not over'}: {results}"
