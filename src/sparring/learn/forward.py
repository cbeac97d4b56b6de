"""How a network is run by learners: where it lives, and in which numbers."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig
from sparring.errors import SparringWarning
from sparring.nets.custom import CustomNet
from sparring.nets.net import HeadOutputs, Net
from sparring.nets.recurrent import RecurrentNet
from sparring.nets.run.native import (
    BF16,
    FLOAT32,
    TORCH,
    NativeNet,
    native_unsupported_reason,
    resolve_cpu,
)
from sparring.nets.run.trace import describe_difference, sample_rows


class Forward:
    """A network on its device, in bf16 if the configuration says so."""

    def __init__(self, net: Net, device: torch.device, collect: CollectConfig) -> None:
        self.net, self.device = net, device
        on_gpu = device.type == "cuda"
        self.arithmetic = (
            FLOAT32 if on_gpu else resolve_cpu(collect.cpu, perceptron=net.config.perceptron)
        )
        self.bf16 = collect.bf16 if on_gpu else self.arithmetic == BF16 and net.has_convolutions
        self.lean: Callable[[Tensor], list[HeadOutputs]] | None = None
        """The same with fewer calls, where nothing is learned from what it says; that is good
        until it is asked again."""
        self.native: NativeNet | None = None
        """What computes it, if that is native."""
        self.remembers = bool(net.config.memory)
        """Whether `memory` has something to say."""
        self._unlike = ""
        """How native passes of it failed to say what it says itself."""

    def why_torch(self) -> str:
        """Say what keeps the network from being computed natively, "" if nothing does."""
        if self.device.type == "cpu" and self.arithmetic == TORCH:
            return "collect.cpu is torch"
        return self._unlike or native_unsupported_reason(self.net, self.device)

    def go_native(self, threads: int) -> NativeNet | None:
        """Compute natively from now on if that can be; the network must not be moved any more."""
        if self.why_torch():
            return None
        native = NativeNet(self.net, threads=threads, arithmetic=self.arithmetic)
        if isinstance(self.net, CustomNet) and (why := self._differs(native)):
            warnings.warn(
                SparringWarning(f"{self.net.setting} is run by torch: {why}"), stacklevel=3
            )
            self._unlike = why
            return None
        self.native, self.lean = native, native.forward_heads
        return self.native

    def _differs(self, native: NativeNet) -> str:
        """Hold native passes of somebody's own network against the network itself."""
        rows = sample_rows(self.net.inputs)
        (said,) = native.forward_heads(rows)
        return describe_difference(self.net, said, rows, bf16=self.arithmetic == BF16)

    def __call__(self, obs: Tensor) -> HeadOutputs:
        if self.lean and not torch.is_grad_enabled():
            return self.lean(obs)[0]
        on_device = obs.to(self.device, non_blocking=True)
        heads: HeadOutputs
        if not self.bf16:  # the context alone would cost a small batch a twentieth of its time
            heads = self.net(on_device)
            return heads
        with torch.autocast(self.device.type, torch.bfloat16):
            heads = self.net(on_device)
        return heads

    def memory(
        self, obs: npt.NDArray[np.uint8], heads: HeadOutputs
    ) -> npt.NDArray[np.uint8] | None:
        """What is remembered of the rows' seats, as a pool keeps it; None: nothing.

        heads: what was said about the rows.
        """
        if not self.remembers:
            return None
        held = self.net.next_memory(torch.from_numpy(obs), heads)
        return None if held is None else bytes_of(held)

    def unroll(self, obs: Tensor, fresh: Tensor) -> HeadOutputs:
        """Return what a recurrent network says about decisions in a row, see `RecurrentNet`."""
        assert isinstance(self.net, RecurrentNet)
        rounding = torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)
        with rounding:
            return self.net.unroll(obs, fresh)

    @property
    def switches(self) -> bool:
        """Whether `best_matmul` makes a difference: on Arm CPUs, but not for convolutions."""
        on_arm = self.device.type == "cpu" and platform.machine() == "aarch64"
        return on_arm and not self.net.has_convolutions

    @contextmanager
    def best_matmul(self) -> Iterator[None]:
        """On Arm CPUs oneDNN costs products 4 to 6 % here against the BLAS that torch has besides.

        Convolutions are faster with it.
        """
        before, switch = bool(torch.backends.mkldnn.enabled), self.switches
        if switch:
            set_onednn(False)
        try:
            yield
        finally:
            if switch:
                set_onednn(before)


def bytes_of(memory: Tensor) -> npt.NDArray[np.uint8]:
    """Numbers that are remembered as a pool keeps them [rows, bytes]."""
    held: npt.NDArray[np.float32] = memory.detach().float().cpu().contiguous().numpy()
    return held.view(np.uint8)


def set_onednn(enabled: bool) -> None:
    """Switch oneDNN; torch warns about GPUs of another maker on the way, which helps nobody."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.backends.mkldnn.set_flags(enabled)  # type: ignore[no-untyped-call]
