"""`sparring render`: a game between policies or bots as a film or a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sparring.commands.players import load_with_flags, nobody_called, player_called
from sparring.commands.printing import ProgressBar, print_json
from sparring.config import RenderConfig
from sparring.draw.names import short_names
from sparring.draw.pictures import film as films
from sparring.draw.pictures import pixels, svg
from sparring.errors import ConfigError, SparringError, nearest
from sparring.games import Rules, State, new_state
from sparring.games.flags import changed_flags, read_rules
from sparring.games.picture import Episode, Film, Picture, SvgPicture, picture_of
from sparring.league.players import Player, name_of
from sparring.league.seating import split_style
from sparring.machine import show_size
from sparring.pools.foreign.again import is_own
from sparring.store.files import temp_name

FPS = {".gif": 25.0, ".mp4": 50.0}
MOST_FPS = {".gif": 50.0, ".mp4": 240.0}
"""Browsers slow down GIFs whose frames are shorter than 0.02 s."""
SUFFIXES = (".gif", ".mp4", ".svg", ".png")


def run(config: RenderConfig) -> int:
    """Play, draw, and say where the picture is."""
    out = Path(config.out)
    check_options(config, out)
    words = split(config.players)
    if not words:
        raise ConfigError("who plays? Give a run or a bot, or one per seat: latest,strong")
    rules, known = find_game([*words, *split(config.against)], config)
    if is_own(rules):
        from sparring.commands.own import render as own  # loads torch

        (policy,) = known.values()
        assert not isinstance(policy, str)
        return own.run(config, policy, words, finished)
    players = find_players(config, words, rules, known)
    picture = picture_of(rules)
    if isinstance(picture, SvgPicture):
        check_documents(config, rules, out)
    episodes = play(rules, players, config)
    with finished(out) as unfinished:
        facts = draw(picture, episodes, config, unfinished)
    told = {
        "file": str(out),
        "bytes": out.stat().st_size,
        "game": rules.name,
        "flags": changed_flags(rules),
        "players": [name_of(player) for player in players],
        "seed": config.seed,
        "sampled": config.sampled,
        "episodes": [describe(episode) for episode in episodes],
        **facts,
    }
    if config.json:
        print_json(told)
        return 0
    for episode in episodes:
        print(result_line(episode))
    shape = f"{facts['frames']} frames, {facts['seconds']:.1f} s" if facts["frames"] else "a still"
    print(f"{out}: {shape}, {show_size(told['bytes'])}")
    return 0


def check_options(config: RenderConfig, out: Path) -> None:
    """Refuse what cannot be drawn, before anything takes time."""
    if out.suffix not in SUFFIXES:
        raise ConfigError(f"--out {out} has to end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if not out.parent.is_dir():
        raise ConfigError(f"there is no folder {out.parent}; make it first")
    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder; give a file in it")
    if config.width % 2:
        raise ConfigError(f"--width {config.width} must be an even number, as films need it")
    check_timing(config, out.suffix)
    if out.suffix != ".svg":
        pixels.pillow()
    if out.suffix == ".mp4":
        films.find_ffmpeg()


def check_timing(config: RenderConfig, kind: str) -> None:
    """Refuse options of films for stills, those of stills for films, and speeds out of range."""
    if config.still and kind in FPS:
        raise ConfigError(f"a {kind} is a film; for --still write .png or .svg")
    if (config.still or kind == ".png") and config.episodes > 1:
        raise ConfigError("a still shows one game; leave out --episodes, or write .gif")
    if (config.still or kind == ".png") and (config.fps or config.speed != 1):
        raise ConfigError("--fps and --speed are for films; leave them out, or write .gif")
    if kind == ".svg" and config.fps:
        raise ConfigError("--fps is for .gif and .mp4; an .svg moves smoothly without it")
    if kind in FPS and config.fps and not 1 <= config.fps <= MOST_FPS[kind]:
        raise ConfigError(f"--fps {config.fps:g} is outside 1..{MOST_FPS[kind]:g} of a {kind}")


def check_documents(config: RenderConfig, rules: Rules, out: Path) -> None:
    """Refuse what cannot be done with a game's own SVG documents."""
    if out.suffix != ".svg":
        raise ConfigError(f"{rules.name} is drawn as SVG alone: --out {out.with_suffix('.svg')}")
    if config.width != RenderConfig.width:
        raise ConfigError(f"the picture of {rules.name} has its own size; leave out --width")


def find_players(
    config: RenderConfig, words: list[str], rules: Rules, known: dict[str, Player]
) -> list[Player]:
    """Return who sits in each seat. known: players by their words, as far as there are some."""
    against = split(config.against)
    if len(words) == 1:
        others = against or [rules.bots[-1]] * (rules.seats - 1)
        words = words + (others * (rules.seats - 1) if len(others) == 1 < rules.seats else others)
    elif against:
        raise ConfigError("--against is for one player; here every seat has its own, leave it out")
    if len(words) != rules.seats:
        raise ConfigError(
            f"{rules.name} has {rules.seats} seats, not {len(words)}; name one player for each, or "
            "one alone"
        )
    for word in words:
        if word not in known:
            known[word] = player_called(word, rules)
    return [known[word] for word in words]


