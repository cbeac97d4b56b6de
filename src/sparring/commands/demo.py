"""`sparring demo`: a champion plays a game, then matches; the next commands are named."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sparring.commands.shared.filming import result_line
from sparring.commands.shared.playing import move_of, with_memory
from sparring.commands.shared.printing import (
    ProgressBar,
    echo,
    make_console,
    print_json,
    print_styled,
    print_table,
)
from sparring.commands.shared.results import results_table
from sparring.config.tools import DemoConfig
from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.games.state import new_state
from sparring.games.terminal import terminal_of
from sparring.league.arena import evaluate
from sparring.league.results import MatchResult
from sparring.league.seating import load_player
from sparring.machine import check_threads
from sparring.store.champions import CHAMPION, champion_games, champion_of

PAUSE_S = 0.25
"""Between two lines of a game on a terminal."""
TRIES = 20
"""Games, of which the first that the champion wins is shown."""
FIRST_LINES, LAST_LINES = 45, 25
"""What is shown of a longer game."""
ONLOOKER = -1


def run(config: DemoConfig) -> int:
    games = champion_games()
    if not games:
        raise ConfigError("no champion came along; train an agent: sparring train")
    game = config.game or ("skull_king" if "skull_king" in games else games[0])
    champion, rules = load_champion(game)
    threads = check_threads(config.threads or os.cpu_count() or 1)
    if not config.json:
        echo(f"{rules.title}: the champion against {opponents_of(rules)}.")
        watch(champion, rules, config)
    results = play_matches(champion, rules, config, threads)
    if config.json:
        print_json({"game": game, "results": {who: one.summary() for who, one in results.items()}})
        return 0
    if results:
        print_table(results_table(results))
    for line in next_steps(rules):
        echo(line)
    return 0


def load_champion(game: str) -> tuple[Any, Rules]:
    from sparring.store.policies import load_policy

    policy = load_policy(champion_of(game).weights)
    return load_player(CHAMPION, policy.rules), policy.rules


def opponents_of(rules: Rules) -> str:
    if rules.seats == 1:
        return "the game"
    last = f"s 1 to {rules.seats - 1}" if rules.seats > 2 else " 1"
    return f"{rules.bots[-1]}, who has seat{last}"


def watch(champion: Any, rules: Rules, config: DemoConfig) -> None:
    """Show a game that the champion wins, as long as `config.seconds` allow."""
    if rules.box or rules.rows > 1:
        if game_module(rules.name, "picture"):
            echo(f"see it: sparring render {rules.name}:{CHAMPION} --out game.gif")
        return
    out, terminal = make_console(), terminal_of(rules, ONLOOKER)
    pause = PAUSE_S if sys.stdout.isatty() else 0.0
    until = time.monotonic() + config.seconds
    for line in shown_game(champion, rules, config.seed):
        print_styled(out, [line], terminal.styles, "")
        time.sleep(pause)
        if time.monotonic() > until:
            echo("...")
            return


def shown_game(champion: Any, rules: Rules, seed: int) -> list[str]:
    """Return the first game that the champion wins, else the first, without a long middle."""
    lines, _ = played_game(champion, rules, seed)
    what = f"A game, seed {seed}"
    for at in range(seed, seed + TRIES if rules.seats > 1 else seed):
        won, scores = played_game(champion, rules, at)
        if scores[0] > max(scores[1:]):
            lines, what = won, f"A game that it wins, seed {at}"
            break
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    if left_out > 0:
        middle = ["", f"... {left_out} lines of the game are left out ...", ""]
        lines = [*lines[:FIRST_LINES], *middle, *lines[-LAST_LINES:]]
    return [f"{what}. How often it wins: the table below.", *lines]


def played_game(champion: Any, rules: Rules, seed: int) -> tuple[list[str], Sequence[float]]:
    """Play a game with the champion in seat 0; return it line by line, and its scores."""
    state, terminal = new_state(rules, seed=seed), terminal_of(rules, ONLOOKER)
    players = with_memory([champion, rules.bots[-1]], skip_forced=rules.skip_forced)
    lines = ["", *state.text().rstrip("\n").splitlines(), ""]
    steps = 0
    while not state.over:
        steps += 1
        before = state.clone()
        action = move_of(players[min(state.seat, 1)], state)
        state.apply(action)
        lines += (
            line.replace("seat 0", CHAMPION) for line in terminal.narrate(before, action, state)
        )
    lines += ["", *state.text().rstrip("\n").splitlines()]
    names = [CHAMPION, *[rules.bots[-1]] * (rules.seats - 1)]
    lines.append(result_line(rules, steps, state.end or "over", names, state.scores))
    return lines, state.scores


def play_matches(
    champion: Any, rules: Rules, config: DemoConfig, threads: int
) -> Mapping[str, MatchResult]:
    """Return the results of matches against all bots, or of the game alone."""
    against = list(reversed(rules.bots)) if rules.seats > 1 else []
    with ProgressBar(f"playing {rules.name}", config.games * max(len(against), 1)) as steps:
        return evaluate(
            champion,
            against,
            rules=rules,
            games=config.games,
            seed=config.seed,
            threads=threads,
            progress=steps.reach,
        )


def next_steps(rules: Rules) -> list[str]:
    """Return the commands that somebody who has seen the demo may type next."""
    turns = not rules.box and rules.rows == 1
    first = f"sparring play {rules.name}" if turns else "sparring serve --open"
    words = {
        first: "play against the champion",
        f"sparring zoo {rules.name}": "how strong it is, and how it was trained",
        f"sparring train {rules.name}": "train your own",
    }
    width = max(map(len, words))
    return ["", *(f"{command:{width}}  {what}" for command, what in words.items())]
