"""What every network is: byte rows in, what actions are drawn from and a value per row out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.games.rules import Rules


class Net(nn.Module):
    """A policy and a value. The value's last layer is `value_head`, a linear one.

    For discrete actions the policy's head is a logit each, for continuous ones means and then
    logarithms of spreads.
    """

    value_scale: Tensor
    value_head: nn.Linear

    def __init__(self, rules: Rules, config: NetConfig) -> None:
        super().__init__()
        self.config, self.box = config, rules.box
        self.register_buffer("value_scale", torch.ones(()))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the head [rows, head_width] and values in units of `value_scale` [rows]."""
        raise NotImplementedError

    @property
    def convolves(self) -> bool:
        """Whether most of the work is torch's convolutions."""
        return False

    @torch.no_grad()
    def rescale_values(self, scale: float) -> None:
        """Change the unit of the value head; what it says about any row stays the same."""
        ratio = float(self.value_scale) / scale
        self.value_head.weight.mul_(ratio)
        self.value_head.bias.mul_(ratio)
        self.value_scale.fill_(scale)


def head_width(rules: Rules) -> int:
    """Numbers that actions are drawn from: a logit each, or a mean and a spread each."""
    return 2 * rules.box or rules.actions
