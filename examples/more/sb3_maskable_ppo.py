"""sb3-contrib's MaskablePPO on a pool of games, then an evaluation in seats drawn anew.

pip install "sparring[sb3]"
python examples/more/sb3_maskable_ppo.py --steps 200000
"""

from __future__ import annotations

import argparse

import numpy as np
from sb3_contrib import MaskablePPO

from sparring.envs.sb3 import SparringVecEnv


def main() -> None:
    """Train on tic-tac-toe against a bot that wins and blocks, and count results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="tic_tac_toe")
    parser.add_argument("--against", default="careful")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=50_000)
    given = parser.parse_args()

    env = SparringVecEnv(given.game, given.envs, opponents=given.against, seed=1)
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=1024, verbose=0, seed=1)
    print(f"before: {mean_score(model, given):+.2f}")
    model.learn(given.steps)
    print(f"after:  {mean_score(model, given):+.2f}  ({given.steps} steps)")


def mean_score(model: MaskablePPO, given: argparse.Namespace, episodes: int = 1000) -> float:
    """Play other games than those of the training and return the learner's mean score."""
    env = SparringVecEnv(given.game, given.envs, opponents=given.against, seed=2)
    obs = env.reset()
    scores: list[float] = []
    while len(scores) < episodes:
        action, _ = model.predict(obs, action_masks=env.action_masks())
        obs, _, _, infos = env.step(action)
        scores += [info["score"] for info in infos if "score" in info]
    return float(np.mean(scores))


if __name__ == "__main__":
    main()
