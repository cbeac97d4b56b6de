"""Games in an environment of somebody's own, from the frames that it draws itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sparring.commands.shared.own_game import OwnGame, own_players
from sparring.commands.shared.printing import ProgressBar, print_json
from sparring.config.tools import RenderConfig
from sparring.draw.pictures import film as films
from sparring.draw.pictures.frames import Frame, FrameReel, as_frame
from sparring.errors import ConfigError, SparringWarning
from sparring.league.players import Seated, name_of
from sparring.machine import show_size
from sparring.nets.policy import Policy

PIXELS = "rgb_array"
USUAL_FPS = 10.0
"""Where an environment does not say how fast it is shown (metadata["render_fps"])."""
MOST_FPS = 50.0
MOST_FRAMES = 2000
"""Of all games together: an environment without a time limit may never end, and frames are kept."""

Finished = Callable[[Path], AbstractContextManager[Path]]


def run(config: RenderConfig, policy: Policy, words: Sequence[str], finished: Finished) -> int:
    """Play, draw, and say where the picture is.

    words: who plays, the policy's own among them. finished: gives a name to write to.
    """
    out, rules = Path(config.out), policy.rules
    if out.suffix == ".svg":
        raise ConfigError(
            f"{rules.name} draws pixels itself: --out {out.with_suffix('.gif')}, .mp4 or .png"
        )
    players = seated(config, policy, words)
    game = OwnGame(policy.name, rules, PIXELS)
    demand_frames(game)
    frames, told = played(game, players, config)
    own_fps = float((game.env.metadata or {}).get("render_fps") or USUAL_FPS)
    fps = config.fps or min(own_fps * config.speed, MOST_FPS)
    width = config.width if config.width != RenderConfig.width else 0
    with finished(out) as unfinished:
        write(FrameReel(frames, fps, width), unfinished, out.suffix, fps)
    still = out.suffix == ".png"
    facts: dict[str, Any] = {
        "file": str(out),
        "bytes": out.stat().st_size,
        "game": rules.name,
        "players": [name_of(player) for player in players],
        "seed": config.seed,
        "sampled": config.sampled,
        "episodes": told,
        "frames": 0 if still else len(frames),
        "seconds": 0.0 if still else len(frames) / fps,
    }
    if config.json:
        print_json(facts)
        return 0
    for episode in told:
        returns = ", ".join(f"{score:g}" for score in episode["scores"])
        print(f"{rules.name}, {episode['steps']} steps, {episode['end']}: return {returns}")
    shape = "a still" if still else f"{len(frames)} frames, {facts['seconds']:.1f} s"
    print(f"{out}: {shape}, {show_size(facts['bytes'])}")
    return 0


def seated(config: RenderConfig, policy: Policy, words: Sequence[str]) -> list[Seated]:
    """One player per seat: the policy everywhere, unless others are named."""
    rules = policy.rules
    against = [word.strip() for word in config.against.split(",") if word.strip()]
    if len(words) > 1 and against:
        raise ConfigError("--against is for one player; here every seat has its own, leave it out")
    if against and rules.seats == 1:
        raise ConfigError(f"--against {config.against}: {rules.name} has one seat; leave it out")
    if against:
        return [policy, *own_players(against, rules, rules.seats - 1, "--against")]
    if len(words) == 1:
        return [policy] * rules.seats
    return own_players(words, rules, rules.seats, config.players)


def demand_frames(game: OwnGame) -> None:
    """Refuse an environment that has no frames, and say what is missing."""
    if PIXELS not in game.modes:
        listed = ", ".join(game.modes) or "none"
        raise ConfigError(
            f"{game.rules.name} draws no pixels: its metadata['render_modes'] has {listed}; add "
            f"{PIXELS!r} and have render() return an array [height, width, 3]"
        )


def played(
    game: OwnGame, players: Sequence[Seated], config: RenderConfig
) -> tuple[list[Frame], list[dict[str, Any]]]:
    """Play the games; return their frames, and how they went."""
    frames: list[Frame] = []
    told: list[dict[str, Any]] = []
    for seed in range(config.seed, config.seed + config.episodes):
        game.start(seed)
        frames.append(shown(game))
        while not game.over and len(frames) < MOST_FRAMES:
            game.play(
                [
                    (row, game.answer(players[seat], seat, greedy=not config.sampled))
                    for row, seat in game.asked()
                ]
            )
            frames.append(shown(game))
        end = game.end if game.over else "unfinished"
        told.append({"steps": game.steps, "end": end, "scores": game.score.tolist()})
        if len(frames) >= MOST_FRAMES:
            left = config.seed + config.episodes - seed - 1
            if left or not game.over:
                text = (
                    f"the film was cut after {MOST_FRAMES} frames; draw fewer episodes, or give "
                    "the environment a time limit (gymnasium.wrappers.TimeLimit)"
                )
                warnings.warn(SparringWarning(text), stacklevel=2)
            break
    return frames, told


def shown(game: OwnGame) -> Frame:
    """What the environment shows now."""
    given = game.render()
    frame = as_frame(given)
    if frame is None:
        kind = getattr(given, "shape", None) or type(given).__name__
        raise ConfigError(
            f"{game.rules.name}: render() returns {kind}, not an array [height, width, 3] of "
            f"uint8; let {game.word} take render_mode, and hand it to the environment"
        )
    return frame


def write(reel: FrameReel, path: Path, kind: str, fps: float) -> None:
    """Write the file."""
    if kind == ".png":
        reel.draw(reel.shots[-1]).save(path, "PNG")
        return
    with ProgressBar("drawing", len(reel.shots)) as steps:

        def tell() -> None:
            steps.next("frames")

        if kind == ".gif":
            films.write_gif(reel, path, tell)
        else:
            films.write_mp4(reel, path, fps, tell)
