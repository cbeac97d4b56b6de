"""Steps of cloning in native code, for perceptrons on a CPU: those of `learn.clone`, held equal by
a test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from torch import Tensor

from sparring.learn.backends import diverged
from sparring.learn.taught import Decisions, Places, unpacked
from sparring.nets.run.native import NativeNet
from sparring.nets.run.packed import PackedAdam


class NativeClone:
    """Reads decisions where they lie; passes, losses and Adam are native."""

    def __init__(self, native: NativeNet, *, eps: float) -> None:
        """eps: Adam's."""
        self.native = native
        self.adam = PackedAdam(native.packed, eps=eps, native=native.work, tell=native.changed)
        self._grad = native.packed.grad.numpy()
        self._rooms = np.empty((2, 0, 1), np.float32)

    def step(
        self,
        decisions: Decisions,
        picked: Places,
        turned: Mapping[str, Tensor],
        *,
        unit: float,
        lr: float,
        value_weight: float,
        max_grad_norm: float,
    ) -> tuple[float, float]:
        """Make one step of the optimizer on some decisions; return the losses of both heads.

        turned: their rows, where transforms changed them. unit: of values.
        """
        net = self.native.net
        actions, rows = net.inputs.rules.actions, len(picked)
        if turned:
            obs, place = turned["obs"].numpy(), None
            action, mask = turned["action"].numpy(), turned["mask"].numpy()
        else:
            obs, place = decisions.obs, picked
            action, mask = decisions.action[picked], unpacked(decisions.legal[picked], actions)
        if rows > self._rooms.shape[1]:
            self._rooms = np.empty((2, rows, actions + 1), np.float32)
        said, grad = self._rooms[:, :rows]
        layers = self.native.passes().layers
        layers.forward(obs, place, said, True)
        missed = self.native.work.example_loss(
            said=said, mask=mask, action=action, drawn=None, weight=1.0, grad=grad
        )
        returns = decisions.returns[picked] / unit
        paid = np.isfinite(returns)
        off = np.where(paid, said[:, -1] - returns, 0.0)
        count = max(int(paid.sum()), 1)
        grad[:, -1] = value_weight * 2 * off / count
        layers.backward(grad, self._grad, None, False)
        moves, values = missed / rows, float(np.sum(off**2)) / count
        self.adam.lr = lr
        total, norm = moves + value_weight * values, math.nan
        if math.isfinite(total):
            norm = self.adam.descend(max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(total, norm, lr)
        return moves, values
