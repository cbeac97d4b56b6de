"""5. Your own algorithm: REINFORCE by self-play in plain torch, around a pool of games.

You learn: what a pool is, whose decision a row is, and how rewards find the decisions that earned
them. The rest is up to you: nothing here but `Pool`, `Lineup` and `LEARNER` is sparring's.

    python examples/05_your_algorithm.py

A learner that is to have runs, checkpoints, curves and evaluation as well implements four methods
and is named on the command line (`--algo my_learner:make`, docs/inside/add-a-learner.md). PPO on
one page is 10_ppo_on_one_page.py.

It takes 17 s of processor time (README.md says where) and prints:

    update    0  against random +0.426 +- 0.056
    update   30  against random +0.718 +- 0.043
    update   60  against random +0.784 +- 0.038
    update   90  against random +0.838 +- 0.034
    update  120  against random +0.814 +- 0.036
    update  150  against random +0.798 +- 0.037
    score against careful, which wins and blocks if it can: -0.459 +- 0.055
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from sparring import LEARNER, Lineup, Pool

GAME, GAMES, STEPS = "connect_four", 256, 48


def make_network(pool: Pool) -> nn.Sequential:
    """From an observation to a logit for every action."""
    inputs, actions = len(pool.rules.features), pool.rules.actions
    return nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, actions))


def log_probs(network: nn.Module, obs: Tensor, legal: Tensor) -> Tensor:
    """Log-probabilities of actions, -inf where one is not legal.

    Masks come before anything else: what cannot be taken is neither drawn nor learned from.
    """
    return network(obs).masked_fill(~legal, -torch.inf).log_softmax(-1)


def play(pool: Pool, network: nn.Module, draw: torch.Generator) -> tuple[Tensor, ...]:
    """Play `STEPS` moves in all games; return the decisions whose games ended meanwhile.

    They come as observations, masks, actions, and what was paid from there to the end.
    """
    rules, batch = pool.rules, pool.batch()
    shape = (STEPS, pool.num_games)
    obs = torch.zeros(*shape, len(rules.features))
    legal = torch.zeros(*shape, rules.actions, dtype=torch.bool)
    action = torch.zeros(shape, dtype=torch.int64)
    seat, asked = np.zeros(shape, np.int64), np.zeros(shape, bool)
    ended, reward = np.zeros(shape, bool), np.zeros((*shape, rules.seats), np.float32)
    for t in range(STEPS):
        # Arrays of a batch are views that the next step overwrites; `widen` makes numbers of bytes.
        obs[t] = torch.from_numpy(rules.widen(batch.obs))
        legal[t] = torch.from_numpy(batch.mask).bool()
        seat[t], asked[t] = batch.seat, batch.policy == LEARNER
        with torch.no_grad():
            action[t] = torch.multinomial(
                log_probs(network, obs[t], legal[t]).exp(), 1, generator=draw
            ).squeeze(1)
        batch = pool.step(action[t].numpy())
        reward[t] = batch.reward[:, :, 0]  # paid to every seat of every game in this step
        ended[t] = batch.terminated  # these games have begun anew in the same step

    # From the last step to the first: what a seat is paid from its decision to the end of the game.
    outcome, known = np.zeros((pool.num_games, rules.seats), np.float32), np.zeros(shape, bool)
    returns, finished = np.zeros(shape, np.float32), np.zeros(pool.num_games, bool)
    every = np.arange(pool.num_games)
    for t in reversed(range(STEPS)):
        finished |= ended[t]
        outcome[ended[t]] = 0
        outcome += reward[t]
        returns[t], known[t] = outcome[every, seat[t]], finished & asked[t]
    kept = torch.from_numpy(known)
    return obs[kept], legal[kept], action[kept], torch.from_numpy(returns)[kept]


def score(network: nn.Module, bot: str, games: int, seed: int) -> tuple[float, float]:
    """Mean score of the most probable moves against a bot, and half of its 95 % interval."""
    # Two opening moves are drawn at random: between two players without chance there would be one
    # game only. Seats are drawn, too.
    lineups = [Lineup((LEARNER, bot))]
    pool = Pool(GAME, games, seed=seed, threads=1, lineups=lineups, opening_plies=2)
    batch, scores = pool.reset(), np.full(games, np.nan)
    while np.isnan(scores).any():
        obs = torch.from_numpy(pool.rules.widen(batch.obs))
        with torch.no_grad():
            found = log_probs(network, obs, torch.from_numpy(batch.mask).bool())
        batch = pool.step(found.argmax(1).numpy())
        first = np.isnan(scores[batch.final_game])  # later games of the same index do not count
        mine = batch.final_score[batch.final_policy == LEARNER]
        scores[batch.final_game[first]] = mine[first]
    return float(scores.mean()), float(1.96 * scores.std(ddof=1) / games**0.5)


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Learn; return the scores against random play on the way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=150, help="rollouts to learn from")
    parser.add_argument("--games", type=int, default=1000, help="of each match")
    given = parser.parse_args(arguments)

    torch.manual_seed(1)
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(2)
    # Half of the games are against random play: an agent that only meets itself forgets what it
    # knew of others. A bot moves inside of the step and has no rows.
    lineups = [Lineup((LEARNER, LEARNER)), Lineup((LEARNER, "random"))]
    pool = Pool(GAME, GAMES, seed=1, threads=2, lineups=lineups)
    pool.reset()
    network = make_network(pool)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)

    scores = []
    for update in range(given.updates + 1):
        if update % max(1, given.updates // 5) == 0:
            mean, half = score(network, "random", given.games, seed=1_000_000)
            scores.append(mean)
            print(f"update {update:4}  against random {mean:+.3f} +- {half:.3f}")
        obs, legal, action, outcome = play(pool, network, draw)
        # REINFORCE (Williams, 1992): raise the log-probability of an action by what followed, less
        # what follows on average. The second term keeps the policy from being certain too soon.
        found = log_probs(network, obs, legal)
        taken = found.gather(1, action[:, None]).squeeze(1)
        entropy = -(found.exp() * found.masked_fill(~legal, 0)).sum(1).mean()
        loss = -(taken * (outcome - outcome.mean())).mean() - 0.03 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean, half = score(network, "careful", given.games, seed=2_000_000)
    print(f"score against careful, which wins and blocks if it can: {mean:+.3f} +- {half:.3f}")
    return scores


if __name__ == "__main__":
    main()
