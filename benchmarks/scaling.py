"""What actors send, how long it takes, and how far a model of throughput is from what is seen.

python benchmarks/scaling.py                          sizes of all games; 1, 2 and 4 actors of one
python benchmarks/scaling.py --sizes                  sizes alone: needs a few seconds
python benchmarks/scaling.py --supervisors processes --json scaling.json

An actor needs `a` seconds of a core for a rollout, the learner `u` for what it does with one. With
N actors on machines of their own there are min(N / a, 1 / u) rollouts per second; on one machine
with C cores also no more than C / (a + u). `a` is measured in one process without any other, `u` as
the seconds of a core that the learner's process takes per rollout with one actor; both are then
held against the rollouts per second that N actors and a learner really make together. Where other
work has the cores too, rates are low; the core seconds of a rollout are then what can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring.cluster.actors.learner import DistributedLearner, actor_shares
from sparring.cluster.actors.runner import ActorRunner
from sparring.cluster.learners import with_actors
from sparring.cluster.ray.host import PADDED, as_array, trim
from sparring.config import TrainConfig
from sparring.errors import SparringError, SparringWarning
from sparring.games.rules import game_names
from sparring.machine import machine_info, warn_if_busy
from sparring.messages import Message
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import with_preset, written

SHARE = 4
"""Sizes are those of one of so many actors."""
CREWS = {"processes": "", "ray": "local"}


def settings(game: str, actors: int, games: int = 0) -> TrainConfig:
    """A game's preset, shared out among actors. games: of each; 0: the preset's."""
    config = with_preset(game)
    each = games or max(config.collect.games // actors, 1)
    return replace(
        config,
        collect=replace(config.collect, games=each * actors, groups=1),
        actors=actors,
        threads=1,
        device="cpu",
        distributed=replace(config.distributed, actors_per_update=1),
    )


def body_of(config: TrainConfig) -> ActorRunner:
    """The first actor of a run, in this process."""
    return ActorRunner(written(config), actor_shares(config)[0])


def flat_of(runner: ActorRunner) -> np.ndarray[Any, Any]:
    """Its weights."""
    flat = np.zeros(runner.weights.size, np.uint8)
    runner.weights.write(runner._player.net, flat)
    return flat


def sizes(game: str) -> dict[str, Any]:
    """What a rollout of one of a few actors takes, and a network's weights."""
    config = settings(game, SHARE)
    runner = body_of(config)
    used = room = 0
    for name, (kind, shape) in runner.shapes.items():
        size = np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        used, room = used + (size if name not in PADDED else 0), room + size
    rows = config.collect.steps * runner.pool.num_games * runner.pool.rules.rows
    return {
        "game": game,
        "games": runner.pool.num_games,
        "steps": config.collect.steps,
        "rollout_bytes": used,
        "room_bytes": room,
        "bytes_per_row": used / rows,
        "weights_bytes": runner.weights.size,
    }


def times(config: TrainConfig, rollouts: int = 12) -> dict[str, float]:
    """Seconds of a core that the pieces of an actor's work take."""
    runner = body_of(config)
    flat = flat_of(runner)
    out = {name: np.zeros(shape, kind) for name, (kind, shape) in runner.shapes.items()}
    found: dict[str, list[float]] = {"play": [], "weights": [], "message": [], "read": []}
    for number in range(rollouts):
        clock = [time.process_time()]
        runner.play(number, out)
        clock.append(time.process_time())
        runner.load_weights(flat)
        clock.append(time.process_time())
        sent = as_array(Message("rollout", {}, trim(out)))
        clock.append(time.process_time())
        for array in Message.unpack(sent.data).arrays.values():
            array.copy()
        clock.append(time.process_time())
        for name, one, two in zip(found, clock[:-1], clock[1:], strict=True):
            found[name].append(two - one)
    middle = {name: statistics.median(values[2:]) for name, values in found.items()}
    return {**middle, "message_bytes": float(sent.nbytes), "rows": float(rows_of(config))}


def rows_of(config: TrainConfig) -> int:
    """Rows of an actor's rollout."""
    return config.collect.steps * config.collect.games // config.actors


