"""Adam with gradient clipping over the flat arrays of all members; csrc/cuda/optimizer.cuh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from sparring.errors import StateError
from sparring.kernels import KernelModule
from sparring.learn.fused.kernels import blocks_of
from sparring.nets.run.flat import FlatNet
from sparring.nets.run.native import BETAS

SQUARE_BLOCKS = 128
KINDS = ("exp_avg", "exp_avg_sq")
"""Names of Adam's moments in checkpoints."""


class Weights(Protocol):
    """Optimized weights: flat arrays [members, size]."""

    size: int
    weight: Tensor
    """Master weights in float32."""
    compute: Tensor
    """Weights of forward passes: weight * scale, rounded."""
    grad: Tensor
    scale: Tensor
    """[size]"""


class FlatAdam:
    """Moments, and the kernel launches of an optimizer step."""

    def __init__(
        self,
        kernels: KernelModule,
        weights: Weights,
        *,
        epsilon: float,
        stopped: Tensor,
        diverged: Tensor,
        plans: int = 1,
    ) -> None:
        """Allocate all arrays.

        stopped: [members], members without a step. diverged: [members], is set if a gradient is not
            finite; such members make no further steps.
        plans: steps whose plans are stored, see `StepParams` in csrc/cuda/optimizer.cuh.
        """
        self.kernels, self.weights, self.epsilon = kernels, weights, epsilon
        self.stopped, self.diverged = stopped, diverged
        members = len(weights.weight)
        with torch.device(weights.weight.device):
            self.squares = torch.zeros(members, SQUARE_BLOCKS)
            self.plans = torch.zeros(plans, members, len(kernels.names("StepParams")))
            self.steps = torch.zeros(members, dtype=torch.int32)
            self.first = torch.zeros_like(weights.weight)
            self.second = torch.zeros_like(weights.weight)
        self._view = kernels.view(
            "WeightsView",
            weight=weights.weight,
            compute=weights.compute,
            grad=weights.grad,
            scale=weights.scale,
            count=weights.size,
        )

    def step(self, lr: Tensor, max_grad_norm: Tensor, *, apart: int, number: int = 0) -> None:
        """Make a step. apart: stride of the hyperparameters of members."""
        kernels, (beta1, beta2), plans = self.kernels, BETAS, self.plans[number]
        members = len(self.steps)
        kernels.square((SQUARE_BLOCKS, members), 256, self._view, self.squares)
        plan = kernels.view(
            "StepParamsView",
            squares=self.squares,
            blocks=SQUARE_BLOCKS,
            lr=lr,
            max_grad_norm=max_grad_norm,
            hparams_stride=apart,
            beta1=beta1,
            beta2=beta2,
            adam_steps=self.steps,
            stopped=self.stopped,
            diverged=self.diverged,
            step_params=plans,
        )
        kernels.compute_step_params(members, 256, plan)
        adam = kernels.view(
            "AdamView",
            first=self.first,
            second=self.second,
            beta1=beta1,
            beta2=beta2,
            epsilon=self.epsilon,
            step_params=plans,
        )
        kernels.adam((blocks_of(self.weights.size), members), 256, self._view, adam)

    def kept(self) -> list[Tensor]:
        """Tensors of the optimizer that a step changes."""
        return [self.first, self.second, self.steps]

    def state(self, member: int, net: FlatNet) -> dict[str, Tensor]:
        """Copy the moments of a member, with the names of torch's optimizer."""
        moments = (self.first[member], self.second[member])
        named = {kind: net.unpack(m) for kind, m in zip(KINDS, moments, strict=True)}
        step = torch.tensor(float(self.steps[member]))
        found = {}
        for index, name in enumerate(net.parameter_names()):
            found[f"{index}.step"] = step.clone()
            for kind in KINDS:
                found[f"{index}.{kind}"] = named[kind][name]
        return found

    def load_state(
        self, member: int, net: FlatNet, state: Mapping[int, Mapping[str, Tensor]]
    ) -> None:
        """Restore moments; there are none before the first step."""
        names = net.parameter_names()
        for array, kind in zip((self.first, self.second), KINDS, strict=True):
            if not state:
                array[member] = 0
                continue
            try:
                named = {name: state[index][kind] for index, name in enumerate(names)}
                array[member] = net.pack(named).to(array.device)
            except (KeyError, RuntimeError) as wrong:
                raise StateError(f"the checkpoint holds another network: {wrong}") from None
        self.steps[member] = int(state[0]["step"]) if state else 0
