"""A perceptron with a state of its own between a seat's decisions.

Steps in a row have a backward pass that is written out: autograd would multiply and add up the
gradient of the weights in every step; here that is one product for all steps. Shapes never change
and nothing waits for a GPU, so that a graph can hold it. A test holds states and gradients equal to
torch's cell.
"""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.inputs import Inputs, held
from sparring.nets.layers import FirstLayer, orthogonal_
from sparring.nets.mlp import LinearNet, head_mask, tower
from sparring.nets.net import MEMORY, Asked, HeadOutputs


class RecurrentNet(LinearNet):
    """Layers over the observation, a GRU cell over what the seat remembers, and heads behind it.

    The state is read from the bytes behind the observation, so that a row is all that a decision
    depends on. It stays in float32, whatever products are computed in.
    """

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **asked: Unpack[Asked]
    ) -> None:
        super().__init__(rules, config, **asked)
        assert config.shared and not (config.policy_hidden or config.value_hidden)
        shown = Inputs(rules, 0, config.inputs)
        self.first = FirstLayer(
            shown,
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
        self._initialize(shown)

    def _initialize(self, shown: Inputs) -> None:
        self.initialize_layers(shown, [self.trunk])
        with torch.no_grad():
            for weight in (self.cell.weight_ih, self.cell.weight_hh):
                for gate in weight.chunk(3):
                    orthogonal_(gate)
        nn.init.zeros_(self.cell.bias_ih)
        nn.init.zeros_(self.cell.bias_hh)
        self.initialize_heads()

    def forward(self, obs: Tensor, fresh: Tensor | None = None) -> HeadOutputs:
        """Return what heads say about byte rows, and the state after. fresh: see `unroll`."""
        return self.step(obs, self._state(obs)) if fresh is None else self.unroll(obs, fresh)

    def step(self, shown: Tensor, state: Tensor) -> HeadOutputs:
        """The same of rows as the first layer takes them, where this is remembered of seats."""
        return self._say(self._next(self._shown(shown), state))

    def unroll(self, obs: Tensor, fresh: Tensor) -> HeadOutputs:
        """Return what heads say about decisions in a row, as if they were made now.

        obs: [segments, steps, row_bytes]. The first row of a segment, and one where `fresh`
        [segments, steps] says that it does not go on from the one before, brings its state along
        as it was played; of all others it is what the step before has made of it. Answers are
        [segments * steps, ...], in the order of the rows.
        """
        segments, steps, width = obs.shape
        rows = obs.transpose(0, 1).reshape(steps * segments, width)
        states = unrolled(
            self._shown(rows).view(steps, segments, -1),
            self._state(rows).view(steps, segments, -1),
            fresh.bool().T.unsqueeze(-1),
            self.cell.weight_hh,
            self.cell.bias_hh,
        )
        return self._say(states.transpose(0, 1).reshape(segments * steps, -1))

    def _shown(self, obs: Tensor) -> Tensor:
        """What the gates are given by rows themselves."""
        return functional.linear(
            self.trunk(self.first(obs)), self.cell.weight_ih, self.cell.bias_ih
        )

    def _state(self, obs: Tensor) -> Tensor:
        """What is remembered of the seats of rows."""
        return held(self.inputs, obs)[:, : self.config.memory_width]

    def _next(self, shown: Tensor, state: Tensor) -> Tensor:
        """One step of the cell, as `nn.GRUCell` has it, in float32 behind the products."""
        kept = functional.linear(state, self.cell.weight_hh, self.cell.bias_hh).float()
        return gates(shown.float(), kept, state)[2]

    def _say(self, state: Tensor) -> HeadOutputs:
        """What heads read from states, and the states as they are remembered."""
        heads: HeadOutputs = {name: self.say(name, state) for name in self.heads}
        filled = self.inputs.memory // 4 - state.shape[1]
        heads[MEMORY] = functional.pad(state, (0, filled)) if filled else state
        return heads


def unrolled(shown: Tensor, stored: Tensor, begins: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the states after every step [steps, segments, width], in float32.

    shown: what inputs give the gates [steps, segments, 3 * width]. stored: states that rows bring
    along [steps, segments, width]; they are those of the first step, and where `begins`
    [steps, segments, 1] says so. weight, bias: what a state gives the gates, as `nn.GRUCell` has
    them: reset, update, new.
    """
    apply: Any = GRUSteps.apply
    states: Tensor = apply(shown.float(), stored, begins, weight, bias)
    return states


def gates(shown: Tensor, kept: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One step: reset and update side by side, the new candidate, and the state after it."""
    width = state.shape[1]
    mixing = torch.sigmoid(shown[:, : 2 * width] + kept[:, : 2 * width])
    reset, update = mixing.chunk(2, 1)
    new = torch.tanh(torch.addcmul(shown[:, 2 * width :], reset, kept[:, 2 * width :]))
    return mixing, new, torch.lerp(new, state, update)


class GRUSteps(torch.autograd.Function):
    """All steps with their gradient."""

    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        shown, stored, begins, weight, bias = given
        steps, segments, width = stored.shape
        before, after = torch.empty_like(stored), torch.empty_like(stored)
        mixing = stored.new_empty(steps, segments, 2 * width)
        new, kept_new = torch.empty_like(stored), torch.empty_like(stored)
        state = stored[0]
        for step in range(steps):
            if step:
                state = torch.where(begins[step], stored[step], state)
            kept = functional.linear(state, weight, bias).float()
            before[step], kept_new[step] = state, kept[:, 2 * width :]
            mixing[step], new[step], state = gates(shown[step], kept, state)
            after[step] = state
        ctx.save_for_backward(begins, weight, before, mixing, new, kept_new)
        ctx.rounds = torch.is_autocast_enabled(shown.device.type)
        return after

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        begins, weight, before, mixing, new, kept_new = ctx.saved_tensors
        steps, segments, width = before.shape
        rounded = torch.bfloat16 if ctx.rounds else torch.float32
        reset, update = mixing.chunk(2, 2)
        # What every step multiplies with, for all of them at once.
        of_new = (1 - update) * (1 - new * new)
        of_update = (before - new) * update * (1 - update)
        of_reset = of_new * kept_new * reset * (1 - reset)
        shown_grad = torch.cat((of_reset, of_update, of_new), 2)
        kept_grad = torch.cat((of_reset, of_update, of_new * reset), 2)
        matrix, goes_on = weight.to(rounded), ~begins
        carried = torch.zeros_like(before[0])
        for step in reversed(range(steps)):
            whole = grad[step] + carried
            shown_grad[step].view(segments, 3, width).mul_(whole.unsqueeze(1))
            kept_grad[step].view(segments, 3, width).mul_(whole.unsqueeze(1))
            if step:
                back = (kept_grad[step].to(rounded) @ matrix).float()
                carried = torch.addcmul(back, whole, update[step]) * goes_on[step]
        flat = kept_grad.view(steps * segments, 3 * width)
        weight_grad = flat.to(rounded).T @ before.view(steps * segments, width).to(rounded)
        return shown_grad, None, None, weight_grad.to(weight.dtype), flat.sum(0)
