"""A critic that sees what is hidden: its values make the advantages while a policy is trained.

It is a second network, a perceptron, with its own optimizer; nothing of it is part of a policy. A
row of it holds the hidden information that the game declares, relative to the seat, then the
observation. After a rollout its values replace those of the policy's network in the column "value",
so that advantages, returns and the scale of returns follow from them. The policy's network keeps
its value head and learns the same returns from what the seat sees; truncated games and searches use
that head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig
from sparring.games.seeds import derive_seed
from sparring.learn.backends import Backend, Loss
from sparring.learn.backends.native import NativeAutograd
from sparring.learn.backends.torch import TorchBackend
from sparring.learn.forward import Forward
from sparring.learn.head_terms import seats_of
from sparring.learn.minibatches import Metrics, Minibatch
from sparring.learn.playing import SelfPlay, copied
from sparring.learn.process_group import ProcessGroup
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import VALUE
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.pools.lineups import LEARNER

CRITIC = "critic"
"""Column with the critic's rows, and group of its weights in snapshots."""
CRITIC_OPTIMIZER = "critic_optimizer"
CRITIC_LOSS = "critic_loss"
AT_ONCE = 4096
"""Rows of a pass."""
STREAM = 0x637269
"""Of the seeds of initial weights."""


def critic_config(net: NetConfig) -> NetConfig:
    """Return the network of a critic beside a policy's."""
    hidden = net.critic_hidden or net.hidden
    return NetConfig(hidden=hidden, activation=net.activation, sparse=net.sparse)


def fresh_critic(rows: CriticRows, net: NetConfig, seed: int, threads: int = 1) -> Net:
    """Make a critic with initial weights. net: configuration of the policy's network."""
    with torch.random.fork_rng(devices=[]):  # the weights of others stay as without it
        torch.manual_seed(derive_seed(seed, STREAM))
        return make_net(rows.rules, critic_config(net), heads={VALUE: 1}, threads=threads)


class Critic:
    """The critic of one network on the host."""

    def __init__(
        self, playing: SelfPlay, net: NetConfig, collect: CollectConfig, *, threads: int, eps: float
    ) -> None:
        """Make the critic of a learner.

        net: configuration of the policy's network. threads: of native code; 0 is torch. eps: of
        Adam.
        """
        self.rows = CriticRows(playing.rules)
        self.state_field = self.rows.state_field
        """Field of the game state that the rollout stores."""
        self.net = fresh_critic(self.rows, net, playing.seed, threads or 1).to(playing.device)
        self.forward = Forward(self.net, playing.device, collect)
        is_native = bool(threads) and self.forward.go_native(threads) is not None
        self.backend: Backend = (
            NativeAutograd(self.forward, eps=eps) if is_native else TorchBackend(self.net, eps=eps)
        )
        self.backend.metric_names = (CRITIC_LOSS,)
        self.by_place = np.zeros((0, self.rows.row_bytes), np.uint8)
        """The rows of a rollout by place."""

    @property
    def columns(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Its rows, as a column of the rollout."""
        return {CRITIC: self.by_place}

    @torch.no_grad()
    def fill(self, learner: Any) -> None:
        """Write the values of all decisions of a rollout into its column "value"."""
        rollout, transitions = learner.collector.rollout, learner.collector.transitions
        if len(self.by_place) != len(rollout.obs):
            self.by_place = np.zeros((len(rollout.obs), self.rows.row_bytes), np.uint8)
        mine = rollout.policy.reshape(-1) == LEARNER
        decided = np.concatenate([transitions.pending_rows() >= 0, mine])
        places = np.flatnonzero(decided)
        for part in np.array_split(places, -(-len(places) // AT_ONCE) or 1):
            arrays = rollout.obs[part], rollout.hidden[part], seats_of(learner, part)
            rows = self.rows.build(*map(torch.from_numpy, arrays))
            values = self.net.unscaled_values(self.forward(rows))
            self.by_place[part] = rows.numpy()
            rollout.columns["value"][part] = values.cpu().numpy()

    def beside(self, learner: Any) -> Callable[..., Metrics]:
        """Return a function that makes a step of a `RoleLearner` and one of the critic.

        The critic takes over the scale of returns.
        """
        self.rescale(float(learner.net.value_scale))

        def step(
            minibatch: Minibatch, hparams: Any, loss: Loss, process_group: ProcessGroup
        ) -> Metrics:
            metrics = learner.backend.step(minibatch, hparams, loss, process_group)
            return {**metrics, **self.step(minibatch, hparams, process_group)}

        return step

    def step(self, minibatch: Minibatch, hparams: Any, process_group: ProcessGroup) -> Metrics:
        """Make one optimizer step on the squared error of the returns."""
        picked, data = minibatch.picked, minibatch.data
        rows = {"obs": data[CRITIC], "returns": data["returns"]}
        metrics = self.backend.step(Minibatch(rows, picked, {}), hparams, self.loss, process_group)
        return {CRITIC_LOSS: metrics[CRITIC_LOSS]}

    def loss(self, rows: Mapping[str, Tensor], hparams: Any) -> tuple[Tensor, dict[str, Tensor]]:
        values = self.forward(rows["obs"])[VALUE].float()
        loss = ((values - rows["returns"]) ** 2).mean()
        return loss, {CRITIC_LOSS: loss}

    def rescale(self, scale: float) -> None:
        """Take over the scale of returns of the policy's network; values stay the same."""
        if float(self.net.value_scale) != scale:
            self.net.rescale_value_head(scale)

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Copy weights and optimizer for a snapshot."""
        return {CRITIC: copied(self.net), CRITIC_OPTIMIZER: self.backend.tensors()}

    def load(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Restore `tensors`."""
        self.net.load_state_dict(dict(tensors[CRITIC]))
        self.backend.load(tensors.get(CRITIC_OPTIMIZER, {}))
