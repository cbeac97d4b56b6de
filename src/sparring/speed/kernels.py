"""GPU time of a training by kind of work: kernels, copies, idle time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from sparring.kernels import HEADERS
from sparring.speed.evidence import KernelTime

IDLE, TREE_KERNELS = "idle", "trees"
OURS = {
    "pool": "games",
    "act": "sampling",
    "rollout": "advantages",
    "goals": "advantages",
    "replay": "replay",
    "ppo": "loss",
    "gumbel": "loss",
    "search": TREE_KERNELS,
    "net": "network",
    "grouped": "network",
    "optimizer": "optimizer",
}
"""Kind of work of our kernels, by file of csrc/cuda."""
PRODUCT = "grouped_product"
"""The one of our kernels that multiplies matrices."""
OTHERS = (
    ("copies", r"memcpy|memset|copy|cat_?array|fill"),
    ("products", r"gemm|gemv|cutlass|cublas|nvjet|xmma|wgmma|splitk|conv|cudnn|wgrad|dgrad"),
    ("optimizer", r"adam|multi_tensor"),
    ("sampling", r"philox|distribution|multinomial|random|exponential"),
    ("loss", r"softmax|reduce|norm"),
)
"""Kind of work of library kernels, by a pattern of the name; the first match counts."""
REST = "elementwise"
GLOBAL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel or a copy."""

    name: str
    start_us: float
    end_us: float


@dataclass(frozen=True)
class GpuTime:
    """GPU time over some seconds, by kind and by kernel."""

    shares: Mapping[str, float]
    """Shares of the time by kind, and idle; where kernels overlap, the first counts."""
    kernels: tuple[KernelTime, ...]

    def plain(self) -> dict[str, Any]:
        return {"shares": dict(self.shares), "kernels": [asdict(one) for one in self.kernels]}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> GpuTime:
        return cls(plain["shares"], tuple(KernelTime(**one) for one in plain["kernels"]))


def summarize(launches: Iterable[Launch], seconds: float) -> GpuTime:
    """Add up launches of so many seconds."""
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
    found = [KernelTime(name, kind_of(name), times[name], counts[name]) for name in times]
    return GpuTime(shares, tuple(sorted(found, key=lambda one: -one.seconds)))


def kind_of(name: str) -> str:
    if name in our_kernels():
        return our_kernels()[name]
    low = name.lower()
    return next((kind for kind, words in OTHERS if re.search(words, low)), REST)


@lru_cache
def our_kernels() -> dict[str, str]:
    """Return the kind of work of every kernel of ours, by name."""
    found = {
        name: OURS.get(file.stem, REST)
        for file in sorted((HEADERS / "cuda").glob("*.cuh"))
        for name in GLOBAL.findall(file.read_text())
    }
    return {**found, PRODUCT: "products"}


class Recorder:
    """Records GPU launches with torch's profiler."""

    def __init__(self) -> None:
        from torch.profiler import ProfilerActivity, profile

        self._profile = profile(activities=[ProfilerActivity.CUDA])

    def start(self) -> None:
        import torch

        torch.cuda.synchronize()
        self._profile.start()

    def stop(self) -> Sequence[Launch]:
        """Stop, and return all launches."""
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
    """Load the profiler's library before CUDA graphs are captured: it misses older graphs."""
    import torch

    recorder = Recorder()
    recorder.start()
    torch.zeros(8, device="cuda").add_(1)
    recorder.stop()
