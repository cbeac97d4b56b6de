"""What a GPU does while a learner learns: kernels, copies, and nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from sparring.kernels import HEADERS
from sparring.speed.evidence import Kernel

IDLE = "idle"
OURS = {
    "pool": "games",
    "act": "sampling",
    "rollout": "advantages",
    "goals": "advantages",
    "replay": "replay",
    "ppo": "loss",
    "net": "network",
    "grouped": "network",
    "optimizer": "optimizer",
}
"""What the kernels of a file in csrc/cuda are for."""
PRODUCT = "grouped_product"
"""The one among them that multiplies."""
OTHERS = (
    ("copies", r"memcpy|memset|copy|cat_?array|fill"),
    ("products", r"gemm|gemv|cutlass|cublas|nvjet|xmma|wgmma|splitk|conv|cudnn|wgrad|dgrad"),
    ("optimizer", r"adam|multi_tensor"),
    ("sampling", r"philox|distribution|multinomial|random|exponential"),
    ("loss", r"softmax|reduce|norm"),
)
"""What the kernels of libraries are for, by their names; the first that fits."""
REST = "elementwise"
GLOBAL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')


@dataclass(frozen=True)
class Launch:
    """A kernel or a copy, once."""

    name: str
    start_us: float
    end_us: float


@dataclass(frozen=True)
class GpuTime:
    """What a GPU did in some seconds."""

    shares: Mapping[str, float]
    """Of the time, by kind, with what it idled; where kernels overlap the first one counts."""
    kernels: tuple[Kernel, ...]

    def plain(self) -> dict[str, Any]:
        return {"shares": dict(self.shares), "kernels": [asdict(one) for one in self.kernels]}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> GpuTime:
        return cls(plain["shares"], tuple(Kernel(**one) for one in plain["kernels"]))


def summed(launches: Iterable[Launch], seconds: float) -> GpuTime:
    """Add up what was seen in so many seconds."""
    times: dict[str, float] = {}
    counts: dict[str, int] = {}
    by_kind: dict[str, float] = {}
    free_us = float("-inf")
    for one in sorted(launches, key=lambda launch: launch.start_us):
        times[one.name] = times.get(one.name, 0.0) + (one.end_us - one.start_us) / 1e6
        counts[one.name] = counts.get(one.name, 0) + 1
        alone = max(one.end_us - max(one.start_us, free_us), 0.0)
        free_us = max(free_us, one.end_us)
        kind = kind_of(one.name)
        by_kind[kind] = by_kind.get(kind, 0.0) + alone / 1e6
    whole = max(seconds, sum(by_kind.values()), 1e-9)
    shares = {kind: spent / whole for kind, spent in by_kind.items()}
    shares = dict(sorted(shares.items(), key=lambda pair: -pair[1]))
    shares[IDLE] = max(1 - sum(shares.values()), 0.0)
    found = [Kernel(name, kind_of(name), times[name], counts[name]) for name in times]
    return GpuTime(shares, tuple(sorted(found, key=lambda one: -one.seconds)))


def kind_of(name: str) -> str:
    if name in ours():
        return ours()[name]
    low = name.lower()
    return next((kind for kind, words in OTHERS if re.search(words, low)), REST)


@lru_cache
def ours() -> dict[str, str]:
    """Return what our own kernels are for, by name."""
    found = {
        name: OURS.get(file.stem, REST)
        for file in sorted((HEADERS / "cuda").glob("*.cuh"))
        for name in GLOBAL.findall(file.read_text())
    }
    return {**found, PRODUCT: "products"}


class Recorder:
    """Records what the GPU does between two updates of a learner, by torch's profiler."""

    def __init__(self) -> None:
        from torch.profiler import ProfilerActivity, profile

        self._profile = profile(activities=[ProfilerActivity.CUDA])

    def start(self) -> None:
        import torch

        torch.cuda.synchronize()
        self._profile.start()

    def stop(self) -> Sequence[Launch]:
        """End, and return everything that ran on the GPU."""
        import torch
        from torch._C._autograd import DeviceType

        torch.cuda.synchronize()
        self._profile.stop()
        return [
            Launch(event.name, event.time_range.start, event.time_range.end)
            for event in self._profile.events() or ()  # type: ignore[no-untyped-call]
            if event.device_type == DeviceType.CUDA
        ]


def prepare() -> None:
    """Load the profiler's library before any graph is captured: it cannot see into older ones."""
    import torch

    recorder = Recorder()
    recorder.start()
    torch.zeros(8, device="cuda").add_(1)
    recorder.stop()
