"""Several runs in a cluster: each is told when it ends, and all come back as one table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from sparring.config import TrainConfig


def in_cluster(config: TrainConfig) -> bool:
    """Whether several runs are tasks of a cluster; with actors it is theirs, one run at a time."""
    return bool(config.cluster) and not config.actors and config.replicas == 1


def train_in_cluster(
    config: TrainConfig, members: Sequence[TrainConfig], names: Sequence[str]
) -> tuple[list[dict[str, Any]], bool]:
    """Train and measure runs; return a row for each that ended well, and whether all did.

    names: what makes each differ from the others.
    """
    from sparring.cluster.ray.session import connect
    from sparring.cluster.ray.tasks import demand_tasks, train_runs

    demand_tasks(config)
    rows: dict[int, dict[str, Any]] = {}
    well = True
    with connect(config.cluster) as cluster:
        for done in train_runs(cluster, members):
            which = f"run {done.number + 1} of {len(members)} ({names[done.number]})"
            facts = done.facts
            for text in facts.get("warnings", ()):
                print(f"sparring: {which}: {text}", file=sys.stderr)
            if done.wrong:
                well = False
                print(f"sparring: {which} failed: {done.wrong}", file=sys.stderr)
                continue
            well = well and not facts["unsaved"] and bool(facts["results"])
            print(f"{which}: {facts['ended']}, {facts['run']}", file=sys.stderr)
            if facts["results"]:
                rows[done.number] = {
                    "run": facts["run"],
                    "seed": members[done.number].seed,
                    "varied": names[done.number],
                    "results": facts["results"],
                }
    return [rows[number] for number in sorted(rows)], well
