"""A plain torch loop as a contestant; what every contestant has is in `contestants`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from peers.entries import BOT, DECISIONS, GAME, SEATS, Entry, Settings
from sparring.envs.gymnasium import SparringVectorEnv


class Plain:
    """PPO as textbooks and single-file implementations have it, on a Gymnasium vector env."""

    def __init__(self, entry: Entry, settings: Settings) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.steps = settings, settings.rollout // entry.games
        self.env = SparringVectorEnv(
            GAME, entry.games, opponents=BOT, seed=settings.seed, threads=settings.threads
        )
        self.pool, self.whole_game = self.env._seats._pools[0], DECISIONS // SEATS
        features = self.env.single_observation_space.shape[0]
        self.actor = self.tower(features, int(self.env.single_action_space.n))
        self.critic = self.tower(features, 1)
        self.net = nn.ModuleList([self.actor, self.critic])
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=settings.lr, eps=1e-5)
        obs, info = self.env.reset(seed=settings.seed)
        self.obs, self.mask = torch.as_tensor(obs), torch.as_tensor(info["action_mask"])
        self.running = torch.zeros(entry.games, dtype=torch.int64)
        self.ended: list[int] = []

    def tower(self, inputs: int, outputs: int) -> Any:
        """Return a tanh network."""
        layers: list[nn.Module] = []
        for width in self.settings.hidden:
            layers += [nn.Linear(inputs, width), nn.Tanh()]
            inputs = width
        return nn.Sequential(*layers, nn.Linear(inputs, outputs))

    def distribution(self, obs: Any, mask: Any) -> Any:
        """Return the policy over legal actions."""
        return Categorical(logits=self.actor(obs).masked_fill(~mask, -1e8))

    def iterate(self) -> dict[str, int]:
        """Collect a rollout, compute advantages, make the epochs."""
        data = self.collect()
        returns = data["advantage"] + data["value"]
        flat = {name: rows.flatten(0, 1) for name, rows in (data | {"returns": returns}).items()}
        for _ in range(self.settings.epochs):
            for picked in torch.randperm(self.settings.rollout).split(self.settings.minibatch):
                self.descend({name: rows[picked] for name, rows in flat.items()})
        return {"samples": self.settings.rollout, "decisions": self.settings.rollout}

    def collect(self) -> dict[str, Any]:
        """Play the rollout; the arrays are [steps, envs, ...]."""
        names = ("obs", "mask", "action", "log_prob", "value", "reward", "over")
        kept: dict[str, list[Any]] = {name: [] for name in names}
        for _ in range(self.steps):
            with torch.no_grad():
                policy = self.distribution(self.obs, self.mask)
                action = policy.sample()
                value = self.critic(self.obs).squeeze(-1)
            obs, reward, terminated, truncated, info = self.env.step(action.numpy())
            over = torch.as_tensor(terminated | truncated)
            paid = torch.as_tensor(reward.astype(np.float32))
            row = (self.obs, self.mask, action, policy.log_prob(action), value, paid, over)
            for name, tensor in zip(names, row, strict=True):
                kept[name].append(tensor)
            self.obs, self.mask = torch.as_tensor(obs), torch.as_tensor(info["action_mask"])
            self.running += 1
            self.ended += self.running[over].tolist()
            self.running[over] = 0
        data = {name: torch.stack(rows) for name, rows in kept.items()}
        data["advantage"] = self.advantages(data)
        return data

    def advantages(self, data: dict[str, Any]) -> Any:
        """Generalized advantage estimation, backwards in NumPy."""
        reward, value, over = (data[name].numpy() for name in ("reward", "value", "over"))
        with torch.no_grad():
            following = self.critic(self.obs).squeeze(-1).numpy()
        advantage, last = np.zeros_like(reward), np.zeros_like(following)
        for step in reversed(range(self.steps)):
            goes_on = self.settings.gamma * (1.0 - over[step])
            delta = reward[step] + goes_on * following - value[step]
            advantage[step] = last = delta + goes_on * self.settings.gae_lambda * last
            following = value[step]
        return torch.as_tensor(advantage)

    def descend(self, part: dict[str, Any]) -> None:
        """One gradient step on the clipped surrogate, the value error and the entropy."""
        settings = self.settings
        policy = self.distribution(part["obs"], part["mask"])
        advantage = part["advantage"]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (policy.log_prob(part["action"]) - part["log_prob"]).exp()
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
        value_loss = (self.critic(part["obs"]).squeeze(-1) - part["returns"]).pow(2).mean()
        loss = policy_loss + settings.value_weight * value_loss
        loss = loss - settings.entropy * policy.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), settings.max_grad_norm)
        self.optimizer.step()

    def lengths(self) -> list[int]:
        """The learner's decisions in all games that ended."""
        return self.ended
