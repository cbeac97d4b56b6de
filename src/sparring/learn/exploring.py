"""Acting while learning from replay: the network's choice, or now and then a random legal one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from sparring.games.rules import Rules
from sparring.learn.collect import Answer, Draws
from sparring.learn.forward import Forward
from sparring.nets.distribution import Sampler
from sparring.nets.net import POLICY, head_width


class Exploring:
    """Answers the learner's rows; with probability epsilon, any legal action."""

    def __init__(self, forward: Forward, rules: Rules, seed: int, *, greedy: bool) -> None:
        """Act with a network. greedy: its best action, else one that is drawn from its head."""
        self.forward, self.rules, self.greedy = forward, rules, greedy
        self.sampler = Sampler(seed)
        self.epsilon = np.zeros(0, np.float32)
        """By game; of one entry: the same in all of them."""

    def set_epsilon(self, epsilon: float | npt.NDArray[np.float32]) -> None:
        """Set how often any action is taken, for all games or for each."""
        self.epsilon = np.atleast_1d(np.asarray(epsilon, np.float32))

    @torch.no_grad()
    def answer(
        self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8], draws: Draws
    ) -> Answer:
        """Choose an action for every row."""
        if (self.epsilon == 1).all():
            heads = {POLICY: torch.zeros(len(obs), head_width(self.rules))}
        else:
            heads = self.forward(torch.from_numpy(obs))
        game = draws.rows // self.rules.rows
        epsilon = self.epsilon[game] if len(self.epsilon) > 1 else self.epsilon
        action, _ = self.sampler.draw(
            heads[POLICY],
            mask,
            rollout=draws.rollout,
            step=draws.step,
            rows=draws.rows,
            greedy=self.greedy,
            epsilon=np.broadcast_to(epsilon, len(obs)),
            squash=self.forward.net.config.squash,
        )
        return Answer(action, memory=self.forward.memory(obs, heads))
