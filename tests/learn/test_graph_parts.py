"""Graphs that the host's work splits: with a stand-in for CUDA, what runs when, and how often."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sparring.learn.fused.graphs import Graphs


class Device:
    """Runs launches at once, or records them into the graph that is being captured."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.into: list[str] | None = None

    def launch(self, name: str) -> None:
        (self.log if self.into is None else self.into).append(name)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()

    class Graph:
        def __init__(self) -> None:
            self.launches: list[str] = []

        def capture_begin(self, pool: Any = None, **options: str) -> None:
            assert made.into is None
            assert options == {"capture_error_mode": "global"}
            made.into = self.launches

        def capture_end(self) -> None:
            assert made.into is self.launches
            made.into = None

        def replay(self) -> None:
            made.log.extend(self.launches)

        def pool(self) -> str:
            return "pool"

    class Context:
        def __init__(self, graph: Graph, pool: Any = None, capture_error_mode: str = "") -> None:
            self.cuda_graph, self.errors = graph, capture_error_mode

        def __enter__(self) -> None:
            self.cuda_graph.capture_begin(capture_error_mode=self.errors)

        def __exit__(self, *_: object) -> None:
            self.cuda_graph.capture_end()

    cuda = SimpleNamespace(
        CUDAGraph=Graph, graph=Context, current_stream=lambda _: None, synchronize=lambda: None
    )
    monkeypatch.setattr("sparring.learn.fused.graphs.torch.cuda", cuda)
    return made


def test_work_of_the_host_runs_between_graphs(device: Device) -> None:
    graphs = Graphs(torch.device("cpu"), "mlp", on=True)

    def update() -> None:
        device.launch("gradient")
        graphs.between(lambda: device.log.append("sum"))
        device.launch("step")
        graphs.between(lambda: device.log.append("sum of figures"))

    once = ["gradient", "sum", "step", "sum of figures"]
    for number in range(1, 4):
        graphs.run("update", update)
        assert device.log == once * number
    assert len(graphs._captured["update"]) == 5
    graphs.forget()
    graphs.run("update", update)
    assert device.log == once * 4


def test_without_work_of_the_host_there_is_one_graph(device: Device) -> None:
    graphs = Graphs(torch.device("cpu"), "mlp", on=True)
    for _ in range(3):
        graphs.run("rollout", lambda: device.launch("play"))
    assert device.log == ["play"] * 3
    assert len(graphs._captured["rollout"]) == 1
