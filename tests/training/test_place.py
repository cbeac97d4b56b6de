"""Where games and network go on a machine with a GPU: planned, so that none is needed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from sparring import kernels
from sparring.errors import ConfigError, SparringWarning
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of
from sparring.training.train import complete

pytest.importorskip("cuda.bindings", reason="needs the extra: pip install 'sparring[cuda]'")
GRAPHS, BESIDE, APART = ("cuda", True), ("cpu", True), ("cpu", False)
HOCKEY = {"game": "laser_hockey", "algo": "sac"}
ROLES = {"game": "skull_king", "hierarchy": {"on": True}}
BONUS = ({"name": "a", "decisions": 9}, {"name": "b", "sac": {"win_bonus": 3}})
SEEN = {"game": "skull_king", "hindsight": {"on": True}}


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (1 << 36, 1 << 37))


def anything(obs: Any, mask: Any, rng: np.random.Generator) -> Any:
    return mask.argmax(axis=1)


def place_of(opponents: Sequence[Any] = (), **settings: Any) -> tuple[str, bool]:
    game = settings.pop("game", "tic_tac_toe")
    config = complete(game, "", {"device": "cuda", "updates": 1, "threads": 1, **settings})
    members = members_of(config)
    plan = resolve(members, opponents=opponents, played=False)
    return plan.games_on, plan.fused


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, GRAPHS),
        ({"algo": "dqn"}, GRAPHS),
        (HOCKEY, GRAPHS),
        (ROLES, GRAPHS),
        (SEEN, GRAPHS),
        ({"collect": {"mirror": True}}, GRAPHS),
        ({"heads": {"wdl": 1}, "net": {"norm": True}}, GRAPHS),
        ({"population": 2}, GRAPHS),
        ({"pool": "cpu"}, BESIDE),
        ({"opponents": ("self=1", "past=1")}, GRAPHS),
        # Stepped there by their nature: nothing is slower for it.
        ({"actors": 2}, APART),
        ({"algo": "learn.reinforce:make"}, APART),
        ({"game": "own_envs:make_cards"}, APART),
    ],
)
def test_it_is_where_it_is_fastest(settings: dict[str, Any], place: tuple[str, bool]) -> None:
    assert place_of(**settings) == place


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"net": {"normalize": True}}, r"net\.normalize has no graphs on the GPU"),
        ({"algo": "dqn", "dqn": {"mode": "rollouts"}}, "dqn.mode rollouts has no graphs"),
        ({"algo": "dqn", "dqn": {"win_bonus": 1}}, "win_bonus 1 has no graphs on the GPU"),
        ({**HOCKEY, "sac": {"win_bonus": 2}}, "sac.win_bonus 2 has no graphs on the GPU"),
        ({**HOCKEY, "phases": BONUS}, "sac.win_bonus 3 has no graphs on the GPU"),
        ({"algo": "dqn", "pool": "cpu"}, "algo dqn has no graphs on the GPU, games on the CPU"),
        ({**HOCKEY, "pool": "cpu"}, "laser_hockey and algo sac have no graphs on the GPU, games"),
        ({**ROLES, "pool": "cpu"}, "hierarchy.on has no graphs on the GPU, games on the CPU"),
        ({**SEEN, "pool": "cpu"}, "hindsight.on has no graphs on the GPU, games on the CPU"),
        ({**SEEN, "algo": "dqn"}, "hindsight.on of a replay has no graphs"),
        ({**ROLES, "opponents": ("self=1", "past=1")}, "past selves with hierarchy.on has no"),
        (
            {"game": "kuhn_poker", "algo": "gumbel"},
            "gumbel in kuhn_poker, which hides cards, has no",
        ),
    ],
)
def test_what_is_slower_is_said(settings: dict[str, Any], why: str) -> None:
    with pytest.warns(SparringWarning, match=f"games run on the CPU: .*{why}"):
        assert place_of(**settings) == APART


def test_opponents_of_another_kind_play_apart_even_beside_a_pool_on_the_gpu() -> None:
    with pytest.warns(SparringWarning, match="anything .* has no graphs on the GPU"):
        assert place_of(["self=1", [anything]], pool="cuda") == APART
    with pytest.raises(ConfigError, match="this run fits no device layout: not anything"):
        place_of(["self=1", [anything]], population=2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pool": "cuda", "net": {"normalize": True}}, "pool cuda: net.normalize has no graphs"),
        (
            {"game": "leduc_poker", "algo": "gumbel", "pool": "cuda"},
            "pool cuda: algo gumbel in leduc_poker, which hides cards, has no graphs on the GPU",
        ),
        (
            {"population": 2, "net": {"normalize": True}},
            "this run fits no device layout: not net.normalize",
        ),
        ({"population": 2, "pool": "cpu"}, "needs games and networks on one GPU"),
        ({"replicas": 2}, "replicas 2 needs games and networks on CPUs, .*use --device cpu"),
        ({"actors": 2, "pool": "cuda"}, "actors 2 and pool cuda do not combine"),
    ],
)
def test_what_has_no_place_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        place_of(**settings)


def test_a_machine_without_a_compiler_for_kernels_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise ConfigError("install the extra")

    monkeypatch.setattr(kernels, "version", missing)
    with pytest.warns(SparringWarning, match="games run on the CPU: install the extra"):
        assert place_of() == APART
    for settings in ({"pool": "cuda"}, {"population": 2}):
        with pytest.raises(ConfigError, match="install the extra"):
            place_of(**settings)
    assert place_of(actors=2) == APART  # which needs none
