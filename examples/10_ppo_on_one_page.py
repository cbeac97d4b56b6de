"""10. PPO by self-play on one page: sparring's games, plain torch, nothing else.

    python examples/10_ppo_on_one_page.py
    python examples/10_ppo_on_one_page.py --minutes 5 --csv curve.csv   # time instead of 25 updates

The shape is that of CleanRL's `ppo.py`: rollout, advantages, minibatches, in the order in which
they run. A game with several seats asks for four things besides:

1. Rows. A pool of games has one row per game: the seat that decides there now. All seats of all
   games share one network; who a row belongs to stands in `seat`.
2. Masks. Most actions are not legal, so that logits of the others are -inf before anything is
   drawn, valued or differentiated.
3. Chains. The decision that follows one of a seat is the seat's own next one, several rows later,
   and whatever it was paid in between belongs to the first. Advantages are linked seat by seat.
4. Opponents. Some tables are self-play, at others a bot has the other seats. Bots move inside the
   step and have no rows.

`sparring train skull_king` is the same algorithm with native networks and kernels;
docs/inside/one-page.md has both curves.

It takes 41 s of processor time on a busy machine (README.md says where) and prints:

    minutes,update,decisions,wins,...
    6.252,7,114688,0.040690104166666664,...
    13.244,13,212992,0.1650390625,...
    19.566,19,311296,0.1923828125,...
    25.225,25,409600,0.23014322916666666,...
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from sparring import LEARNER, Lineup, Pool

GAME, BOT = "skull_king", "captain"
BIDDING = 0
"""The role of a seat that bids; rounds are scored apart, so that nothing is carried into a bid."""


@dataclass(frozen=True)
class Settings:
    """Settings of `sparring train skull_king` on a CPU."""

    games: int = 256
    steps: int = 64
    """Per rollout."""
    epochs: int = 3
    minibatch: int = 2048
    hidden: int = 256
    lr: tuple[float, float] = (1e-3, 1e-4)
    """From the beginning of a run to its end."""
    entropy: tuple[float, float] = (0.01, 0.001)
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float = 0.03
    value_unit: float = 0.3
    """What values are measured in: about the size of what random play is paid for a round, which
    is points / 100."""


def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    """A linear layer with orthogonal weights."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """A perceptron with a policy and a value."""

    def __init__(self, features: int, actions: int, hidden: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            layer(features, hidden), nn.ReLU(), layer(hidden, hidden), nn.ReLU()
        )
        self.policy = layer(hidden, actions, gain=0.01)
        self.value = layer(hidden, 1, gain=0.01)

    def forward(self, obs: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of actions, -inf where one is not legal, and values."""
        hidden = self.trunk(obs)
        logits = self.policy(hidden).masked_fill(~legal, -torch.inf)
        return logits.log_softmax(-1), self.value(hidden).squeeze(-1)


class Rollout:
    """Observations, actions and rewards of every step [steps, games], and training targets."""

    def __init__(self, pool: Pool, steps: int) -> None:
        games, rules = pool.num_games, pool.rules
        shape, seats = (steps, games), rules.seats
        self.obs = torch.zeros(*shape, len(rules.features))
        self.legal = torch.zeros(*shape, rules.actions, dtype=torch.bool)
        self.action = torch.zeros(shape, dtype=torch.int64)
        self.log_prob = torch.zeros(shape)
        self.value = torch.zeros(shape)
        self.seat = np.zeros(shape, np.int64)
        self.role = np.zeros(shape, np.int64)
        self.asked = np.zeros(shape, bool)
        """Rows that the learner has decided."""
        self.reward = np.zeros((*shape, seats), np.float32)
        self.ended = np.zeros(shape, bool)


