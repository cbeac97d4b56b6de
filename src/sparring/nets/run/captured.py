"""Any network as flat arrays on a GPU, with autograd for the backward pass.

For networks without hand-written passes. Shapes never change and nothing synchronizes with the
device, so that a CUDA graph can capture all of it. Every member's parameters are views into the
flat arrays. A test compares it with the hand-written passes.
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
from sparring.nets.heads import MEMORY, POLICY, VALUE, WDL, head_width
from sparring.nets.make import make_net
from sparring.nets.net import HeadOutputs, Net, blend_wdl
from sparring.nets.run.flat import (
    ALL_MEMBERS,
    FlatNet,
    FlatOptions,
    FlatTensor,
    Pass,
    round_up,
)

ALIGNED = 64
"""Every parameter starts at a multiple of this many numbers."""
VALUE_SCALE = "value_scale"
PROBE_ROWS = 8
"""Rows that a custom network is checked with."""
HEAD_BUFFERS = ("wdl_blend", "wdl_unit", "score_scale")
"""Buffers of networks with the units of heads."""


@dataclass(frozen=True)
class AutogradPass:
    """Parameters and outputs of a forward pass that autograd recorded."""

    parameters: dict[str, Tensor]
    outputs: HeadOutputs


class CapturedPass(Pass):
    """A batch of byte rows, run by torch."""

    flat: CapturedNet

    def __init__(self, net: CapturedNet, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.learn = learn
        self.obs = self.make(net.inputs.row_bytes, torch.uint8)
        self.places = torch.zeros(net.members * rows, dtype=torch.int32, device=net.device)
        if net.config.recurrent:
            self.memory = self.make(net.inputs.memory // 4, torch.float32)
        self._recorded: list[AutogradPass] = []
        """Forward passes for the backward pass, by member."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Copy byte rows, or those at the indices `places`; -1 reads row 0."""
        rows = self.obs.view(-1, self.obs.shape[2])
        if places is None:
            rows.copy_(obs.reshape(rows.shape))
        else:
            torch.clamp(places.reshape(-1), min=0, out=self.places)
            torch.index_select(obs, 0, self.places, out=rows)

    def forward(self) -> None:
        # An autograd graph must not outlive the stream that it was recorded on.
        self._recorded.clear()
        for member in range(self.flat.members):
            with torch.set_grad_enabled(self.learn):
                recorded = self.run_member(member)
            outputs = {name: output.detach() for name, output in recorded.outputs.items()}
            if POLICY in outputs:
                policy = outputs[POLICY]
                self.logits[member, :, : policy.shape[1]].copy_(policy)
            self.value[member, :, 0].copy_(self._blended_value(member, outputs))
            for name, extra in self.extra_outputs.items():
                extra[member].copy_(outputs[name])
            if self.memory is not None:
                self.memory[member].copy_(outputs[MEMORY])
            if self.learn:
                self._recorded.append(recorded)

    def _blended_value(self, member: int, outputs: HeadOutputs) -> Tensor:
        """Return scaled values, blended like `Net.unscaled_values` unless this pass learns."""
        net, value = self.flat, outputs[VALUE]
        if self.learn or WDL not in outputs:
            return value
        buffers = net.value_scale, net.head_buffers["wdl_blend"], net.head_buffers["wdl_unit"]
        scale, share, unit = (buffer[member] for buffer in buffers)
        return blend_wdl(value.float() * scale, outputs[WDL], share, unit) / scale

    def run_member(self, member: int) -> AutogradPass:
        """Run the network of a member over its rows."""
        net, parameters = self.flat, self.flat.parameters(member)
        buffers = {name: tensor[member] for name, tensor in net.buffers.items()}
        buffers[VALUE_SCALE] = net.value_scale[member]
        return AutogradPass(parameters, net.run({**parameters, **buffers}, self.obs[member]))

    def backward(self) -> None:
        net = self.flat
        for member, recorded in enumerate(self._recorded):
            outputs, mine = recorded.outputs, {VALUE: self.value_grad[member, :, 0]}
            if POLICY in outputs:
                mine[POLICY] = self.logits_grad[member, :, : outputs[POLICY].shape[1]]
            mine |= {name: grads[member] for name, grads in self.extra_grads.items()}
            grads = torch.autograd.grad(
                [outputs[name] for name in mine],
                list(recorded.parameters.values()),
                [grad.to(outputs[name].dtype) for name, grad in mine.items()],
                allow_unused=True,
                materialize_grads=True,
            )
            for name, grad in zip(recorded.parameters, grads, strict=True):
                net.view(net.grad, name)[member].copy_(grad)
        self._recorded.clear()


class UnrolledPass(CapturedPass):
    """Sequences of decisions: [segments * steps] rows of every member.

    The first row of a segment uses its stored state, later rows that of the row before.
    """

    def __init__(self, net: CapturedNet, segments: int, steps: int) -> None:
        super().__init__(net, segments * steps, learn=True)
        self.segments, self.steps = segments, steps
        self.fresh = self.make(1, torch.bool).view(net.members, segments, steps)
        """Rows that start another game inside a segment, with an empty state."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Copy byte rows, or those at the indices `places`; -1 reads zeros.

        Row 0 may be of another member that diverged, with a state that is not finite.
        """
        super().read(obs, places)
        if places is not None:
            self.obs.masked_fill_((places < 0).view(len(self.obs), -1, 1), 0)

    def run_member(self, member: int) -> AutogradPass:
        net, obs = self.flat, self.obs[member].view(self.segments, self.steps, -1)
        parameters = net.parameters(member)
        return AutogradPass(parameters, net.run(parameters, obs, self.fresh[member]))


