"""Optimizer steps of PPO and behavior cloning in native code: forward, loss, backward, clip, Adam.

`NativeAutograd` has native passes and Adam under a loss that torch computes.
Rows are read in place. `backends.torch` is the reference, and runs where `Forward.why_torch` gives
a reason; tests compare both. Sums have a fixed order: any number of threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.learn.backends import Loss, diverged
from sparring.learn.demonstrations import Decisions, Places, unpacked
from sparring.learn.forward import Forward
from sparring.learn.minibatches import PLACE, Metrics, Minibatch
from sparring.learn.plan import PPOHparams
from sparring.learn.process_group import ProcessGroup, average
from sparring.learn.terms import ExtraRows, NativeLoss, Term, extra_rows, gradients, metric_names
from sparring.learn.transforms import MIRRORED
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.run.native import NativeNet, PackedAdam

Floats = npt.NDArray[np.float32]
LossInputs = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64] | None, dict[str, Any]]
"""Observations, the row of each sample in observations and masks, and arguments of the loss."""


class NativeBackend:
    """PPO's loss and Adam of one network."""

    by_place = True

    def __init__(
        self,
        native: NativeNet,
        *,
        eps: float,
        metric_names: Sequence[str],
        terms: Sequence[Term] = (),
    ) -> None:
        """Optimize a network.

        eps: of Adam. metric_names: of PPO's loss. terms: further loss terms; the list may grow.
        """
        heads = native.net.heads
        assert list(heads)[:2] == [POLICY, VALUE]
        self.native, self.work, self.metric_names, self.terms = (
            native,
            native.work,
            metric_names,
            terms,
        )
        self.loss_names, self.main_width = metric_names, heads[POLICY] + heads[VALUE]
        """PPO's metrics, and the width of policy and value outputs."""
        packed = native.packed
        self.adam = PackedAdam(packed, eps=eps, native=native.work, on_change=native.mark_changed)
        self._grad = packed.grad.numpy()
        self._buffers: Floats = np.empty((2, 0, 1), np.float32)
        self._main_buffers: Floats = np.empty((2, 0, 1), np.float32)
        self._data: Mapping[str, Tensor] = {}
        self._inputs: LossInputs = (np.empty(0, np.uint8), None, {})

    def step(
        self, minibatch: Minibatch, hparams: PPOHparams, loss: Loss, process_group: ProcessGroup
    ) -> Metrics:
        """Make one optimizer step on PPO's loss; `loss`, the reference, is not called."""
        if process_group.size == 1:
            total, metrics = self._learn(minibatch, hparams)
        else:
            total, metrics = self._averaged(minibatch, hparams, process_group)
        self.adam.lr, norm = hparams.lr, math.nan
        if math.isfinite(total):
            norm = self.adam.clip_and_step(hparams.max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(total, norm, hparams.lr)
        return {**metrics, "grad_norm": norm}

    def _learn(self, minibatch: Minibatch, hparams: PPOHparams) -> tuple[float, dict[str, float]]:
        """Fill the gradient; return the loss and its metrics."""
        data = minibatch.rows() if minibatch.transforms else minibatch.data
        if data is not self._data:  # usually all minibatches of an update share it
            self._data, self._inputs = data, loss_inputs(data)
        obs, sample_rows, arguments = self._inputs
        picked = None if minibatch.transforms else minibatch.picked.numpy()
        rows_at = picked if sample_rows is None or picked is None else sample_rows[picked]
        layers, rows = self.native.layers(), len(minibatch.picked)
        outputs, grad = self._buffers_for(rows)
        layers.forward(obs, rows_at, outputs, True)
        main_outputs, main_grad = self._main_outputs(outputs, grad)
        policy, value, entropy, kl, clipped, unmirrored = self.work.policy_loss(
            outputs=main_outputs,
            index=rows_at,
            sample=picked,
            **arguments,
            clip=hparams.clip,
            value_clip=hparams.value_clip,
            value_weight=hparams.value_weight,
            entropy=hparams.entropy,
            grad=main_grad,
        )
        self._copy_main_grad(main_grad, grad)
        terms = [term for term in self.terms if term.weight]
        on_samples = [term for term in terms if not isinstance(term, ExtraRows)]
        term_metrics: dict[str, float] = {}
        if on_samples:
            sampled = data if minibatch.transforms else minibatch
            term_metrics = self._add_terms(on_samples, sampled, outputs, grad)
        layers.backward(grad, self._grad, None, False)
        for term in terms:
            if isinstance(term, ExtraRows):
                term_metrics |= self._learn_extra(term, extra_rows(term, minibatch.extra))
        unmirrored = max(unmirrored, 1.0)
        means = (policy / rows, value / rows, entropy / rows, kl / unmirrored, clipped / unmirrored)
        metrics = dict(zip(self.loss_names, means, strict=True)) | term_metrics
        total = means[0] + hparams.value_weight * means[1] - hparams.entropy * means[2]
        total += sum(term.weight * term_metrics[term.name] for term in terms)
        return total, metrics

    def _main_outputs(self, outputs: Floats, grad: Floats) -> tuple[Floats, Floats]:
        """Return policy and value outputs and a buffer for their gradient, both contiguous."""
        if outputs.shape[1] == self.main_width:
            return outputs, grad
        rows = len(outputs)
        if rows > self._main_buffers.shape[1]:
            self._main_buffers = np.empty((2, rows, self.main_width), np.float32)
        main_outputs, main_grad = self._main_buffers[0, :rows], self._main_buffers[1, :rows]
        main_outputs[:] = outputs[:, : self.main_width]
        return main_outputs, main_grad

    def _copy_main_grad(self, main_grad: Floats, grad: Floats) -> None:
        """Copy the gradient of policy and value into that of all heads."""
        if main_grad is not grad:
            grad[:, : self.main_width], grad[:, self.main_width :] = main_grad, 0.0

    def _add_terms(
        self, terms: Sequence[Term], rows: Mapping[str, Tensor], outputs: Floats, grad: Floats
    ) -> dict[str, float]:
        split = self.native.split
        losses, by_head = gradients(terms, split(torch.from_numpy(outputs)), rows)
        grad_by_head = split(torch.from_numpy(grad))
        for name, part in by_head.items():
            grad_by_head[name].add_(part)
        return {name: float(loss) for name, loss in losses.items()}

    def _learn_extra(self, term: Term, rows: Mapping[str, Tensor]) -> dict[str, float]:
        """Add the gradient of a term on its extra rows; return its metrics."""
        obs = rows["obs"]
        if not len(obs):
            return dict.fromkeys(metric_names([term]), 0.0)
        layers = self.native.layers()
        outputs, grad = self._buffers_for(len(obs))
        layers.forward(obs.numpy(), None, outputs, True)
        if isinstance(term, NativeLoss):
            main_outputs, main_grad = self._main_outputs(outputs, grad)
            term_metrics = {term.name: term.native_loss(self.work, main_outputs, rows, main_grad)}
            self._copy_main_grad(main_grad, grad)
        else:
            grad[:] = 0.0
            term_metrics = self._add_terms([term], rows, outputs, grad)
        layers.backward(grad, self._grad, None, True)
        return term_metrics

    def _averaged(
        self, minibatch: Minibatch, hparams: PPOHparams, process_group: ProcessGroup
    ) -> tuple[float, dict[str, float]]:
        packed, losses = self.native.packed, torch.zeros(len(self.metric_names) + 1)
        if len(minibatch.picked):
            total, metrics = self._learn(minibatch, hparams)
            losses[:] = torch.tensor([total, *(metrics[name] for name in self.metric_names)])
        else:
            packed.grad.zero_()
        grads = list(packed.views(packed.grad).values())
        average(grads, losses, len(minibatch.picked), process_group)
        total, *rest = losses.tolist()
        return total, dict(zip(self.metric_names, rest, strict=True))

    def _buffers_for(self, rows: int) -> tuple[Floats, Floats]:
        if rows > self._buffers.shape[1]:
            self._buffers = np.empty((2, rows, sum(self.native.net.heads.values())), np.float32)
        return self._buffers[0, :rows], self._buffers[1, :rows]

    def tensors(self) -> dict[str, Tensor]:
        return self.adam.tensors()

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.adam.load(tensors)


class NativeAutograd:
    """Native passes and Adam of one network, under a loss that torch computes from its heads."""

    by_place = False

    def __init__(self, forward: Forward, *, eps: float) -> None:
        """Optimize a network that has native passes. eps: of Adam."""
        assert forward.native
        native, forward.native_grad = forward.native, True
        self.metric_names: Sequence[str] = ()
        self.packed = native.packed
        self.adam = PackedAdam(
            native.packed, eps=eps, native=native.work, on_change=native.mark_changed
        )

    def step(
        self, minibatch: Minibatch, hparams: Any, loss: Loss, process_group: ProcessGroup
    ) -> Metrics:
        return self.step_on(minibatch.rows(), hparams, loss, process_group)

    def step_on(
        self, rows: Mapping[str, Tensor], hparams: Any, loss: Loss, process_group: ProcessGroup
    ) -> Metrics:
        self.packed.grad.zero_()
        metrics: Mapping[str, Tensor] = {}
        total = torch.zeros(())
        if process_group.size == 1 or len(rows["obs"]):
            total, metrics = loss(rows, hparams)
            total.backward()  # type: ignore[no-untyped-call]
        if process_group.size > 1:
            total, metrics = self._averaged(total, metrics, len(rows["obs"]), process_group)
        self.adam.lr, norm, value = hparams.lr, math.nan, float(total.detach())
        if math.isfinite(value):
            norm = self.adam.clip_and_step(hparams.max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(value, norm, hparams.lr)
        return {**{name: one.detach() for name, one in metrics.items()}, "grad_norm": norm}

    def _averaged(
        self, total: Tensor, metrics: Mapping[str, Tensor], rows: int, process_group: ProcessGroup
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Average gradient, loss and metrics over replicas, weighted by their rows."""
        names = self.metric_names
        values = [total, *(metrics[name] for name in names)] if rows else []
        losses = torch.stack([one.detach() for one in values] or [total] * (len(names) + 1))
        grads = list(self.packed.views(self.packed.grad).values())
        average(grads, losses, rows, process_group)
        return losses[0], dict(zip(names, losses[1:], strict=True))

    def tensors(self) -> dict[str, Tensor]:
        return self.adam.tensors()

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.adam.load(tensors)


def loss_inputs(data: Mapping[str, Tensor]) -> LossInputs:
    """Return the tensors of a minibatch as numpy views for native code."""
    action, mirrored = data["action"], data.get(MIRRORED)
    loss_names = ("mask", "log_prob", "value", "advantage", "returns")
    arguments: dict[str, Any] = {name: data[name].numpy() for name in loss_names}
    arguments["action"], arguments["box_action"] = action.numpy(), None
    if action.is_floating_point():
        arguments["action"], arguments["box_action"] = None, action.numpy()
    arguments["mirrored"] = None if mirrored is None else mirrored.view(torch.uint8).numpy()
    return data["obs"].numpy(), data[PLACE].numpy() if PLACE in data else None, arguments


class NativeImitation:
    """Optimizer steps of behavior cloning; reads demonstrations in place."""

    def __init__(self, native: NativeNet, *, eps: float) -> None:
        self.native = native
        self.adam = PackedAdam(
            native.packed, eps=eps, native=native.work, on_change=native.mark_changed
        )
        self._grad = native.packed.grad.numpy()
        self._buffers = np.empty((2, 0, 1), np.float32)

    def step(
        self,
        decisions: Decisions,
        picked: Places,
        transformed: Mapping[str, Tensor],
        *,
        value_scale: float,
        lr: float,
        value_weight: float,
        max_grad_norm: float,
    ) -> tuple[float, float]:
        """Make one optimizer step on some decisions; return the losses of policy and value.

        transformed: their rows, if transforms changed them. value_scale: of the value head.
        """
        net = self.native.net
        actions, rows = net.inputs.rules.actions, len(picked)
        if transformed:
            obs, rows_at = transformed["obs"].numpy(), None
            action, mask = transformed["action"].numpy(), transformed["mask"].numpy()
        else:
            obs, rows_at = decisions.obs, picked
            action, mask = decisions.action[picked], unpacked(decisions.legal[picked], actions)
        if rows > self._buffers.shape[1]:
            self._buffers = np.empty((2, rows, actions + 1), np.float32)
        outputs, grad = self._buffers[:, :rows]
        layers = self.native.layers()
        layers.forward(obs, rows_at, outputs, True)
        cross_entropy = self.native.work.example_loss(
            outputs=outputs, mask=mask, action=action, box_action=None, weight=1.0, grad=grad
        )
        returns = decisions.returns[picked] / value_scale
        finite = np.isfinite(returns)
        error = np.where(finite, outputs[:, -1] - returns, 0.0)
        count = max(int(finite.sum()), 1)
        grad[:, -1] = value_weight * 2 * error / count
        layers.backward(grad, self._grad, None, False)
        policy_loss, value_loss = cross_entropy / rows, float(np.sum(error**2)) / count
        self.adam.lr = lr
        total, norm = policy_loss + value_weight * value_loss, math.nan
        if math.isfinite(total):
            norm = self.adam.clip_and_step(max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(total, norm, lr)
        return policy_loss, value_loss
