"""A policy's network as bytes for the browser: a line of JSON, then numbers.

`csrc/wasm/network.hpp` reads the numbers in the same order. Each has four bytes, little-endian; the
line is padded with spaces so that they begin at a multiple of four.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.capabilities.refusals import unsupported_reason
from sparring.errors import ConfigError
from sparring.games.flags import changed_flags
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.mlp import Perceptron
from sparring.nets.net import HIDDEN, POLICY, VALUE, Net, check_hidden, takes_belief
from sparring.nets.policy import DUELING, VALUES, Policy
from sparring.nets.residual import CHANNEL_STEP, ResidualNet, taps_first
from sparring.nets.searching import discount_of, settings_of
from sparring.pools.custom.rules import CustomRules

FORMAT, VERSION = "sparring-network", 2
ACTIVATIONS = ("relu", "tanh", "silu")
"""In the order of csrc/nets/wide.hpp."""
PLAYING = (POLICY, VALUE, HIDDEN)
"""Heads that games need, by number. The last one draws worlds, where cards are hidden."""


def pack_network(policy: Policy) -> bytes:
    """Return the bytes that `app/engine/network.js` loads."""
    packer = Packer()
    rules, net = policy.rules, policy.net
    if isinstance(rules, CustomRules):
        raise ConfigError(
            f"{policy.name} plays the custom environment {rules.name}; the browser runs sparring's "
            "built-in games only"
        )
    packer.whole(rules.actions, rules.box, int(net.config.squash), int(policy.is_value_based))
    packer.whole(int(bool(policy.meta.get(DUELING, False))))
    packer.whole(*belief_shape(policy))
    nets = list(net.nets()) if isinstance(net, HierarchyNet) else [("", net)]
    packer.whole(len(nets))
    for role, (_, own) in enumerate(nets):
        told_by = rules.role_bytes[role] if role < len(nets) - 1 else ()
        packer.whole(len(told_by), *told_by)
        packer.number(float(own.value_scale) if VALUE in own.heads else 1.0)
        pack_net(packer, policy, own)
    header = json.dumps(header_of(policy)).encode()
    header += b" " * (-(len(header) + 1) % 4) + b"\n"
    return header + packer.bytes()


def header_of(policy: Policy) -> dict[str, Any]:
    """Return the metadata of a packed network."""
    rules, net, meta = policy.rules, policy.net, policy.meta
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": policy.name,
        "game": rules.name,
        "rules_version": rules.rules_version,
        "flags": changed_flags(rules),
        "obs_bytes": rules.obs_bytes,
        "actions": rules.actions,
        "box": rules.box,
        "squash": bool(net.config.squash),
        "by_value": policy.is_value_based,
        "values": VALUE in net.heads and bool(meta.get(VALUES, True)),
        "kind": "hierarchy" if isinstance(net, HierarchyNet) else net.config.kind,
        "roles": list(rules.roles) if isinstance(net, HierarchyNet) else [],
        "value_unit": value_unit(net),
        "belief": any(belief_shape(policy)),
        "gamma": discount_of(meta),
        "gamma_into": list(settings_of(meta).get("gamma_into", ())),
        "parameters": sum(p.numel() for p in net.parameters()),
        "update": meta.get("update"),
        "decisions": meta.get("decisions"),
    }


def belief_shape(policy: Policy) -> tuple[int, int]:
    """Return how many items its `hidden` head tells, and of how many classes.

    0 of both: it has no such head, or the game draws worlds without one.
    """
    rules, net = policy.rules, policy.net
    if not isinstance(net, Perceptron) or not takes_belief(rules, net):
        return 0, 0
    hidden = check_hidden(rules)
    return len(hidden.items), len(hidden.classes)


def value_unit(net: Net) -> float:
    """Return the scale of values: differences far below it are noise."""
    if isinstance(net, HierarchyNet):
        return max(value_unit(own) for _, own in net.nets())
    return float(net.value_scale) if VALUE in net.heads else 1.0


def pack_net(packer: Packer, policy: Policy, net: Net) -> None:
    """Pack one network after its kind."""
    why = unsupported_reason("browser", net.config, memory=net.inputs.memory)
    if not why and type(net) not in (Perceptron, ResidualNet):
        why = f"a {type(net).__name__}, a network of your own, has no passes in a browser"
    if why:
        raise ConfigError(
            f"{policy.name} cannot run in a browser: {why}; play it with `sparring play`, or "
            "export it with `sparring export --onnx`"
        )
    if isinstance(net, Perceptron):
        packer.whole(0)
        pack_perceptron(packer, net, PLAYING if any(belief_shape(policy)) else PLAYING[:2])
    else:
        assert isinstance(net, ResidualNet)
        packer.whole(1)
        pack_residual(packer, net)


def pack_perceptron(packer: Packer, net: Perceptron, needed: Sequence[str]) -> None:
    """Pack towers with the needed heads; each tower has its own columns of the first layer."""
    packer.runs(net.inputs.runs)
    packer.whole(len(net.inputs.features), ACTIVATIONS.index(net.config.activation))
    packer.whole(int(net.config.norm), int(net.normalizer is not None))
    if net.normalizer is not None:
        packer.arrays(*net.normalizer.mean_and_std())
    packer.whole(len(net.towers))
    weights = net.first.weight.chunk(len(net.towers), dim=1)
    biases = net.first.bias.chunk(len(net.towers))
    for at, tower in enumerate(net.towers):
        assert isinstance(tower, nn.Sequential)
        linears = [layer for layer in tower if isinstance(layer, nn.Linear)]
        norms = [layer for layer in tower if isinstance(layer, nn.LayerNorm)]
        packer.whole(1 + len(linears))
        packer.linear(weights[at], biases[at])
        if net.config.norm:
            first = net.first_norms[at]
            assert isinstance(first, nn.LayerNorm)
            packer.arrays(first.weight, first.bias)
        for i, linear in enumerate(linears):
            packer.linear(linear.weight.T, linear.bias)
            if net.config.norm:
                packer.arrays(norms[i].weight, norms[i].bias)
        pack_heads(packer, net, at, needed)


def pack_heads(packer: Packer, net: Perceptron, tower: int, needed: Sequence[str]) -> None:
    """Pack the heads of a tower, each behind its number."""
    mine = [name for name in net.heads if net.tower_of[name] == tower and name in needed]
    packer.whole(len(mine))
    for name in mine:
        head = getattr(net, f"{name}_head")
        weight = head.weight * net.head_mask if name == POLICY and net.box else head.weight
        packer.whole(PLAYING.index(name))
        packer.linear(weight.T, head.bias)


def pack_residual(packer: Packer, net: ResidualNet) -> None:
    """Pack a residual tower; channels are padded with zeros to a multiple of four."""
    at, channels = net.layout, net.config.channels
    wide = math.ceil(channels / CHANNEL_STEP) * CHANNEL_STEP
    packer.runs(net.inputs.rules.runs)
    packer.whole(at.height, at.width, at.planes, wide)
    packer.arrays(*kernel(net.stem, wide))
    packer.whole(at.numbers)
    if net.numbers is not None:
        packer.arrays(pad_channels(net.numbers.weight.T, wide))
    packer.whole(len(net.tower))
    for block in net.tower:
        for half in (block.first, block.second):
            weight, bias = kernel(half, wide)
            packer.arrays(pad_channels(weight.transpose(2, 3), wide).transpose(2, 3), bias)
    if isinstance(net.policy_head, nn.Conv2d):
        maps = pad_channels(net.policy_head.weight.flatten(1), wide)
        packer.linear(maps.T, torch.zeros(len(maps)))
        packer.arrays(net.policy_bias)
    else:  # the reader tells by the maps, which are not as many as the actions
        packer.linear(*square_map(net.policy_map, wide))
        packer.linear(net.policy_head.weight.T, net.policy_head.bias)
    if VALUE not in net.heads:
        packer.whole(0)
        return
    packer.whole(3)
    packer.linear(*square_map(net.value_map, wide))
    packer.linear(net.value_hidden.weight.T, net.value_hidden.bias)
    packer.linear(net.value_head.weight.T, net.value_head.bias)


def kernel(layer: nn.Conv2d, wide: int) -> tuple[Tensor, Tensor]:
    """Return the weights [3, 3, in, wide] and biases of a convolution."""
    assert layer.bias is not None
    return pad_channels(taps_first(layer.weight), wide), pad_channels(layer.bias, wide)


def square_map(layer: nn.Conv2d, wide: int) -> tuple[Tensor, Tensor]:
    """Return the weights [wide, out] and biases of a 1x1 convolution."""
    assert layer.bias is not None
    return pad_channels(layer.weight.flatten(1), wide).T, layer.bias


def pad_channels(tensor: Tensor, wide: int) -> Tensor:
    return nn.functional.pad(tensor.detach(), (0, wide - tensor.shape[-1]))


class Packer:
    """Collects numbers of four bytes each."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[Any]] = []

    def whole(self, *numbers: int) -> None:
        """Add whole numbers."""
        self._parts.append(np.array(numbers, "<i4"))

    def number(self, number: float) -> None:
        self._parts.append(np.array([number], "<f4"))

    def arrays(self, *tensors: Tensor) -> None:
        """Add the numbers of tensors without their shapes."""
        for tensor in tensors:
            flat = tensor.detach().float().cpu().contiguous().numpy()
            self._parts.append(flat.astype("<f4").ravel())

    def linear(self, weight: Tensor, bias: Tensor) -> None:
        """Add a linear layer: inputs, outputs, weights [in, out], biases."""
        self.whole(*weight.shape)
        self.arrays(weight, bias)

    def runs(self, runs: Iterable[Sequence[float]]) -> None:
        """Add the layout of features: first, count, offset, type, divisor of each run."""
        runs = list(runs)
        self.whole(len(runs))
        for *where, divisor in runs:
            self.whole(*map(int, where))
            self.number(divisor)

    def bytes(self) -> bytes:
        return b"".join(part.tobytes() for part in self._parts)
