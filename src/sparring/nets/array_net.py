"""A network of arrays: what a policy plays with where torch is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.extras import needs_package
from sparring.games.rules import Rules
from sparring.nets.array_layers import (
    ArrayPerceptron,
    ArrayResidual,
    Bytes,
    Weights,
    memory_of,
    normalized,
    widen,
)
from sparring.nets.heads import (
    MEMORY,
    ROLES,
    SCORE,
    VALUE,
    WDL,
    Evaluation,
    Floats,
    default_heads,
    role_tensors,
)
from sparring.nets.inputs import Inputs, fit_memory_bytes
from sparring.nets.sampling import log_softmax

SCALES = {
    **{"value_scale": VALUE, "score_scale": SCORE},
    **dict.fromkeys(("wdl_blend", "wdl_unit"), WDL),
}
"""Weights that are single numbers, and the head that each belongs to."""
NORMALIZER = "first.normalizer."
"""Prefix of the weights in float64."""


class ArrayNet:
    """Answers the calls that a policy makes of `nets.net.Net`; it never learns.

    With a network per role, `roles` holds one of these for each, and the row chooses.
    """

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        *,
        heads: Mapping[str, int] | None = None,
        memory: int = 0,
        threads: int = 1,
        roles: Mapping[str, NetConfig] | None = None,
    ) -> None:
        """Build the layers without weights; the arguments are those of `make_net`."""
        options: dict[str, Any] = {"heads": heads, "memory": memory, "threads": threads}
        self.roles = {role: ArrayNet(rules, one, **options) for role, one in (roles or {}).items()}
        self.by_role, self.box = bool(roles), rules.box
        self.heads = dict(heads) if heads is not None else default_heads(rules)
        """Widths of the heads by name."""
        if self.roles:
            first = next(iter(self.roles.values()))
            config, memory = NetConfig(squash=first.config.squash), first.inputs.memory
        else:
            memory = fit_memory_bytes(rules, config, memory)
        self.config: NetConfig = config
        self.inputs: Inputs = Inputs(rules, memory, config.inputs)
        self.layers = None if self.roles else self._make_layers(threads)
        self.weights: Weights = self._placeholders()

    def _make_layers(self, threads: int) -> ArrayPerceptron | ArrayResidual:
        config = self.config
        if config.kind == "mlp":
            return ArrayPerceptron(self.inputs, config, self.heads, threads)
        if config.kind == "residual" and not self.inputs.memory:
            return ArrayResidual(self.inputs, config, self.heads, threads)
        memory = " and memory" if self.inputs.memory else ""
        raise ConfigError(needs_package(f"a network with net.kind {config.kind}{memory}", "torch"))

    def _placeholders(self) -> Weights:
        """Return zeros of the shapes and types of all weights, which take no memory."""
        if self.layers is None:
            return self._by_role()
        shapes = self.layers.shapes()
        shapes |= {name: () for name, head in SCALES.items() if head in self.heads}
        return {
            name: np.broadcast_to(np.zeros((), type_of(name)), shape)
            for name, shape in shapes.items()
        }

    def _by_role(self) -> Weights:
        named = [(role, net.weights.items()) for role, net in self.roles.items()]
        return {f"{ROLES}.{role}.{name}": one for role, items in named for name, one in items}

    def state_dict(self) -> Weights:
        """Return all weights by name."""
        return self.weights

    arrays = state_dict

    def load_state_dict(self, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take weights of the names, shapes and types of `state_dict`."""
        for role, net in self.roles.items():
            net.load_state_dict(role_tensors(weights, role))
        self.weights = {name: np.asarray(one, order="C") for name, one in weights.items()}

    def to(self, device: str) -> ArrayNet:
        """Stay on the CPU."""
        if str(device) != "cpu":
            raise ConfigError(needs_package(f"a network on {device}", "torch"))
        return self

    def eval(self) -> ArrayNet:
        """Return itself: it has no other mode."""
        return self

    def nonfinite(self) -> str:
        """Return the name of an array with numbers that are not finite, "" if there is none."""
        return next((n for n, one in self.weights.items() if not np.isfinite(one).all()), "")

    def describe(self) -> dict[str, Any]:
        """Return the arguments of `make_net` for the same network, as JSON values."""
        described = {"net": asdict(self.config), "heads": self.heads, "memory": self.inputs.memory}
        if self.roles:
            described[ROLES] = {role: asdict(net.config) for role, net in self.roles.items()}
        return described

    @property
    def parameter_count(self) -> int:
        """The number of trained weights."""
        names = (n for n in self.weights if not n.endswith(tuple(SCALES)) and NORMALIZER not in n)
        return sum(self.weights[name].size for name in names)

    @property
    def value_scale(self) -> float:
        """The unit of the value head."""
        return float(self.weights["value_scale"])

    def evaluate(self, rows: Bytes) -> Evaluation:
        """Return what the network says about byte rows."""
        if self.layers is None:
            return self._evaluate_by_role(rows)
        outputs = self.layers.run(self.weights, rows)
        memory = outputs.get(MEMORY)
        if self.config.memory == "stack":
            memory = self._stack_frames(rows)
        values = self._unscaled(outputs) if VALUE in outputs else None
        return Evaluation(outputs, values, memory)

    def _evaluate_by_role(self, rows: Bytes) -> Evaluation:
        """Let the network of each row's role answer; values are in units of the rewards."""
        roles, outputs = self.inputs.rules.role_of(rows), dict[str, Floats]()
        for number, net in enumerate(self.roles.values()):
            mine = np.flatnonzero(roles == number)
            if not len(mine):
                continue
            found = net.evaluate(rows[mine])
            values = {} if found.values is None else {VALUE: found.values}
            for name, output in (found.heads | values).items():
                into = outputs.setdefault(
                    name, np.empty((len(rows), *output.shape[1:]), np.float32)
                )
                into[mine] = output
        return Evaluation(outputs, outputs.get(VALUE), outputs.get(MEMORY))

    def _unscaled(self, outputs: Mapping[str, Floats]) -> Floats:
        """Return values in units of the rewards, mixed with win/draw/loss if set."""
        value: Floats = outputs[VALUE] * np.float32(self.value_scale)
        if WDL not in outputs:
            return value
        blend, unit = (np.float32(self.weights[f"wdl_{part}"]) for part in ("blend", "unit"))
        shares = np.exp(log_softmax(outputs[WDL]))
        return value + blend * ((shares[:, 0] - shares[:, 2]) * unit - value)

    def _stack_frames(self, rows: Bytes) -> Floats:
        """Return each row's features followed by the frames in its memory but the oldest."""
        inputs, memory = self.inputs, memory_of(self.inputs, rows)
        numbers, order = widen(inputs, rows)
        if self.config.normalize:
            numbers = normalized(self.weights, numbers)
        count = len(inputs.rules.features)
        features = numbers[:, np.argsort(order[:count])]
        stacked = np.zeros_like(memory)
        older = (self.config.frames - 2) * count
        stacked[:, :count] = features
        stacked[:, count : count + older] = memory[:, :older]
        return stacked


def as_arrays(net: Any) -> ArrayNet:
    """Return a network of arrays with the weights of a built-in one of torch."""
    if isinstance(net, ArrayNet):
        return net
    described = net.describe()
    roles = {role: NetConfig(**one) for role, one in described.get(ROLES, {}).items()}
    options: dict[str, Any] = {"heads": net.heads, "memory": net.inputs.memory, "roles": roles}
    made = ArrayNet(net.inputs.rules, net.config, **options)
    made.load_state_dict(net.arrays())
    return made


def type_of(name: str) -> type[np.floating[Any]]:
    return np.float64 if name.startswith(NORMALIZER) else np.float32
