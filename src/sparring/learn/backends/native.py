"""Optimizer steps of PPO and of cloning in native code: forward, loss, backward, clipping, Adam.

A minibatch is a handful of calls, and rows are read where they lie. `backends.torch` with the loss
of the page is the reference, and what runs where `Forward.why_torch` gives a reason; tests hold
both equal. The sums have one order each: any number of threads gives the same bits.
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
from sparring.learn.minibatches import PLACE, Minibatch, Shown
from sparring.learn.plan import PPOHparams
from sparring.learn.terms import NativeLoss, OwnRows, Term, gradients, own_rows, shown_of
from sparring.learn.together import Together, average
from sparring.learn.transforms import MIRRORED
from sparring.nets.net import POLICY, VALUE
from sparring.nets.run.native import NativeNet, PackedAdam

Floats = npt.NDArray[np.float32]
Known = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64] | None, dict[str, Any]]
"""Observations, where those and the masks of each sample lie, and what the loss is made of."""


class NativeBackend:
    """Steps of one network."""

    by_place = True

    def __init__(
        self, native: NativeNet, *, eps: float, shown: Sequence[str], terms: Sequence[Term] = ()
    ) -> None:
        """Improve a network.

        eps: Adam's. shown: what curves call the losses of PPO. terms: beside them; may grow later.
        """
        heads = native.net.heads
        assert list(heads)[:2] == [POLICY, VALUE]
        self.native, self.work, self.shown, self.terms = native, native.work, shown, terms
        self.names, self.judged_width = shown, heads[POLICY] + heads[VALUE]
        """PPO's own losses, and the columns of the heads that they are about."""
        packed = native.packed
        self.adam = PackedAdam(packed, eps=eps, native=native.work, tell=native.changed)
        self._grad = packed.grad.numpy()
        self._rooms: Floats = np.empty((2, 0, 1), np.float32)
        self._judged_rooms: Floats = np.empty((2, 0, 1), np.float32)
        self._data: Mapping[str, Tensor] = {}
        self._known: Known = (np.empty(0, np.uint8), None, {})

    def step(
        self, minibatch: Minibatch, hparams: PPOHparams, loss: Loss, together: Together
    ) -> Shown:
        """One optimizer step on PPO's loss; `loss` is its reference and not called."""
        if together.size == 1:
            total, shown = self._learn(minibatch, hparams)
        else:
            total, shown = self._averaged(minibatch, hparams, together)
        self.adam.lr, norm = hparams.lr, math.nan
        if math.isfinite(total):
            norm = self.adam.descend(hparams.max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(total, norm, hparams.lr)
        return {**shown, "grad_norm": norm}

    def _learn(self, minibatch: Minibatch, hparams: PPOHparams) -> tuple[float, dict[str, float]]:
        """Fill the gradient; return the loss and what curves show of it."""
        data = minibatch.rows() if minibatch.turning else minibatch.data
        if data is not self._data:  # as a rule all minibatches of an update have the same
            self._data, self._known = data, known_of(data)
        obs, places, known = self._known
        picked = None if minibatch.turning else minibatch.picked.numpy()
        place = picked if places is None or picked is None else places[picked]
        layers, rows = self.native.layers(), len(minibatch.picked)
        said, grad = self._room(rows)
        layers.forward(obs, place, said, True)
        judged, judged_grad = self._judged(said, grad)
        policy, value, entropy, moved, clipped, plain = self.work.policy_loss(
            said=judged,
            place=place,
            sample=picked,
            **known,
            clip=hparams.clip,
            value_clip=hparams.value_clip,
            value_weight=hparams.value_weight,
            entropy=hparams.entropy,
            grad=judged_grad,
        )
        self._widen(judged_grad, grad)
        terms = [term for term in self.terms if term.weight]
        about_samples = [term for term in terms if not isinstance(term, OwnRows)]
        found: dict[str, float] = {}
        if about_samples:
            seen = data if minibatch.turning else minibatch
            found = self._add_terms(about_samples, seen, said, grad)
        layers.backward(grad, self._grad, None, False)
        for term in terms:
            if isinstance(term, OwnRows):
                found |= self._learn_own(term, own_rows(term, minibatch.own))
        plain = max(plain, 1.0)
        means = (policy / rows, value / rows, entropy / rows, moved / plain, clipped / plain)
        shown = dict(zip(self.names, means, strict=True)) | found
        total = means[0] + hparams.value_weight * means[1] - hparams.entropy * means[2]
        total += sum(term.weight * found[term.name] for term in terms)
        return total, shown

    def _judged(self, said: Floats, grad: Floats) -> tuple[Floats, Floats]:
        """What policy and value say, and room for the gradient of that: in one piece."""
        if said.shape[1] == self.judged_width:
            return said, grad
        rows = len(said)
        if rows > self._judged_rooms.shape[1]:
            self._judged_rooms = np.empty((2, rows, self.judged_width), np.float32)
        judged, judged_grad = self._judged_rooms[0, :rows], self._judged_rooms[1, :rows]
        judged[:] = said[:, : self.judged_width]
        return judged, judged_grad

    def _widen(self, judged_grad: Floats, grad: Floats) -> None:
        """Put the gradient of policy and value where that of all heads goes back from."""
        if judged_grad is not grad:
            grad[:, : self.judged_width], grad[:, self.judged_width :] = judged_grad, 0.0

    def _add_terms(
        self, terms: Sequence[Term], rows: Mapping[str, Tensor], said: Floats, grad: Floats
    ) -> dict[str, float]:
        split = self.native.split
        losses, by_head = gradients(terms, split(torch.from_numpy(said)), rows)
        into = split(torch.from_numpy(grad))
        for name, part in by_head.items():
            into[name].add_(part)
        return {name: float(loss) for name, loss in losses.items()}

    def _learn_own(self, term: Term, rows: Mapping[str, Tensor]) -> dict[str, float]:
        """Go back from a term's own rows; return what curves show of it."""
        obs = rows["obs"]
        if not len(obs):
            return dict.fromkeys(shown_of([term]), 0.0)
        layers = self.native.layers()
        said, grad = self._room(len(obs))
        layers.forward(obs.numpy(), None, said, True)
        if isinstance(term, NativeLoss):
            judged, judged_grad = self._judged(said, grad)
            found = {term.name: term.native_loss(self.work, judged, rows, judged_grad)}
            self._widen(judged_grad, grad)
        else:
            grad[:] = 0.0
            found = self._add_terms([term], rows, said, grad)
        layers.backward(grad, self._grad, None, True)
        return found

    def _averaged(
        self, minibatch: Minibatch, hparams: PPOHparams, together: Together
    ) -> tuple[float, dict[str, float]]:
        packed, losses = self.native.packed, torch.zeros(len(self.shown) + 1)
        if len(minibatch.picked):
            total, shown = self._learn(minibatch, hparams)
            losses[:] = torch.tensor([total, *(shown[name] for name in self.shown)])
        else:
            packed.grad.zero_()
        grads = list(packed.views(packed.grad).values())
        average(grads, losses, len(minibatch.picked), together)
        total, *rest = losses.tolist()
        return total, dict(zip(self.shown, rest, strict=True))

    def _room(self, rows: int) -> tuple[Floats, Floats]:
        if rows > self._rooms.shape[1]:
            self._rooms = np.empty((2, rows, sum(self.native.net.heads.values())), np.float32)
        return self._rooms[0, :rows], self._rooms[1, :rows]

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's state of every parameter, as torch's is saved."""
        return self.adam.tensors()

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with `tensors` of another moment, of either."""
        self.adam.load(tensors)


def known_of(data: Mapping[str, Tensor]) -> Known:
    """Read tensors as native code takes them, without copies."""
    action, mirrored = data["action"], data.get(MIRRORED)
    names = ("mask", "log_prob", "value", "advantage", "returns")
    known: dict[str, Any] = {name: data[name].numpy() for name in names}
    known["action"], known["drawn"] = action.numpy(), None
    if action.is_floating_point():
        known["action"], known["drawn"] = None, action.numpy()
    known["mirrored"] = None if mirrored is None else mirrored.view(torch.uint8).numpy()
    return data["obs"].numpy(), data[PLACE].numpy() if PLACE in data else None, known


class NativeImitation:
    """Reads decisions where they lie; passes, losses and Adam are native."""

    def __init__(self, native: NativeNet, *, eps: float) -> None:
        self.native = native
        self.adam = PackedAdam(native.packed, eps=eps, native=native.work, tell=native.changed)
        self._grad = native.packed.grad.numpy()
        self._rooms = np.empty((2, 0, 1), np.float32)

    def step(
        self,
        decisions: Decisions,
        picked: Places,
        turned: Mapping[str, Tensor],
        *,
        unit: float,
        lr: float,
        value_weight: float,
        max_grad_norm: float,
    ) -> tuple[float, float]:
        """Make one step of the optimizer on some decisions; return the losses of both heads.

        turned: their rows, where transforms changed them. unit: of values.
        """
        net = self.native.net
        actions, rows = net.inputs.rules.actions, len(picked)
        if turned:
            obs, place = turned["obs"].numpy(), None
            action, mask = turned["action"].numpy(), turned["mask"].numpy()
        else:
            obs, place = decisions.obs, picked
            action, mask = decisions.action[picked], unpacked(decisions.legal[picked], actions)
        if rows > self._rooms.shape[1]:
            self._rooms = np.empty((2, rows, actions + 1), np.float32)
        said, grad = self._rooms[:, :rows]
        layers = self.native.layers()
        layers.forward(obs, place, said, True)
        missed = self.native.work.example_loss(
            said=said, mask=mask, action=action, drawn=None, weight=1.0, grad=grad
        )
        returns = decisions.returns[picked] / unit
        paid = np.isfinite(returns)
        off = np.where(paid, said[:, -1] - returns, 0.0)
        count = max(int(paid.sum()), 1)
        grad[:, -1] = value_weight * 2 * off / count
        layers.backward(grad, self._grad, None, False)
        moves, values = missed / rows, float(np.sum(off**2)) / count
        self.adam.lr = lr
        total, norm = moves + value_weight * values, math.nan
        if math.isfinite(total):
            norm = self.adam.descend(max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(total, norm, lr)
        return moves, values