def split(text: str) -> list[str]:
    """Return the words of a comma list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def find_game(words: Sequence[str], config: RenderConfig) -> tuple[Rules, dict[str, Player]]:
    """Return the game that is named, or that the first trained player was trained for."""
    if config.game:
        rules = read_rules(config.game, config.set)
        words = [word for word in words if rules.bot_called(word) is None]
        if not words:
            return rules, {}
    from sparring.store.policies import locate  # loads torch

    trained = next((word for word in words if locate(split_style(word)[0]) is not None), None)
    if trained is None and not config.game:
        raise ConfigError(nobody_called(words[0]))
    if trained is None:
        raise ConfigError(
            f"{words[0]!r} is neither a folder nor a bot of {rules.name}"
            f"{nearest(words[0], rules.bots)}"
        )
    policy, rules = load_with_flags(trained, config.set)
    if config.game not in ("", rules.name):
        raise ConfigError(f"{trained} plays {rules.name}, not {config.game}")
    return rules, {trained: policy}


def play(rules: Rules, players: Sequence[Player], config: RenderConfig) -> list[Episode]:
    """Return the games that are to be drawn."""
    names = short_names([name_of(player) for player in players])
    episodes: list[Episode] = []
    wins = (0,) * rules.seats
    for seed in range(config.seed, config.seed + config.episodes):
        states = list(play_one(rules, players, seed, sampled=config.sampled))
        episodes.append(Episode(states, names, wins))
        wins = episodes[-1].wins_after
    return episodes


def play_one(
    rules: Rules, players: Sequence[Player], seed: int, *, sampled: bool
) -> Iterator[State]:
    """Yield the start of a game, and what follows each decision."""
    state = new_state(rules, seed=seed)
    yield state.clone()
    decision = 0
    while not state.over:
        actions = []
        for row in range(rules.rows):
            actions.append(answer(players, state, row, sampled=sampled, step=decision))
            decision += 1
        state.apply(np.stack(actions))
        yield state.clone()


def answer(players: Sequence[Player], state: State, row: int, *, sampled: bool, step: int) -> Any:
    """Return what the player of a row does. With another step, a policy draws anew."""
    seat = state.native.seat(row)
    if seat < 0:  # this row has nothing to decide
        return np.zeros(state.rules.box) if state.rules.box else 0
    player = players[seat]
    if isinstance(player, str):
        return state.ask(player, row)
    return player.action(state, row=row, greedy=not sampled, seed=state.seed, step=step)


@contextmanager
def finished(path: Path) -> Iterator[Path]:
    """Give a name to write to; the file gets its own name when it is whole, or is removed."""
    unfinished = path.with_name(temp_name(path.name))
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as wrong:
        raise SparringError(
            f"cannot write {path}: {wrong.strerror or wrong}; choose another with --out"
        ) from wrong
    finally:
        unfinished.unlink(missing_ok=True)


def draw(
    picture: Picture | SvgPicture, episodes: Sequence[Episode], config: RenderConfig, path: Path
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
    picture: SvgPicture, episodes: Sequence[Episode], config: RenderConfig, path: Path
) -> dict[str, Any]:
    """Write the game's own documents: the last one, or all in turn."""
    if config.still:
        path.write_text(picture.svg(episodes[0].states[-1]), "utf-8")
        return {"frames": 0, "seconds": 0.0}
    pages = [picture.svg(state) for episode in episodes for state in episode.states]
    seconds = len(pages) * picture.frame_s / config.speed
    path.write_text(svg.flip_through(pages, seconds), "utf-8")
    return {"frames": len(pages), "seconds": seconds}


def shoot(film: Film, config: RenderConfig, path: Path) -> dict[str, Any]:
    """Write a film in pixels."""
    kind = Path(config.out).suffix
    fps = config.fps or FPS[kind]
    shots = films.shoot(film, fps=fps, speed=config.speed)
    studio = films.Studio(film, shots, config.width)
    with ProgressBar("drawing", len(shots)) as steps:

        def tell() -> None:
            steps.next("frames")

        if kind == ".gif":
            films.write_gif(studio, path, tell)
        else:
            films.write_mp4(studio, path, fps, tell)
    return {"frames": len(shots), "seconds": shots[-1].end_s}


def describe(episode: Episode) -> dict[str, Any]:
    """Return how a game went as plain values."""
    last = episode.states[-1]
    return {"steps": len(episode.states) - 1, "end": last.end, "scores": last.scores}


def result_line(episode: Episode) -> str:
    """Say how a game went."""
    last = episode.states[-1]
    scores = ", ".join(
        f"{name} {score:g}" for name, score in zip(episode.names, last.scores, strict=True)
    )
    return f"{last.rules.name}, {len(episode.states) - 1} steps, {last.end}: {scores}"
