"""Frozen networks of one shape on a CPU, which share a batch.

Perceptrons go through csrc/nets/grouped.hpp: one call sorts the rows by network and takes a few of
one network at a time through all of its layers. Other networks, and perceptrons with layer norm
or normalized observations, run one after the other.
Only the policy head is computed. A test compares the outputs with those of each network alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sparring import _native
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.custom import MODULE_PREFIX, CustomNet
from sparring.nets.heads import MEMORY, POLICY, head_width, is_unused_by_policy, role_tensors
from sparring.nets.hierarchy import is_hierarchy
from sparring.nets.inputs import stack_frames
from sparring.nets.make import make_net
from sparring.nets.mlp import NATIVE_ACTIVATIONS, LinearNet, Perceptron, head_mask
from sparring.nets.net import HeadOutputs, Net
from sparring.nets.run.flat import round_up
from sparring.nets.run.trace import TracedPerceptron, to_perceptron_tensors, trace_perceptron

PANEL = 32
"""Adjacent columns in the native layers; widths are padded to multiples of it."""


class GroupedNet:
    """Frozen networks in slots 1 to `slots`."""

    def __init__(
        self, rules: Rules, config: NetConfig, slots: int, *, memory: int = 0, threads: int = 1
    ) -> None:
        """Allocate the slots; `load` fills them.

        memory: bytes of memory in every row. threads: of the native layers.
        """
        if slots < 1:
            raise ConfigError(f"{slots} slots; give at least 1")
        self.rules, self.config, self.slots, self.width = rules, config, slots, head_width(rules)
        with torch.random.fork_rng(devices=[]):  # the initial weights are not used
            net = make_net(rules, config, memory=memory, threads=threads)
            plain = not (config.norm or config.normalize or config.policy_hidden)
            stacks = isinstance(net, Perceptron) and plain
            if isinstance(net, CustomNet):
                stacks = isinstance(trace_perceptron(net), TracedPerceptron)
            self._nets = (StackedPerceptrons if stacks else SequentialNets)(net, slots, threads)
        self.memory = net.inputs.memory if config.memory else 0
        """Bytes of memory that each network writes."""
        self._shapes = shapes_of(net)
        self._loaded = np.zeros(slots + 1, np.bool_)

    def load(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Load the state dict of a network into a slot."""
        if not 1 <= slot <= self.slots:
            raise ConfigError(f"slot {slot}; there are 1 to {self.slots}")
        check_shapes(self._shapes, state)
        self._nets.load(slot - 1, {name: t.detach().float().cpu() for name, t in state.items()})
        self._loaded[slot] = True

    @torch.no_grad()
    def forward(self, obs: Tensor, slot: npt.NDArray[np.integer]) -> HeadOutputs:
        """Return policy outputs [rows, head_width] and next memory, row r of network slot[r]."""
        if len(slot) != len(obs):
            raise ConfigError(f"{len(obs)} rows and {len(slot)} slots; give every row one")
        inside = np.clip(slot, 0, self.slots)
        if not self._loaded[inside].all() or (inside != slot).any():
            empty = next(int(k) for k in slot if not self.loaded(int(k)))
            raise ConfigError(
                f"rows are of slot {empty}, which holds no network; there are 1 to {self.slots}"
            )
        outputs = {POLICY: torch.empty(len(obs), self.width)}
        if self.memory:
            outputs[MEMORY] = torch.empty(len(obs), self.memory // 4)
        if len(obs):
            self._nets.forward(obs.contiguous(), slot, outputs)
        return outputs

    def loaded(self, slot: int) -> bool:
        return 1 <= slot <= self.slots and bool(self._loaded[slot])


class GroupedHierarchy:
    """Frozen hierarchies in slots: a `GroupedNet` for every role."""

    def __init__(
        self,
        rules: Rules,
        configs: Mapping[str, NetConfig],
        slots: int,
        *,
        memory: int = 0,
        threads: int = 1,
    ) -> None:
        """Allocate the slots; the arguments are those of `GroupedNet`, configs by role."""
        self.rules = rules
        self.roles = {
            role: GroupedNet(rules, config, slots, memory=memory, threads=threads)
            for role, config in configs.items()
        }

    def load(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Load the state dict of a hierarchy into a slot."""
        if not is_hierarchy(state):
            raise ConfigError("the network is one for all roles; only hierarchies fit here")
        for role, net in self.roles.items():
            net.load(slot, role_tensors(state, role))

    @torch.no_grad()
    def forward(self, obs: Tensor, slot: npt.NDArray[np.integer]) -> HeadOutputs:
        """Return policy outputs like `GroupedNet.forward`; hierarchies have no memory."""
        roles = self.rules.role_of(obs.numpy())
        policy = torch.empty(len(obs), head_width(self.rules))
        for number, net in enumerate(self.roles.values()):
            rows = np.flatnonzero(roles == number)
            policy[rows] = net.forward(obs[rows], slot[rows])[POLICY]
        return {POLICY: policy}


class StackedPerceptrons:
    """The policy towers of perceptrons as one flat array [slots, numbers]."""

    def __init__(self, net: Net, slots: int, threads: int) -> None:
        rules, config, traced = net.inputs.rules, net.config, trace_perceptron(net)
        self.traced = traced if isinstance(traced, TracedPerceptron) else None
        """Layers of a custom network; None: it is a built-in perceptron."""
        if self.traced:
            kind, hidden = self.traced.activation, self.traced.hidden(0)
            config = replace(config, hidden=hidden, activation=kind, std="predicted")
        self.inputs, self.config = net.inputs, config
        self.native = _native.GroupedLayers(
            net.inputs.runs,
            len(net.inputs.features),
            [round_up(width, PANEL) for width in (*config.hidden, head_width(rules))],
            head_width(rules),
            NATIVE_ACTIVATIONS.index(config.activation),
            slots,
            threads,
        )
        self.weights = torch.zeros(slots, self.native.size)
        self._weights = self.weights.numpy()

    def load(self, at: int, state: dict[str, Tensor]) -> None:
        """Pack a network's tensors for the native layers. Slots count from 0."""
        state = to_perceptron_tensors(self.traced, state) if self.traced else state
        (weight, bias), *layers = policy_layers(state, self.inputs.rules, self.config)
        parts = [pad(weight), pad(bias)]
        for weight, bias in layers:
            parts += [to_panels(weight), pad(bias)]
        self.weights[at] = torch.cat([part.flatten() for part in parts])

    def forward(self, obs: Tensor, slot: npt.NDArray[np.integer], out: HeadOutputs) -> None:
        """Write the outputs that `out` has entries for."""
        slots = np.ascontiguousarray(slot, np.int16)
        self.native.forward(obs.numpy(), slots, self._weights, out[POLICY].numpy())
        if MEMORY in out:
            out[MEMORY] = stack_frames(self.inputs, obs, self.config.frames)


class SequentialNets:
    """Networks without value heads, which run one after the other."""

    def __init__(self, net: Net, slots: int, threads: int) -> None:
        rules = net.inputs.rules
        self.nets: list[Net] = []
        first: _native.FirstLayer | None = None
        for _ in range(slots):
            copied = make_net(
                rules,
                net.config,
                heads={POLICY: head_width(rules)},
                memory=net.inputs.memory,
                threads=threads if not self.nets else 1,
            )
            # All slots share one pool of worker threads.
            if self.nets and getattr(net, "native", None) is not None:
                copied.native = self.nets[0].native
            if isinstance(copied, LinearNet):
                first = first or copied.first.native
                copied.first.native = first
            self.nets.append(copied.requires_grad_(False))

    def load(self, at: int, state: dict[str, Tensor]) -> None:
        """Load the tensors that the policy reads: the first of two towers."""
        net = self.nets[at]
        parts = {name: tuple(map(slice, value.shape)) for name, value in net.state_dict().items()}
        net.load_state_dict({name: state[name][part] for name, part in parts.items()})

    def forward(self, obs: Tensor, slot: npt.NDArray[np.integer], out: HeadOutputs) -> None:
        order = np.argsort(slot, kind="stable")
        slots, first = np.unique(slot[order], return_index=True)
        for number, rows in zip(slots, np.split(torch.from_numpy(order), first[1:]), strict=True):
            net, slot_obs = self.nets[int(number) - 1], obs[rows]
            outputs = net(slot_obs)
            out[POLICY][rows] = outputs[POLICY]
            memory = net.next_memory(slot_obs, outputs)
            if memory is not None:
                out[MEMORY][rows] = memory


def policy_layers(
    state: Mapping[str, Tensor], rules: Rules, config: NetConfig
) -> list[tuple[Tensor, Tensor]]:
    """Return weights [inputs, outputs] and biases of a perceptron's policy, the head last."""
    width = config.hidden[0]
    layers = [(state["first.weight"][:, :width], state["first.bias"][:width])]
    for layer in range(len(config.hidden) - 1):
        name = f"towers.0.{2 * layer}"
        layers.append((state[f"{name}.weight"].T, state[f"{name}.bias"]))
    head = state["policy_head.weight"] * head_mask(rules, config)
    return [*layers, (head.T, state["policy_head.bias"])]


def shapes_of(net: Net) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


def check_shapes(shapes: Mapping[str, tuple[int, ...]], state: Mapping[str, Tensor]) -> None:
    """Raise if a state dict has other names or shapes; tensors of value heads may differ."""
    for name, shape in shapes.items():
        if name not in state:
            if not is_unused_by_policy(name):
                raise ConfigError(f"the network has no {name}; it is of another kind")
        elif tuple(state[name].shape) != shape:
            raise ConfigError(
                f"the network's {name} has shape {tuple(state[name].shape)}, here it is {shape}; "
                "only networks of the learner's own shape fit"
            )
    for name in state:
        custom = name.startswith(MODULE_PREFIX)
        if name not in shapes and not custom and not is_unused_by_policy(name):
            raise ConfigError(f"the network has {name}, which is unknown here; it is another kind")


def pad(matrix: Tensor, rows: int = 0) -> Tensor:
    """Pad columns to whole panels, and rows to this many, with zeros."""
    columns = round_up(matrix.shape[-1], PANEL) - matrix.shape[-1]
    below = (0, max(rows - matrix.shape[0], 0)) if matrix.dim() == 2 else ()
    return functional.pad(matrix, (0, columns, *below))


def to_panels(matrix: Tensor) -> Tensor:
    """Return a weight [inputs, outputs] as [panels, inputs, PANEL], inputs padded too."""
    padded = pad(matrix, round_up(matrix.shape[0], PANEL))
    return padded.view(len(padded), -1, PANEL).transpose(0, 1).contiguous()
