"""Forward passes of a learner's network: device, precision, native code."""

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
    """A network on its device, in bf16 if configured."""

    def __init__(self, net: Net, device: torch.device, collect: CollectConfig) -> None:
        self.net, self.device = net, device
        on_gpu = device.type == "cuda"
        self.arithmetic = (
            FLOAT32 if on_gpu else resolve_cpu(collect.cpu, perceptron=net.config.perceptron)
        )
        self.bf16 = collect.bf16 if on_gpu else self.arithmetic == BF16 and net.has_convolutions
        self.lean: Callable[[Tensor], list[HeadOutputs]] | None = None
        """A faster pass without gradients, whose outputs are valid until the next call."""
        self.native: NativeNet | None = None
        """Native code of the network, if it is in use."""
        self.native_grad = False
        """Whether passes with gradients are native too: `NativeAutograd` makes the steps."""
        self.has_memory = bool(net.config.memory)
        self._mismatch = ""
        """How outputs of native passes differ from the network's."""

    def why_torch(self) -> str:
        """Return why the network cannot run in native code, "" if it can."""
        if self.device.type == "cpu" and self.arithmetic == TORCH:
            return "collect.cpu is torch"
        return self._mismatch or native_unsupported_reason(self.net, self.device)

    def go_native(self, threads: int) -> NativeNet | None:
        """Use native code from now on if possible; the network must stay on its device."""
        if self.why_torch():
            return None
        native = NativeNet(self.net, threads=threads, arithmetic=self.arithmetic)
        if isinstance(self.net, CustomNet) and (reason := self._differs(native)):
            warnings.warn(
                SparringWarning(f"{self.net.setting} is run by torch: {reason}"), stacklevel=3
            )
            self._mismatch = reason
            return None
        self.native, self.lean = native, native.forward_heads
        return self.native

    def _differs(self, native: NativeNet) -> str:
        """Compare native passes of a custom network with the network."""
        rows = sample_rows(self.net.inputs)
        (outputs,) = native.forward_heads(rows)
        return describe_difference(self.net, outputs, rows, bf16=self.arithmetic == BF16)

    def __call__(self, obs: Tensor) -> HeadOutputs:
        if self.lean and not torch.is_grad_enabled():
            return self.lean(obs)[0]
        if self.native_grad and self.native:
            return self.native.forward_with_grad(obs)
        on_device = obs.to(self.device, non_blocking=True)
        heads: HeadOutputs
        if not self.bf16:  # autocast alone costs 5 % of the time of a small batch
            heads = self.net(on_device)
            return heads
        with torch.autocast(self.device.type, torch.bfloat16):
            heads = self.net(on_device)
        return heads

    def memory(
        self, obs: npt.NDArray[np.uint8], heads: HeadOutputs
    ) -> npt.NDArray[np.uint8] | None:
        """Return the new memory of the rows' seats as bytes for the pool; None without memory.

        heads: outputs for the rows.
        """
        if not self.has_memory:
            return None
        memory_tensor = self.net.next_memory(torch.from_numpy(obs), heads)
        return None if memory_tensor is None else bytes_of(memory_tensor)

    def unroll(self, obs: Tensor, fresh: Tensor) -> HeadOutputs:
        """Run a recurrent network over segments, see `RecurrentNet.unroll`."""
        assert isinstance(self.net, RecurrentNet)
        autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)
        with autocast:
            return self.net.unroll(obs, fresh)

    @property
    def switches(self) -> bool:
        """Whether `best_matmul` changes anything: on Arm CPUs, except for convolutions."""
        on_arm = self.device.type == "cpu" and platform.machine() == "aarch64"
        return on_arm and not self.net.has_convolutions

    @contextmanager
    def best_matmul(self) -> Iterator[None]:
        """Disable oneDNN for matrix products on Arm CPUs: torch's BLAS is 4 to 6 % faster there.

        Convolutions are faster with oneDNN.
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
    """Return memory as bytes for the pool [rows, bytes]."""
    memory_tensor: npt.NDArray[np.float32] = memory.detach().float().cpu().contiguous().numpy()
    return memory_tensor.view(np.uint8)


def set_onednn(enabled: bool) -> None:
    """Switch oneDNN, without torch's unrelated warning about other vendors' GPUs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.backends.mkldnn.set_flags(enabled)  # type: ignore[no-untyped-call]
