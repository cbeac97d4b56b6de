"""Runs on the GPU announce the path that their networks are computed on."""

from __future__ import annotations

from typing import Any

import pytest

from sparring.errors import SparringWarning
from sparring.nets.run.captured import CapturedNet
from training.path_cells import CAPTURED, FLAT, KERNELS, SKULL_KING, prepared

GPU: dict[str, Any] = {"device": "cuda", "pool": "cuda"}
GAMES = {"games": 64, "steps": 8, "bf16": True}


@pytest.mark.parametrize("cell", FLAT)
def test_what_is_announced_is_what_the_learner_does(cell: str) -> None:
    changes, way = FLAT[cell]
    session = prepared(**{**changes, **GPU, "collect": GAMES})
    (path,) = session.announced.paths
    assert path.way == way
    kind = CAPTURED if isinstance(session.learner.net, CapturedNet) else KERNELS  # type: ignore[attr-defined]
    assert path.name.startswith(kind)


def test_every_role_has_a_path() -> None:
    changes = {**SKULL_KING, "hierarchy": {"on": True}, "roles": ("worker.net.norm=true",)}
    session = prepared(**{**changes, **GPU, "collect": GAMES})
    made = session.learner.net.roles  # type: ignore[attr-defined]
    for path in session.announced.paths:
        kind = CAPTURED if isinstance(made[path.role], CapturedNet) else KERNELS
        assert path.name.startswith(kind)
    assert [path.name for path in session.announced.paths] == [KERNELS, CAPTURED]


def test_modules_that_need_more_than_kernels_or_a_graph_are_announced_as_what_they_are() -> None:
    with pytest.warns(SparringWarning, match="Choosing does not fit into a CUDA graph"):
        choosing = prepared(**GPU, collect=GAMES, net={"kind": "own_nets:Choosing"})
    (path,) = choosing.announced.paths
    assert path.name == "torch bf16, launched step by step"
    assert "own_nets" in path.because
    with pytest.warns(SparringWarning, match="Lying is run by torch"):
        lying = prepared(**GPU, collect=GAMES, net={"kind": "own_nets:Lying"})
    (path,) = lying.announced.paths
    assert path.name == CAPTURED
    assert isinstance(lying.learner.net, CapturedNet)  # type: ignore[attr-defined]


def test_games_that_leave_the_gpu_say_why() -> None:
    with pytest.warns(SparringWarning, match="games run on the CPU: net.normalize"):
        session = prepared(device="cuda", collect=GAMES, net={"normalize": True})
    (path,) = session.announced.paths
    assert path.way == "torch bf16, step by step because net.normalize has no graphs on the GPU"
    (beside,) = prepared(device="cuda", pool="cpu", collect=GAMES).announced.paths
    assert beside.way == "kernels bf16, games on the CPU because pool is cpu"
