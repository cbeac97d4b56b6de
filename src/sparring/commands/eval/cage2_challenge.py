"""`sparring eval --protocol cage2`: the challenge's own table, next to its leaderboard."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sparring.commands.shared.printing import ProgressBar, make_table, print_json, print_table
from sparring.config.commands import EvalConfig
from sparring.errors import ConfigError
from sparring.games.flags import changed_flags, read_pair
from sparring.games.rules import Rules
from sparring.league.cage2_challenge import (
    EPISODES,
    FIXED,
    GAME,
    LEADERBOARD,
    LENGTHS,
    REDS,
    SETTINGS,
    Cell,
    OrderCell,
    judge_orders,
    play,
    total_of,
)
from sparring.league.intervals import Z_95
from sparring.league.players import Player


def run(config: EvalConfig, challenger: Player, rules: Rules, threads: int) -> int:
    """Play the nine settings and print the table."""
    if rules.name != GAME:
        raise ConfigError(f"--protocol cage2 is for cage2; {config.challenger} plays {rules.name}")
    if config.against:
        raise ConfigError("--protocol cage2 says who attacks; leave --against out")
    for pair in config.set:
        key, _ = read_pair(pair, "set")
        if key in FIXED:
            raise ConfigError(f"--protocol cage2 sets {key} itself; leave --set {pair} out")
    if not isinstance(challenger, str):
        challenger.check_fits(rules)
    games = config.games or EPISODES
    with ProgressBar("playing cage2", len(SETTINGS)) as steps:
        cells = play(
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
        orders = judge_orders(
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


def result_table(name: str, cells: dict[tuple[str, int], Cell]) -> Table:
    """Return the challenger's row among the published ones, best first."""
    heads = ["total", *(f"{steps} {red}" for red, steps in SETTINGS)]
    table = make_table(("rank", "player", *heads), numbers=("rank", *heads))
    total = total_of(cells)
    own = (
        "",
        name,
        f"{total.mean:.2f} ± {Z_95 * total.error:.2f}",
        *(f"{cells[setting].mean:.2f}" for setting in SETTINGS),
    )
    shown = False
    for row in LEADERBOARD:
        if not shown and total.mean >= row.total:
            table.add_row(*own, style="bold")
            shown = True
        parts = ("-" if mean is None else f"{mean:.2f}" for mean in row.row)
        table.add_row(str(row.rank), row.name, f"{row.total:.2f}", *parts)
    if not shown:
        table.add_row(*own, style="bold")
    return table


def orders_table(orders: dict[str, OrderCell]) -> Table:
    """Return how well each unit's place in the order was kept."""
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
    cells: dict[tuple[str, int], Cell],
    orders: dict[str, OrderCell],
) -> dict[str, Any]:
    """Return everything as plain values."""
    total = total_of(cells)
    return {
        "challenger": config.challenger,
        "protocol": GAME,
        "flags": changed_flags(rules),
        "preset": rules.config["preset"],
        "seed": config.seed,
        "sampled": config.sampled,
        "games": games,
        "total": {"mean": total.mean, "error": total.error},
        "results": {
            red: {
                str(steps): {"mean": cells[red, steps].mean, "error": cells[red, steps].error}
                for steps in LENGTHS
            }
            for red in REDS
        },
        "orders": {
            unit: {"repairs": cell.repairs, "in_order": cell.in_order}
            for unit, cell in orders.items()
        },
        "published": [
            {"rank": row.rank, "name": row.name, "total": row.total, "means": list(row.row)}
            for row in LEADERBOARD
        ],
    }
