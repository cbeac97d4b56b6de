"""What every network is: byte rows in, a trunk, and named heads out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor, nn

from sparring.config import HeadsConfig, NetConfig
from sparring.errors import ConfigError
from sparring.games.hidden import Hidden, hidden_of
from sparring.games.rules import Rules
from sparring.nets.inputs import Inputs, stacked
from sparring.nets.layers import Normalizer

POLICY, VALUE = "policy", "value"
MEMORY = "memory"
"""Not a head: what a network with memory writes, shown behind the same seat's next observation
[rows, memory / 4], float32."""
WDL, SCORE, HIDDEN = "wdl", "score", "hidden"
"""Heads beside policy and value: logits of win, draw and loss; the final score in units of
`score_scale`; logits of what the seat does not see."""

BESIDE = (WDL, SCORE, HIDDEN)

HeadOutputs = dict[str, Tensor]
"""What a network says about rows, by head: [rows, width], values [rows]."""


class Asked(TypedDict, total=False):
    """What is asked of a network beside its settings."""

    heads: Mapping[str, int] | None
    """Widths by name; left out, a policy and a value."""
    memory: int
    """Bytes behind the observation in every row."""


class Net(nn.Module):
    """A trunk with named heads. A critic has no policy, a policy may have no value.

    The head `policy` is what actions are drawn from: a logit each, or means and then logarithms of
    spreads for continuous ones. The head `value` is in units of `value_scale`; its last layer is a
    linear one, `value_head` in our own networks.
    """

    value_scale: Tensor
    value_head: nn.Linear
    wdl_blend: Tensor
    """Share of win, draw and loss in what a position is worth."""
    wdl_unit: Tensor
    """What a win is paid; a loss costs as much."""
    score_scale: Tensor
    score_head: nn.Linear
    convolves = False
    """Whether most of the work is torch's convolutions."""

    def __init__(self, rules: Rules, config: NetConfig, **asked: Unpack[Asked]) -> None:
        """Describe a network; its layers are the kind's own."""
        super().__init__()
        self.config, self.box = config, rules.box
        self.inputs = Inputs(rules, asked.get("memory", 0), config.inputs)
        heads = asked.get("heads")
        self.heads = dict(heads) if heads is not None else default_heads(rules)
        self.value_parameters: tuple[str, ...] = ()
        """What a change of the value's unit multiplies: a linear layer's weight and bias.

        None: the network divides what it says by `value_scale` itself.
        """
        self.score_parameters: tuple[str, ...] = ()
        """The same of the score's unit."""
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
        """Return what every head says about byte rows [rows, row_bytes]."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """What `make_net` needs to build the same network again, as plain values."""
        return {"net": asdict(self.config), "heads": self.heads, "memory": self.inputs.memory}

    def cpu_copy(self) -> Net:
        """Return the same network once more, on the CPU; what it learns is its own."""
        kind: Any = type(self)
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and overwritten
            made: Net = kind(
                self.inputs.rules, self.config, heads=self.heads, memory=self.inputs.memory
            )
        made.load_state_dict({name: value.cpu() for name, value in self.state_dict().items()})
        return made

    @property
    def normalizer(self) -> Normalizer | None:
        """What observations are normalized by, None if they are not."""
        return None

    def update_normalizer(self, obs: Tensor) -> None:
        """Add byte rows to what observations are normalized by, if they are."""

    def next_memory(self, obs: Tensor, heads: HeadOutputs) -> Tensor | None:
        """What is shown behind each row's next observation [rows, memory / 4]; None: nothing.

        Whoever plays writes it to the memory of that game and seat before it steps. obs: the rows,
        with the memory of before behind the observation; heads: what was said about them.
        """
        if self.config.memory == "stack":
            return stacked(self.inputs, obs, self.config.frames, self.normalizer)
        return heads.get(MEMORY)

    def unscaled_values(self, heads: HeadOutputs) -> Tensor:
        """What positions are worth in units of the rewards, in float32.

        That is the value head's; where win, draw and loss are blend_wdl in, they have their share.
        """
        value = heads[VALUE].float() * self.value_scale
        if WDL not in heads:
            return value
        return blend_wdl(value, heads[WDL], self.wdl_blend, self.wdl_unit)

    @torch.no_grad()
    def rescale_value_head(self, scale: float) -> None:
        """Change the unit of the value head; what it says about any row stays the same."""
        ratio = float(self.value_scale) / scale
        for name in self.value_parameters:
            self.get_parameter(name).mul_(ratio)
        self.value_scale.fill_(scale)

    def update_return_scale(self, size: float, *, known: bool) -> bool:
        """Follow the RMS of a rollout's returns, `size`; return whether there is a scale now.

        What the head says about any row stays the same (as in PopArt). known: there was a scale
        before, which moves by a tenth. A size that is not finite changes nothing: the loss will
        not be finite either, and the weights are to stay.
        """
        if math.isfinite(size):
            size = max(size, 1e-6)
            self.rescale_value_head(next_scale(float(self.value_scale), size) if known else size)
        return known or math.isfinite(size)

    @torch.no_grad()
    def rescale_score_head(self, scale: float) -> None:
        """The same of the score head."""
        ratio = float(self.score_scale) / scale
        for name in self.score_parameters:
            self.get_parameter(name).mul_(ratio)
        self.score_scale.fill_(scale)


SCALE_DECAY = 0.9
"""Share of the old unit that an update keeps. Returns may shrink tenfold in the first
seconds of a run; values that are measured in the old unit meanwhile hardly learn."""
MAX_SCALED_RETURN = 3.0
"""Most units that the returns of a rollout measure. Where rewards are rare, returns may grow a
hundredfold in one update; in the old unit their squares would drown everything else."""


def next_scale(before: float, size: float) -> float:
    """The unit behind a rollout whose returns, or scores, have this size."""
    return max(SCALE_DECAY * before + (1 - SCALE_DECAY) * size, size / MAX_SCALED_RETURN)


def blend_wdl(value: Tensor, wdl: Tensor, share: Tensor, unit: Tensor) -> Tensor:
    """Values in which win, draw and loss have a share. unit: what a win is paid."""
    chances = wdl.float().softmax(-1)
    ahead = chances[..., 0] - chances[..., 2]
    return value + share * (ahead * unit - value)


def is_unused_by_policy(name: str) -> bool:
    """Whether a tensor of a network has nothing to do with its policy, by its name."""
    return name.startswith((VALUE, WDL, SCORE, f"{HIDDEN}_head"))


def default_heads(rules: Rules) -> dict[str, int]:
    """An actor and its critic."""
    return {POLICY: head_width(rules), VALUE: 1}


def head_width(rules: Rules) -> int:
    """Numbers that actions are drawn from: a logit each, or a mean and a spread each."""
    return 2 * rules.box or rules.actions


RESULTS = 3
"""Win, draw and loss."""


def head_widths(rules: Rules, config: HeadsConfig | None) -> dict[str, int]:
    """Widths of all heads by name; a weight that is 0 from first to last leaves its head out."""
    found = default_heads(rules)
    if config is None:
        return found
    if any(config.wdl.values):
        found[WDL] = RESULTS
    if any(config.score.values):
        found[SCORE] = 1
    if any(config.hidden.values):
        found[HIDDEN] = check_hidden(rules).width
    return found


def configured_heads(rules: Rules, config: HeadsConfig | None) -> dict[str, int] | None:
    """The heads of a network of which more is asked than policy and value; None: it is not."""
    return head_widths(rules, config) if config is not None and config.asked else None


def set_wdl_blend(net: Net, config: HeadsConfig | None) -> Net:
    """Give win, draw and loss their share in what a network's positions are worth."""
    if config is not None and WDL in net.heads:
        net.wdl_blend.fill_(config.blend)
    return net


def check_hidden(rules: Rules) -> Hidden:
    """What the seats of a game do not see; refuses games that do not say."""
    hidden = hidden_of(rules)
    if hidden is None:
        raise ConfigError(
            f"heads.hidden: {rules.name} does not say what its seats do not see; leave it out, or "
            f"declare it in games/{rules.name}/hidden.py, as Skull King does"
        )
    return hidden
