"""A policy's network as bytes for the browser: a line of JSON, then numbers.

`csrc/wasm/network.hpp` reads the numbers in the same order. Each has four bytes, little-endian; the
line is padded with spaces so that they begin at a multiple of four.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.capabilities.refusals import unsupported_reason
from sparring.errors import ConfigError
from sparring.games.flags import changed_flags
from sparring.nets.array_layers import (
    ArrayPerceptron,
    ArrayResidual,
    Weights,
    mean_and_std_of,
    pad_last,
)
from sparring.nets.array_net import ArrayNet, as_arrays
from sparring.nets.heads import HIDDEN, POLICY, VALUE, check_hidden, takes_belief
from sparring.nets.policy import DUELING, VALUES, Policy
from sparring.nets.searching import discount_of, settings_of
from sparring.pools.custom.rules import CustomRules

FORMAT, VERSION = "sparring-network", 2
ACTIVATIONS = ("relu", "tanh", "silu")
"""In the order of csrc/nets/wide.hpp."""
PLAYING = (POLICY, VALUE, HIDDEN)
"""Heads that games need, by number. The last one draws worlds, where cards are hidden."""


def pack_network(policy: Policy) -> bytes:
    """Return the bytes that `app/engine/network.js` loads."""
    packer, rules = Packer(), policy.rules
    if isinstance(rules, CustomRules):
        raise ConfigError(
            f"{policy.name} plays the custom environment {rules.name}; the browser runs sparring's "
            "built-in games only"
        )
    check_kinds(policy)
    net = as_arrays(policy.net)
    packer.whole(rules.actions, rules.box, int(net.config.squash), int(policy.is_value_based))
    packer.whole(int(bool(policy.meta.get(DUELING, False))))
    packer.whole(*belief_shape(policy))
    nets = list(net.roles.values()) or [net]
    packer.whole(len(nets))
    for role, own in enumerate(nets):
        told_by = rules.role_bytes[role] if role < len(nets) - 1 else ()
        packer.whole(len(told_by), *told_by)
        packer.number(own.value_scale if VALUE in own.heads else 1.0)
        if isinstance(own.layers, ArrayPerceptron):
            packer.whole(0)
            heads = PLAYING if any(belief_shape(policy)) else PLAYING[:2]
            pack_perceptron(packer, own.layers, own.weights, heads)
        else:
            assert isinstance(own.layers, ArrayResidual)
            packer.whole(1)
            pack_residual(packer, own.layers, own.weights)
    header = json.dumps(header_of(policy)).encode()
    header += b" " * (-(len(header) + 1) % 4) + b"\n"
    return header + packer.bytes()


def header_of(policy: Policy) -> dict[str, Any]:
    """Return the metadata of a packed network."""
    rules, net, meta = policy.rules, as_arrays(policy.net), policy.meta
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
        "kind": "hierarchy" if net.by_role else net.config.kind,
        "roles": list(rules.roles) if net.by_role else [],
        "value_unit": value_unit(net),
        "belief": any(belief_shape(policy)),
        "gamma": discount_of(meta),
        "gamma_into": list(settings_of(meta).get("gamma_into", ())),
        "parameters": net.parameter_count,
        "update": meta.get("update"),
        "decisions": meta.get("decisions"),
    }


def belief_shape(policy: Policy) -> tuple[int, int]:
    """Return how many items its `hidden` head tells, and of how many classes.

    0 of both: it has no such head, or the game draws worlds without one.
    """
    rules, net = policy.rules, policy.net
    if net.by_role or net.config.kind != "mlp" or not takes_belief(rules, net):
        return 0, 0
    hidden = check_hidden(rules)
    return len(hidden.items), len(hidden.classes)


def value_unit(net: ArrayNet) -> float:
    """Return the scale of values: differences far below it are noise."""
    if net.by_role:
        return max(map(value_unit, net.roles.values()))
    return net.value_scale if VALUE in net.heads else 1.0


def check_kinds(policy: Policy) -> None:
    """Refuse a network that has no passes in a browser."""
    net: Any = policy.net
    for config in [one.config for one in net.roles.values()] if net.by_role else [net.config]:
        why = unsupported_reason("browser", config, memory=net.inputs.memory)
        kind = type(net)
        if not why and not kind.__module__.startswith("sparring.nets."):
            why = f"a {kind.__name__}, a network of your own, has no passes in a browser"
        if why:
            raise ConfigError(
                f"{policy.name} cannot run in a browser: {why}; play it with `sparring play`, or "
                "export it with `sparring export --onnx`"
            )


def pack_perceptron(
    packer: Packer, layers: ArrayPerceptron, weights: Weights, needed: Sequence[str]
) -> None:
    """Pack towers with the needed heads; each tower has its own columns of the first layer."""
    config = layers.config
    packer.runs(layers.inputs.runs)
    packer.whole(len(layers.inputs.features), ACTIVATIONS.index(config.activation))
    packer.whole(int(config.norm), int(config.normalize))
    if config.normalize:
        packer.arrays(*mean_and_std_of(weights))
    packer.whole(layers.count)
    first = np.split(weights["first.weight"], layers.count, axis=1)
    biases = np.split(weights["first.bias"], layers.count)
    for at, tower in enumerate(layers.towers):
        packer.whole(1 + len(tower))
        packer.linear(first[at], biases[at])
        if config.norm:
            name = layers.first_norms[at]
            packer.arrays(weights[f"{name}.weight"], weights[f"{name}.bias"])
        for layer in tower:
            packer.layer(weights, layer.name)
            if layer.norm:
                packer.arrays(weights[f"{layer.norm}.weight"], weights[f"{layer.norm}.bias"])
        mine = [n for n in layers.heads if layers.tower_of[n] == at and n in needed]
        packer.whole(len(mine))
        for name in mine:
            packer.whole(PLAYING.index(name))
            packer.linear(layers.head_weight(weights, name).T, weights[f"{name}_head.bias"])


def pack_residual(packer: Packer, layers: ArrayResidual, weights: Weights) -> None:
    """Pack a residual tower; channels are padded with zeros to a multiple of four."""
    at, wide = layers.layout, layers.wide
    packer.runs(layers.rules.runs)
    packer.whole(at.height, at.width, at.planes, wide)
    packer.arrays(*layers.kernel(weights, "stem", at.planes))
    packer.whole(at.numbers)
    if at.numbers:
        packer.arrays(pad_last(weights["numbers.weight"].T, wide))
    packer.whole(layers.blocks)
    for block in range(layers.blocks):
        for half in ("first", "second"):
            packer.arrays(*layers.kernel(weights, f"blocks.{block}.{half}", wide))
    if at.actions:
        maps = square_weight(weights, "policy_head", wide)
        packer.linear(maps, np.zeros(maps.shape[1], np.float32))
        packer.arrays(weights["policy_bias"])
    else:  # the reader tells by the maps, which are not as many as the actions
        packer.linear(square_weight(weights, "policy_map", wide), weights["policy_map.bias"])
        packer.layer(weights, "policy_head")
    if VALUE not in layers.heads:
        packer.whole(0)
        return
    packer.whole(3)
    packer.linear(square_weight(weights, "value_map", wide), weights["value_map.bias"])
    packer.layer(weights, "value_hidden")
    packer.layer(weights, "value_head")


def square_weight(weights: Weights, name: str, wide: int) -> npt.NDArray[Any]:
    """Return the weights [wide, out] of a 1x1 convolution."""
    weight = weights[f"{name}.weight"]
    return pad_last(weight.reshape(len(weight), -1), wide).T


class Packer:
    """Collects numbers of four bytes each."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[Any]] = []

    def whole(self, *numbers: int) -> None:
        """Add whole numbers."""
        self._parts.append(np.array(numbers, "<i4"))

    def number(self, number: float) -> None:
        self._parts.append(np.array([number], "<f4"))

    def arrays(self, *arrays: npt.NDArray[Any]) -> None:
        """Add the numbers of arrays without their shapes."""
        self._parts += [np.ascontiguousarray(numbers, "<f4").ravel() for numbers in arrays]

    def linear(self, weight: npt.NDArray[Any], bias: npt.NDArray[Any]) -> None:
        """Add a linear layer: inputs, outputs, weights [in, out], biases."""
        self.whole(*weight.shape)
        self.arrays(weight, bias)

    def layer(self, weights: Weights, name: str) -> None:
        """Add a linear layer by its name."""
        self.linear(weights[f"{name}.weight"].T, weights[f"{name}.bias"])

    def runs(self, runs: Iterable[Sequence[float]]) -> None:
        """Add the layout of features: first, count, offset, type, divisor of each run."""
        runs = list(runs)
        self.whole(len(runs))
        for *where, divisor in runs:
            self.whole(*map(int, where))
            self.number(divisor)

    def bytes(self) -> bytes:
        return b"".join(part.tobytes() for part in self._parts)
