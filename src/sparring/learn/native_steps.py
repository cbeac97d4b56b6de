"""PPO's optimiser steps in native code: forward, loss, backward, clipping and Adam.

A minibatch is a handful of calls, and rows are read where they were played. `learn.steps` and
`ppo.ppo_loss` are the readable reference, and what runs where `Forward.why_torch` has something to
say; tests hold both equal. The sums have one order each: any number of threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sparring import _native
from sparring.learn.hindsight import SEEN
from sparring.learn.steps import PLACE, Loss, Minibatch, Shown, diverged, mean_of_all
from sparring.learn.together import Together
from sparring.nets.native_net import NativeNet
from sparring.nets.net import POLICY, VALUE

if TYPE_CHECKING:
    from sparring.learn.ppo import Knobs


class NativeSteps:
    """Steps of one network, as `learn.steps.Steps`."""

    by_place = True

    def __init__(self, native: NativeNet, *, eps: float, shown: Sequence[str]) -> None:
        """Improve a network. eps: Adam's. shown: what curves call the losses of PPO."""
        assert list(native.net.heads) == [POLICY, VALUE]
        self.native, self.eps, self.shown = native, eps, shown
        self.work = _native.Updating(native.threads)
        packed = native.packed
        self.mean, self.square = (torch.zeros_like(packed.weight) for _ in range(2))
        self.steps = 0
        """Made so far."""
        self._grad = torch.empty(0, 1)

    def take(self, minibatch: Minibatch, knobs: Knobs, loss: Loss, together: Together) -> Shown:
        """One optimiser step on PPO's loss; `loss` is its readable twin and not asked."""
        if together.size == 1:
            total, shown = self._learn(minibatch, knobs)
        else:
            total, shown = self._summed(minibatch, knobs, together)
        packed = self.native.packed
        norm = math.nan
        if math.isfinite(total):
            norm = self.work.adam(
                grad=packed.grad.numpy(),
                weight=packed.weight.numpy(),
                mean=self.mean.numpy(),
                square=self.square.numpy(),
                step=self.steps + 1,
                lr=knobs.lr,
                eps=self.eps,
                max_norm=knobs.max_grad_norm,
            )
            self.native.changed()
        if not math.isfinite(norm):
            raise diverged(total, norm, knobs.lr)
        self.steps += 1
        return {**shown, "grad_norm": norm}

    def _learn(self, minibatch: Minibatch, knobs: Knobs) -> tuple[float, dict[str, float]]:
        """Fill the gradient; return the loss and what curves show of it."""
        data, sample, place = located(minibatch)
        passes = self.native.passes()
        said = passes.said(data["obs"], index=place, keep=True)
        grad, mirrored = self._room(said), data.get("mirrored")
        policy, value, entropy, moved, clipped, plain = self.work.policy_loss(
            said=said.numpy(),
            place=numbers(place),
            sample=numbers(sample),
            mask=data["mask"].numpy(),
            **action_of(data["action"]),
            log_prob=data["log_prob"].numpy(),
            value=data["value"].numpy(),
            advantage=data["advantage"].numpy(),
            returns=data["returns"].numpy(),
            mirrored=None if mirrored is None else mirrored.view(torch.uint8).numpy(),
            clip=knobs.clip,
            value_clip=knobs.value_clip,
            value_weight=knobs.value_weight,
            entropy=knobs.entropy,
            grad=grad.numpy(),
        )
        passes.learn(grad)
        rows, plain = len(said), max(plain, 1.0)
        means = (policy / rows, value / rows, entropy / rows, moved / plain, clipped / plain)
        shown = dict(zip(self.shown, means, strict=True))
        total = means[0] + knobs.value_weight * means[1] - knobs.entropy * means[2]
        if "example_obs" in minibatch.examples:
            shown[SEEN] = self._learn_examples(minibatch.examples)
            total += float(minibatch.examples["example_weight"]) * shown[SEEN]
        return total, shown

    def _learn_examples(self, part: Mapping[str, Tensor]) -> float:
        """Add the gradient of examples; return their loss."""
        obs = part["example_obs"]
        if not len(obs):
            return 0.0
        passes = self.native.passes()
        said = passes.said(obs, keep=True)
        grad = self._room(said)
        missed: float = self.work.example_loss(
            said=said.numpy(),
            mask=part["example_mask"].numpy(),
            **action_of(part["example_action"]),
            weight=float(part["example_weight"]),
            grad=grad.numpy(),
        )
        passes.learn(grad, add=True)
        return missed / len(obs)

    def _summed(
        self, minibatch: Minibatch, knobs: Knobs, together: Together
    ) -> tuple[float, dict[str, float]]:
        """Loss and gradient of everybody's rows, who may be torch's."""
        packed, told = self.native.packed, torch.zeros(len(self.shown) + 1)
        if len(minibatch):
            total, shown = self._learn(minibatch, knobs)
            told = torch.tensor([total, *(shown[name] for name in self.shown)])
        else:
            packed.grad.zero_()
        grads = list(packed.views(packed.grad).values())
        means, told = mean_of_all(grads, told, len(minibatch), together)
        for grad, mean in zip(grads, means, strict=True):
            grad.copy_(mean)
        total, *rest = told.tolist()
        return total, dict(zip(self.shown, rest, strict=True))

    def _room(self, like: Tensor) -> Tensor:
        """Where the gradient of what was said goes."""
        if len(self._grad) < len(like):
            self._grad = torch.empty_like(like)
        return self._grad[: len(like)]

    # As torch's Adam is saved, so that either goes on from the other

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's memory of every parameter; nothing before the first step."""
        if not self.steps:
            return {}
        packed, found = self.native.packed, dict[str, Tensor]()
        views = [packed.views(array).values() for array in (self.mean, self.square)]
        for index, (mean, square) in enumerate(zip(*views, strict=True)):
            kept = {"step": torch.tensor(float(self.steps)), "exp_avg": mean, "exp_avg_sq": square}
            found |= {f"{index}.{name}": value.clone() for name, value in kept.items()}
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with `tensors` of another moment."""
        for name, array in (("exp_avg", self.mean), ("exp_avg_sq", self.square)):
            array.zero_()
            for index, view in enumerate(self.native.packed.views(array).values()):
                if tensors:
                    view.copy_(tensors[f"{index}.{name}"])
        self.steps = int(tensors["0.step"]) if tensors else 0


def located(
    minibatch: Minibatch,
) -> tuple[Mapping[str, Tensor], Tensor | None, Tensor | None]:
    """What is known of samples, which of them are meant, and where their obs and mask lie."""
    if minibatch.turn:  # their images lie nowhere yet
        return minibatch.rows(), None, None
    data, picked = minibatch.data, minibatch.picked
    return data, picked, data[PLACE][picked] if PLACE in data else picked


def action_of(action: Tensor) -> dict[str, Any]:
    """The actions of rows as the native loss takes them."""
    drawn = action.is_floating_point()
    return {"action": None if drawn else action.numpy(), "drawn": action.numpy() if drawn else None}


def numbers(index: Tensor | None) -> Any:
    """An index as the native loss takes it."""
    return None if index is None else index.numpy()
