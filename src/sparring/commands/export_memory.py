"""Networks that remember as one graph: what is remembered goes in and comes out as numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.inputs import Inputs
from sparring.nets.layers import FirstLayer
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import MEMORY, POLICY, VALUE, Net
from sparring.nets.policy import Policy
from sparring.nets.recurrent import RecurrentNet

AFTER = "next_memory"
"""What comes out; inputs and outputs of a file have different names."""
PROOF_STEPS = 5
"""Decisions in a row over which a file is held against torch."""

Run = Callable[[dict[str, npt.NDArray[Any]]], dict[str, npt.NDArray[Any]]]
"""The file: outputs by name, from inputs by name."""


class PlainRemembering(nn.Module):
    """Bytes and what is remembered in; logits, values and what is remembered out."""

    places: Tensor

    def __init__(
        self, rules: Rules, net: Net, plain: Callable[[Inputs, FirstLayer], Any], *, valued: bool
    ) -> None:
        """Copy a network. plain: makes a first layer that a graph can hold."""
        super().__init__()
        self.valued, self.numbers = valued, net.inputs.memory // 4
        room: dict[str, Any] = {"heads": net.heads, "memory": net.inputs.memory}
        self.net = make_net(rules, replace(net.config, sparse=False), **room)
        self.net.load_state_dict(net.state_dict())
        if not net.config.memory or not isinstance(self.net, Perceptron | RecurrentNet):
            raise ConfigError(
                f"a {type(net).__name__} with {net.inputs.memory} bytes of memory that it does not "
                "write itself cannot be exported; net.memory gru and stack can"
            )
        first = self.net.first
        seen = Inputs(rules, 0, net.config.inputs)
        order = seen.stretches()[1]
        self.register_buffer("places", torch.from_numpy(np.argsort(order)), persistent=False)
        self.bytes = plain(seen, first)
        self.normaliser = first.normaliser
        self.net.first = WidenedLayer(first)  # type: ignore[assignment]

    def forward(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Return logits [rows, actions], values [rows] if there are any, and memory."""
        numbers = self.bytes.widen(obs)
        if self.normaliser is not None:
            numbers = self.normaliser(numbers)
        numbers = numbers[:, self.places]
        if isinstance(self.net, RecurrentNet):
            heads = self.net.step(numbers, memory[:, : self.net.config.memory_width])
            after = heads[MEMORY]
        else:
            heads = self.net(torch.cat((numbers, memory), 1))
            frames, features = self.net.config.frames, numbers.shape[1]
            after = torch.cat((numbers, memory[:, : (frames - 2) * features]), 1)
            after = functional.pad(after, (0, self.numbers - after.shape[1]))
        values = (self.net.true_values(heads),) if self.valued else ()
        return (heads[POLICY], *values, after)


class WidenedLayer(nn.Module):
    """A first layer whose rows are numbers already, normalised, in the order of the features."""

    def __init__(self, first: FirstLayer) -> None:
        super().__init__()
        self.weight, self.bias = first.weight, first.bias

    def forward(self, numbers: Tensor) -> Tensor:
        """Return [rows, width] for [rows, features]."""
        return torch.addmm(self.bias, numbers, self.weight)


def how_to_carry(policy: Policy) -> str:
    """Say what is to be done with what is remembered."""
    return (
        f"{MEMORY}: {policy.memory_bytes // 4} zeros where a game begins; then give every decision "
        f"of a seat the {AFTER} of its decision before."
    )


@torch.no_grad()
def compare_steps(policy: Policy, run: Run, obs: npt.NDArray[np.uint8]) -> float:
    """Return the largest difference between a file and torch over several decisions in a row.

    Each goes on with what it remembers itself. Values count in the network's own unit.
    """
    net, rows = policy.net, len(obs)
    scale = max(1.0, float(net.value_scale)) if VALUE in net.heads else 1.0
    mine, worst = policy.blank(rows), 0.0
    theirs = np.zeros((rows, policy.memory_bytes // 4), np.float32)
    for step in range(PROOF_STEPS):
        seen = np.roll(obs, step, axis=0)
        whole = policy.rows(seen, mine)
        heads = policy.heads(whole)
        mine = policy.remembered(whole, heads)
        found = run({"obs": seen, MEMORY: theirs})
        theirs = found[AFTER]
        wanted = {"logits": heads[POLICY].cpu().numpy(), AFTER: mine.view(np.float32)}
        scales = {"value": scale}
        if "value" in found:
            wanted["value"] = net.true_values(heads).cpu().numpy()
        for name, ours in wanted.items():
            gap = np.abs(found[name] - ours).max() / scales.get(name, 1.0)
            worst = max(worst, float(gap))
    return worst
