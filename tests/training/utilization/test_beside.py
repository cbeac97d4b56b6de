"""Other programs on the same cores are told, instead of advice that would not help."""

from __future__ import annotations

from sparring.learn.learner import Report
from sparring.training.utilization.monitor import UtilizationMonitor
from sparring.training.utilization.share import MinibatchTimings, Peaks
from sparring.training.utilization.work import WorkPerSample
from sparring.usage import EVERY_S, Contention, LoadMonitor, Usage, current_usage

WORK = WorkPerSample({"": 1000.0}, {"": 2800.0}, {"": 4}, {"": 100})
STATS = {"learning/decisions": 500.0, "learning/samples": 400.0, "learning/optimizer_steps": 16.0}


class Cores:
    """Two cores, of which a run and others take what they get."""

    def __init__(self) -> None:
        self.seconds = self.own = self.others = 0.0

    def passed(self, seconds: float, own: float, others: float) -> None:
        self.seconds += seconds
        self.own += own * seconds
        self.others += others * seconds

    def load(self) -> LoadMonitor:
        look = lambda: Usage(self.own, self.own + self.others)  # noqa: E731
        return LoadMonitor(look, lambda: self.seconds, num_cores=2)


def test_the_line_of_a_run_says_who_else_wants_the_cores() -> None:
    cores = Cores()
    pace = MinibatchTimings(1024, ((1024, 1.0, 1.0), (4096, 0.5, 0.6)))
    monitor = UtilizationMonitor(WORK, Peaks(1e6, 5e4), timings=pace, load=cores.load())

    def line() -> str:
        monitor.add_update([Report(STATS, 0, 0)], 20.0, {"update": 20.0})
        utilization = monitor.add_update([Report(STATS, 0, 0)], 20.0, {"update": 20.0})
        assert utilization
        return utilization.line

    cores.passed(EVERY_S, own=1.0, others=0.2)
    assert "bound by the update; minibatch 1k -> 4k" in line()
    cores.passed(EVERY_S, own=0.7, others=1.3)
    crowded = line()
    assert crowded.endswith("of this machine; other programs want 1.3 of 2 cores")
    assert "minibatch" not in crowded and "bound" not in crowded
    cores.passed(EVERY_S, own=1.9, others=0.1)
    assert "minibatch 1k -> 4k" in line()


def test_others_who_leave_room_are_no_crowd_and_looks_are_seldom() -> None:
    cores = Cores()
    load = cores.load()
    cores.passed(EVERY_S, own=0.5, others=1.0)
    assert load.contention() is None
    cores.passed(EVERY_S, own=1.0, others=1.0)
    assert load.contention() == Contention(1.0, 2)
    cores.passed(EVERY_S / 2, own=2.0, others=0.0)
    assert load.contention() == Contention(1.0, 2), "the last stretch is not over"


def test_this_process_is_none_of_the_others() -> None:
    before = current_usage()
    sum(range(10**6))
    after = current_usage()
    assert before.processes <= after.processes and before.all <= after.all
