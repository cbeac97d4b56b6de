"""The search over a function instead of trainings: what is asked, what is kept, how it goes on."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.sweep.file import differences, read_sweep
from sparring.sweep.sampling import (
    as_params,
    as_settings,
    choices_of,
    importance,
    make_study,
    propose,
    too_few,
)
from sparring.sweep.space import read_range
from sparring.sweep.storage import TRIALS, SweepFolder, TrialLog
from sparring.sweep.trials import DONE, FAILED, PRUNED, RUNNING, Trial, best_of
from sweep.sweep_helpers import HEAD, Function, TrainingStoppedError, search_with, told, write_sweep

RANGES = """
"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }
"ppo.epochs" = [1, 2, 3]
"net.hidden" = [[16], [32], [32, 16]]
"""


def quality(config: TrainConfig) -> Sequence[float]:
    """Best at a learning rate of 1e-3 and three epochs."""
    far = abs(math.log10(config.ppo.lr.values[0]) + 3)
    value = 1 - far - 0.1 * (3 - config.ppo.epochs)
    return [value / 2, value]


@pytest.mark.parametrize(
    ("sampler", "trials"),
    [("random", 9), ("tpe", 9), pytest.param("gp", 5, marks=pytest.mark.slow)],
)
def test_a_sweep_that_goes_on_asks_as_one_that_never_stopped(
    sampler: str, trials: int, tmp_path: Path
) -> None:
    path = write_sweep(tmp_path, RANGES, f'sampler = "{sampler}"\ntrials = {trials}\nseed = 4')
    whole, _ = search_with(tmp_path / "whole", path, Function(quality))
    assert len(whole) == trials
    for ends in (2, trials - 3):  # the process is gone, in the middle of a trial
        with pytest.raises(TrainingStoppedError):
            search_with(tmp_path / "parts", path, Function(quality, most=ends))
    parts, search = search_with(tmp_path / "parts", path, Function(quality))
    assert told(parts) == told(whole)
    assert len({trial.seed for trial in parts}) == trials
    assert not search.records.lost


def test_another_seed_asks_for_other_points(tmp_path: Path) -> None:
    asked = []
    for seed in (1, 2):
        path = write_sweep(tmp_path / str(seed), RANGES, f"trials = 3\nseed = {seed}")
        asked.append(told(search_with(tmp_path / f"out-{seed}", path, Function(quality))[0]))
    assert asked[0] != asked[1]


def test_tpe_finds_what_chance_would_not(tmp_path: Path) -> None:
    late: dict[str, float] = {}
    for sampler in ("random", "tpe"):
        path = write_sweep(tmp_path, RANGES, f'sampler = "{sampler}"\ntrials = 24\nprune = false')
        trials, _ = search_with(tmp_path / sampler, path, Function(quality, at_once=3))
        late[sampler] = sum(trial.value or 0 for trial in trials[12:])
    assert late["tpe"] > late["random"]
    best = best_of(trials)
    assert best is not None
    assert best.value == max(trial.value or 0 for trial in trials)
    shares = importance(trials, read_sweep(str(path)).ranges)
    assert next(iter(shares)) == "ppo.lr"
    assert sum(shares.values()) == pytest.approx(1)


def test_trials_that_begin_together_share_what_a_population_shares(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 12")
    executor = Function(quality, at_once=4)
    executor.shared = ("net.hidden", "ppo.epochs")
    search_with(tmp_path / "out", path, executor)
    first = executor.batches[0]
    assert len(first) == 4
    assert len({(job.config.net.hidden, job.config.ppo.epochs) for job in first}) == 1
    assert len({job.config.ppo.lr for job in first}) == 4


def test_no_point_is_tried_twice_while_there_are_others(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, '"ppo.epochs" = [1, 2, 3, 4]', "trials = 4")
    trials, _ = search_with(tmp_path / "out", path, Function(quality))
    assert sorted(trial.settings["ppo.epochs"] for trial in trials) == [1, 2, 3, 4]


def test_what_fails_is_told_and_the_search_goes_on(tmp_path: Path) -> None:
    def some(config: TrainConfig) -> Sequence[float]:
        return [] if config.ppo.epochs == 2 else [0.5]

    path = write_sweep(tmp_path, RANGES, "trials = 10")
    trials, _ = search_with(tmp_path / "out", path, Function(some))
    states = {trial.settings["ppo.epochs"]: trial.state for trial in trials}
    assert states == {1: DONE, 2: FAILED, 3: DONE}
    assert all(trial.why for trial in trials if trial.state == FAILED)
    known = make_study(read_sweep(str(path)).ranges, trials).trials
    assert len(known) == 10  # what failed counts as the worst there was
    assert {one.value for one in known} == {0.5}


def test_hopeless_trials_are_ended_early(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 12\nprune = 4")
    trials, _ = search_with(tmp_path / "out", path, Function(quality))
    pruned = [trial for trial in trials if trial.state == PRUNED]
    assert pruned
    assert min(trial.number for trial in pruned) >= 4
    assert all("median" in trial.why and len(trial.curve) == 1 for trial in pruned)
    path = write_sweep(tmp_path, RANGES, "trials = 8\nprune = false")
    trials, _ = search_with(tmp_path / "all", path, Function(quality))
    assert {trial.state for trial in trials} == {DONE}


def test_time_for_confirming_is_left(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "minutes = 1")
    trials, _ = search_with(tmp_path / "out", path, Function(quality), reserve_s=60)
    assert trials == []


def test_a_torn_line_is_no_trial_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / TRIALS
    records = TrialLog(path)
    records.put(Trial(0, {"ppo.lr": 1e-3}, DONE, 0.5, curve=((1.0, 2.0, 0.5),)))
    records.put(Trial(1, {"ppo.lr": 1e-2}, RUNNING))
    with path.open("a") as file:
        file.write('{"number": 2, "sett')
    again = TrialLog(path)
    assert [trial.number for trial in again.ended] == [0]
    assert again.ended[0].curve == ((1.0, 2.0, 0.5),)
    assert [trial.number for trial in again.lost] == [1]
    again.put(Trial(1, {"ppo.lr": 1e-2}, DONE, 0.7))
    assert [trial.value for trial in TrialLog(path).ended] == [0.5, 0.7], "it can be read once more"
    lines = path.read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 3
    path.write_text("\n".join([lines[0], lines[1][:20], lines[2]]) + "\n")
    with pytest.raises(ConfigError, match="line 2 is damaged"):
        TrialLog(path)


def test_a_warm_start_is_found_in_a_folder_that_was_moved(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, 'trials = 3\nwarm_start = "nearest"\nprune = false')
    with pytest.raises(TrainingStoppedError):
        search_with(tmp_path / "first", path, Function(quality, most=2))
    (tmp_path / "first").rename(tmp_path / "second")
    executor = Function(quality)
    search_with(tmp_path / "second", path, executor)
    inits = [job.config.init for batch in executor.batches for job in batch if job.config.init]
    assert {Path(init).parent for init in inits} == {tmp_path / "second" / "runs"}


def test_weights_of_another_table_are_no_warm_start(tmp_path: Path) -> None:
    head = HEAD.replace("tic_tac_toe", "skull_king")
    search = 'trials = 3\nwarm_start = "nearest"\nprune = false'
    path = write_sweep(tmp_path, '"set.num_players" = [4, 5, 6]', search, head)
    trials, _ = search_with(tmp_path / "out", path, Function(quality))
    assert len({trial.settings["set.num_players"] for trial in trials}) == 3
    assert [trial.init for trial in trials] == ["", "", ""], "they see and do other things"


def test_two_processes_do_not_search_one_folder(tmp_path: Path) -> None:
    folder = SweepFolder.make(tmp_path / "out", b"", {})
    with folder.locked(), pytest.raises(SparringError, match="another process"), folder.locked():
        pass


def test_a_changed_file_says_what_has_changed(tmp_path: Path) -> None:
    before = read_sweep(str(write_sweep(tmp_path, RANGES, "trials = 3")))
    more = read_sweep(str(write_sweep(tmp_path, RANGES, "trials = 9\nminutes = 4\nconfirm = 5")))
    assert differences(before, more) == []
    other = read_sweep(str(write_sweep(tmp_path, RANGES.replace("1e-2", "1e-1"), "seed = 1")))
    found = differences(before, other)
    assert found[0] == "sweep.seed was 0, is 1"
    assert found[1].startswith("range ppo.lr was 0.0001 .. 0.01, log, is 0.0001 .. 0.1")


@pytest.mark.parametrize(("sampler", "items"), [("tpe", 3), ("tpe", 4), ("tpe", 6), ("gp", 6)])
def test_orders_go_to_the_sampler_and_back(items: int, sampler: str) -> None:
    given = {"permutation": list("abcdef"[:items])}
    ranges = {"set.order": read_range("set.order", given, "here")}
    trials = []
    for number in range(3):
        found = propose(ranges, trials, kind=sampler, seed=1, number=number, wanted=3)
        order = found["set.order"]
        assert sorted(order) == list("abcdef"[:items])
        assert as_settings(ranges, as_params(ranges, found)) == found
        trials.append(Trial(number, found, DONE, float(order.index("a"))))
    assert too_few(trials, ranges)
    assert importance(trials, ranges) == {}


def test_every_order_has_a_number() -> None:
    one = read_range("set.order", {"permutation": [0, 1, 2, 3]}, "here")
    orders = choices_of(one)
    assert len({tuple(order) for order in orders}) == 24
    numbers = [as_params({"set.order": one}, {"set.order": order}) for order in orders]
    assert [found["set.order"] for found in numbers] == list(range(24))
    assert orders[0] == [0, 1, 2, 3]
    assert orders[-1] == [3, 2, 1, 0]
