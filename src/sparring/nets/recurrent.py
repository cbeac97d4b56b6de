"""A perceptron with a GRU state per seat.

Sequences have a hand-written backward pass: autograd would compute and add a weight gradient in
every step; here that is one product for all steps. Shapes never change and nothing synchronizes
with the GPU, so that a CUDA graph can capture it. A test compares states and gradients with
`nn.GRUCell`.
"""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.heads import MEMORY
from sparring.nets.inputs import Inputs, read_memory
from sparring.nets.layers import FirstLayer, orthogonal_
from sparring.nets.mlp import LinearNet, head_mask, tower
from sparring.nets.net import HeadOutputs, NetOptions


class RecurrentNet(LinearNet):
    """Layers over the observation, a GRU cell over the seat's state, and heads.

    The state is in the row's memory, so that a decision depends on its row alone. It stays in
    float32 in all precisions.
    """

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **options: Unpack[NetOptions]
    ) -> None:
        super().__init__(rules, config, **options)
        assert config.shared and not (config.policy_hidden or config.value_hidden)
        observation = Inputs(rules, 0, config.inputs)
        self.first = FirstLayer(
            observation,
            config.hidden[0],
            sparse=config.sparse,
            threads=threads,
            normalize=config.normalize,
        )
        first_norm = [nn.LayerNorm(config.hidden[0])] if config.norm else []
        self.trunk = nn.Sequential(
            *first_norm,
            self.make_activation(),
            *tower(config.hidden, self.make_activation, norm=config.norm),
        )
        self.cell = nn.GRUCell(config.hidden[-1], config.memory_width)
        for name, width in self.heads.items():
            self.add_module(f"{name}_head", nn.Linear(config.memory_width, width))
        self.register_buffer("head_mask", head_mask(rules, config), persistent=False)
        self._initialize(observation)

    def _initialize(self, observation: Inputs) -> None:
        self.initialize_layers(observation, [self.trunk])
        with torch.no_grad():
            for weight in (self.cell.weight_ih, self.cell.weight_hh):
                for gate in weight.chunk(3):
                    orthogonal_(gate)
        nn.init.zeros_(self.cell.bias_ih)
        nn.init.zeros_(self.cell.bias_hh)
        self.initialize_heads()

    def forward(self, obs: Tensor, fresh: Tensor | None = None) -> HeadOutputs:
        """Return the outputs of all heads for byte rows, and the next state.

        fresh: rows are sequences, see `unroll`.
        """
        return self.step(obs, self._state(obs)) if fresh is None else self.unroll(obs, fresh)

    def step(self, obs: Tensor, state: Tensor) -> HeadOutputs:
        """Return the outputs for rows as the first layer takes them and the states of seats."""
        return self._outputs(self._next_state(self._input_gates(obs), state))

    def unroll(self, obs: Tensor, fresh: Tensor) -> HeadOutputs:
        """Return the outputs for sequences of decisions, with the current weights.

        obs: [segments, steps, row_bytes]. The first row of a segment, and rows where `fresh`
        [segments, steps] is set, use the state stored in the row; all others use the state of the
        step before. Outputs are [segments * steps, ...], in the order of the rows.
        """
        segments, steps, width = obs.shape
        rows = obs.transpose(0, 1).reshape(steps * segments, width)
        states = unroll_gru(
            self._input_gates(rows).view(steps, segments, -1),
            self._state(rows).view(steps, segments, -1),
            fresh.bool().T.unsqueeze(-1),
            self.cell.weight_hh,
            self.cell.bias_hh,
        )
        return self._outputs(states.transpose(0, 1).reshape(segments * steps, -1))

    def _input_gates(self, obs: Tensor) -> Tensor:
        """Return the input part of the gates' pre-activations."""
        return functional.linear(
            self.trunk(self.first(obs)), self.cell.weight_ih, self.cell.bias_ih
        )

    def _state(self, obs: Tensor) -> Tensor:
        """Return the states stored in rows."""
        return read_memory(self.inputs, obs)[:, : self.config.memory_width]

    def _next_state(self, input_gates: Tensor, state: Tensor) -> Tensor:
        """Run one step of the cell, like `nn.GRUCell`, in float32 after the products."""
        hidden = functional.linear(state, self.cell.weight_hh, self.cell.bias_hh).float()
        return gru_step(input_gates.float(), hidden, state)[2]

    def _outputs(self, state: Tensor) -> HeadOutputs:
        """Return the outputs of all heads, and the states padded to the size of the memory."""
        outputs: HeadOutputs = {name: self.head_output(name, state) for name in self.heads}
        padding = self.inputs.memory // 4 - state.shape[1]
        outputs[MEMORY] = functional.pad(state, (0, padding)) if padding else state
        return outputs


