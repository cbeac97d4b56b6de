"""`sparring render`: a game between policies or bots as a film or a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparring.commands.shared.filming import (
    check_documents,
    check_options,
    describe,
    draw,
    finished,
    result_line,
)
from sparring.commands.shared.players import find_game, player_called
from sparring.commands.shared.printing import print_json
from sparring.config.tools import RenderConfig
from sparring.draw.names import short_names
from sparring.errors import ConfigError
from sparring.games import Rules, State, new_state
from sparring.games.flags import changed_flags
from sparring.games.picture import Episode, SvgPicture, picture_of
from sparring.games.recorded import Replay
from sparring.league.players import Player, name_of
from sparring.machine import show_size
from sparring.nets.remembering import Remembering
from sparring.pools.foreign.again import is_own
from sparring.targets import check_file


def run(config: RenderConfig) -> int:
    """Play, draw, and say where the picture is."""
    out = Path(config.out)
    check_options(config, out)
    if (config.still or out.suffix == ".png") and config.episodes > 1:
        raise ConfigError("a still shows one game; leave out --episodes, or write .gif")
    words = split(config.players)
    if not words:
        raise ConfigError("who plays? Give a run or a bot, or one per seat: latest,strong")
    everyone = [*words, *split(config.against)]
    rules, known = find_game(everyone, config.game, config.set)
    if is_own(rules):
        from sparring.commands.own import render as own  # loads torch

        (policy,) = known.values()
        if config.save:
            raise ConfigError(f"--save keeps sparring's own games, not {rules.name}; leave it out")
        assert not isinstance(policy, str)
        return own.run(config, policy, words, finished)
    players = find_players(config, words, rules, known)
    picture = picture_of(rules)
    if isinstance(picture, SvgPicture):
        check_documents(config, rules, out)
    kept = check_save(config)
    episodes, replays = play(rules, players, config)
    with finished(out) as unfinished:
        facts = draw(picture, episodes, config, unfinished)
    for path, replay in zip(kept, replays, strict=False):
        replay.write(path)
    told = {
        "file": str(out),
        "bytes": out.stat().st_size,
        "game": rules.name,
        "flags": changed_flags(rules),
        "players": [name_of(player) for player in players],
        "seed": config.seed,
        "sampled": config.sampled,
        "episodes": [describe(episode) for episode in episodes],
        **({"saved": [str(path) for path in kept]} if kept else {}),
        **facts,
    }
    if config.json:
        print_json(told)
        return 0
    for episode in episodes:
        print(result_line(episode))
    shape = f"{facts['frames']} frames, {facts['seconds']:.1f} s" if facts["frames"] else "a still"
    print(f"{out}: {shape}, {show_size(told['bytes'])}")
    if kept:
        print(f"saved: {', '.join(map(str, kept))}; next: sparring replay {kept[0]}")
    return 0


def check_save(config: RenderConfig) -> list[Path]:
    """Return where the games are kept, one file for each; nothing is overwritten."""
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


def play(
    rules: Rules, players: Sequence[Player], config: RenderConfig
) -> tuple[list[Episode], list[Replay]]:
    """Return the games that are to be drawn, and the same as they can be kept."""
    names = [name_of(player) for player in players]
    episodes: list[Episode] = []
    replays: list[Replay] = []
    wins = (0,) * rules.seats
    for seed in range(config.seed, config.seed + config.episodes):
        actions: list[Any] = []
        states = list(play_one(rules, players, seed, sampled=config.sampled, noted=actions.append))
        episodes.append(Episode(states, short_names(names), wins))
        replays.append(Replay.of(states[-1], actions, names))
        wins = episodes[-1].wins_after
    return episodes, replays


def play_one(
    rules: Rules,
    players: Sequence[Player],
    seed: int,
    *,
    sampled: bool,
    noted: Callable[[Any], None] = lambda _: None,
) -> Iterator[State]:
    """Yield the start of a game, and what follows each decision; `noted` is told the actions."""
    state = new_state(rules, seed=seed)
    seated = [one if isinstance(one, str) else Remembering(one) for one in players]
    yield state.clone()
    decision = 0
    while not state.over:
        actions = []
        for row in range(rules.rows):
            actions.append(answer(seated, state, row, sampled=sampled, step=decision))
            decision += 1
        state.apply(np.stack(actions))
        noted(np.stack(actions))
        yield state.clone()


def answer(
    players: Sequence[Remembering | str], state: State, row: int, *, sampled: bool, step: int
) -> Any:
    """Return what the player of a row does. With another step, a policy draws anew."""
    seat = state.native.seat(row)
    if seat < 0:  # this row has nothing to decide
        return np.zeros(state.rules.box) if state.rules.box else 0
    player = players[seat]
    if isinstance(player, str):
        return state.ask(player, row)
    return player.action(state, row=row, greedy=not sampled, seed=state.seed, step=step)
