"""Healthy files that say how to train, and everything that the commands do with them before it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from sparring.commands import sweep as sweep_command
from sparring.commands import train as train_command
from sparring.config import TrainConfig
from sparring.config.tools import SweepConfig
from sparring.speed.bench_records import (
    FORMAT,
    BenchRecord,
    Figure,
    changes,
    differences,
    explanations,
)
from sparring.speed.configs import read_named
from sparring.sweep.search import remove_confirmation
from sparring.sweep.storage import SweepFolder
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import (
    members_of,
    merged,
    read_config,
    with_preset,
    written,
)
from sparring.training.records.run import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY: dict[str, Any] = {
    "game": "tic_tac_toe",
    "updates": 3,
    "threads": 1,
    "device": "cpu",
    "opponents": ["self=1", "random=0.5", "careful=0:0,1e3:1", "past=0.2"],
    "net": {"hidden": [8, 8], "activation": "tanh"},
    "collect": {"games": 4, "steps": 8},
    "ppo": {"minibatch": 16, "epochs": 1, "lr": "0%:1e-3,100%:1e-4", "gamma": 0.99},
    "eval": {"games": 16, "against": ["random"]},
    "league": {"every_decisions": 1000, "slots": 2, "sampling": "uniform"},
}


def settings(by: random.Random) -> Any:
    """A file for `--config`; one that `tune` has written looks the same."""
    others: dict[str, Any] = by.choice(
        (
            {"rewards": {"result": 1.0}, "seed": 3, "minutes": 0},
            {"algo": "dqn", "ppo": None, "dqn": {"lr": 1e-3}, "replay": {"capacity": 4096}},
            {"game": "skull_king", "set": ["num_players=3"], "opponents": ["self=1"]},
            {"starts": ["usual=1"], "vary": ["ppo.lr=1e-3,1e-4"], "seeds": 2},
            {"hierarchy": {"on": True}, "game": "skull_king", "opponents": ["self=1"]},
            {"imitate": ["careful"], "imitation": {"games": 4}, "heads": {"wdl": 0.5}},
        )
    )
    table = {**TINY, **others}
    if table["game"] != TINY["game"]:
        table["eval"] = {"games": 16}
    return {key: value for key, value in table.items() if value is not None}


def opponents(by: random.Random) -> Any:
    """Who is met, and how often."""
    words = ["self=1", "random=2", "careful", "past:3=0.5", "best@greedy=1", "past@sampled", "self"]
    words += ["random=0:1,1e6:0 stepped", "careful=0%:0,100%:1", "self,random=1", "bot:random=1"]
    return {"game": "tic_tac_toe", "updates": 1, "opponents": by.sample(words, 4)}


def planned(config: TrainConfig) -> None:
    """Decide everything about runs, and begin none."""
    for member in members_of(config)[:2]:
        resolve([member], played=False)


def plan_config(path: Path) -> None:
    """`sparring train --config FILE`, up to the plan."""
    planned(with_preset(file=str(path)))


@cache
def whole_settings() -> str:
    """The file of a run, as JSON."""
    chosen = {key: value for key, value in TINY.items() if key not in ("net", "eval")}
    return json.dumps(written(merged(TrainConfig(), chosen, "fuzz")))


def run_settings(_: random.Random) -> Any:
    """The file of a run, with every setting that there is."""
    return json.loads(whole_settings())


def plan_run(path: Path) -> None:
    """`sparring resume RUN`, up to the plan."""
    planned(read_config(Run.open(path.parent).config, str(path)))


def phases(by: random.Random) -> Any:
    """A file for `--curriculum`."""
    first = {"name": "first", "decisions": 2000, "opponents": {"random": 1, "self": "0%:1,100%:2"}}
    second = {
        "name": "second",
        "until": {"win": 0.6, "against": "random"},
        "decisions": 1000,
        "opponents": ["careful=1"],
        "rewards": {"result": "0:1,500:2"},
        "ppo": {"lr": 1e-4, "entropy": "0%:0.01,100%:0"},
    }
    last = {"name": "last", "starts": ["usual=1"], "set": by.choice(({}, []))}
    return {**TINY, "phases": by.choice(([first, second, last], [first, last]))}


def plan_curriculum(path: Path) -> None:
    """`sparring train --curriculum FILE --dry-run`."""
    dry_run(with_preset(curriculum=str(path)))


@cache
def hockey_text() -> str:
    """The example in the schema of hockey's own project."""
    return (EXAMPLES / "curricula" / "hockey.json").read_text("utf-8")


def hockey_phases(_: random.Random) -> Any:
    """A curriculum of hockey's own project."""
    return json.loads(hockey_text())


