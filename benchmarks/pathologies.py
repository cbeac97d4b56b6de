"""Trainings with a known fault: does the verdict name it, and does the remedy gain as promised?

python benchmarks/pathologies.py                  all of them, a few minutes
python benchmarks/pathologies.py --only threads   only those whose name begins so
python benchmarks/pathologies.py --only unseen    those that nobody looked at for the verdicts
python benchmarks/pathologies.py --seconds 5      how long each is looked at
python benchmarks/pathologies.py --json           one JSON object

Each is profiled as `sparring profile` does it. Advice that is a setting is followed to the letter:
the verdict's own change; advice about code by an environment in which just that is mended. What
following brings is measured afterwards and apart: sick and mended learners take turns, and the
gain is the median over pairs of the ratio within a pair. It has to be at least half of what was
promised. The verdicts were written with the five that have a plain name and those called extra at
hand, and without those called unseen: of these, workers and replay were named rightly at first
stack, while rereading had the right place and the advice for writing, and got a cause of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from sparring import trusted
from sparring.config import NetConfig, TrainConfig
from sparring.games.flags import read_rules
from sparring.machine import cores, machine_info
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.speed.profiling import SamplingOptions, profile_new_training
from sparring.speed.rounds import steady
from sparring.speed.timer import TimerProcess
from sparring.speed.verdicts.judge import judge
from sparring.speed.verdicts.profiled_run import Verdict
from sparring.store.policies import save_policy
from sparring.training.planning.settings import merged
from sparring.training.train import complete

ENVS = str(Path(__file__).resolve().parent / "sick_envs.py")
PAIRS, WINDOW_S = 5, 1.2
SMALL: dict[str, Any] = {"net": {"hidden": (64, 64)}, "eval": {"off": True}}
HALF = 0.5


@dataclass(frozen=True)
class Pathology:
    """A training with a known fault."""

    cause: str
    """That the first verdict is to name."""
    game: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    mended: str = ""
    """The game in which just that is mended; "" where the advice is a setting."""
    algo: str = ""
    """What learns; "": as usual."""

    def config(self, game: str = "") -> TrainConfig:
        """The settings of the sick training, or of the same in another game."""
        usual = complete(
            game or self.game, "", {**SMALL, "algo": self.algo} if self.algo else SMALL
        )
        config: TrainConfig = merged(usual, self.changes, "pathologies")
        return config


def env(name: str) -> str:
    """Return a custom environment by the name of its factory."""
    trusted.allow(f"{ENVS}:make_{name}")
    return f"{ENVS}:make_{name}"


def pathologies(folder: Path) -> dict[str, Pathology]:
    """The five, and some more. folder: for opponents that have to lie somewhere."""
    many = opponents(folder, "tic_tac_toe", 16)
    few_rows = {"collect": {"games": 64, "steps": 64}, "ppo": {"epochs": 1, "minibatch": 1024}}
    return {
        "slow env": Pathology("slow environment", env("slow"), mended=env("quicker")),
        "opponents": Pathology(
            "one call per opponent", "tic_tac_toe", {"opponents": many, **few_rows}
        ),
        "minibatches": Pathology("tiny minibatches", "tic_tac_toe", {"ppo": {"minibatch": 32}}),
        "threads": Pathology("too many threads", "skull_king", {"threads": 8 * cores()}),
        "logging": Pathology("logging every step", env("logging"), mended=env("sound")),
        "extra: copying": Pathology("copying", env("copying"), mended=env("sound")),
        "extra: waiting": Pathology("an environment that waits", env("sleepy")),
        "extra: network": Pathology(
            "a network inside the environment", env("asking"), mended=env("sound")
        ),
        "extra: garbage": Pathology("garbage collection", env("tidy"), mended=env("sound")),
        "extra: reset": Pathology("a costly reset", env("charting"), mended=env("sound")),
        "extra: few games": Pathology(
            "too few games",
            "tic_tac_toe",
            {"collect": {"games": 4, "steps": 256}, "ppo": {"epochs": 1, "minibatch": 1024}},
        ),
        "unseen: rereading": Pathology(
            "reading a file in every step", env("rereading"), mended=env("sound")
        ),
        "unseen: workers": Pathology("too many workers", env("sound"), {"workers": "8"}),
        "unseen: replay": Pathology(
            "tiny minibatches", "tic_tac_toe", {"replay": {"batch": 8}}, algo="dqn"
        ),
    }


def opponents(folder: Path, game: str, count: int) -> tuple[str, ...]:
    """Saved policies of another network than the learner's, as words of `opponents`."""
    rules, words = read_rules(game, {}), ["self=1"]
    for number in range(count):
        torch.manual_seed(number)
        policy = Policy(rules, make_net(rules, NetConfig(hidden=(64, 48))), name=f"old-{number}")
        words.append(f"{save_policy(policy, folder / f'old-{number}.pt')}=1")
    return tuple(words)


