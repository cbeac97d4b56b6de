"""A network whose passes are native, with its weights as they are whenever it is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.nets.arithmetic import BF16
from sparring.nets.hierarchy import HierarchyNet, true_heads
from sparring.nets.native_passes import NativePasses
from sparring.nets.net import POLICY, VALUE, WDL, Heads, Net
from sparring.nets.packed import Packed


class NativeNet:
    """Owns where the weights lie, and the passes. The network must not be moved any more."""

    def __init__(self, net: Net, *, threads: int, arithmetic: str) -> None:
        """Take over a network that `native_passes.why_no_passes` says nothing about."""
        self.net, self.packed, self.threads = net, Packed(net), threads
        self._passes = NativePasses(self.packed, threads=threads, bf16=arithmetic == BF16)
        self.work = _native.Updating(threads)
        """Does what there is to do besides passes."""
        self._weight = self.packed.weight.numpy()
        self._written = [*net.parameters(), self.packed.weight]
        self._seen = -1
        self._said = np.empty((0, 1), np.float32)

    def passes(self) -> NativePasses:
        """The passes, with the weights as they are now.

        Torch counts how often every tensor was written to: whoever loads, rescales or steps is
        noticed. Native code that writes says so, see `changed`.
        """
        seen = sum(tensor._version for tensor in self._written)
        if seen != self._seen:
            self._passes.layers.load(self._weight)
            self._seen = seen
        return self._passes

    def changed(self) -> None:
        """Native code has written other weights."""
        self._seen = -1

    @torch.no_grad()
    def say(self, obs: Tensor) -> list[Heads]:
        """What the heads say about rows, as `Forward.lean` has it; good until the next call."""
        passes = self.passes()
        return [passes.split(passes.said(obs.contiguous(), keep=False))]

    def draw(
        self,
        obs: npt.NDArray[np.uint8],
        mask: npt.NDArray[np.uint8],
        *,
        seed: int,
        rows: npt.NDArray[np.intp],
        rollout: int,
        step: int,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Draw an action for every row, as `Sampler.draw`; with log-probabilities and values.

        Values are in units of the rewards.
        """
        count, box, layers = len(obs), self.net.box, self.passes().layers
        if len(self._said) < count:
            self._said = np.empty((count, sum(self.net.heads.values())), np.float32)
        said = self._said[:count]
        layers.forward(obs, None, said, False)
        action: npt.NDArray[Any] = np.empty((count, box) if box else count, np.float32)
        if not box:
            action = action.view(np.int32)
        log_prob, value = np.empty((2, count), np.float32)
        judged = self.net.heads[POLICY] + self.net.heads[VALUE]
        self.work.draw(
            said=np.ascontiguousarray(said[:, :judged]),
            mask=np.ascontiguousarray(mask),
            seed=seed,
            row_id=rows.astype(np.uint32),
            episode=rollout,
            drawn=step,
            value_unit=float(self.net.value_scale),
            action=None if box else action,
            numbers=action if box else None,
            log_prob=log_prob,
            value=value,
        )
        if WDL in self.net.heads and float(self.net.wdl_blend):
            heads = self._passes.split(torch.from_numpy(said))
            value = self.net.true_values(heads).numpy()
        return action, log_prob, value


class NativeRoles:
    """The same of a network for every role; see `HierarchyNet.forward`."""

    def __init__(self, net: HierarchyNet, parts: dict[str, NativeNet]) -> None:
        """parts: of every role."""
        self.net, self.parts = net, parts

    @torch.no_grad()
    def say(self, obs: Tensor) -> list[Heads]:
        """What the heads say, each about the rows of its role; values in units of rewards."""

        def say(role: str, rows: Tensor | None) -> Heads:
            part = self.parts[role]
            passes = part.passes()
            return true_heads(part.net, passes.split(passes.said(obs, index=rows, keep=False)))

        return [self.net.by_role(obs, say)]
