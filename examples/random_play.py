"""Random play with a pool: how scores are spread, and how fast it goes.

python examples/random_play.py
"""

from __future__ import annotations

import time

import numpy as np

import sparring

GAMES, STEPS = 2048, 600


def main() -> None:
    """Play Skull King with the learner's seats moved at random against captains."""
    lineup = sparring.Lineup((sparring.LEARNER, sparring.LEARNER, "captain", "captain"))
    pool = sparring.Pool("skull_king", GAMES, seed=1, lineups=[lineup])
    batch = pool.reset()
    scores: dict[str, list[float]] = {"random policy": [], "captain": []}
    decisions = 0
    started = time.perf_counter()
    for _ in range(STEPS):
        decisions += int((batch.policy >= 0).sum())
        batch = pool.step(pool.sample_actions())
        learner = batch.final_policy == sparring.LEARNER
        scores["random policy"] += batch.final_score[learner].tolist()
        scores["captain"] += batch.final_score[~learner].tolist()
    seconds = time.perf_counter() - started
    for name, points in scores.items():
        print(f"{name:14} {np.mean(points):8.1f} points a game, {len(points)} seats")
    print(f"{decisions / seconds:,.0f} decisions/s of the policy, bots' moves not counted")


if __name__ == "__main__":
    main()
