"""Gradients of DQN, and of SAC with continuous actions, in native code.

`DQN.gradient`, `SAC.learn_critics` and `SAC.learn_actor` are the reference, and what runs where
networks have no native passes; tests hold both equal. Every sum has one order: any number of
threads gives the same bits. Where SAC's losses are torch's, `NativeHead` is the actor alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.config import DQNConfig
from sparring.learn.replay import Samples
from sparring.nets.critics import CRITICS
from sparring.nets.net import POLICY, VALUE
from sparring.nets.run.native import NativeNet
from sparring.nets.run.native_critics import NativeCritics, widened_runs


class NativeGradient:
    """Of a network and the target that follows it."""

    def __init__(self, net: NativeNet, target: NativeNet, *, weighted: bool) -> None:
        assert list(net.net.heads) == [POLICY, VALUE]
        self.net, self.target, self.weighted = net, target, weighted
        self.work = _native.ReplaySteps(net.threads)
        self.width = sum(net.net.heads.values())
        self._make_room(0)

    def _make_room(self, rows: int) -> None:
        self.rows = rows
        self.said, self.ahead, self.chooser, self.grad = np.zeros((4, rows, self.width), np.float32)

    def gradient(self, samples: Samples, config: DQNConfig) -> tuple[float, float, Tensor]:
        """Fill the gradient; return the loss, the mean error, and every sample's error."""
        if len(samples.obs) != self.rows:
            self._make_room(len(samples.obs))
        next_obs, error = samples.next_obs.numpy(), np.empty(self.rows, np.float32)
        self.target.layers().forward(next_obs, None, self.ahead, False)
        layers = self.net.layers()
        if config.double:
            layers.forward(next_obs, None, self.chooser, False)
        layers.forward(samples.obs.numpy(), None, self.said, True)
        loss, off = self.work.q_loss(
            said=self.said,
            ahead=self.ahead,
            chooser=self.chooser if config.double else None,
            mask=samples.mask.numpy(),
            next_mask=samples.next_mask.numpy(),
            action=samples.action.numpy(),
            paid=samples.paid.numpy(),
            discount=samples.discount.numpy(),
            weight=samples.weight.numpy() if self.weighted else None,
            dueling=config.dueling,
            huber=config.huber,
            grad=self.grad,
            error=error,
        )
        self.net.learn(torch.from_numpy(self.grad))
        return loss, off, torch.from_numpy(error)

    def follow(self, tau: float) -> None:
        """Move the target toward the network by a share of the way."""
        if tau:
            source, target = self.net.packed.weight, self.target.packed.weight
            self.work.follow(source.numpy(), tau, target.numpy())
            self.target.changed()


Floats = npt.NDArray[np.float32]


class NativeSteps:
    """The gradients of one batch, in the order in which they are followed."""

    def __init__(self, actor: NativeNet, critics: NativeCritics, temperature_grad: Tensor) -> None:
        self.temperature_grad = temperature_grad
        self.actor, self.critics, self.box = actor, critics, critics.critics.box
        self.work = _native.ReplaySteps(actor.threads)
        self.runs = widened_runs(actor.net.inputs)
        self.head_width = sum(actor.net.heads.values())
        self._make_room(0)

    def _make_room(self, rows: int) -> None:
        def room(width: int) -> Floats:
            return np.zeros((rows, width), np.float32)

        self.rows = rows
        # What critics read, with actions last, of decisions and of what followed; its gradient.
        self.read, self.next_read, self.read_grad = (
            room(self.critics.critics.widths[0]) for _ in range(3)
        )
        self.head, self.next_head, self.head_grad = (room(self.head_width) for _ in range(3))
        self.q, self.next_q, self.q_grad = (room(CRITICS) for _ in range(3))
        self.log_prob, self.next_log_prob = (np.zeros(rows, np.float32) for _ in range(2))

    def learn_critics(
        self, samples: Samples, noise: Tensor, temperature: float
    ) -> tuple[float, Tensor]:
        """Fill the gradient of the critics; return the loss and every sample's error.

        noise: [2, batch, box], of the draws at decisions and at what followed.
        """
        if len(samples.obs) != self.rows:
            self._make_room(len(samples.obs))
        work, critics, actor = self.work, self.critics, self.actor
        actor.layers().forward(samples.next_obs.numpy(), None, self.next_head, False)
        _native.widen(samples.next_obs.numpy(), self.next_read, self.runs)
        work.draw(self.next_head, noise[1].numpy(), self.next_read, self.next_log_prob)
        critics.forward_targets(self.next_read, self.next_q)
        _native.widen(samples.obs.numpy(), self.read, self.runs)
        self.read[:, -self.box :] = samples.action.numpy()
        critics.say(self.read, self.q)
        error = np.empty(self.rows, np.float32)
        loss = work.critic_loss(
            q=self.q,
            next_q=self.next_q,
            next_log_prob=self.next_log_prob,
            paid=samples.paid.numpy(),
            discount=samples.discount.numpy(),
            weight=samples.weight.numpy(),
            temperature=temperature,
            grad=self.q_grad,
            error=error,
        )
        critics.learn(self.q_grad)
        return loss, torch.from_numpy(error)

    def learn_actor(
        self, samples: Samples, noise: Tensor, temperature: float, target: Tensor | float
    ) -> tuple[float, float]:
        """Fill the gradients of actor and temperature, of the batch before.

        Return the loss and the mean entropy. target: what that aims at.
        """
        work, critics, actor, drawn = self.work, self.critics, self.actor, noise[0].numpy()
        actor.layers().forward(samples.obs.numpy(), None, self.head, True)
        entropy = -work.draw(self.head, drawn, self.read, self.log_prob)
        critics.say(self.read, self.q)
        loss = work.actor_loss(self.q, self.log_prob, temperature, self.q_grad)
        critics.input_backward(self.q_grad, self.read_grad)
        share = temperature / self.rows
        work.draw_gradient(self.head, drawn, self.read, self.read_grad, share, self.head_grad)
        actor.learn(torch.from_numpy(self.head_grad))
        self.temperature_grad.fill_(entropy - target)
        return loss, entropy

    def follow(self, tau: float) -> None:
        """Move the targets toward the critics by a share of the way."""
        self.work.follow(self.critics.weight, tau, self.critics.target)
        self.critics.followed()


class NativeHead:
    """What an actor's policy head says about rows: autograd goes on in native code."""

    def __init__(self, actor: NativeNet) -> None:
        self.actor, self.weight = actor, next(actor.net.parameters())
        self.width = actor.net.heads[POLICY]
        assert next(iter(actor.net.heads)) == POLICY

    def __call__(self, obs: Tensor) -> Tensor:
        """Return [rows, width], to be learned from before the next call."""
        apply: Any = _Said.apply
        said: Tensor = apply(self.weight, obs, self)
        return said


class _Said(torch.autograd.Function):
    """A native pass; its backward adds to the gradient of the network's weights itself."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, obs: Tensor, head: NativeHead) -> Tensor:
        """weight: one that learns, so that autograd asks for a backward."""
        said = head.actor.said(obs, keep=True)
        ctx.head, ctx.shape = head, said.shape
        return said[:, : head.width].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        """Nothing is learned by the other heads."""
        grad = grads[0].new_zeros(ctx.shape)
        grad[:, : ctx.head.width] = grads[0]
        ctx.head.actor.learn(grad, add=True)
        return None, None, None
