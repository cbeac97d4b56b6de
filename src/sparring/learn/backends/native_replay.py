"""Gradients of DQN, and of SAC with continuous actions, in native code.

`DQN.gradient`, `SAC.learn_critics` and `SAC.learn_actor` are the reference, and run where networks
have no native passes; tests compare both. Sums have a fixed order: any number of threads gives the
same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.config import DQNConfig
from sparring.learn.replay import ReplayBatch
from sparring.nets.critics import CRITICS
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.run.native import NativeNet
from sparring.nets.run.native_critics import NativeCritics, widened_runs


class NativeGradient:
    """DQN's gradient: an online network and its target."""

    def __init__(self, net: NativeNet, target: NativeNet, *, weighted: bool) -> None:
        assert list(net.net.heads) == [POLICY, VALUE]
        self.net, self.target, self.weighted = net, target, weighted
        self.work = _native.OffPolicyLosses(net.threads)
        self.width = sum(net.net.heads.values())
        self._allocate(0)

    def _allocate(self, rows: int) -> None:
        self.rows = rows
        self.outputs, self.next_outputs, self.online_next, self.grad = np.zeros(
            (4, rows, self.width), np.float32
        )

    def gradient(self, samples: ReplayBatch, config: DQNConfig) -> tuple[float, float, Tensor]:
        """Fill the gradient; return the loss, the mean TD error, and the TD error per sample."""
        if len(samples.obs) != self.rows:
            self._allocate(len(samples.obs))
        next_obs, error = samples.next_obs.numpy(), np.empty(self.rows, np.float32)
        self.target.layers().forward(next_obs, None, self.next_outputs, False)
        layers = self.net.layers()
        if config.double:
            layers.forward(next_obs, None, self.online_next, False)
        layers.forward(samples.obs.numpy(), None, self.outputs, True)
        loss, mean_error = self.work.q_loss(
            outputs=self.outputs,
            next_target=self.next_outputs,
            next_online=self.online_next if config.double else None,
            mask=samples.mask.numpy(),
            next_mask=samples.next_mask.numpy(),
            action=samples.action.numpy(),
            reward=samples.reward.numpy(),
            discount=samples.discount.numpy(),
            weight=samples.weight.numpy() if self.weighted else None,
            dueling=config.dueling,
            huber=config.huber,
            grad=self.grad,
            error=error,
        )
        self.net.backward(torch.from_numpy(self.grad))
        return loss, mean_error, torch.from_numpy(error)

    def update_target(self, tau: float) -> None:
        """Soft update of the target: target += tau * (network - target)."""
        if tau:
            source, target = self.net.packed.weight, self.target.packed.weight
            self.work.polyak_update(source.numpy(), tau, target.numpy())
            self.target.mark_changed()


Floats = npt.NDArray[np.float32]


class NativeSteps:
    """SAC's gradients of one batch: critics first, then actor and temperature."""

    def __init__(self, actor: NativeNet, critics: NativeCritics, temperature_grad: Tensor) -> None:
        self.temperature_grad = temperature_grad
        self.actor, self.critics, self.box = actor, critics, critics.critics.box
        self.work = _native.OffPolicyLosses(actor.threads)
        self.runs = widened_runs(actor.net.inputs)
        self.head_width = sum(actor.net.heads.values())
        self._allocate(0)

    def _allocate(self, rows: int) -> None:
        def buffer(width: int) -> Floats:
            return np.zeros((rows, width), np.float32)

        self.rows = rows
        # Inputs of the critics, actions last: current, next, and the gradient of the current.
        self.critic_input, self.next_critic_input, self.critic_input_grad = (
            buffer(self.critics.critics.widths[0]) for _ in range(3)
        )
        self.head, self.next_head, self.head_grad = (buffer(self.head_width) for _ in range(3))
        self.q, self.next_q, self.q_grad = (buffer(CRITICS) for _ in range(3))
        self.log_prob, self.next_log_prob = (np.zeros(rows, np.float32) for _ in range(2))

    def learn_critics(
        self, samples: ReplayBatch, noise: Tensor, temperature: float
    ) -> tuple[float, Tensor]:
        """Fill the critics' gradient; return the loss and the TD error per sample.

        noise: [2, batch, box], for actions at `obs` and at `next_obs`.
        """
        if len(samples.obs) != self.rows:
            self._allocate(len(samples.obs))
        work, critics, actor = self.work, self.critics, self.actor
        actor.layers().forward(samples.next_obs.numpy(), None, self.next_head, False)
        _native.widen(samples.next_obs.numpy(), self.next_critic_input, self.runs)
        work.sample_actions(
            self.next_head, noise[1].numpy(), self.next_critic_input, self.next_log_prob
        )
        critics.forward_targets(self.next_critic_input, self.next_q)
        _native.widen(samples.obs.numpy(), self.critic_input, self.runs)
        self.critic_input[:, -self.box :] = samples.action.numpy()
        critics.forward_into(self.critic_input, self.q)
        error = np.empty(self.rows, np.float32)
        loss = work.critic_loss(
            q=self.q,
            next_q=self.next_q,
            next_log_prob=self.next_log_prob,
            reward=samples.reward.numpy(),
            discount=samples.discount.numpy(),
            weight=samples.weight.numpy(),
            temperature=temperature,
            grad=self.q_grad,
            error=error,
        )
        critics.backward(self.q_grad)
        return loss, torch.from_numpy(error)

    def learn_actor(
        self, samples: ReplayBatch, noise: Tensor, temperature: float, target: Tensor | float
    ) -> tuple[float, float]:
        """Fill the gradients of actor and temperature, after `learn_critics` of the same batch.

        Return the loss and the mean entropy. target: the target entropy.
        """
        work, critics, actor, drawn = self.work, self.critics, self.actor, noise[0].numpy()
        actor.layers().forward(samples.obs.numpy(), None, self.head, True)
        entropy = -work.sample_actions(self.head, drawn, self.critic_input, self.log_prob)
        critics.forward_into(self.critic_input, self.q)
        loss = work.actor_loss(self.q, self.log_prob, temperature, self.q_grad)
        critics.input_backward(self.q_grad, self.critic_input_grad)
        share = temperature / self.rows
        work.sample_gradient(
            self.head, drawn, self.critic_input, self.critic_input_grad, share, self.head_grad
        )
        actor.backward(torch.from_numpy(self.head_grad))
        self.temperature_grad.fill_(entropy - target)
        return loss, entropy

    def update_target(self, tau: float) -> None:
        """Soft update of the target critics."""
        self.work.polyak_update(self.critics.weight, tau, self.critics.target)
        self.critics.mark_targets_changed()
