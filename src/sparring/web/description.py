"""Description of a configured game for the web app, and its WebAssembly module."""

from __future__ import annotations

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparring import _native
from sparring.errors import ConfigError, SparringError
from sparring.games.flags import changed_flags
from sparring.games.rules import Rules, game_names
from sparring.nets.levels import LEVELS
from sparring.pygames.registry import is_registered
from sparring.search.search import tree_settings
from sparring.search.worlds import WorldsConfig, check_worlds, uses_worlds


def describe_rules(rules: Rules) -> dict[str, Any]:
    """Return the sizes, names and bytes that `app/engine/engine.js` needs to play a game."""
    return {
        "name": rules.name,
        "title": rules.title,
        "rules_version": rules.rules_version,
        "flags": changed_flags(rules),
        "settings": rules.config,
        "config": base64.b64encode(rules.native.config_bytes).decode(),
        "skip_forced": rules.skip_forced,
        "weights": rules.weights(None),
        "seats": rules.seats,
        "rows": rules.rows,
        "roles": list(rules.roles),
        "actions": rules.actions,
        "box": rules.box,
        "obs_bytes": rules.obs_bytes,
        "bots": list(rules.bots),
        "ends": list(rules.ends),
        "hides": rules.hides,
        "chance": rules.chance,
        "search": search_settings(rules),
        "levels": {number: level._asdict() for number, level in LEVELS.items()},
        "runs": [list(run) for run in rules.runs],
        "blocks": [
            {"name": b.name, "first": b.first, "rows": b.rows, "columns": list(b.columns)}
            for b in rules.blocks
        ],
        "flag_fields": [
            {
                "name": field.name,
                "help": field.help,
                "low": field.low,
                "high": field.high,
                "count": field.count,
                "words": list(field.words),
                "value": field.show(),
            }
            for field in rules.fields.values()
        ],
    }


def search_settings(rules: Rules) -> dict[str, Any] | None:
    """Return the settings of a game's searches, over worlds or by trees; None if it has none."""
    if not uses_worlds(rules):
        return {"worlds": False, **tree_settings(rules)}
    try:
        check_worlds(rules)
    except ConfigError:
        return None
    config = WorldsConfig()
    steps = {
        "eta": config.step_size(rules, believes=True),
        "uniform_eta": config.step_size(rules, believes=False),
        "alpha": config.pull(rules),
    }
    return {"worlds": True, **asdict(config), **steps}


MODULES = Path(_native.__file__).parent / "wasm"


def wasm_file(game: str) -> Path:
    """Return the path of a game's WebAssembly module."""
    if is_registered(game):
        raise SparringError(f"{game} has rules in Python, which a browser cannot run")
    file = MODULES / f"{game}.wasm"
    if not file.is_file():
        raise SparringError(
            f"{game} has no WebAssembly module: this sparring was built without the toolchain; "
            "install a wheel, or run `make web` in a checkout"
        )
    return file


def unplayable_reason(game: str) -> str:
    """Return in one line why the browser cannot play a game; "" if it can."""
    if game not in game_names():
        return "the browser plays sparring's built-in games only"
    try:
        wasm_file(game)
    except SparringError as wrong:
        return str(wrong)
    return ""
