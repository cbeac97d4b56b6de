from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparring.errors import ConfigError
from sparring.learn.learner import closing_learner
from sparring.speed.rounds import Round, fill_slots, measure_round, steady
from sparring.speed.stand import Gauge, UnfitError
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, merged, with_preset
from sparring.usage import below, cpu_s, memory
from speed.gauge_helpers import small

COUNTS = ("decisions", "samples", "forced", "games", "optimizer_steps", "opponent_rows")
LIMIT_S = 30.0


def counts(rounds: list[Round]) -> list[tuple[int, ...]]:
    return [tuple(getattr(one, name) for name in COUNTS) for one in rounds]


def gone(pid: int) -> bool:
    """Whether a process ends within a bounded time."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("opponents", ["self=1", "past=1"])
def test_a_gauge_measures_what_this_process_would(gauge: Gauge, opponents: str) -> None:
    config = small(opponents=(opponents,))
    opened = gauge.open("same", config, warm_up=1)
    reading = gauge.time("same", 0.0, least=3)
    gauge.shut("same")
    plan = resolve(members_of(config))
    learner = make_learner(config, plan)
    with closing_learner(learner):
        if plan.participants.slots:
            fill_slots(learner, plan)
        here = [measure_round(learner) for _ in range(4)]
    assert counts(list(reading.rounds)) == counts(here)[1:]
    assert (reading.rounds[0].opponent_rows > 0) == (opponents == "past=1")
    assert (opened.games, opened.steps, opened.threads, opened.device) == (16, 16, 1, "cpu")
    assert reading.decisions_per_s > 0
    assert reading.memory_bytes > opened.memory_bytes
    assert 0.99 < sum(reading.phases.values()) < 1.01


def test_several_are_open_at_once_and_know_nothing_of_each_other(gauge: Gauge) -> None:
    alone = small(seed=3)
    gauge.open("one", alone, warm_up=0)
    first = gauge.time("one", 0.0, least=2)
    gauge.shut("one")
    gauge.open("one", alone, warm_up=0)
    gauge.open("two", small(seed=4), warm_up=0)
    mixed = []
    for _ in range(2):
        mixed += gauge.time("one", 0.0).rounds[:1]
        gauge.time("two", 0.0)
    gauge.shut("one")
    gauge.shut("two")
    assert counts(mixed) == counts(list(first.rounds))


def test_what_is_refused_is_said_and_the_rest_stays_open(gauge: Gauge) -> None:
    gauge.open("fine", small(), warm_up=0)
    process = gauge.pid
    with pytest.raises(ConfigError, match="nobody"):
        gauge.open("wrong", small(opponents=("nobody=1",)))
    with pytest.raises(UnfitError, match="'wrong' is not open; 'fine' is"):
        gauge.time("wrong", 0.0)
    huge = replace(small(), collect=replace(small().collect, games=2**24, steps=4096))
    with pytest.raises((ConfigError, UnfitError), match="memory"):
        gauge.open("huge", huge)
    assert gauge.time("fine", 0.0).rounds
    gauge.shut("fine")
    assert gauge.pid == process


def test_settings_of_a_run_under_way_do_the_same_work_in_every_round() -> None:
    assert steady(with_preset("skull_king")).ppo.target_kl.values == (0.0,)
    dqn = with_preset("tic_tac_toe", algo="dqn")
    assert steady(dqn).replay.warmup == 0
    assert steady(dqn).dqn.epsilon.values == dqn.dqn.epsilon.values[-1:]
    roles = merged(
        with_preset("skull_king", hierarchy=True),
        {"hierarchy": {"on": True}, "roles": {"manager": {"ppo": {"target_kl": 0.5}}}},
        "test",
    )
    assert "manager.ppo.target_kl=0.0" in steady(roles).roles


def test_those_that_work_for_a_process_count() -> None:
    before = memory(below())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        try:
            assert child.pid in below()
            assert memory(below()) > before
            assert cpu_s(below()) >= cpu_s()
        finally:
            child.kill()
    assert child.pid not in below()


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_the_next_one_works() -> None:
    with Gauge() as gauge:
        gauge.open("one", small(), warm_up=0)
        assert gauge.pid
        os.kill(gauge.pid, signal.SIGKILL)
        with pytest.raises(UnfitError, match="killed, as happens when memory runs out"):
            gauge.time("one", 0.0)
        with pytest.raises(UnfitError, match="'one' is not open; nothing is"):
            gauge.time("one", 0.0)
        gauge.open("one", small(), warm_up=0)
        assert gauge.time("one", 0.0).rounds


@pytest.mark.slow
def test_memory_that_runs_out_ends_the_settings_alone() -> None:
    with Gauge() as gauge:
        gauge.open("small", small(), warm_up=0)
        assert gauge.pid
        room = 400 * 2**20
        size = int(Path(f"/proc/{gauge.pid}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(gauge.pid, resource.RLIMIT_AS, (size + room, size + room))
        large = replace(small(), collect=replace(small().collect, games=65_536, steps=512))
        with pytest.raises((ConfigError, UnfitError), match="memory"):
            gauge.open("large", large)
        assert gauge.time("small", 0.0).rounds


@pytest.mark.slow
def test_workers_of_an_environment_count_and_go_with_the_gauge() -> None:
    others = below()  # that measurements of other tests keep
    with Gauge() as gauge:
        config = small("own_envs:make_cards", workers="2")
        opened = gauge.open("cards", config, warm_up=0)
        assert opened.workers == 2
        assert opened.memory_bytes > 2 * 5 * 2**20
        assert gauge.time("cards", 0.3).cpu_cores > 0
        workers = [pid for pid in below() if pid not in (gauge.pid, *others)]
        assert len(workers) == 2
    assert all(map(gone, workers))


SCRIPT = """
import sys
from sparring.speed.stand import Gauge
from speed.gauge_helpers import small
with Gauge() as gauge:
    gauge.open("one", small(), warm_up=0)
    print(gauge.pid, flush=True)
    gauge.time("one", 3600.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    ) as program:
        assert program.stdout
        try:
            child = int(program.stdout.readline())
            program.send_signal(number)
            assert program.wait(LIMIT_S) != 0
            assert gone(child)
        finally:
            program.kill()
