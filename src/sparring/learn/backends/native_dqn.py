"""DQN's gradient in native code: three forwards, targets, the loss and the backward.

`DQN.gradient` is the reference, and what runs where `Forward.why_torch` has something to say; tests
hold both equal. Every sum has one order: any number of threads gives the same bits.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparring import _native
from sparring.config import DQNConfig
from sparring.learn.replay import Samples
from sparring.nets.net import POLICY, VALUE
from sparring.nets.run.native import NativeNet


class NativeGradient:
    """Of a network and the target that follows it."""

    def __init__(self, net: NativeNet, target: NativeNet, *, weighted: bool) -> None:
        """weighted: samples have weights that differ."""
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
        self.target.passes().layers.forward(next_obs, None, self.ahead, False)
        layers = self.net.passes().layers
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
        self.net.passes().learn(torch.from_numpy(self.grad))
        return loss, off, torch.from_numpy(error)

    def follow(self, tau: float) -> None:
        """Move the target towards the network by a share of the way."""
        if tau:
            source, target = self.net.packed.weight, self.target.packed.weight
            self.work.follow(source.numpy(), tau, target.numpy())
            self.target.changed()