def unroll_gru(
    input_gates: Tensor, stored: Tensor, fresh: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    """Return the states after every step [steps, segments, width], in float32.

    input_gates: input part of the pre-activations [steps, segments, 3 * width].
    stored: states [steps, segments, width], used in the first step and where `fresh`
    [steps, segments, 1] is set.
    weight, bias: hidden part of the gates, as in `nn.GRUCell`: reset, update, new.
    """
    apply: Any = GRUSteps.apply
    states: Tensor = apply(input_gates.float(), stored, fresh, weight, bias)
    return states


def gru_step(input_gates: Tensor, hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return (reset, update) side by side, the candidate, and the next state."""
    width = state.shape[1]
    reset_update = torch.sigmoid(input_gates[:, : 2 * width] + hidden[:, : 2 * width])
    reset, update = reset_update.chunk(2, 1)
    new = torch.tanh(torch.addcmul(input_gates[:, 2 * width :], reset, hidden[:, 2 * width :]))
    return reset_update, new, torch.lerp(new, state, update)


class GRUSteps(torch.autograd.Function):
    """Autograd function of all steps of a sequence."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        input_gates, stored, fresh, weight, bias = arguments
        steps, segments, width = stored.shape
        before, after = torch.empty_like(stored), torch.empty_like(stored)
        reset_update = stored.new_empty(steps, segments, 2 * width)
        new, hidden_new = torch.empty_like(stored), torch.empty_like(stored)
        state = stored[0]
        for step in range(steps):
            if step:
                state = torch.where(fresh[step], stored[step], state)
            hidden = functional.linear(state, weight, bias).float()
            before[step], hidden_new[step] = state, hidden[:, 2 * width :]
            reset_update[step], new[step], state = gru_step(input_gates[step], hidden, state)
            after[step] = state
        ctx.save_for_backward(fresh, weight, before, reset_update, new, hidden_new)
        ctx.autocast = torch.is_autocast_enabled(input_gates.device.type)
        return after

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        fresh, weight, before, reset_update, new, hidden_new = ctx.saved_tensors
        steps, segments, width = before.shape
        dtype = torch.bfloat16 if ctx.autocast else torch.float32
        reset, update = reset_update.chunk(2, 2)
        # Local derivatives of all steps at once.
        d_new = (1 - update) * (1 - new * new)
        d_update = (before - new) * update * (1 - update)
        d_reset = d_new * hidden_new * reset * (1 - reset)
        input_grad = torch.cat((d_reset, d_update, d_new), 2)
        hidden_grad = torch.cat((d_reset, d_update, d_new * reset), 2)
        matrix, continues = weight.to(dtype), ~fresh
        next_grad = torch.zeros_like(before[0])
        for step in reversed(range(steps)):
            state_grad = grad[step] + next_grad
            input_grad[step].view(segments, 3, width).mul_(state_grad.unsqueeze(1))
            hidden_grad[step].view(segments, 3, width).mul_(state_grad.unsqueeze(1))
            if step:
                through_gates = (hidden_grad[step].to(dtype) @ matrix).float()
                next_grad = torch.addcmul(through_gates, state_grad, update[step]) * continues[step]
        flat = hidden_grad.view(steps * segments, 3 * width)
        weight_grad = flat.to(dtype).T @ before.view(steps * segments, width).to(dtype)
        return input_grad, None, None, weight_grad.to(weight.dtype), flat.sum(0)
