"""Frozen networks of one shape on a CPU, whose rows are answered together.

Perceptrons go through csrc/nets/grouped.hpp: one call sorts the rows by network and takes a few of
one network at a time through all of its layers. Other networks, and perceptrons with layer norm
or normalized observations, are asked one after the other.
Only what actions are drawn from is computed, nobody asks frozen networks for values. A test holds
the answers equal to those of the networks alone.
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
from sparring.nets.custom import OWN, CustomNet
from sparring.nets.hierarchy import is_hierarchy, role_tensors
from sparring.nets.inputs import stacked
from sparring.nets.make import make_net
from sparring.nets.mlp import NATIVE_ACTIVATIONS, LinearNet, Perceptron, head_mask
from sparring.nets.net import MEMORY, POLICY, HeadOutputs, Net, head_width, is_unused_by_policy
from sparring.nets.run.trace import TracedPerceptron, to_perceptron_tensors, trace_perceptron

PANEL = 32
"""Columns that lie together in the native layers; widths are filled up to multiples of it."""


class GroupedNet:
    """Room for frozen networks: slots 1 to `slots`."""

    def __init__(
        self, rules: Rules, config: NetConfig, slots: int, *, memory: int = 0, threads: int = 1
    ) -> None:
        """Make room; what is in a slot is loaded afterwards.

        memory: bytes behind the observation in every row. threads: those of the native layers.
        """
        if slots < 1:
            raise ConfigError(f"{slots} slots; give at least 1")
        self.rules, self.config, self.slots, self.width = rules, config, slots, head_width(rules)
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
            net = make_net(rules, config, memory=memory, threads=threads)
            plain = not (config.norm or config.normalize or config.policy_hidden)
            stacks = isinstance(net, Perceptron) and plain
            if isinstance(net, CustomNet):
                stacks = isinstance(trace_perceptron(net), TracedPerceptron)
            self._kind = (StackedPerceptrons if stacks else SequentialNets)(net, slots, threads)
        self.memory = net.inputs.memory if config.memory else 0
        """Bytes that each of them writes."""
        self._shapes = shapes_of(net)
        self._loaded = np.zeros(slots + 1, np.bool_)

    def load(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Put a frozen network into a slot, by the names and shapes of `make_net`'s."""
        if not 1 <= slot <= self.slots:
            raise ConfigError(f"slot {slot}; there are 1 to {self.slots}")
        check_shapes(self._shapes, state)
        self._kind.load(slot - 1, {name: t.detach().float().cpu() for name, t in state.items()})
        self._loaded[slot] = True

    def policy_outputs(self, obs: Tensor, slot: npt.NDArray[np.integer]) -> Tensor:
        """Return what the policy heads say [rows, head_width], row r by the network of slot[r]."""
        return self.say(obs, slot)[POLICY]

    @torch.no_grad()
    def say(self, obs: Tensor, slot: npt.NDArray[np.integer]) -> HeadOutputs:
        """The same with what is to be remembered of the rows' seats, if anything is."""
        if len(slot) != len(obs):
            raise ConfigError(f"{len(obs)} rows and {len(slot)} slots; give every row one")
        inside = np.clip(slot, 0, self.slots)
        if not self._loaded[inside].all() or (inside != slot).any():
            wrong = next(int(k) for k in slot if not self.loaded(int(k)))
            raise ConfigError(
                f"rows are of slot {wrong}, which holds no network; there are 1 to {self.slots}"
            )
        heads = {POLICY: torch.empty(len(obs), self.width)}
        if self.memory:
            heads[MEMORY] = torch.empty(len(obs), self.memory // 4)
        if len(obs):
            self._kind.answer(obs.contiguous(), slot, heads)
        return heads

    def loaded(self, slot: int) -> bool:
        """Whether a slot holds a network."""
        return 1 <= slot <= self.slots and bool(self._loaded[slot])


class GroupedHierarchy:
    """Room for frozen hierarchies: for every role the networks of all slots."""

    def __init__(
        self,
        rules: Rules,
        configs: Mapping[str, NetConfig],
        slots: int,
        *,
        memory: int = 0,
        threads: int = 1,
    ) -> None:
        """Make room; the arguments are those of `GroupedNet`, with a network for every role."""
        self.rules = rules
        self.roles = {
            role: GroupedNet(rules, config, slots, memory=memory, threads=threads)
            for role, config in configs.items()
        }

    def load(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Put a frozen hierarchy into a slot, by the names and shapes of `make_net`'s."""
        if not is_hierarchy(state):
            raise ConfigError("the network is one for all roles; only hierarchies fit here")
        for role, net in self.roles.items():
            net.load(slot, role_tensors(state, role))

    def say(self, obs: Tensor, slot: npt.NDArray[np.integer]) -> HeadOutputs:
        """What `GroupedNet.say` does; hierarchies remember nothing."""
        return {POLICY: self.policy_outputs(obs, slot)}

    @torch.no_grad()
    def policy_outputs(self, obs: Tensor, slot: npt.NDArray[np.integer]) -> Tensor:
        """Return what the policy heads say [rows, head_width], row r by the networks of slot[r]."""
        told = self.rules.role_of(obs.numpy())
        out = torch.empty(len(obs), head_width(self.rules))
        for number, net in enumerate(self.roles.values()):
            rows = np.flatnonzero(told == number)
            out[rows] = net.policy_outputs(obs[rows], slot[rows])
        return out


class StackedPerceptrons:
    """Perceptrons as one flat array [slots, numbers], the policy's tower alone."""

    def __init__(self, net: Net, slots: int, threads: int) -> None:
        rules, config, own = net.inputs.rules, net.config, trace_perceptron(net)
        self.own = own if isinstance(own, TracedPerceptron) else None
        """The layers of somebody's own network, None if it is ours."""
        if self.own:
            kind, hidden = self.own.activation, self.own.hidden(0)
            config = replace(config, hidden=hidden, activation=kind, std="predicted")
        self.inputs, self.config = net.inputs, config
        self.native = _native.GroupedLayers(
            net.inputs.runs,
            len(net.inputs.features),
            [rounded_up(width) for width in (*config.hidden, head_width(rules))],
            head_width(rules),
            NATIVE_ACTIVATIONS.index(config.activation),
            slots,
            threads,
        )
        self.weights = torch.zeros(slots, self.native.size)
        self._weights = self.weights.numpy()

    def load(self, at: int, state: dict[str, Tensor]) -> None:
        """Lay a network's numbers out as the native layers read them. Slots count from 0."""
        state = to_perceptron_tensors(self.own, state) if self.own else state
        (weight, bias), *layers = policy_layers(state, self.inputs.rules, self.config)
        parts = [padded(weight), padded(bias)]
        for weight, bias in layers:
            parts += [panels(weight), padded(bias)]
        self.weights[at] = torch.cat([part.flatten() for part in parts])

    def answer(self, obs: Tensor, slot: npt.NDArray[np.integer], out: HeadOutputs) -> None:
        """Write what heads say, and what is remembered if there is room for it."""
        slots = np.ascontiguousarray(slot, np.int16)
        self.native.forward(obs.numpy(), slots, self._weights, out[POLICY].numpy())
        if MEMORY in out:
            out[MEMORY] = stacked(self.inputs, obs, self.config.frames)


class SequentialNets:
    """Networks without their values, asked one after the other."""

    def __init__(self, net: Net, slots: int, threads: int) -> None:
        rules = net.inputs.rules
        self.nets: list[Net] = []
        first: _native.FirstLayer | None = None
        for _ in range(slots):
            made = make_net(
                rules,
                net.config,
                heads={POLICY: head_width(rules)},
                memory=net.inputs.memory,
                threads=threads if not self.nets else 1,
            )
            # Worker threads are shared, not one crew for every slot.
            if self.nets and getattr(net, "native", None) is not None:
                made.native = self.nets[0].native
            if isinstance(made, LinearNet):
                first = first or made.first.native
                made.first.native = first
            self.nets.append(made.requires_grad_(False))

    def load(self, at: int, state: dict[str, Tensor]) -> None:
        """Take over what the policy reads: of two towers the first."""
        net = self.nets[at]
        own = {name: tuple(map(slice, value.shape)) for name, value in net.state_dict().items()}
        net.load_state_dict({name: state[name][part] for name, part in own.items()})

    def answer(self, obs: Tensor, slot: npt.NDArray[np.integer], out: HeadOutputs) -> None:
        order = np.argsort(slot, kind="stable")
        held, first = np.unique(slot[order], return_index=True)
        places = np.split(torch.from_numpy(order), first[1:])
        for one, rows in zip(held, places, strict=True):
            net, seen = self.nets[int(one) - 1], obs[rows]
            heads = net(seen)
            out[POLICY][rows] = heads[POLICY]
            held = net.next_memory(seen, heads)
            if held is not None:
                out[MEMORY][rows] = held


def policy_layers(
    state: Mapping[str, Tensor], rules: Rules, config: NetConfig
) -> list[tuple[Tensor, Tensor]]:
    """Weights [inputs, outputs] and biases of a perceptron's policy, its head the last."""
    width = config.hidden[0]
    layers = [(state["first.weight"][:, :width], state["first.bias"][:width])]
    for layer in range(len(config.hidden) - 1):
        name = f"towers.0.{2 * layer}"
        layers.append((state[f"{name}.weight"].T, state[f"{name}.bias"]))
    head = state["policy_head.weight"] * head_mask(rules, config)
    return [*layers, (head.T, state["policy_head.bias"])]


def shapes_of(net: Net) -> dict[str, tuple[int, ...]]:
    """What a network's tensors have to be like."""
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


def check_shapes(shapes: Mapping[str, tuple[int, ...]], state: Mapping[str, Tensor]) -> None:
    """Refuse a network that is not of these names and shapes, with what differs.

    What only values and other heads are made of may be missing, or there besides.
    """
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
        if name not in shapes and not is_unused_by_policy(name) and not name.startswith(OWN):
            raise ConfigError(f"the network has {name}, which is unknown here; it is another kind")


def rounded_up(count: int) -> int:
    """The next multiple of a panel."""
    return -(-count // PANEL) * PANEL


def padded(matrix: Tensor, rows: int = 0) -> Tensor:
    """With zeros behind its columns up to whole panels, and below it up to so many rows."""
    columns = rounded_up(matrix.shape[-1]) - matrix.shape[-1]
    below = (0, max(rows - matrix.shape[0], 0)) if matrix.dim() == 2 else ()
    return functional.pad(matrix, (0, columns, *below))


def panels(matrix: Tensor) -> Tensor:
    """A weight [inputs, outputs] as [panels, inputs, PANEL], inputs filled up too."""
    wide = padded(matrix, rounded_up(matrix.shape[0]))
    return wide.view(len(wide), -1, PANEL).transpose(0, 1).contiguous()
