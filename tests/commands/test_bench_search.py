from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from sparring.cli import main
from sparring.commands.bench import search, search_gpu
from sparring.config import NetConfig
from sparring.games import Rules
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")

WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
QUICK = "--games 8 --rounds 2 --threads 1"


@pytest.mark.parametrize("rule", ["gumbel", "puct"])
def test_search_and_network_are_measured_in_turn(
    rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"bench search tic_tac_toe {QUICK} --simulations 2 8 --rule {rule} --json"
    assert main(words.split()) == 0
    few, many = json.loads(capsys.readouterr().out)["measured"]
    assert (few["simulations"], many["simulations"]) == (2, 8)
    for one in (few, many):
        assert len(one["simulations_per_s"]) == len(one["share_of_network"]) == 2
        assert 0 < one["batch"] <= 8 * 16
        assert list(one["stages"]) == ["select", "evaluate", "settle"]
        assert sum(one["stages"].values()) == pytest.approx(1, abs=1e-3)
        assert one["nodes_per_gb"] == pytest.approx(1e9 / one["bytes_per_node"], rel=0.01)


def test_the_table_names_the_share(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"bench search connect_four {QUICK} --simulations 4".split()) == 0
    assert re.search(r"\d+%", capsys.readouterr().out)


def test_playouts_in_worlds_are_measured_as_trees_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"bench search leduc_poker {QUICK} --simulations 8 --json".split()) == 0
    (one,) = json.loads(capsys.readouterr().out)["measured"]
    assert one["batch"] > 0
    assert one["bytes_per_node"] > 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("leduc_poker --rule puct", "hides cards, so no tree is grown by puct"),
        ("tic_tac_toe --simulations 0", "from 1 to"),
        ("tic_tac_to", "no policy"),
        pytest.param("tic_tac_toe --device cuda", "torch sees no GPU here", marks=WITHOUT_GPU),
    ],
)
def test_what_cannot_be_measured(
    words: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "search", *words.split(), *QUICK.split()]) == 2
    assert reason in capsys.readouterr().err


class CountedSearch:
    """Trees of a GPU: notes what is launched, in order."""

    trees, row_count, bytes_each = 8, 1, 330

    def __init__(self, pool: SimpleNamespace, simulations: int, *, rule: str) -> None:
        self.rule, self.launched = rule, list[str]()
        self.obs = torch.zeros(8, pool.row_bytes, dtype=torch.uint8)

    def begin(self, simulations: int) -> None:
        self.launched.append(f"begin {simulations}")

    def select(self) -> None:
        self.launched.append("select")

    def settle(self, logits: torch.Tensor, values: torch.Tensor) -> None:
        assert len(logits[0]) == len(values[0]) == 8
        self.launched.append("settle")

    def advance(self, logits: torch.Tensor, values: torch.Tensor) -> None:
        assert len(logits[0]) == len(values[0]) == 8
        self.launched.append("advance")

    def decide(self, action: object, value: torch.Tensor) -> None:
        self.launched.append("decide")


class Clock:
    """Stands for events of a GPU: each takes a millisecond more than the one before."""

    ticks = 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        Clock.ticks += 1
        self.at = Clock.ticks

    def elapsed_time(self, later: Clock) -> float:
        return later.at - self.at


def test_searches_on_a_gpu_are_launched_as_training_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything but the GPU's own parts, which tests/cuda measures."""
    monkeypatch.setattr(search_gpu, "CudaSearch", CountedSearch)
    monkeypatch.setattr(search_gpu, "Graphs", lambda *_, **options: Launches())
    monkeypatch.setattr(torch.cuda, "Event", Clock)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    rules = Rules("tic_tac_toe")
    pool = SimpleNamespace(row_bytes=rules.obs_bytes, _action_array=lambda: None)
    config = NetConfig(hidden=(16,))
    net = CapturedNet(rules, config, 1, bf16=False, device=torch.device("cpu"))
    net.load(0, make_net(rules, config).state_dict())
    bench = search_gpu.GpuSearchBench(net, pool, 2, "puct")
    bench.measure()
    waves = ["select", *["advance"] * 3]
    assert bench.search.launched == 2 * ["begin 2", *waves, "decide"]
    assert (bench.search.rule, bench.made, bench.batches) == ("puct", 16, [8, 8, 8])
    found = search.summary(bench)
    assert found["simulations_per_s"] == [16_000]
    assert found["network_rows_per_s"] == [24_000]
    assert found["stages"] == {"select": 0.25, "evaluate": 0.5, "settle": 0.25}
    assert found["bytes_per_node"] == 110


class Launches:
    """Graphs that are launched."""

    def run(self, name: str, work: Callable[[], None]) -> None:
        assert name == work.__name__
        work()
