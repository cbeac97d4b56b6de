"""Steps of a GRU cell one after the other, with a backward pass that is written out.

Autograd would multiply and add up the gradient of the weights in every step; here that is one
product for all steps. Shapes never change and nothing waits for a GPU, so that a graph can hold it.
A test holds states and gradients equal to torch's cell.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


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
