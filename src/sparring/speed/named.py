"""A file of named configurations: what is trained, in which order, and what it would cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.options import joined
from sparring.config.ranges import is_number
from sparring.errors import ConfigError
from sparring.store.folders import LATEST
from sparring.training.budget import COUNTED
from sparring.training.planning.algorithms import OF_ALGORITHMS, mode_of, sections_of
from sparring.training.planning.demands import demand_processes
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import budget_of, read_toml, said_by
from sparring.training.train import complete, demand_given

NAMES = r"[A-Za-z0-9_][\w.+-]{0,59}"
OF_THE_BENCH = ("name", "runs", "population", "vary", "json", "dry_run")
"""Settings that the bench says itself."""
MOST_SEEDS = 64


@dataclass(frozen=True)
class Planned:
    """One run that is to be trained."""

    config_name: str
    config: TrainConfig

    @property
    def name(self) -> str:
        return self.config.name


@dataclass(frozen=True)
class Named:
    """A file of configurations, read and complete."""

    configs: dict[str, TrainConfig]
    seeds: int
    targets: tuple[float, ...]

    def runs(self, folder: Path) -> list[Planned]:
        """All runs, the first seed of each, then the second: a busy hour meets all alike."""
        return [
            Planned(
                name,
                replace(
                    config,
                    seed=config.seed + number,
                    name=f"{name}-s{config.seed + number}",
                    runs=str(folder),
                ),
            )
            for number in range(self.seeds)
            for name, config in self.configs.items()
        ]


def read_named(file: str, *, minutes: float = 0.0, seeds: int = 0) -> Named:
    """Read the file; everything that would be refused later is refused now.

    minutes, seeds: go before what the file says.
    """
    table = read_toml(file)
    trusted.admit(Path(file), table)
    inner, targets = table.pop("configs", None), table.pop("targets", ())
    if not isinstance(inner, dict) or not all(isinstance(one, dict) for one in inner.values()):
        raise ConfigError(f"{file} has no [configs.NAME] tables; give one for each configuration")
    if not inner:
        raise ConfigError(f"{file}: configs is empty; give a [configs.NAME] table for each")
    seeds = seeds or table.pop("seeds", 1)
    table.pop("seeds", None)
    if not isinstance(seeds, int) or not 1 <= seeds <= MOST_SEEDS:
        raise ConfigError(f"{file}: seeds {seeds!r} must be a whole number from 1 to {MOST_SEEDS}")
    if not isinstance(targets, list | tuple) or not all(map(is_number, targets)):
        raise ConfigError(f"{file}: targets {targets!r} must be a list of numbers")
    configs = {}
    for name, own in inner.items():
        where = f"{file}: configs.{name}"
        with said_by(where):
            configs[name] = complete_one(name, table, own, list(targets), minutes)
    reached = dict.fromkeys(float(t) for one in configs.values() for t in one.eval.target)
    return Named(configs, seeds, tuple(sorted(reached)))


def complete_one(
    name: str,
    common: Mapping[str, Any],
    own: Mapping[str, Any],
    targets: Sequence[float],
    minutes: float,
) -> TrainConfig:
    """Return the settings of one configuration, checked."""
    if not re.fullmatch(NAMES, name) or name == LATEST:
        raise ConfigError("the name must be up to 60 letters, digits and _ - + .")
    algo = str(own.get("algo", common.get("algo", "ppo")))
    foreign = set(OF_ALGORITHMS) - set(sections_of(algo, mode_of({**common, **own})))
    shared = {key: value for key, value in common.items() if key not in foreign}
    table = joined(shared, own)
    for key in (*OF_THE_BENCH, "seeds"):
        if key in table:
            raise ConfigError(
                f"{key} has no place here: every configuration is trained alone, "
                "once for each of the file's seeds, in the folder of the bench"
            )
    if targets:
        table["eval"] = {"target": list(targets), **table.get("eval", {})}
    if minutes:
        table = {key: value for key, value in table.items() if key not in COUNTED}
        table["minutes"] = minutes
    game, file = str(table.pop("game", "")), str(table.pop("config", ""))
    config = complete(game, file, table)
    demand_given(config, table)
    if config.eval.off:
        raise ConfigError("eval.off: what is not measured cannot be compared; leave it out")
    budget_of(config)
    demand_processes(config)
    resolve([config], played=False)
    return config


def cost(runs: Sequence[Planned]) -> str:
    """Say how long training will take, as far as that is known."""
    if not runs:
        return "nothing is left to train"
    budgets = [budget_of(run.config) for run in runs]
    timed = [amount for kind, amount in budgets if kind == "minutes"]
    told = [f"{sum(timed):.3g} minutes of training"] if timed else []
    counted = len(budgets) - len(timed)
    if counted:
        told.append(f"{counted} by a count, whose time nobody knows yet")
    return f"{len(runs)} runs to train: {' and '.join(told)}, and after each its last games"