def seen(config: TrainConfig, seconds: float) -> dict[str, float]:
    """Rollouts per second that actors and a learner make together, and what the learner needs."""
    learner = with_actors(config, resolve([config]))
    assert isinstance(learner, DistributedLearner)
    try:
        for _ in range(2 * config.actors + 2):  # everybody is there, everything warm
            learner.iterate(0.1)
        pids = learner.supervisor.pids  # type: ignore[attr-defined]
        started, busy, rollouts = time.perf_counter(), time.process_time(), 0.0
        playing = sum(map(core_seconds, pids))
        lag: list[float] = []
        while time.perf_counter() - started < seconds:
            (report,) = learner.iterate(0.1)
            rollouts += report.stats["distributed/rollouts"]
            lag.append(report.stats["distributed/lag_mean"])
        wall, busy = time.perf_counter() - started, time.process_time() - busy
        playing = sum(map(core_seconds, pids)) - playing
    finally:
        learner.close()
    return {
        "rollouts_per_s": rollouts / wall,
        "learner_s": busy / rollouts,
        "actor_s": playing / rollouts,
        "cores": (busy + playing) / wall,
        "learner_busy": busy / wall,
        "lag": statistics.mean(lag),
    }


def core_seconds(pid: int) -> float:
    """What a process has had of the cores."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def predicted(actors: int, cores: int, a: float, u: float) -> float:
    """Rollouts per second, by the model."""
    return min(actors / a, 1 / u, cores / (a + u))


def measured(
    game: str, each: int, actors: list[int], supervisors: list[str], seconds: float
) -> Any:
    """The model held against what is seen."""
    pieces = times(settings(game, 1, each))
    a, cores = pieces["play"] + pieces["weights"], os.cpu_count() or 1
    rows = []
    for supervisor in supervisors:
        extra = pieces["message"] if supervisor == "ray" else 0.0
        u = 0.0
        for count in actors:
            config = replace(settings(game, count, each), cluster=CREWS[supervisor])
            found = seen(config, seconds)
            u = u or found["learner_s"]
            model = predicted(count, cores, a + extra, u)
            row = {
                "supervisor": supervisor,
                "actors": count,
                "a": a + extra,
                "u": u,
                "model": model,
                **found,
            }
            rows.append(row)
            print(
                f"{supervisor:9} {count:2} actors: model {model:7.2f} rollouts/s, seen "
                f"{found['rollouts_per_s']:7.2f} ({found['rollouts_per_s'] / model:.2f}) on "
                f"{found['cores']:.2f} cores; core s of a rollout: model {a + extra + u:.3f}, "
                f"seen {found['actor_s'] + found['learner_s']:.3f}; lag {found['lag']:.1f}",
                flush=True,
            )
    return {"game": game, "games_per_actor": each, "pieces": pieces, "cores": cores, "rows": rows}


def main() -> None:
    """Read options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--games", type=int, default=64, help="of every actor")
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--supervisors", nargs="+", choices=CREWS, default=list(CREWS))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--sizes", action="store_true", help="sizes alone")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    warnings.simplefilter("ignore", SparringWarning)
    found: dict[str, Any] = {"machine": facts, "sizes": []}
    for game in game_names():
        try:
            one = sizes(game)
        except SparringError as wrong:
            print(f"{game}: {wrong}")
            continue
        found["sizes"].append(one)
        print(
            f"{game:22} {one['games']:5} games x {one['steps']:4} steps: "
            f"{one['rollout_bytes'] / 1e6:8.2f} MB, {one['bytes_per_row']:6.0f} bytes per row, "
            f"weights {one['weights_bytes'] / 1e6:6.2f} MB",
            flush=True,
        )
    if not options.sizes:
        print(f"{options.game}, {options.games} games per actor, {os.cpu_count()} cores")
        found["model"] = measured(
            options.game, options.games, options.actors, options.supervisors, options.seconds
        )
        pieces = found["model"]["pieces"]
        print(", ".join(f"{name} {value * 1e3:.2f} ms" for name, value in list(pieces.items())[:4]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
