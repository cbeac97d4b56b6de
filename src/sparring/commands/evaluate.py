"""`sparring eval`: strength of a policy or a bot over many games, every deal from every seat."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from rich.table import Table

from sparring.commands.shared.elsewhere import check_elsewhere, pairing_runner
from sparring.commands.shared.players import (
    is_timed,
    loaded_from,
    on_device,
    player_called,
    who_plays,
    with_search,
)
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.commands.shared.results import (
    all_lines,
    kept_games,
    next_command,
    results_table,
    score_word,
    stats_table,
)
from sparring.commands.shared.stopping import interruptible
from sparring.config.commands import EvalConfig
from sparring.errors import ConfigError, SparringError
from sparring.extras import set_threads
from sparring.games.flags import changed_flags, read_pair, split_list
from sparring.games.rules import Rules
from sparring.league import cage2_challenge as cage2
from sparring.league import usi
from sparring.league.arena import (
    check_plies,
    default_games,
    default_opponents,
    evaluate,
    whole_rounds,
)
from sparring.league.cage2_challenge import RepairScore, SettingScore
from sparring.league.intervals import Z_95
from sparring.league.players import Player
from sparring.league.round_robin import RoundRobinSettings
from sparring.league.usi.match import GAMES, play_match, read_limit, read_options
from sparring.machine import check_threads
from sparring.nets.policy import Policy
from sparring.store.champions import full_name


def run(config: EvalConfig) -> int:
    check_numbers(config)
    check_elsewhere(config.cluster, config.device, config.save_games)
    games_kept = kept_games(config.save_games, config.save_max)
    if games_kept and (config.protocol or config.engine is not None):
        raise ConfigError("--save-games keeps games between bots and agents; leave it out here")
    threads = check_threads(config.threads or os.cpu_count() or 1)
    set_threads(threads)
    game = config.game or config.protocol or (usi.GAME if config.engine is not None else "")
    (challenger,), rules = who_plays([config.challenger], game, config.set, threads)
    (challenger,) = with_search([challenger], config.search)
    on_device([challenger], config.device)
    if config.protocol:
        return run_challenge(config, challenger, rules, threads)
    if config.engine is not None:
        return run_engine(config, challenger, rules)
    if config.opening_plies is not None:
        check_plies(rules, config.opening_plies, "--opening-plies ")
    words = split_list(config.against)
    if not words and rules.seats > 1:
        words = list(default_opponents(rules, 1))
    opponents = [player_called(word, rules, threads) for word in words]
    on_device(opponents, config.device)
    usual = GAMES if is_timed([challenger, *opponents]) else default_games(rules)
    games = whole_rounds(rules, config.games or usual)
    total = games * max(len(opponents), 1)
    settings = RoundRobinSettings(
        games, config.seed, threads, not config.sampled, config.opening_plies
    )
    runner = pairing_runner(
        config.cluster, rules, settings, threads=config.threads, same_deals=True
    )
    with ProgressBar(f"playing {rules.name}", total) as steps, runner as elsewhere:
        results = evaluate(
            challenger,
            opponents,
            rules=rules,
            games=games,
            seed=config.seed,
            threads=threads,
            greedy=not config.sampled,
            opening_plies=config.opening_plies,
            progress=steps.reach,
            make_recorder=games_kept.match if games_kept else None,
            runner=elsewhere,
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
                "search": config.search,
                "results": {name: found.summary() for name, found in results.items()},
                **({"saved": [str(file) for file in files]} if games_kept else {}),
            }
        )
        return 0
    print_table(results_table(results, score_word(rules)))
    for line in all_lines(results):
        echo(line)
    if played := stats_table(rules, results):
        print_table(played)
    if games_kept:
        echo(games_kept.summary(files))
    if isinstance(challenger, Policy):
        word = full_name(config.challenger, rules.name)
        print(f"{config.challenger}; next: {next_command(rules, word, instead='plot')}")
    return 0


def check_numbers(config: EvalConfig) -> None:
    if config.games and config.games < 2:
        raise ConfigError(f"--games {config.games} must be at least 2")
    if config.cluster and (config.protocol or config.engine is not None):
        other = "--protocol" if config.protocol else "--engine"
        raise ConfigError(f"{other} plays on this machine; leave it or --cluster out")
    if config.protocol not in ("", cage2.GAME):
        raise ConfigError(f"no protocol called {config.protocol!r}; there is {cage2.GAME}")
    check_engine(config)


# A Shogi engine


def run_engine(config: EvalConfig, challenger: Player, rules: Rules) -> int:
    if rules.name != usi.GAME:
        raise ConfigError(f"{config.challenger} plays {rules.name}; --engine is for {usi.GAME}")
    games = config.games or GAMES
    with ProgressBar(f"playing {rules.name}", games) as steps, interruptible():
        match = play_match(challenger, rules, config, steps.reach)
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
                    "options": read_options(config.engine_option),
                },
                "openings": config.openings or match.result.opening_plies,
                "results": {name: found.summary() for name, found in results.items()},
                "faults": [asdict(fault) for fault in match.faults],
                "stopped": match.stopped,
            }
        )
    else:
        print_table(results_table(results))
        for line in all_lines(results):
            echo(line)
        print(f"ends: {', '.join(f'{end} {count}' for end, count in match.result.ends.items())}")
        for fault in match.faults:
            print(f"game {fault.game + 1} lost by the engine's {fault.kind}: {fault.message}")
    if match.stopped:
        raise SparringError(f"stopped after {match.result.games} games of {games}: {match.stopped}")
    return 0


def check_engine(config: EvalConfig) -> None:
    """Refuse options that exclude each other, before anything is loaded."""
    if config.engine is None:
        usual = EvalConfig(config.challenger)
        names = ("engine_limit", "engine_option", "engine_timeout_s", "openings")
        given = [name for name in names if getattr(config, name) != getattr(usual, name)]
        if given:
            raise ConfigError(f"--{given[0].replace('_', '-')} is for matches with --engine")
        return
    for other in ("against", "protocol"):
        if getattr(config, other):
            raise ConfigError(f"--engine and --{other} exclude each other; leave one out")
    if config.game not in ("", usi.GAME):
        raise ConfigError(f"--engine speaks USI, which is for {usi.GAME}, not {config.game}")
    if config.games % 2:
        raise ConfigError(
            f"--games {config.games} must be even: openings are played with both colors"
        )
    read_limit(config)
    read_options(config.engine_option)


# CAGE-2's challenge


def run_challenge(config: EvalConfig, challenger: Player, rules: Rules, threads: int) -> int:
    if rules.name != cage2.GAME:
        raise ConfigError(f"--protocol cage2 is for cage2; {config.challenger} plays {rules.name}")
    if config.against:
        raise ConfigError("--protocol cage2 chooses the attackers; leave --against out")
    for pair in config.set:
        key, _ = read_pair(pair, "set")
        if key in cage2.FIXED:
            raise ConfigError(f"--protocol cage2 sets {key} itself; leave --set {pair} out")
    if not isinstance(challenger, str):
        challenger.check_fits(rules)
    games = config.games or cage2.EPISODES
    with ProgressBar("playing cage2", len(cage2.SETTINGS)) as steps:
        cells = cage2.play_settings(
            challenger,
            rules,
            games=games,
            seed=config.seed,
            threads=threads,
            greedy=not config.sampled,
            progress=steps.next,
        )
    orders = {}
    if rules.config["orders"] != "NONE":
        orders = cage2.score_repairs(
            challenger,
            rules,
            games=games,
            seed=config.seed,
            threads=threads,
            sampled=config.sampled,
        )
    if config.json:
        print_json(as_json(config, rules, games, cells, orders))
        return 0
    print_table(result_table(config.challenger, cells))
    print(f"{games:,} episodes per setting, preset={rules.config['preset']}")
    if rules.config["preset"] != "CHALLENGE":
        print("the published scores belong to preset=CHALLENGE: add --set preset=CHALLENGE")
    if orders:
        print_table(orders_table(orders))
    return 0


def result_table(name: str, cells: dict[tuple[str, int], SettingScore]) -> Table:
    heads = ["total", *(f"{steps} {red}" for red, steps in cage2.SETTINGS)]
    table = make_table(("rank", "player", *heads), numbers=("rank", *heads))
    total = cage2.total_of(cells)
    challenger = (
        "",
        name,
        f"{total.mean:.2f} ± {Z_95 * total.error:.2f}",
        *(f"{cells[setting].mean:.2f}" for setting in cage2.SETTINGS),
    )
    shown = False
    for row in cage2.LEADERBOARD:
        if not shown and total.mean >= row.total:
            table.add_row(*challenger, style="bold")
            shown = True
        parts = ("-" if mean is None else f"{mean:.2f}" for mean in row.row)
        table.add_row(str(row.rank), row.name, f"{row.total:.2f}", *parts)
    if not shown:
        table.add_row(*challenger, style="bold")
    return table


def orders_table(orders: dict[str, RepairScore]) -> Table:
    numbers = ("repairs per episode", "in order")
    table = make_table(("unit", *numbers), numbers=numbers)
    for unit, cell in orders.items():
        share = "-" if cell.in_order is None else f"{cell.in_order:.1%}"
        table.add_row(unit, f"{cell.repairs:.2f}", share)
    return table


def as_json(
    config: EvalConfig,
    rules: Rules,
    games: int,
    cells: dict[tuple[str, int], SettingScore],
    orders: dict[str, RepairScore],
) -> dict[str, Any]:
    total = cage2.total_of(cells)
    return {
        "challenger": config.challenger,
        "protocol": cage2.GAME,
        "flags": changed_flags(rules),
        "preset": rules.config["preset"],
        "seed": config.seed,
        "sampled": config.sampled,
        "games": games,
        "total": asdict(total),
        "results": {
            red: {str(steps): asdict(cells[red, steps]) for steps in cage2.LENGTHS}
            for red in cage2.REDS
        },
        "orders": {unit: asdict(cell) for unit, cell in orders.items()},
        "published": [
            {"rank": row.rank, "name": row.name, "total": row.total, "means": list(row.row)}
            for row in cage2.LEADERBOARD
        ],
    }