class CapturedNet(FlatNet):
    """Weights and gradients of all members, and the torch module that reads them."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        members: int,
        *,
        heads: Mapping[str, int] | None = None,
        **options: Unpack[FlatOptions],
    ) -> None:
        super().__init__(rules, config, members, **options)
        memory, device = options.get("memory", 0), self.device
        heads = heads if self.has_policy else {VALUE: 1}
        self.module: Net = make_net(rules, config, heads=heads, memory=memory).to(device)
        if self.has_policy and not {POLICY, VALUE} <= self.module.heads.keys():
            raise ConfigError(f"PPO needs a policy and a value, not {list(self.module.heads)}")
        self.extra_heads = {n: w for n, w in self.module.heads.items() if n not in (POLICY, VALUE)}
        self.layout: dict[str, FlatTensor] = self._make_layout()
        self.buffers = self._make_buffers()
        """Persistent buffers of all members; the optimizer does not change them."""
        self.head_buffers = {n: self.buffers[n] for n in HEAD_BUFFERS if n in self.buffers}
        last = list(self.layout.values())[-1]
        self.size = round_up(last.offset + last.size)
        self.make_arrays()
        # The module adds its biases itself.
        self.policy_bias = torch.zeros(1, max(head_width(rules), self.action_width), device=device)
        self.value_bias, self.bias_stride = self.policy_bias, 0
        last_layer = (self.layout[name].offset for name in self.module.value_parameters)
        self.value_from = min(last_layer, default=self.size)

    def _make_layout(self) -> dict[str, FlatTensor]:
        """Place all parameters, those of the last value layer at the end."""
        shapes = {name: tuple(p.shape) for name, p in self.module.named_parameters()}
        order = sorted(shapes, key=lambda name: name in self.module.value_parameters)
        layout, offset = {}, 0
        for name in order:
            shape = shapes[name]
            layout[name] = FlatTensor(name, offset, shape, tuple(range(len(shape))), shape)
            offset = round_up(offset + layout[name].size, ALIGNED)
        return layout

    def _make_buffers(self) -> dict[str, Tensor]:
        """Stack the module's buffers for all members, without the value scale."""
        learned = dict(self.module.named_parameters(remove_duplicate=False))
        return {
            name: torch.stack([tensor.detach().to(self.device)] * self.members)
            for name, tensor in self.module.state_dict().items()
            if name not in learned and name != VALUE_SCALE
        }

    def make_pass(self, rows: int, *, learn: bool) -> CapturedPass:
        return CapturedPass(self, rows, learn=learn)

    def parameters(self, member: int) -> dict[str, Tensor]:
        """Return a member's weights by name, with gradients enabled."""
        return {
            name: self.view(self.weight, name)[member].detach().requires_grad_()
            for name in self.layout
        }

    def run(self, named: Mapping[str, Tensor], *inputs: Tensor) -> HeadOutputs:
        """Run the module with these parameters and buffers."""
        # A replayed graph would read stale weights from autocast's cache.
        with torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.bf16, cache_enabled=False
        ):
            outputs: HeadOutputs = functional_call(self.module, dict(named), inputs)
        return outputs

    # State dicts

    def averaged_tensors(self) -> list[Tensor]:
        return [*super().averaged_tensors(), *self.buffers.values()]

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        super().load(member, state)
        for name, buffer in self.buffers.items():
            buffer[member].copy_(state[name])

    def state(self, member: int) -> dict[str, Tensor]:
        """Return a member's state dict; a shared parameter has an entry for each name."""
        state = super().state(member)
        state |= {name: buffer[member].cpu().clone() for name, buffer in self.buffers.items()}
        named: dict[int, str] = {}
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            first = named.setdefault(id(parameter), name)
            state.setdefault(name, state[first].clone())
        return state

    def copy_from(self, other: FlatNet, members: slice = ALL_MEMBERS) -> None:
        super().copy_from(other, members)
        assert isinstance(other, CapturedNet)
        for name, buffer in self.buffers.items():
            buffer[members].copy_(other.buffers[name][members])

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        tensors = super().unpack(flat)
        return {name: tensors[name] for name in self.parameter_names()}

    def parameter_names(self) -> list[str]:
        return [name for name, _ in self.module.named_parameters()]


def capture_unsupported_reason(net: CapturedNet) -> str:
    """Return why a CUDA graph cannot capture a network's passes, "" if it can.

    A graph replays launches: a pass that synchronizes, to branch on values of the device, fails.
    """
    probe = net.make_pass(PROBE_ROWS, learn=True)
    probe.forward()
    probe.backward()  # loads libraries, which may synchronize
    try:
        with synchronization_forbidden():
            probe.forward()
            probe.backward()
    except RuntimeError as error:
        return describe_error(error)
    net.grad.zero_()
    return ""


@contextmanager
def synchronization_forbidden() -> Iterator[None]:
    """Make torch raise an error wherever it would synchronize with the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the interface is experimental
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
