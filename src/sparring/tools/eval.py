"""`sparring eval`: how strong a trained policy or a bot is, over thousands of seat-fair games."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from rich.table import Table

from sparring.config import EvalConfig
from sparring.errors import ConfigError, SparringError, nearest
from sparring.games import Rules, game_names
from sparring.league.arena import Player, evaluate
from sparring.league.results import MatchResult
from sparring.nets.policy import Policy
from sparring.store.policies import find_player, load_policy, locate
from sparring.tools import cage2_protocol
from sparring.tools.flags import as_typed, changed_flags, next_command, read_rules
from sparring.tools.terminal import Steps, make_table, print_json, print_table
from sparring.tools.usi import match as usi_match

GAMES = 4096
"""Against each opponent, unless --games says otherwise."""
PROTOCOLS = ("", "cage2")
"""Published ways to measure; each is named after its game."""


def run(config: EvalConfig) -> int:
    """Play the matches and print what they say."""
    check_numbers(config)
    threads = config.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    challenger, rules = find_challenger(config, threads)
    if config.protocol:
        return cage2_protocol.run(config, challenger, rules, threads)
    if config.engine:
        return meet_engine(config, challenger, rules)
    games = config.games or GAMES
    words = [word.strip() for word in config.against.split(",") if word.strip()]
    if not words and rules.seats > 1:
        words = [rules.bots[-1]]
    opponents = [find_player(word, rules, threads=threads) for word in words]
    total = games * max(len(opponents), 1)
    with Steps(f"playing {rules.name}", total) as steps:

        def tell(played: int) -> None:
            steps.done = played
            steps.next("games")

        results = evaluate(
            challenger,
            opponents,
            rules=rules,
            games=games,
            seed=config.seed,
            threads=threads,
            greedy=not config.sampled,
            progress=tell,
        )
    if config.json:
        print_json(
            {
                "challenger": config.challenger,
                "game": rules.name,
                "flags": changed_flags(rules),
                "seed": config.seed,
                "sampled": config.sampled,
                "results": {name: result_json(found) for name, found in results.items()},
            }
        )
        return 0
    print_table(results_table(results))
    for line in (*seat_lines(results), *draw_lines(results), *verdict(results)):
        print(line)
    if isinstance(challenger, Policy):
        print(f"{config.challenger}; next: {next_command(rules, config.challenger)}")
    return 0


def meet_engine(config: EvalConfig, challenger: Player, rules: Rules) -> int:
    """Play a match against a USI engine and print what it says."""
    if rules.name != "shogi":
        raise ConfigError(f"{config.challenger} plays {rules.name}; --engine is for shogi")
    with Steps(f"playing {rules.name}", config.games or usi_match.GAMES) as steps:

        def tell(played: int) -> None:
            steps.done = played
            steps.next("games")

        match = usi_match.play_match(challenger, rules, config, tell)
    results = {match.engine: match.result}
    if config.json:
        print_json(
            {
                "challenger": config.challenger,
                "game": rules.name,
                "flags": changed_flags(rules),
                "seed": config.seed,
                "sampled": config.sampled,
                "engine": {
                    "command": config.engine,
                    "name": match.engine,
                    "limit": config.engine_limit,
                    "options": usi_match.read_options(config.engine_option),
                },
                "openings": config.openings or config.opening_plies,
                "results": {name: result_json(found) for name, found in results.items()},
                "faults": [asdict(fault) for fault in match.faults],
                "stopped": match.stopped,
            }
        )
    else:
        print_table(results_table(results))
        for line in (*seat_lines(results), *draw_lines(results), *verdict(results)):
            print(line)
        print(f"ends: {', '.join(f'{end} {count}' for end, count in match.result.ends.items())}")
        for fault in match.faults:
            print(f"game {fault.game + 1} lost by the engine's {fault.kind}: {fault.what}")
    if match.stopped:
        raise SparringError(
            f"stopped after {match.result.games} games of {config.games or usi_match.GAMES}: "
            f"{match.stopped}"
        )
    return 0


def check_numbers(config: EvalConfig) -> None:
    """Refuse what cannot be played."""
    if config.games and config.games < 2:
        raise ConfigError(f"--games {config.games} must be at least 2")
    if config.threads < 0:
        raise ConfigError(f"--threads {config.threads} must be at least 0")
    if config.protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS[1:])
        raise ConfigError(f"no protocol called {config.protocol!r}; there is {known}")
    usi_match.check_options(config)


def find_challenger(config: EvalConfig, threads: int) -> tuple[Player, Rules]:
    """Return who is evaluated, and the game with the flags that were set."""
    game = config.game or config.protocol or ("shogi" if config.engine else "")
    if game:
        rules = read_rules(game, config.set)
        bot = rules.bot_called(config.challenger)
        if bot is not None:
            return bot, rules
    if locate(config.challenger) is not None:
        policy, rules = load_with_flags(config.challenger, config.set, threads)
        if config.game not in ("", rules.name):
            raise ConfigError(f"{config.challenger} plays {rules.name}, not {config.game}")
        return policy, rules
    if not game:
        raise ConfigError(
            f"no folder {config.challenger}; if it is a bot, add --game "
            f"{' or --game '.join(game_names())}"
        )
    names = nearest(config.challenger, rules.bots)
    raise ConfigError(f"{config.challenger!r} is neither a folder nor a bot{names}")


def load_with_flags(path: str, pairs: Sequence[str], threads: int = 1) -> tuple[Policy, Rules]:
    """Return a policy, and its game with the flags of its training except those given anew."""
    policy = load_policy(path, name=path, threads=threads)
    anew = {pair.partition("=")[0] for pair in pairs}
    kept = {key: value for key, value in changed_flags(policy.rules).items() if key not in anew}
    rules = read_rules(policy.rules.name, [*as_typed(kept), *pairs])
    policy.check_fits(rules)
    return policy, rules


def result_json(result: MatchResult) -> dict[str, Any]:
    """Return a match as plain values."""
    return result.summary()


def results_table(results: Mapping[str, MatchResult]) -> Table:
    """Return one line per opponent: how the challenger did against it."""
    if all(result.seats == 1 for result in results.values()):
        return scores_table(results)
    numbers = ("win share", "95 % interval", "score (95 %)", "their score", "place")
    table = make_table(("against", *numbers), numbers=numbers)
    for name, result in results.items():
        first, others = result.first, result.others_score
        low, high = first.win_interval
        table.add_row(
            name,
            f"{first.win_share:.1%}",
            f"{low:.1%} .. {high:.1%}",
            f"{first.score:.2f} ± {first.score_interval[1] - first.score:.2f}".replace("nan", "?"),
            "-" if others is None else f"{others:.2f}",
            f"{first.rank:.2f}",
        )
    return table


def scores_table(results: Mapping[str, MatchResult]) -> Table:
    """Return what a seat without opponents scored."""
    numbers = ("games", "score", "95 % interval", "decisions")
    table = make_table(("played", *numbers), numbers=numbers)
    for name, result in results.items():
        low, high = result.first.score_interval
        interval = f"{low:.2f} .. {high:.2f}"
        score, length = f"{result.first.score:.2f}", f"{result.length:.0f}"
        table.add_row(name, f"{result.games:,}", score, interval, length)
    return table


def seat_lines(results: Mapping[str, MatchResult]) -> list[str]:
    """Say how the challenger did in each seat: a game may favour some of them."""
    width = max(map(len, results))
    return [
        f"by seat  {name:{width}}  "
        + "  ".join("-" if share is None else f"{share:.1%}" for share in result.seat_shares)
        for name, result in results.items()
        if result.seats > 1
    ]


def draw_lines(results: Mapping[str, MatchResult]) -> list[str]:
    """Say how games ended that were not drawn, where some of a game for two were."""
    width, lines = max(map(len, results)), []
    for name, result in results.items():
        first = result.first
        if result.seats != 2 or not first.ties or first.decided_share is None:
            continue
        low, high = first.decided_interval
        lines.append(
            f"decided  {name:{width}}  {first.decided / first.games:.1%} of the games, of which "
            f"{first.decided_share:.1%} won ({low:.1%} .. {high:.1%})"
        )
    return lines


def verdict(results: Mapping[str, MatchResult]) -> list[str]:
    """Say what an equal would win, and whom the challenger beats beyond chance."""
    one = next(iter(results.values()))
    seats, games = one.seats, f"{one.games:,} games against each"
    if seats == 1:
        return []
    found: dict[str, list[str]] = {
        "stronger than": [],
        "not told apart from": [],
        "weaker than": [],
    }
    for name, result in results.items():
        low, high = result.first.win_interval
        stronger, equal, weaker = found.values()
        (stronger if low > 1 / seats else weaker if high < 1 / seats else equal).append(name)
    told = [f"{word} {', '.join(names)}" for word, names in found.items() if names]
    return [games, f"parity is {1 / seats:.1%} (1 of {seats} seats): {'; '.join(told)}"]
