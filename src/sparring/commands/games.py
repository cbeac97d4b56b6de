"""`sparring games`: list all games, or describe one."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console

from sparring.commands.shared.printing import (
    echo,
    make_console,
    make_table,
    print_facts,
    print_json,
    print_table,
)
from sparring.config.commands import GamesConfig
from sparring.errors import ConfigError
from sparring.games import Field, Rules, game_names
from sparring.games.flags import read_rules
from sparring.games.rules import UNIVERSAL_FLAGS


def run(config: GamesConfig) -> int:
    if not config.game:
        if config.set or config.features or config.actions:
            raise ConfigError(
                "--set, --features and --actions need a game; try: "
                f"sparring games {game_names()[0]} --actions"
            )
        show_all(config.json)
        return 0
    rules = read_rules(config.game, config.set)
    if config.json:
        print_json(describe(rules, features=config.features, actions=config.actions))
        return 0
    out = make_console()
    if config.features:
        show_features(out, rules)
    if config.actions:
        show_actions(out, rules)
    if not config.features and not config.actions:
        show_game(out, rules)
    return 0


def show_all(as_json: bool) -> None:
    games = [Rules(name) for name in game_names()]
    if as_json:
        print_json({"games": [describe(rules) for rules in games]})
        return
    columns = ("game", "title", "seats", "actions", "bytes", "features", "bots")
    table = make_table(
        columns,
        numbers=("seats", "actions", "bytes", "features"),
        least=("features", "bytes", "title", "bots"),
    )
    for rules in games:
        table.add_row(
            rules.name,
            rules.title.partition(":")[0],
            str(rules.seats),
            action_count(rules),
            str(rules.obs_bytes),
            str(len(rules.features)),
            " ".join(rules.bots),
        )
    print_table(table)
    if sys.stdout.isatty():
        echo("Sizes at default flags.")
        echo(f"Next: sparring games {games[0].name}")


def action_count(rules: Rules) -> str:
    return f"box of {rules.box}" if rules.box else str(rules.actions)


def describe(rules: Rules, *, features: bool = False, actions: bool = False) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "game": rules.name,
        "title": rules.title,
        "rules_version": rules.rules_version,
        "seats": rules.seats,
        "rows": rules.rows,
        "actions": rules.actions,
        "box": rules.box,
        "obs_bytes": rules.obs_bytes,
        "feature_count": len(rules.features),
        "hides_information": rules.hides,
        "roles": list(rules.roles),
        "bots": list(rules.bots),
        "reward_parts": list(rules.parts),
        "ends": list(rules.ends),
        "statistics": [
            {
                "name": stat.name,
                "help": stat.help,
                "above": [rules.counters[at] for at in stat.above],
                "below": [rules.counters[at] for at in stat.below],
                "detail": stat.detail,
            }
            for stat in rules.stats
        ],
        "config": rules.config,
        "flags": [
            {
                "name": f.name,
                "value": f.show(),
                "allowed": allowed(f),
                "live": f.live,
                "help": f.help,
            }
            for f in rules.fields.values()
        ],
        "blocks": [
            {"name": b.name, "first": b.first, "rows": b.rows, "columns": len(b.columns)}
            for b in rules.blocks
        ],
    }
    if features:
        shown["features"] = [
            {"index": i, "name": f.name, "dtype": f.dtype, "offset": f.offset, "divisor": f.divisor}
            for i, f in enumerate(rules.features)
        ]
    if actions:
        shown["action_names"] = [rules.action_name(a) for a in range(rules.actions)]
    return shown


def allowed(field: Field) -> str:
    values = " | ".join(field.words) if field.words else f"{field.low:g}..{field.high:g}"
    return f"up to {field.count} of {values}" if field.count > 1 else values


def show_value(field: Field) -> str:
    value = field.show()
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return ",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in value)


def show_game(out: Console, rules: Rules) -> None:
    weights = rules.native.default_weights
    roles = len(rules.roles)
    paid = [p for i, p in enumerate(rules.parts) if any(weights[i * roles : (i + 1) * roles])]
    out.print(rules.title, style="bold")
    facts = (
        ("seats", str(rules.seats)),
        ("actions", f"{action_count(rules)} (--actions lists them)"),
        (
            "observation",
            f"{rules.obs_bytes} bytes, {len(rules.features)} features (--features lists them)",
        ),
        ("hidden", "yes" if rules.hides else "nothing"),
        ("roles", ", ".join(rules.roles)),
        ("bots", ", ".join(rules.bots)),
        ("rewards", f"{', '.join(rules.parts)}; paid at these flags: {', '.join(paid)}"),
        ("ends", ", ".join(rules.ends)),
    )
    print_facts(facts, prose=True)
    out.print()
    flags = make_table(("flag", "value", "allowed", "help"), least=("help",))
    for field in rules.fields.values():
        text = f"{field.help} (may change in a running pool)" if field.live else field.help
        flags.add_row(field.name, show_value(field), allowed(field), text)
    for name, text in UNIVERSAL_FLAGS.items():
        flags.add_row(name, str(rules.config[name]), "0..1", text)
    print_table(flags, prose=True)
    out.print()
    if rules.stats:
        stats = make_table(("statistics", "help"), least=("help",))
        for stat in rules.stats:
            if not stat.detail:
                stats.add_row(stat.name, stat.help)
        print_table(stats, prose=True)
        out.print()
    blocks = make_table(("observation block", "features", "shape"))
    for block in rules.blocks:
        size = block.rows * len(block.columns)
        shape = f"{block.rows} x {len(block.columns)}"
        blocks.add_row(block.name, f"{block.first}..{block.first + size - 1}", shape)
    print_table(blocks)


def show_features(out: Console, rules: Rules) -> None:
    table = make_table(
        ("index", "feature", "dtype", "offset", "divisor"), numbers=("index", "offset", "divisor")
    )
    for index, feature in enumerate(rules.features):
        divisor = f"{feature.divisor:g}"
        table.add_row(str(index), feature.name, feature.dtype, str(feature.offset), divisor)
    print_table(table)


def show_actions(out: Console, rules: Rules) -> None:
    if rules.box:
        out.print(f"{rules.box} numbers in -1..1 per row")
        return
    table = make_table(("action", "name"), numbers=("action",))
    for action in range(rules.actions):
        table.add_row(str(action), rules.action_name(action))
    print_table(table)
