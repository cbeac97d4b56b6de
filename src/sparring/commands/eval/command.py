"""`sparring eval`: how strong a trained policy or a bot is, over thousands of seat-fair games."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

import torch

from sparring.commands.eval import usi_match
from sparring.commands.shared.keeping import kept_games
from sparring.commands.shared.players import loaded_from, player_called, who_plays
from sparring.commands.shared.printing import ProgressBar, print_json, print_table, say
from sparring.commands.shared.results import (
    all_lines,
    next_command,
    results_table,
    score_word,
    stats_table,
)
from sparring.config.commands import EvalConfig
from sparring.errors import ConfigError
from sparring.games.flags import changed_flags
from sparring.league import usi
from sparring.league.arena import check_plies, evaluate, usual_games, usual_opponents, whole_rounds
from sparring.league.protocols import protocols
from sparring.machine import check_threads
from sparring.nets.policy import Policy


def run(config: EvalConfig) -> int:
    """Play the matches and print what they say."""
    check_numbers(config)
    games_kept = kept_games(config.save_games, config.save_most)
    if games_kept and (config.protocol or config.engine is not None):
        raise ConfigError("--save-games keeps games between bots and agents; leave it out here")
    threads = check_threads(config.threads or os.cpu_count() or 1)
    torch.set_num_threads(threads)
    game = config.game or config.protocol or (usi.GAME if config.engine is not None else "")
    (challenger,), rules = who_plays([config.challenger], game, config.set, threads)
    if config.protocol:
        return int(printer_of(config.protocol).run(config, challenger, rules, threads))
    if config.engine is not None:
        return usi_match.run(config, challenger, rules)
    if config.opening_plies is not None:
        check_plies(rules, config.opening_plies, "--opening-plies ")
    games = whole_rounds(rules, config.games or usual_games(rules))
    words = [word.strip() for word in config.against.split(",") if word.strip()]
    if not words and rules.seats > 1:
        words = list(usual_opponents(rules, 1))
    opponents = [player_called(word, rules, threads) for word in words]
    total = games * max(len(opponents), 1)
    with ProgressBar(f"playing {rules.name}", total) as steps:

        def tell(played: int) -> None:
            steps.reach(played, "games")

        results = evaluate(
            challenger,
            opponents,
            rules=rules,
            games=games,
            seed=config.seed,
            threads=threads,
            greedy=not config.sampled,
            opening_plies=config.opening_plies,
            progress=tell,
            keep=games_kept.match if games_kept else None,
        )
    files = games_kept.write() if games_kept else []
    if config.json:
        print_json(
            {
                "challenger": config.challenger,
                "policy": loaded_from(challenger),
                "game": rules.name,
                "flags": changed_flags(rules),
                "seed": config.seed,
                "sampled": config.sampled,
                "results": {name: found.summary() for name, found in results.items()},
                **({"saved": [str(file) for file in files]} if games_kept else {}),
            }
        )
        return 0
    print_table(results_table(results, score_word(rules)))
    for line in all_lines(results):
        say(line)
    if played := stats_table(rules, results):
        print_table(played)
    if games_kept:
        say(games_kept.told(files))
    if isinstance(challenger, Policy):
        print(
            f"{config.challenger}; next: {next_command(rules, config.challenger, instead='plot')}"
        )
    return 0


def check_numbers(config: EvalConfig) -> None:
    """Refuse what cannot be played."""
    if config.games and config.games < 2:
        raise ConfigError(f"--games {config.games} must be at least 2")
    if config.protocol and config.protocol not in protocols():
        known = ", ".join(protocols())
        raise ConfigError(f"no protocol called {config.protocol!r}; there is {known}")
    usi_match.check_options(config)


def printer_of(protocol: str) -> ModuleType:
    """Return what prints a protocol: the module here that is called as the league's."""
    name = protocols()[protocol].__name__.rpartition(".")[2]
    return import_module(f"sparring.commands.eval.{name}")