@torch.no_grad()
def play(pool: Pool, agent: Agent, rollout: Rollout, draw: torch.Generator) -> None:
    """Play one rollout with the current agent."""
    batch = pool.batch()
    for t in range(len(rollout.obs)):
        rollout.obs[t] = torch.from_numpy(pool.rules.widen(batch.obs))
        rollout.legal[t] = torch.from_numpy(batch.mask).bool()
        rollout.seat[t], rollout.role[t] = batch.seat, batch.role
        rollout.asked[t] = batch.policy == LEARNER
        rollout.legal[t, ~rollout.asked[t]] = True  # nobody decides there; any row will do
        log_probs, rollout.value[t] = agent(rollout.obs[t], rollout.legal[t])
        action = torch.multinomial(log_probs.exp(), 1, generator=draw)
        rollout.action[t] = action.squeeze(1)
        rollout.log_prob[t] = log_probs.gather(1, action).squeeze(1)
        batch = pool.step(rollout.action[t].numpy())
        rollout.reward[t] = batch.reward[:, :, 0]  # both roles are paid alike
        rollout.ended[t] = batch.terminated  # the game begins anew in the same step


def advantages(
    rollout: Rollout, gae_lambda: float, unit: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages [steps, games] in units of the values, and which decisions are complete.

    From the last step to the first, every seat of every game remembers its next decision: the value
    and the advantage there, and what it is paid until then. A seat's last decision of a rollout has
    none yet, unless the game ends: it is not learned from, but its value stands for what follows.
    """
    steps, games, seats = rollout.reward.shape
    value, every = rollout.value.numpy(), np.arange(games)
    advantage, complete = np.zeros((steps, games), np.float32), np.zeros((steps, games), bool)
    paid, next_value, next_advantage, discount = np.zeros((4, games, seats), np.float32)
    known = np.zeros((games, seats), bool)
    for t in reversed(range(steps)):
        over = rollout.ended[t]
        for later in (paid, next_value, next_advantage, discount):
            later[over] = 0  # belongs to the next game
        known[over] = True
        paid += rollout.reward[t] / unit
        mine = every[rollout.asked[t]]
        at = mine, rollout.seat[t, mine]  # (game, seat) of whoever decides
        delta = paid[at] + discount[at] * next_value[at] - value[t, mine]
        advantage[t, mine] = delta + discount[at] * gae_lambda * next_advantage[at]
        complete[t, mine] = known[at]
        advantage[t, ~complete[t]] = 0
        paid[at], next_value[at], next_advantage[at] = 0, value[t, mine], advantage[t, mine]
        discount[at], known[at] = rollout.role[t, mine] != BIDDING, True
    return advantage, complete


def learn(
    agent: Agent,
    optimizer: torch.optim.Adam,
    rollout: Rollout,
    *,
    settings: Settings,
    progress: float,
    shuffle: torch.Generator,
) -> dict[str, float]:
    """Pass over a rollout in minibatches a few times; return the mean losses of the last epoch."""
    advantage, complete = advantages(rollout, settings.gae_lambda, settings.value_unit)
    samples = torch.from_numpy(np.flatnonzero(complete))
    obs, legal = rollout.obs.flatten(0, 1)[samples], rollout.legal.flatten(0, 1)[samples]
    action, old_log_prob = rollout.action.flatten()[samples], rollout.log_prob.flatten()[samples]
    target = torch.from_numpy(advantage).flatten()[samples]
    returns = target + rollout.value.flatten()[samples]
    target = (target - target.mean()) / (target.std() + 1e-8)
    entropy_weight = between(settings.entropy, progress)
    for group in optimizer.param_groups:
        group["lr"] = between(settings.lr, progress)

    for _ in range(settings.epochs):
        losses: dict[str, list[float]] = {}
        for rows in torch.randperm(len(samples), generator=shuffle).split(settings.minibatch):
            log_probs, value = agent(obs[rows], legal[rows])
            log_prob = log_probs.gather(1, action[rows, None]).squeeze(1)
            log_ratio = log_prob - old_log_prob[rows]
            ratio = log_ratio.exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            policy_loss = -torch.min(target[rows] * ratio, target[rows] * clipped).mean()
            value_loss = ((value - returns[rows]) ** 2).mean()
            probs = log_probs.exp()
            entropy = -(probs * log_probs.masked_fill(~legal[rows], 0)).sum(-1).mean()
            loss = policy_loss + settings.value_weight * value_loss - entropy_weight * entropy

            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), settings.max_grad_norm)
            optimizer.step()

            approx_kl = ((ratio - 1) - log_ratio).mean()
            clipfrac = ((ratio - 1).abs() > settings.clip).float().mean()
            shown = (policy_loss, value_loss, entropy, approx_kl, clipfrac)
            for name, one in zip(LOSSES, shown, strict=True):
                losses.setdefault(name, []).append(float(one.detach()))
        if np.mean(losses["approx_kl"]) > settings.target_kl:
            break
    return {name: float(np.mean(found)) for name, found in losses.items()}


LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")


def between(ends: tuple[float, float], progress: float) -> float:
    """Linear interpolation of a schedule."""
    return ends[0] + (ends[1] - ends[0]) * min(progress, 1.0)


Choose = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From rows and masks to actions."""


def greedy(agent: Agent, pool: Pool) -> Choose:
    """The most probable legal action."""

    @torch.no_grad()
    def choose(obs: np.ndarray, mask: np.ndarray) -> np.ndarray:
        rows = torch.from_numpy(pool.rules.widen(obs))
        log_probs, _ = agent(rows, torch.from_numpy(mask).bool())
        return np.asarray(log_probs.argmax(1))

    return choose


def wins(choose: Choose, games: int = 2048, seed: int = 1_000_000) -> float:
    """Share of games that a policy wins against bots in all other seats; a shared win is a part."""
    tables = Pool(GAME, games, seed=seed, threads=1, lineups=[Lineup((LEARNER, BOT, BOT, BOT))])
    batch, won = tables.reset(), np.full(games, np.nan)
    while np.isnan(won).any():
        batch = tables.step(choose(batch.obs, batch.mask))
        score, mine = batch.final_score, batch.final_policy == LEARNER
        best = score == score.max(axis=1, keepdims=True)
        share = (best & mine).sum(axis=1) / best.sum(axis=1)
        first = np.isnan(won[batch.final_game])  # games that are over begin anew meanwhile
        won[batch.final_game[first]] = share[first]
    return float(won.mean())


def train(given: argparse.Namespace, settings: Settings) -> Agent:
    """Train until the time is up; print the win share at intervals."""
    torch.manual_seed(given.seed)
    torch.set_num_threads(given.threads)
    draw, shuffle = (torch.Generator().manual_seed(given.seed + n) for n in (1, 2))
    tables = [Lineup((LEARNER,) * 4), Lineup((LEARNER, BOT, BOT, BOT))]
    pool = Pool(GAME, settings.games, seed=given.seed, threads=given.threads, lineups=tables)
    pool.reset()
    agent = Agent(len(pool.rules.features), pool.rules.actions, settings.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=settings.lr[0], eps=1e-5)
    rollout = Rollout(pool, settings.steps)
    names = ["minutes", "update", "decisions", "wins", *LOSSES]
    with ExitStack() as files:
        file = files.enter_context(Path(given.csv).open("w")) if given.csv else sys.stdout
        curve = csv.DictWriter(file, names, lineterminator="\n")
        curve.writeheader()
        shown, update, decisions, spent, progress = 0, 0, 0, 0.0, 0.0
        while progress < 1:
            began = time.perf_counter()
            play(pool, agent, rollout, draw)
            losses = learn(
                agent, optimizer, rollout, settings=settings, progress=progress, shuffle=shuffle
            )
            spent += (time.perf_counter() - began) / 60  # evaluations are not counted
            update, decisions = update + 1, decisions + int(rollout.asked.sum())
            progress = update / given.updates if given.updates else spent / given.minutes
            if (due := int(min(progress, 1) * given.points + 1e-6)) > shown:
                shown = due
                found = {"wins": wins(greedy(agent, pool), given.games)} if given.games else {}
                counts = {"minutes": round(spent, 3), "update": update, "decisions": decisions}
                curve.writerow({**counts, **found, **losses})
                file.flush()
    return agent


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0, help="time instead of updates")
    parser.add_argument("--updates", type=int, default=0, help="25 if left out, and no time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--points", type=int, default=4, help="lines of the curve")
    parser.add_argument("--games", type=int, default=512, help="for every point; 0: no matches")
    parser.add_argument("--csv", default="", help="file for the curve; left out: stdout")
    given = parser.parse_args(arguments)
    if not given.minutes:
        given.updates = given.updates or 25
    train(given, Settings())


if __name__ == "__main__":
    main()