def plan_hockey(path: Path) -> None:
    """`sparring train laser_hockey --curriculum FILE`, up to the plan."""
    planned(with_preset("laser_hockey", curriculum=str(path)))


def dry_run(config: TrainConfig) -> None:
    """Prepare a run as if it began."""
    threads = torch.get_num_threads()
    try:
        train_command.run(replace(config, dry_run=True))
    finally:
        torch.set_num_threads(threads)


def sweep(by: random.Random) -> Any:
    """A file for `sparring sweep`."""
    table = {key: value for key, value in TINY.items() if key != "league"}
    ranges = {
        "ppo.lr": {"low": 1e-4, "high": 1e-2, "log": True},
        "ppo.epochs": {"low": 1, "high": 4, "step": 1},
        "net.hidden": [[8], [16, 16]],
        "opponents": [["self=1"], ["random=1"]],
    }
    kept = dict(by.sample(sorted(ranges.items()), 2))
    search = {"sampler": "random", "trials": 4, "confirm": 1, "prune": False, "at_once": 1}
    table["opponents"] = ["self=1"]
    return {**table, "sweep": {**search, "seed": 3, "ranges": kept}}


def plan_sweep(path: Path) -> None:
    """`sparring sweep FILE --dry-run`."""
    sweep_command.run(SweepConfig(str(path), out=str(path.with_name("out")), dry_run=True))


SWEPT = """
game = "tic_tac_toe"
updates = 3
device = "cpu"
threads = 1
[sweep]
sampler = "random"
trials = 4
confirm = 1
[sweep.ranges]
"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }
"ppo.epochs" = { low = 1, high = 4 }
"""


def make_sweep(folder: Path) -> None:
    """The folder of a sweep that has begun."""
    SweepFolder.make(folder / "sweep", SWEPT.encode(), {"trials": 4})


def trial(number: int, **other: Any) -> dict[str, Any]:
    """A line of trials.jsonl."""
    return {
        "number": number,
        "settings": {"ppo.lr": 1e-3 * (number + 1), "ppo.epochs": 2},
        **{"state": "done", "value": 0.5 + number / 10, "low": 0.4, "high": 0.8},
        "curve": [[1.0, 100.0, 0.4], [2.0, 200.0, 0.5]],
        **{"seconds": 2.5, "decisions": 200, "seed": number, "run": f"runs/trial-000{number}"},
        **{"init": "", "why": "", "extra": {}, **other},
    }


def trials(_: random.Random) -> Any:
    """What a sweep has tried."""
    why = "far behind"
    return [trial(0), trial(1, state="pruned", why=why), trial(2, state="running", value=None)]


def confirming(_: random.Random) -> Any:
    """The runs that confirm a sweep's best."""
    of = trial(0)["settings"]
    return [trial(n, extra={"side": side, "of": of}) for n, side in enumerate(("best", "preset"))]


def options(_: random.Random) -> Any:
    """What the command line of a sweep said."""
    return {"minutes": 0.0, "trials": 4, "sampler": "", "at_once": 0, "device": "auto"}


def go_on_sweep(path: Path) -> None:
    """`sparring sweep FOLDER --dry-run`, and what is forgotten when another setting is the best."""
    sweep_command.run(SweepConfig(str(path.parent), dry_run=True, json=True))
    folder = SweepFolder(path.parent)
    assert folder.spent_s >= 0
    remove_confirmation(folder)
    path.parent.mkdir(exist_ok=True)


def bench(_: random.Random) -> Any:
    """A file for `sparring bench configs`."""
    shared = {"game": "tic_tac_toe", "updates": 2, "device": "cpu", "seeds": 2, "targets": [0.6]}
    return {**shared, "configs": {"small": {"net": {"hidden": [8]}}, "fast": {"ppo": {"lr": 1e-2}}}}


def plan_bench(path: Path) -> None:
    """`sparring bench configs FILE`, up to the plans."""
    read_named(str(path))


def measured() -> BenchRecord:
    """A record of a bench."""
    return BenchRecord("bench pool", {"games": 4}, {"cpu": "a"}, {"rate": Figure((1.0, 2.0, 3.0))})


def bench_record(_: random.Random) -> Any:
    """What `sparring bench ... --save` writes."""
    return {**json.loads(json.dumps(measured().plain())), "format": FORMAT}


def compare_record(path: Path) -> None:
    """`sparring bench ... --record FILE`."""
    then = BenchRecord.read(path)
    differences(measured(), then), explanations(measured(), then)
    for change in changes(measured(), then):
        str(change)
