"""The recipe of a run: the command that repeats it, its machine, its time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparring.config.options import flat
from sparring.config.synonyms import DEFAULT_ALGO
from sparring.training.planning.settings import MACHINES, read_config, with_preset, written
from sparring.training.records.overview import Overview, read_json

MACHINE = "machine.json"
LEFT_OUT = MACHINES | {
    *("name", "runs", "json", "tensorboard", "wandb", "csv", "episodes_csv", "dry_run", "config"),
    *("game", "keep", "checkpoint_every_s", "checkpoint_every_decisions", "threads"),
}
"""Settings that do not change what a run learns, but for threads, which change how much."""


def recipe_of(run: Path) -> dict[str, Any]:
    """Return how a run was trained."""
    overview = Overview(run)
    facts, machine = overview.plain(), read_json(run / MACHINE) or {}
    device = str(overview.config.get("device", ""))
    gpu = device.startswith("cuda") or (device == "auto" and bool(machine.get("gpus")))
    recipe = {
        "command": command_of(overview.config, gpu=gpu),
        "machine": machine_in_words(machine),
        "minutes": round(float(facts["minutes"]), 2),
        "commit": str(machine.get("commit") or "unknown"),
        "decisions": int(facts["decisions"]),
        "seed": int(overview.config.get("seed", 0)),
    }
    return recipe | {"date": str(machine.get("date", ""))[:10]}


def machine_in_words(machine: Mapping[str, Any]) -> str:
    gpus = [str(one) for one in machine.get("gpus") or ()]
    return ", ".join([*gpus, f"{machine.get('cores', '?')} cores", str(machine.get("cpu", "?"))])


def command_of(config: Mapping[str, Any], *, gpu: bool) -> str:
    """Return the command that trains with these settings: those that differ from the preset's."""
    game, algo = str(config["game"]), str(config["algo"])
    usual = flat(written(with_preset(game, gpu=gpu, algo=algo)))
    words = ["sparring", "train", game]
    words += [] if algo == DEFAULT_ALGO else ["--algo", algo]
    for key, value in flat(written(read_config(config, str(config.get("name", ""))))).items():
        left_out = {key, key.split(".")[0]} & LEFT_OUT
        if left_out or usual.get(key) == value:
            continue
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--{key.rpartition('.')[0]}.no-{key}")
        elif isinstance(value, list):
            words += [option, *map(str, value)]
        else:
            words += [option, str(value)]
    return shlex.join(words)
