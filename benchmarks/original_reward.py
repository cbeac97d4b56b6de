"""Skull King in the unit of the original project: the mean shaped reward of a game.

python benchmarks/original_reward.py                          three bots, for comparison
python benchmarks/original_reward.py runs/a runs/b            every checkpoint of runs
python benchmarks/original_reward.py runs/* --json reward.json

The original paid its learner by hand-made rewards (the parts flat_shaped and ability_nudge) and
hoped for a mean of 93 per game, which is about what a captain gets among captains, within minutes.
Whatever a run was paid by, its checkpoints are measured so: one seat, three captains, the same
deals for all, most probable actions. Runs are told by the minutes of training at which a mean of
80, 90 and 93 was reached first.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from sparring import Lineup, Pool
from sparring.games.rules import Rules
from sparring.machine import machine_facts
from sparring.nets.policy import Policy
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy

PAID = {"flat_shaped": 1.0, "ability_nudge": 1.0}
TARGETS = (80.0, 90.0, 93.0)
BOTS = ("rule_hard", "captain", "random")
SEED = 77


def mean_reward(
    rules: Rules, player: Policy | str, games: int, threads: int
) -> tuple[float, float]:
    """The mean reward of a game for one seat among captains, and its standard error."""
    who: Any = player if isinstance(player, str) else 0
    # Who leads the first round is drawn, so that no seat is better than another.
    lineup = Lineup((who, *("captain",) * 3), shuffle=False)
    pool = Pool(rules, games, seed=SEED, threads=threads, lineups=[lineup], rewards=PAID)
    batch = pool.reset()
    total, done = np.zeros(games), np.zeros(games, bool)
    while not done.all():
        action = np.zeros(len(batch.policy), np.int32)
        asked = batch.policy == 0
        if isinstance(player, Policy) and asked.any():
            action[asked] = player.act(batch.obs[asked], batch.mask[asked], greedy=True)
        batch = pool.step(action)
        total += np.where(done, 0.0, batch.reward[:, 0, 0])
        done |= batch.terminated
    return float(total.mean()), float(total.std() / np.sqrt(games))


def course(run: Path, games: int, threads: int) -> dict[str, Any]:
    """The mean reward of every checkpoint of a run over the minutes of training."""
    curve = []
    for number in checkpoints.numbers(run / "checkpoints"):
        folder = run / "checkpoints" / f"{number:08d}"
        meta = checkpoints.load(folder, segments=False).meta
        policy = load_policy(folder)
        mean, error = mean_reward(policy.rules, policy, games, threads)
        curve.append(
            {
                "minutes": meta["seconds"] / 60,
                "decisions": meta["decisions"],
                "reward": mean,
                "error": error,
            }
        )
    reached = {
        str(target): next((c["minutes"] for c in curve if c["reward"] >= target), None)
        for target in TARGETS
    }
    return {"run": run.name, "curve": curve, "reached": reached}


def main() -> None:
    """Measure bots or runs and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--games", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    threads = given.threads or os.cpu_count() or 1
    found: list[dict[str, Any]] = []
    if not given.runs:
        for bot in BOTS:
            mean, error = mean_reward(Rules("skull_king"), bot, given.games, threads)
            found.append({"bot": bot, "reward": mean, "error": error})
            print(f"{bot:12} {mean:7.2f} +- {error:.2f}")
    for run in given.runs:
        one = course(run, given.games, threads)
        found.append(one)
        last = one["curve"][-1]
        times = " ".join(
            f"{target}: {'-' if at is None else f'{at:.2f} min'}"
            for target, at in one["reached"].items()
        )
        print(f"{one['run']:28} {last['reward']:7.2f} +- {last['error']:.2f}  {times}", flush=True)
    if given.json:
        given.json.write_text(json.dumps({"machine": machine_facts(), "found": found}, indent=1))


if __name__ == "__main__":
    main()
