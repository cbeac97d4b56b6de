"""`sparring render`: play a game between policies or bots and draw it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.commands.shared.custom_game import CustomGame, custom_players
from sparring.commands.shared.filming import (
    check_documents,
    check_options,
    draw,
    finished,
    result_line,
    write_reel,
)
from sparring.commands.shared.players import find_game, player_called
from sparring.commands.shared.printing import print_json
from sparring.config.tools import RenderConfig
from sparring.draw.names import short_names
from sparring.draw.pictures.film import Frame, RenderedFrames, as_frame
from sparring.errors import ConfigError, warn
from sparring.games import Rules
from sparring.games.flags import changed_flags, split_list
from sparring.games.picture import RecordedEpisode, SvgPicture, picture_of
from sparring.games.recorded import Replay
from sparring.league.one_game import play_one
from sparring.league.players import BatchPlayer, Player, name_of
from sparring.machine import format_bytes
from sparring.output_files import check_file
from sparring.pools.custom.cache import is_custom

PIXELS = "rgb_array"
DEFAULT_FPS = 10.0
"""Frame rate of an environment without metadata["render_fps"]."""
MAX_FPS = 50.0
MAX_FRAMES = 2000
"""Limit over all games: an environment may never end, and frames stay in memory."""
RenderResult = tuple[Sequence[Any], list[dict[str, Any]], dict[str, Any]]
"""Players, results of the games, and facts about the file."""


def run(config: RenderConfig) -> int:
    out = Path(config.out)
    check_options(config, out)
    if (config.still or out.suffix == ".png") and config.episodes > 1:
        raise ConfigError("a still shows one game; leave out --episodes, or write .gif")
    words = split_list(config.players)
    if not words:
        raise ConfigError("no player given; name a run or a bot, or one per seat: latest,strong")
    rules, known = find_game([*words, *split_list(config.against)], config.game, config.set)
    custom = is_custom(rules)
    if custom and config.save:
        raise ConfigError(f"--save is for native games, not {rules.name}; leave it out")
    saved = check_save(config)
    if custom:
        players, episodes, facts = film_env(config, rules, words, next(iter(known.values())))
    else:
        players, episodes, facts = film_game(config, rules, words, known, saved)
    result = {
        "file": str(out),
        "bytes": out.stat().st_size,
        "game": rules.name,
        **({} if custom else {"flags": changed_flags(rules)}),
        "players": [name_of(player) for player in players],
        "seed": config.seed,
        "sampled": config.sampled,
        "episodes": episodes,
        **({"saved": [str(path) for path in saved]} if saved else {}),
        **facts,
    }
    if config.json:
        print_json(result)
        return 0
    for episode in episodes:
        names = short_names(result["players"])
        if custom:
            returns = ", ".join(f"{score:g}" for score in episode["scores"])
            print(f"{rules.name}, {episode['steps']} steps, {episode['end']}: return {returns}")
        else:
            print(result_line(rules, names=names, **episode))
    shape = f"{facts['frames']} frames, {facts['seconds']:.1f} s" if facts["frames"] else "a still"
    print(f"{out}: {shape}, {format_bytes(result['bytes'])}")
    if saved:
        print(f"saved: {', '.join(map(str, saved))}; next: sparring replay {saved[0]}")
    return 0


def film_game(
    config: RenderConfig,
    rules: Rules,
    words: list[str],
    known: dict[str, Player],
    saved: Sequence[Path],
) -> RenderResult:
    """Play and draw a native game. known: players that are loaded already, by name."""
    players, out = find_players(config, words, rules, known), Path(config.out)
    picture = picture_of(rules)
    if isinstance(picture, SvgPicture):
        check_documents(config, rules, out)
    episodes, replays = play(rules, players, config)
    with finished(out) as unfinished:
        facts = draw(picture, episodes, config, unfinished)
    for path, replay in zip(saved, replays, strict=False):
        replay.write(path)
    last = [(len(episode.states) - 1, episode.states[-1]) for episode in episodes]
    results = [{"steps": steps, "end": state.end, "scores": state.scores} for steps, state in last]
    return players, results, facts


def check_save(config: RenderConfig) -> list[Path]:
    """Return one new file per game."""
    if not config.save:
        return []
    first = Path(config.save)
    paths = [
        first if at == 0 else first.with_name(f"{first.stem}-{at + 1}{first.suffix}")
        for at in range(config.episodes)
    ]
    for path in paths:
        check_file(path, "--save", new=True)
    return paths


def find_players(
    config: RenderConfig, words: list[str], rules: Rules, known: dict[str, Player]
) -> list[Player]:
    """Return the player of each seat. known: players that are loaded already, by name."""
    against = split_list(config.against)
    if len(words) == 1:
        others = against or [rules.bots[-1]] * (rules.seats - 1)
        words = words + (others * (rules.seats - 1) if len(others) == 1 < rules.seats else others)
    elif against:
        raise ConfigError("--against is for a single player; every seat is named, leave it out")
    if len(words) != rules.seats:
        raise ConfigError(
            f"{rules.name} has {rules.seats} seats, not {len(words)}; name one player for each, or "
            "one alone"
        )
    for word in words:
        if word not in known:
            known[word] = player_called(word, rules)
    return [known[word] for word in words]


def play(
    rules: Rules, players: Sequence[Player], config: RenderConfig
) -> tuple[list[RecordedEpisode], list[Replay]]:
    names = [name_of(player) for player in players]
    episodes: list[RecordedEpisode] = []
    replays: list[Replay] = []
    wins = (0,) * rules.seats
    for seed in range(config.seed, config.seed + config.episodes):
        actions: list[Any] = []
        states = list(
            play_one(rules, players, seed, sampled=config.sampled, on_actions=actions.append)
        )
        episodes.append(RecordedEpisode(states, short_names(names), wins))
        replays.append(Replay.of(states[-1], actions, names))
        wins = episodes[-1].wins_after
    return episodes, replays


# Custom environments, from the frames of their render()


def film_env(config: RenderConfig, rules: Rules, words: list[str], policy: Any) -> RenderResult:
    """Play and draw in the environment of a policy. words: names of all players."""
    out = Path(config.out)
    if out.suffix == ".svg":
        raise ConfigError(
            f"{rules.name} renders pixels: use --out {out.with_suffix('.gif')}, .mp4 or .png"
        )
    players = seat_players(config, policy, words)
    game = CustomGame(policy.name, rules, PIXELS)
    check_frames(game)
    frames, results = play_env(game, players, config)
    env_fps = float((game.env.metadata or {}).get("render_fps") or DEFAULT_FPS)
    fps = config.fps or min(env_fps * config.speed, MAX_FPS)
    reel = RenderedFrames(frames, fps, config.width if config.width != RenderConfig.width else 0)
    with finished(out) as unfinished:
        if out.suffix == ".png":
            reel.draw(reel.frames[-1]).save(unfinished, "PNG")
            return players, results, {"frames": 0, "seconds": 0.0}
        write_reel(reel, unfinished, out.suffix, fps)
    return players, results, {"frames": len(frames), "seconds": len(frames) / fps}


def seat_players(config: RenderConfig, policy: Any, words: Sequence[str]) -> list[BatchPlayer]:
    """Return one player per seat: the policy everywhere, unless others are named."""
    rules = policy.rules
    against = split_list(config.against)
    if len(words) > 1 and against:
        raise ConfigError("--against is for a single player; every seat is named, leave it out")
    if against and rules.seats == 1:
        raise ConfigError(f"--against {config.against}: {rules.name} has one seat; leave it out")
    if against:
        return [policy, *custom_players(against, rules, rules.seats - 1, "--against")]
    if len(words) == 1:
        return [policy] * rules.seats
    return custom_players(words, rules, rules.seats, config.players)


def check_frames(game: CustomGame) -> None:
    if PIXELS not in game.modes:
        listed = ", ".join(game.modes) or "none"
        raise ConfigError(
            f"{game.rules.name} draws no pixels: its metadata['render_modes'] has {listed}; add "
            f"{PIXELS!r} and have render() return an array [height, width, 3]"
        )


def play_env(
    game: CustomGame, players: Sequence[BatchPlayer], config: RenderConfig
) -> tuple[list[Frame], list[dict[str, Any]]]:
    frames: list[Frame] = []
    results: list[dict[str, Any]] = []
    for seed in range(config.seed, config.seed + config.episodes):
        game.start(seed)
        frames.append(rendered_frame(game))
        while not game.over and len(frames) < MAX_FRAMES:
            game.play(
                [
                    (row, game.answer(players[seat], seat, greedy=not config.sampled))
                    for row, seat in game.asked()
                ]
            )
            frames.append(rendered_frame(game))
        end = game.end if game.over else "unfinished"
        results.append({"steps": game.steps, "end": end, "scores": game.score.tolist()})
        if len(frames) >= MAX_FRAMES:
            left = config.seed + config.episodes - seed - 1
            if left or not game.over:
                text = (
                    f"the film was cut after {MAX_FRAMES} frames; draw fewer episodes, or give "
                    "the environment a time limit (gymnasium.wrappers.TimeLimit)"
                )
                warn(text)
            break
    return frames, results


def rendered_frame(game: CustomGame) -> Frame:
    given = game.render()
    frame = as_frame(given)
    if frame is None:
        kind = getattr(given, "shape", None) or type(given).__name__
        raise ConfigError(
            f"{game.rules.name}: render() returns {kind}, not an array [height, width, 3] of "
            f"uint8; let {game.word} accept render_mode and pass it to the environment"
        )
    return frame
