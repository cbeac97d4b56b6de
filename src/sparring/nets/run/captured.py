"""Any network as flat arrays on a GPU: its own forward pass, and autograd for the backward one.

For networks that have no passes of their own. Shapes never change and nothing waits for the
device, so that a CUDA graph can hold all of it. Every member's parameters are views into the flat
arrays. A test holds it equal to the passes that were written by hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor
from torch.func import functional_call

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.factories import describe_error
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.net import MEMORY, POLICY, VALUE, WDL, HeadOutputs, Net, blend_wdl, head_width
from sparring.nets.run.flat import FlatNet, FlatOptions, FlatTensor, Pass, rounded_up

ALIGNED = 64
"""Every parameter begins at a multiple of this many numbers."""
VALUE_SCALE = "value_scale"
PROBED = 8
"""Rows that a network of somebody's own is tried with."""
UNITS = ("wdl_blend", "wdl_unit", "score_scale")
"""Buffers of networks that say in which unit heads are."""


@dataclass(frozen=True)
class Traced:
    """A forward pass that autograd remembers."""

    parameters: dict[str, Tensor]
    heads: HeadOutputs


class CapturedPass(Pass):
    """A batch of byte rows."""

    flat: CapturedNet

    def __init__(self, net: CapturedNet, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.learn = learn
        self.obs = self.make(net.inputs.row_bytes, torch.uint8)
        self.places = torch.zeros(net.members * rows, dtype=torch.int32, device=net.device)
        if net.config.recurrent:
            self.memory = self.make(net.inputs.memory // 4, torch.float32)
        self._traced: list[Traced] = []
        """What the backward pass needs, by member."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Take byte rows, or those at `places`; where it is -1, those of place 0."""
        rows = self.obs.view(-1, self.obs.shape[2])
        if places is None:
            rows.copy_(obs.reshape(rows.shape))
        else:
            torch.clamp(places.reshape(-1), min=0, out=self.places)
            torch.index_select(obs, 0, self.places, out=rows)

    def forward(self) -> None:
        # A graph of autograd must not outlive the stream that it was made on.
        self._traced.clear()
        for member in range(self.flat.members):
            with torch.set_grad_enabled(self.learn):
                traced = self.trace(member)
            policy, value = traced.heads[POLICY].detach(), traced.heads[VALUE].detach()
            self.logits[member, :, : policy.shape[1]].copy_(policy)
            self.value[member, :, 0].copy_(self._worth(member, value, traced.heads))
            for name, said in self.others.items():
                said[member].copy_(traced.heads[name].detach())
            if self.memory is not None:
                self.memory[member].copy_(traced.heads[MEMORY].detach())
            if self.learn:
                self._traced.append(traced)

    def _worth(self, member: int, value: Tensor, heads: HeadOutputs) -> Tensor:
        """What rows are worth in the unit of values, as `Net.unscaled_values` has it.

        Whoever learns wants what the value head says alone.
        """
        net = self.flat
        if self.learn or WDL not in heads:
            return value
        scale, share, unit = (
            one[member] for one in (net.value_scale, net.units["wdl_blend"], net.units["wdl_unit"])
        )
        return blend_wdl(value.float() * scale, heads[WDL].detach(), share, unit) / scale

    def trace(self, member: int) -> Traced:
        """Run the network of a member over its rows."""
        net, parameters = self.flat, self.flat.parameters(member)
        held = {name: tensor[member] for name, tensor in net.held.items()}
        held[VALUE_SCALE] = net.value_scale[member]
        return Traced(parameters, net.run({**parameters, **held}, self.obs[member]))

    def backward(self) -> None:
        net = self.flat
        for member, traced in enumerate(self._traced):
            policy, value = traced.heads[POLICY], traced.heads[VALUE]
            others = {name: traced.heads[name] for name in self.others}
            grads = torch.autograd.grad(
                [policy, value, *others.values()],
                list(traced.parameters.values()),
                [
                    self.logits_grad[member, :, : policy.shape[1]].to(policy.dtype),
                    self.value_grad[member, :, 0].to(value.dtype),
                    *(self.extra_grads[n][member].to(said.dtype) for n, said in others.items()),
                ],
                allow_unused=True,
                materialize_grads=True,
            )
            for name, grad in zip(traced.parameters, grads, strict=True):
                net.view(net.grad, name)[member].copy_(grad)
        self._traced.clear()


class UnrolledPass(CapturedPass):
    """Segments of decisions, one after the other: [segments * steps] rows of every member.

    A segment's first row brings its state along, later ones have that of the row before.
    """

    def __init__(self, net: CapturedNet, segments: int, steps: int) -> None:
        super().__init__(net, segments * steps, learn=True)
        self.segments, self.steps = segments, steps
        self.fresh = self.make(1, torch.bool).view(net.members, segments, steps)
        """Where another game begins inside a segment; nothing is remembered there."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Take byte rows, or those at `places`; where it is -1, zeros.

        Zeros have no states that are not finite, such as those of another member that diverged.
        """
        super().read(obs, places)
        if places is not None:
            self.obs.masked_fill_((places < 0).view(len(self.obs), -1, 1), 0)

    def trace(self, member: int) -> Traced:
        net, obs = self.flat, self.obs[member].view(self.segments, self.steps, -1)
        parameters = net.parameters(member)
        return Traced(parameters, net.run(parameters, obs, self.fresh[member]))


class CapturedNet(FlatNet):
    """Weights and gradients of all members, and the network that reads them."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        members: int,
        *,
        heads: Mapping[str, int] | None = None,
        **room: Unpack[FlatOptions],
    ) -> None:
        super().__init__(rules, config, members, **room)
        memory, device = room.get("memory", 0), self.device
        self.module: Net = make_net(rules, config, heads=heads, memory=memory).to(device)
        if not {POLICY, VALUE} <= self.module.heads.keys():
            raise ConfigError(f"PPO needs a policy and a value, not {list(self.module.heads)}")
        self.others = {n: w for n, w in self.module.heads.items() if n not in (POLICY, VALUE)}
        self.pieces: dict[str, FlatTensor] = self._lay_out()
        self.held = self._make_held()
        """Buffers of the network that are saved with it, of all members; learning leaves them."""
        self.units = {name: self.held[name] for name in UNITS if name in self.held}
        last = list(self.pieces.values())[-1]
        self.size = rounded_up(last.offset + last.size)
        self.make_arrays()
        # The network adds its own biases.
        self.policy_bias = torch.zeros(1, max(head_width(rules), self.action_width), device=device)
        self.value_bias, self.bias_stride = self.policy_bias, 0
        last_layer = (self.pieces[name].offset for name in self.module.value_parameters)
        self.value_from = min(last_layer, default=self.size)

    def _lay_out(self) -> dict[str, FlatTensor]:
        """Place every parameter; those of the last layer of the value last."""
        shapes = {name: tuple(p.shape) for name, p in self.module.named_parameters()}
        order = sorted(shapes, key=lambda name: name in self.module.value_parameters)
        placed, offset = {}, 0
        for name in order:
            shape = shapes[name]
            placed[name] = FlatTensor(name, offset, shape, tuple(range(len(shape))), shape)
            offset = rounded_up(offset + placed[name].size, ALIGNED)
        return placed

    def _make_held(self) -> dict[str, Tensor]:
        """Room for what the network keeps besides parameters and the unit of its values."""
        learned = dict(self.module.named_parameters(remove_duplicate=False))
        return {
            name: torch.stack([tensor.detach().to(self.device)] * self.members)
            for name, tensor in self.module.state_dict().items()
            if name not in learned and name != VALUE_SCALE
        }

    def make_pass(self, rows: int, *, learn: bool) -> CapturedPass:
        return CapturedPass(self, rows, learn=learn)

    def parameters(self, member: int) -> dict[str, Tensor]:
        """The weights of a member by name, of which gradients are wanted."""
        return {
            name: self.view(self.weight, name)[member].detach().requires_grad_()
            for name in self.pieces
        }

    def run(self, named: Mapping[str, Tensor], *shown: Tensor) -> HeadOutputs:
        """Run the network with these parameters and buffers."""
        # A cache of rounded weights would be read again by a graph that is replayed later.
        with torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.bf16, cache_enabled=False
        ):
            heads: HeadOutputs = functional_call(self.module, dict(named), shown)
        return heads

    # Exchange with the network

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        super().load(member, state)
        for name, held in self.held.items():
            held[member].copy_(state[name])

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the weights as the network loads them; a weight that is used twice has two."""
        found = super().state(member)
        found |= {name: held[member].cpu().clone() for name, held in self.held.items()}
        named: dict[int, str] = {}
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            first = named.setdefault(id(parameter), name)
            found.setdefault(name, found[first].clone())
        return found

    def copy_from(self, other: FlatNet) -> None:
        super().copy_from(other)
        assert isinstance(other, CapturedNet)
        for name, held in self.held.items():
            held.copy_(other.held[name])

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        found = super().unpack(flat)
        return {name: found[name] for name in self.parameter_names()}

    def parameter_names(self) -> list[str]:
        return [name for name, _ in self.module.named_parameters()]


def capture_unsupported_reason(net: CapturedNet) -> str:
    """Say what keeps passes of a network on a GPU from being held by a graph, "" if nothing does.

    A graph replays what was launched: what waits for the device, to choose by what it finds there,
    cannot be among that.
    """
    passing = net.make_pass(PROBED, learn=True)
    passing.forward()
    passing.backward()  # which wakes up libraries, that may wait
    try:
        with waiting_forbidden():
            passing.forward()
            passing.backward()
    except RuntimeError as wrong:
        return describe_error(wrong)
    net.grad.zero_()
    return ""


@contextmanager
def waiting_forbidden() -> Iterator[None]:
    """Have torch raise an error wherever it would wait for a GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of an interface that may change
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
