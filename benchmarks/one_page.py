"""Strength over time of PPO on one page and of `sparring train`, by the same matches.

    python benchmarks/one_page.py page --minutes 5 --seed 1 > page.csv
    python benchmarks/one_page.py fast --minutes 5 --seed 1 > fast.csv

Both have the settings of Skull King's preset on a CPU, and one thread. Minutes are those of the
processor, so that other programs of the machine cost neither of them anything; matches are not
counted. A point of a curve is the share of games won against three captains, by the most probable
actions.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import torch

from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import plan_training

page = importlib.import_module("10_ppo_on_one_page")
NAMES = ("minutes", "update", "decisions", "wins")


def fast(given: argparse.Namespace) -> None:
    """The learner that `sparring train` makes, without the run around it."""
    settings = {"seed": given.seed, "threads": 1, "device": "cpu", "minutes": given.minutes}
    config = merged(with_preset(page.GAME), settings, "benchmark")
    learner = plan_training([config]).make_learner()
    curve = csv.writer(sys.stdout, lineterminator="\n")
    curve.writerow(NAMES)
    shown, spent, progress = 0, 0.0, 0.0
    while progress < 1:
        began = time.process_time()
        (report,) = learner.iterate(progress)
        spent += (time.process_time() - began) / 60
        progress = learner.updates / given.updates if given.updates else spent / given.minutes
        if (due := int(min(progress, 1) * given.points + 1e-6)) > shown:
            shown, act = due, partial(learner.policy().act, deterministic=True)
            won = page.wins(act, given.games)
            curve.writerow([round(spent, 3), learner.updates, report.decisions, won])
            sys.stdout.flush()


def main() -> None:
    """Train one of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=["page", "fast"])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--updates", type=int, default=0, help="updates instead of minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--games", type=int, default=4096, help="of every point")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.which == "fast":
        fast(given)
        return
    page.time = SimpleNamespace(perf_counter=time.process_time)
    page.train(argparse.Namespace(**vars(given), threads=1, csv=""), page.Settings())


if __name__ == "__main__":
    main()
