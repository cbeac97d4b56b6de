"""The page of settings: every one of a training, and what the games' presets change."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from reference_tables import default, flag, table, text, values

from sparring.config import TrainConfig
from sparring.config.options import Option, flat, options_of
from sparring.games import game_names
from sparring.games.lookup import game_module
from sparring.training.planning import presets

HEAD = """# Settings

Every setting of `sparring train`: as an option of the command line, as a key of a TOML file for
`--config`, and as an argument of `sparring.train`. This page is written from the dataclasses of
`src/sparring/config/`, which `--help-all` shows too and which check every value (`make docs`).

| on the command line | in a TOML file | in Python |
|---|---|---|
| `--ppo.lr 3e-4` | `[ppo]`, `lr = 3e-4` | `ppo={"lr": 3e-4}` |
| `--net.hidden 256 256` | `[net]`, `hidden = [256, 256]` | `net={"hidden": (256, 256)}` |
| `--eval.off` | `[eval]`, `off = true` | `eval={"off": True}` |
| `--collect.no-bf16` | `[collect]`, `bf16 = false` | `collect={"bf16": False}` |

What counts, the strongest first: the command line, the file of `--config`, the
[preset](#presets) of the game and the algorithm, the default below. `--dry-run` checks a command
and trains nothing. A schedule is a number that changes during the run:
`--ppo.lr 0%:1e-3,100%:1e-4` by share of the training, `0:1e-3,2e6:1e-4` by decisions.

A switch is typed without a value, and is off unless it is listed as `--no-...`. Large numbers may
be written as `2e6`.
"""
RUN = {
    "How long": ("minutes", "updates", "decisions", "episodes"),
    "What plays": ("game", "set", "opponents", "rewards", "starts", "curriculum", "config"),
    "What learns": ("algo", "algo_set", "roles", "init", "average", "imitate", "imitate_minutes"),
    "Where": ("seed", "threads", "device", "devices", "pool", "workers", "actors", "cluster"),
    "How many": ("replicas", "seeds", "population", "vary"),
    "What is kept": (
        *("name", "runs", "keep", "checkpoint_every_s", "checkpoint_every_decisions"),
        *("tensorboard", "csv", "episodes_csv", "wandb", "json", "dry_run"),
    ),
}
"""Settings without a section, in groups."""
KINDS = {
    "PRESET": "",
    "ALGOS": "`--algo {}`",
    "HIERARCHY": "`--hierarchy.on`",
    "GPU_PRESET": "on a GPU",
    "GPU_ALGOS": "on a GPU, `--algo {}`",
    "GPU_HIERARCHY": "on a GPU, `--hierarchy.on`",
}
"""Tables of a preset, and what they hold for."""


def settings_page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    options = options_of(TrainConfig)
    single = {option.path: option for option in options if not option.section}
    missing = set(single) ^ {name for names in RUN.values() for name in names}
    if missing:
        raise SystemExit(f"scripts/reference_settings.py: RUN and the settings differ: {missing}")
    yield "## The run\n"
    for group, names in RUN.items():
        yield f"### {group}\n"
        yield from rows([single[name] for name in names])
    tables = {field.name: type(field.default) for field in fields(TrainConfig)}
    for section in dict.fromkeys(option.section for option in options if option.section):
        yield f"## {section}\n"
        yield f"{text(' '.join((inspect.getdoc(tables[section]) or '').split()))}\n"
        yield from rows([option for option in options if option.section == section])
    yield from preset_lines()


def rows(options: list[Option]) -> Iterator[str]:
    found = [(flag(one), values(one), default(one), text(one.help)) for one in options]
    yield from table(("setting", "takes", "default", ""), found)
    yield ""


def preset_lines() -> Iterator[str]:
    """Yield what presets change: those for any game, then those of each game."""
    yield "## Presets\n"
    yield "What suits a game and an algorithm better than the defaults; what you type wins.\n"
    yield "### Any game\n"
    common = {
        "ALGOS": presets.ALGOS,
        "GPU_PRESET": presets.GPU_PRESET,
        "GPU_ALGOS": presets.GPU_ALGOS,
    }
    found = [*changes(common)]
    found += [
        (f"continuous actions, `--algo {algo}`", typed(settings))
        for algo, settings in presets.BOX_ALGOS.items()
    ]
    found += [
        (f"a custom environment, {words(algo)}", typed(settings))
        for algo, settings in presets.OWN_ALGOS.items()
    ]
    yield from table(("with", "settings"), found)
    yield ""
    for game in game_names():
        module = game_module(game, "preset")
        if module is not None:
            yield f"### {game}\n"
            yield from table(("with", "settings"), changes(vars(module)))
            yield ""


def changes(tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the tables of a preset change, each with what it holds for."""
    for kind, shown in KINDS.items():
        found = tables.get(kind, {})
        if kind.endswith("ALGOS"):
            for algo, settings in found.items():
                yield shown.replace("`--algo {}`", words(algo)), typed(settings)
        elif found:
            yield shown or "any", typed(found)


def words(algo: str) -> str:
    return "`--dqn.mode rollouts`" if algo == presets.PQN else f"`--algo {algo}`"


def typed(settings: Mapping[str, Any]) -> str:
    """Return settings as they are typed."""
    return ", ".join(f"`{one_typed(path, value)}`" for path, value in flat(settings).items())


def one_typed(path: str, value: Any) -> str:
    name = path.replace("_", "-")
    if path.startswith("roles."):
        shown = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else value
        return f"--roles {path.removeprefix('roles.')}={shown}"
    if isinstance(value, bool):
        section, dot, key = name.rpartition(".")
        return f"--{section}{dot}{'' if value else 'no-'}{key}"
    shown = " ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    return f"--{name} {shown}"
