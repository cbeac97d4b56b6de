"""Training with environments in worker processes, also while they are killed."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import sparring
from pools.workers.helpers import gone, memory_maps, open_files
from sparring.errors import SparringWarning
from sparring.training.records.metrics import read

pytestmark = pytest.mark.filterwarnings("ignore:.*cannot be saved")
SMALL: dict[str, Any] = {
    "workers": "2",
    "collect": {"games": 8, "steps": 16},
    "ppo": {"epochs": 1, "minibatch": 64},
    "eval": {"off": True},
    "net": {"hidden": (16,)},
    "quiet": True,
}


def workers_of(parent: int) -> list[int]:
    """Processes that were started by this one and are workers."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            told = (folder / "stat").read_text().rpartition(")")[2].split()
            if (
                int(told[1]) == parent
                and b"pools.workers.process" in (folder / "cmdline").read_bytes()
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def train(tmp_path: Path, kills: int, updates: int, **settings: Any) -> tuple[Any, list[int]]:
    """Train, and kill workers every other update."""
    seen: list[int] = []
    rng = random.Random(4)
    others = workers_of(os.getpid())  # that measurements of other tests keep

    def on_update(facts: Any) -> None:
        now = [pid for pid in workers_of(os.getpid()) if pid not in others]
        seen.extend(now)
        if len(killed) < kills:
            killed.append(rng.choice(now))
            os.kill(killed[-1], signal.SIGKILL)

    killed: list[int] = []
    agent = sparring.train(
        "own_envs:make_walk",
        updates=updates,
        runs=str(tmp_path),
        on_update=on_update,
        **{**SMALL, **settings},
    )
    assert len(killed) == kills
    return agent, seen


def check_counts(agent: Any, kills: int, updates: int) -> None:
    """All decisions are counted once; what was lost was not learned from twice."""
    curves = {name: values.tolist() for name, (_, _, values) in read(agent.run).items()}
    decisions = curves["charts/decisions"]
    assert decisions == [8 * 16 * (number + 1) for number in range(updates)]
    assert curves["workers/restarts"][-1] == kills
    assert sum(curves["learning/samples"]) <= decisions[-1]
    assert min(curves["workers/memory_mib"]) > 0


def test_training_goes_on_when_a_worker_is_killed(tmp_path: Path) -> None:
    before = open_files(), memory_maps()
    with pytest.warns(SparringWarning, match="killed by SIGKILL"):
        agent, seen = train(tmp_path, kills=1, updates=3)
    check_counts(agent, 1, 3)
    assert gone(seen)
    assert open_files() <= before[0] + 1
    assert memory_maps() <= before[1] + 1  # the learner may not be collected yet


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_twenty_kills(tmp_path: Path, algo: str) -> None:
    extra: dict[str, Any] = {"algo": algo}
    if algo == "dqn":
        extra |= {"collect": {"games": 8, "steps": 1}, "ppo": {}, "replay": {"warmup": 10_000}}
    with pytest.warns(SparringWarning, match="killed by SIGKILL"):
        agent, seen = train(tmp_path, kills=20, updates=22, **extra)
    if algo == "ppo":
        check_counts(agent, 20, 22)
    assert gone(seen)
