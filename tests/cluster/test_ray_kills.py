"""Actors in Ray that are killed while a run learns from them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cluster.crews import children, settings
from cluster.rays import NEEDS_RAY, learner_in
from sparring.cluster.session import connect

pytestmark = NEEDS_RAY
KILLS = 10


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_ten_kills_lose_rollouts_and_leave_nothing() -> None:
    before = set(Path("/dev/shm").iterdir()), set(Path("/tmp").glob("sparring-*"))
    config = settings("tic_tac_toe", actors=2, fleet={"limit_s": 60.0})
    learner = learner_in(connect("local", cpus=2), config)
    crew: Any = learner.crew
    killed: set[tuple[int, int]] = set()
    while crew.restarts < KILLS:
        learner.iterate(0.5)
        alive = crew.pids
        for actor, life in crew.lives - killed if len(killed) < KILLS else ():
            killed.add((actor, life))
            if alive[actor]:
                os.kill(alive[actor], signal.SIGKILL)
    learner.iterate(0.5)
    assert len(crew.taken) == len(set(crew.taken)), "a rollout came twice"
    assert not set(crew.taken) & set(crew.gone), "a rollout that was lost came all the same"
    assert learner.collector.decisions <= crew.decisions, "a rollout was learned from twice"
    assert crew.restarts >= KILLS
    learner.close()
    assert not [name for name in children() if "ray" in name]
    assert set(Path("/dev/shm").iterdir()) <= before[0]
    assert set(Path("/tmp").glob("sparring-*")) <= before[1]
