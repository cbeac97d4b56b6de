"""Whether the best setting is better: what fresh seeds say, and that nothing is said too early."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from scipy.stats import ttest_ind

from sparring.config import TrainConfig
from sparring.sweep.file import read_sweep
from sparring.sweep.search import FRESH, confirm, difference_of, summarize
from sparring.sweep.storage import SweepFolder
from sparring.sweep.trials import DONE, FAILED, Trial
from sweep.sweep_helpers import Function, TrainingStoppedError, write_sweep

LR = '"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }'


def by_rate(config: TrainConfig) -> Sequence[float]:
    """Better at higher rates, a little by seed."""
    return [config.ppo.lr.values[0] * 100 + config.seed % 10 / 100]


def made(tmp_path: Path, confirmations: int = 3) -> tuple[SweepFolder, Path]:
    path = write_sweep(tmp_path, LR, f"confirm = {confirmations}", SLOW)
    return SweepFolder.make(tmp_path / "out", path.read_bytes(), {}), path


SLOW = 'game = "tic_tac_toe"\nupdates = 3\ndevice = "cpu"\nppo = { lr = 1e-4 }\n'


def test_the_interval_is_welchs() -> None:
    pairs = [([0.5, 0.6, 0.55], [0.4, 0.5, 0.41]), ([1.0, 2.0, 3.0, 9.0], [2.0, 2.5])]
    for ours, theirs in pairs:
        found = difference_of(ours, theirs)
        low, high = ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
        assert found.value == pytest.approx(sum(ours) / len(ours) - sum(theirs) / len(theirs))
        assert found.low == pytest.approx(low, abs=1e-4)
        assert found.high == pytest.approx(high, abs=1e-4)
    assert difference_of([1.0], [0.5]).low is None


def test_the_best_and_the_preset_are_trained_with_the_same_fresh_seeds(tmp_path: Path) -> None:
    folder, path = made(tmp_path)
    executor = Function(by_rate, at_once=4)
    best = Trial(5, {"ppo.lr": 8e-3}, DONE, 0.8)
    found = confirm(read_sweep(str(path)), folder, executor, best)
    jobs = [job for batch in executor.batches for job in batch]
    assert sorted((job.config.name, job.config.seed) for job in jobs) == [
        (f"{side}-{seed + 1}", FRESH + seed) for side in ("best", "preset") for seed in range(3)
    ]
    assert all(job.final for job in jobs)
    assert found.is_better
    assert found.verdict.startswith("the best setting is better than the preset by +0.79 (+0.76")
    assert found.stronger.value == 1
    again = Function(by_rate)
    assert confirm(read_sweep(str(path)), folder, again, best) == found
    assert again.batches == []
    other = Trial(6, {"ppo.lr": 1e-4}, DONE, 0.9)
    found = confirm(read_sweep(str(path)), folder, again, other)
    assert len(again.batches) == 6
    assert not found.is_better
    assert found.verdict.startswith("the best setting is not shown to be better than the preset")
    assert found.verdict.endswith("keep the preset")


def test_a_confirmation_that_was_stopped_goes_on(tmp_path: Path) -> None:
    folder, path = made(tmp_path)
    best, first = Trial(5, {"ppo.lr": 8e-3}, DONE, 0.8), Function(by_rate, most=4)
    with pytest.raises(TrainingStoppedError):
        confirm(read_sweep(str(path)), folder, first, best)
    rest = Function(by_rate)
    assert confirm(read_sweep(str(path)), folder, rest, best).is_better
    assert [job.trial.number for batch in rest.batches for job in batch] == [4, 5]


def test_one_seed_and_failed_runs_confirm_nothing() -> None:
    sides = [{"side": "best"}, {"side": "preset"}]
    trials = [Trial(n, {}, DONE, 1.0 - n, extra=side) for n, side in enumerate(sides)]
    verdict = summarize(trials).verdict
    assert verdict.startswith("one seed cannot tell whether the best setting is better: +1;")
    failed = [trials[0], Trial(1, {}, "failed", why="diverged", extra=sides[1])]
    assert "was not confirmed: preset-1: diverged" in summarize(failed).verdict


def test_runs_that_failed_do_not_make_the_others_better() -> None:
    """Whoever diverges with one seed of three is not better because the other two did well."""
    values = {"best": [0.9, 0.91, None], "preset": [0.5, 0.51, 0.5]}
    trials = []
    for seed in range(3):
        for side, found in values.items():
            value, extra = found[seed], {"side": side}
            state = FAILED if value is None else DONE
            trials.append(Trial(len(trials), {}, state, value, why="diverged", extra=extra))
    found = summarize(trials)
    assert found.difference.low is not None
    assert found.difference.low > 0
    assert not found.is_better
    assert found.verdict.startswith("the best setting is not reliable: best-3: diverged;")
