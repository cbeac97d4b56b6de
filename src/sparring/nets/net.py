"""Base class of all networks: byte rows in, a trunk, and named heads out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from itertools import chain
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.config import HeadsConfig, NetConfig
from sparring.games.rules import Rules
from sparring.nets.heads import MEMORY, SCORE, VALUE, WDL, Evaluation, default_heads
from sparring.nets.inputs import Inputs, stack_frames
from sparring.nets.layers import Normalizer
from sparring.nets.sampling import to_floats

HeadOutputs = dict[str, Tensor]
"""Outputs of a network by head: [rows, width], values [rows]."""


class NetOptions(TypedDict, total=False):
    """Constructor arguments of a network that do not come from its configuration."""

    heads: Mapping[str, int] | None
    """Widths by name; left out, a policy and a value."""
    memory: int
    """Bytes of memory after the observation in every row."""


class Net(nn.Module):
    """A trunk with named heads. A critic has no policy head, a policy may have no value head.

    The head `policy` parametrizes the action distribution: one logit per action, or means followed
    by log standard deviations for continuous actions. The head `value` is in units of
    `value_scale`; its last layer is linear and called `value_head` in the built-in networks.
    """

    value_scale: Tensor
    value_head: nn.Linear
    wdl_blend: Tensor
    """Weight of the win/draw/loss head in `unscaled_values`."""
    wdl_unit: Tensor
    """Reward of a win; a loss gives its negative."""
    score_scale: Tensor
    score_head: nn.Linear
    has_convolutions = False
    """Whether torch convolutions dominate the cost of a forward pass."""
    by_role = False
    """Whether there is a network for every role of the game."""

    def __init__(self, rules: Rules, config: NetConfig, **options: Unpack[NetOptions]) -> None:
        """Register heads and scales; subclasses add the layers."""
        super().__init__()
        self.config, self.box = config, rules.box
        self.inputs = Inputs(rules, options.get("memory", 0), config.inputs)
        heads = options.get("heads")
        self.heads = dict(heads) if heads is not None else default_heads(rules)
        """Widths of the heads by name."""
        self.value_parameters: tuple[str, ...] = ()
        """Parameters of the last value layer, multiplied when `value_scale` changes.

        Empty: the network itself divides its value by `value_scale`.
        """
        self.score_parameters: tuple[str, ...] = ()
        """Parameters of the last score layer, multiplied when `score_scale` changes."""
        if VALUE in self.heads:
            self.value_parameters = ("value_head.weight", "value_head.bias")
            self.register_buffer("value_scale", torch.ones(()))
        if WDL in self.heads:
            self.register_buffer("wdl_blend", torch.zeros(()))
            self.register_buffer("wdl_unit", torch.ones(()))
        if SCORE in self.heads:
            self.score_parameters = ("score_head.weight", "score_head.bias")
            self.register_buffer("score_scale", torch.ones(()))

    def forward(self, obs: Tensor) -> HeadOutputs:
        """Return the outputs of all heads for byte rows [rows, row_bytes]."""
        raise NotImplementedError

    @torch.no_grad()
    def evaluate(self, rows: npt.NDArray[np.uint8]) -> Evaluation:
        """Return what the network says about byte rows, as arrays."""
        device = next(chain(self.parameters(), self.buffers())).device
        obs = torch.from_numpy(np.ascontiguousarray(rows)).to(device)
        outputs: HeadOutputs = self(obs)
        values = to_floats(self.unscaled_values(outputs)) if VALUE in outputs else None
        memory = self.next_memory(obs, outputs) if self.inputs.memory else None
        return Evaluation(
            {name: to_floats(output) for name, output in outputs.items()},
            values,
            None if memory is None else to_floats(memory),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all weights by name, as arrays."""
        return {name: value.cpu().numpy() for name, value in self.state_dict().items()}

    def nonfinite(self) -> str:
        """Return the name of a tensor with numbers that are not finite, "" if there is none."""
        bad = (n for n, value in self.state_dict().items() if not torch.isfinite(value).all())
        return next(bad, "")

    def describe(self) -> dict[str, Any]:
        """Return the arguments of `make_net` for the same network, as JSON values."""
        return {"net": asdict(self.config), "heads": self.heads, "memory": self.inputs.memory}

    def cpu_copy(self) -> Net:
        """Return an independent copy of this network on the CPU."""
        kind: Any = type(self)
        with torch.random.fork_rng(devices=[]):  # initial weights are drawn, then overwritten
            copied: Net = kind(
                self.inputs.rules, self.config, heads=self.heads, memory=self.inputs.memory
            )
        copied.load_state_dict({name: value.cpu() for name, value in self.state_dict().items()})
        return copied

    @property
    def normalizer(self) -> Normalizer | None:
        """Running mean and variance of observations; None: they are not normalized."""
        return None

    def update_normalizer(self, obs: Tensor) -> None:
        """Add byte rows to the running mean and variance, if there are any."""

    def next_memory(self, obs: Tensor, outputs: HeadOutputs) -> Tensor | None:
        """Return the memory for each row's next observation [rows, memory / 4]; None: no memory.

        The caller writes it to the memory of that game and seat before the next step.
        obs: the rows, each with its previous memory after the observation.
        outputs: `forward` of these rows.
        """
        if self.config.memory == "stack":
            return stack_frames(self.inputs, obs, self.config.frames, self.normalizer)
        return outputs.get(MEMORY)

    def unscaled_values(self, outputs: HeadOutputs) -> Tensor:
        """Return values in units of the rewards, float32, mixed with win/draw/loss if set."""
        value = outputs[VALUE].float() * self.value_scale
        if WDL not in outputs:
            return value
        return blend_wdl(value, outputs[WDL], self.wdl_blend, self.wdl_unit)

    @torch.no_grad()
    def rescale_value_head(self, scale: float) -> None:
        """Change `value_scale`; unscaled values stay the same (PopArt)."""
        ratio = float(self.value_scale) / scale
        for name in self.value_parameters:
            self.get_parameter(name).mul_(ratio)
        self.value_scale.fill_(scale)

    def update_return_scale(self, rms: float, *, known: bool) -> bool:
        """Move `value_scale` toward the RMS of a rollout's returns; unscaled values stay (PopArt).

        Return whether there is a scale now. known: there was one before, which moves by a tenth.
        An RMS that is not finite changes nothing: the loss is not finite either, and the weights
        stay.
        """
        if math.isfinite(rms):
            rms = max(rms, 1e-6)
            self.rescale_value_head(next_scale(float(self.value_scale), rms) if known else rms)
        return known or math.isfinite(rms)

    @torch.no_grad()
    def rescale_score_head(self, scale: float) -> None:
        """Change `score_scale`; unscaled scores stay the same."""
        ratio = float(self.score_scale) / scale
        for name in self.score_parameters:
            self.get_parameter(name).mul_(ratio)
        self.score_scale.fill_(scale)


SCALE_DECAY = 0.9
"""Weight of the old scale per update. Returns may shrink tenfold in the first seconds of a run;
values in too large a unit hardly learn."""
MAX_SCALED_RETURN = 3.0
"""Maximum RMS of a rollout's scaled returns. With rare rewards, returns may grow a hundredfold in
one update; in the old unit their squares would dominate the loss."""


def next_scale(before: float, rms: float) -> float:
    """Return the scale after a rollout whose returns, or scores, have this RMS."""
    return max(SCALE_DECAY * before + (1 - SCALE_DECAY) * rms, rms / MAX_SCALED_RETURN)


def blend_wdl(value: Tensor, wdl: Tensor, share: Tensor, unit: Tensor) -> Tensor:
    """Mix values with the expected outcome. wdl: logits; unit: reward of a win."""
    probabilities = wdl.float().softmax(-1)
    outcome = probabilities[..., 0] - probabilities[..., 2]
    return value + share * (outcome * unit - value)


def set_wdl_blend(net: Net, config: HeadsConfig | None) -> Net:
    """Set the weight of the win/draw/loss head in a network's values."""
    if config is not None and WDL in net.heads:
        net.wdl_blend.fill_(config.blend)
    return net
