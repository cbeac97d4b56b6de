"""Actors in Ray that are killed while a run learns from them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.rays import NEEDS_RAY, learner_in
from cluster.supervisors import children, settings
from sparring.cluster.ray.reaper import processes_with
from sparring.cluster.ray.session import connect

pytestmark = NEEDS_RAY
KILLS = 10


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_ten_kills_lose_rollouts_and_leave_nothing() -> None:
    before = set(Path("/dev/shm").iterdir()), set(Path("/tmp").glob("sparring-*"))
    config = settings("tic_tac_toe", actors=2, distributed={"timeout_s": 60.0})
    learner = learner_in(connect("local", cpus=2), config)
    supervisor: Any = learner.supervisor
    killed: set[tuple[int, int]] = set()
    while supervisor.restarts < KILLS:
        learner.iterate(0.5)
        alive = supervisor.pids
        for actor, incarnation in supervisor.incarnations - killed if len(killed) < KILLS else ():
            killed.add((actor, incarnation))
            if alive[actor]:
                os.kill(alive[actor], signal.SIGKILL)
    learner.iterate(0.5)
    assert len(supervisor.taken) == len(set(supervisor.taken)), "a rollout came twice"
    assert not set(supervisor.taken) & set(supervisor.gone), (
        "a rollout that was lost came all the same"
    )
    assert learner.collector.decisions <= supervisor.decisions, "a rollout was learned from twice"
    assert supervisor.restarts >= KILLS
    learner.close()
    assert not [name for name in children() if "ray" in name]
    assert set(Path("/dev/shm").iterdir()) <= before[0]
    assert set(Path("/tmp").glob("sparring-*")) <= before[1]


def test_a_program_that_is_killed_leaves_no_cluster_behind(tmp_path: Path) -> None:
    code = "import sys; from sparring.cluster.ray.session import connect; connect('local')"
    words = [sys.executable, "-c", f"{code}; print('up', flush=True); sys.stdin.read()"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    before = set(Path("/tmp").glob("sparring-*"))
    with subprocess.Popen(words, **pipes, cwd=tmp_path) as program:
        assert program.stdout is not None and program.stdout.readline() == b"up\n"
        (folder,) = set(Path("/tmp").glob("sparring-*")) - before
        assert processes_with(str(folder / "token"))
        assert folder.stat().st_mode & 0o077 == 0
        program.kill()
    while folder.exists():  # the time limit of all tests ends this
        os.sched_yield()
    assert not processes_with(str(folder / "token"))