def examined(name: str, sick: Pathology, seconds: float) -> dict[str, Any]:
    """Profile, judge, follow, and measure what came of it."""
    config = sick.config()
    seen = profile_new_training(config, SamplingOptions(seconds), lambda _: None)
    with TimerProcess() as timer:
        found = judge(seen.evidence, timer)
    first = found[0]
    got = followed(sick, config, first)
    promised = first.gain or 0.0
    return {
        "name": name,
        "cause": sick.cause,
        "named": first.cause,
        "right": first.cause == sick.cause,
        "text": first.text,
        "do": first.do,
        "promised": round(promised, 3),
        "timed": first.timed,
        "gained": None if got is None else round(got, 3),
        "kept": got is not None and got >= HALF * promised,
        "others": [verdict.text for verdict in found[1:]],
        "phases": {key: round(share, 3) for key, share in seen.evidence.phases.items()},
    }


def followed(sick: Pathology, config: TrainConfig, verdict: Verdict) -> float | None:
    """Return the measured gain of the remedy; None if it cannot be applied."""
    if verdict.change:
        then: TrainConfig = merged(config, verdict.change, "followed")
    elif sick.mended:
        then = sick.config(sick.mended)
    else:
        return None
    with TimerProcess() as timer:
        timer.open("sick", steady(config))
        timer.open("mended", steady(then))
        ratios = []
        for pair in range(PAIRS):
            order = ("sick", "mended") if pair % 2 else ("mended", "sick")
            rates = {name: timer.time(name, WINDOW_S).decisions_per_s for name in order}
            ratios.append(rates["mended"] / rates["sick"])
    return statistics.median(ratios) - 1


def shown(result: Mapping[str, Any]) -> str:
    """A result in a few lines."""
    marks = f"{'right' if result['right'] else 'WRONG':5s}"
    gained = "-" if result["gained"] is None else f"{100 * result['gained']:+.0f} %"
    kept = "kept" if result["kept"] else "NOT KEPT"
    how = "timed" if result["timed"] else "estimated"
    return (
        f"{result['name']:18s} {marks} named {result['named']!r}; promised "
        f"{100 * result['promised']:+.0f} % ({how}), following it {gained}: {kept}\n"
        f"{'':18s} {result['text']}"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Examine those that are asked for; 1 if a verdict was wrong or promised too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="those whose name begins so")
    parser.add_argument("--seconds", type=float, default=8.0, help="to look at each")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(words)
    warnings.simplefilter("ignore")
    results = []
    with tempfile.TemporaryDirectory(prefix="pathologies-") as folder:
        os.chdir(folder)
        for name, sick in pathologies(Path(folder)).items():
            if not name.startswith(asked.only):
                continue
            results.append(examined(name, sick, asked.seconds))
            print(shown(results[-1]), file=sys.stderr if asked.json else sys.stdout, flush=True)
        os.chdir("/")
    if asked.json:
        print(json.dumps({"machine": machine_info(), "pathologies": results}))
    return 0 if results and all(one["right"] and one["kept"] for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
