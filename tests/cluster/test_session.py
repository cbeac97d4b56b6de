"""What is refused before a cluster is touched, and what a crew keeps account of. No Ray needed."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.crews import settings
from sparring import trusted
from sparring.cluster.actors.body import Body
from sparring.cluster.actors.crew import MAX_FAILED, Crew, Order
from sparring.cluster.actors.learner import places_of
from sparring.cluster.actors.packing import counts_of
from sparring.cluster.ray.host import FEW, trimmed
from sparring.cluster.ray.session import connect, kept_environment
from sparring.cluster.ray.tasks import archive, unpack_archive
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.learn.learner import LostError
from sparring.messages import Message
from sparring.training.planning.settings import members_of, value_at, written


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    trusted.name("10.0.0.1:6379", "127.0.0.1:1")
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


def some_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'pip install "sparring\[cluster\]"'):
        connect("local")


def test_a_cluster_without_a_token_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    some_ray(monkeypatch)
    with pytest.raises(ConfigError, match="ray get-auth-token --generate"):
        connect("auto")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/nowhere/token")
    with pytest.raises(ConfigError, match="/nowhere/token is no file"):
        connect("10.0.0.1:6379")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(ConfigError, match="lets everybody in"):
        connect("auto")
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_what_is_no_address_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    some_ray(monkeypatch)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    with pytest.raises(ConfigError, match="neither local nor auto nor HOST:PORT"):
        connect("locl")
    with pytest.raises(SparringError, match="nobody answers there"):
        connect("127.0.0.1:1")
    assert "RAY_AUTH_MODE" not in os.environ


def test_variables_are_as_before() -> None:
    with kept_environment():
        os.environ["RAY_AUTH_MODE"] = "token"
    assert "RAY_AUTH_MODE" not in os.environ


def test_one_run_alone_has_no_use_for_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    from sparring.cli import main

    assert main(["train", "tic_tac_toe", "--cluster", "local", "--updates", "1"]) == 2
    assert "one run alone has no use for it" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_what_is_sent_leaves_out_unused_room() -> None:
    config = settings("cage2", actors=1, set=("max_steps=5",))
    body = Body(written(config), places_of(config)[0])
    out: dict[str, Any] = {
        name: np.zeros(shape, kind) for name, (kind, shape) in body.shapes.items()
    }
    body.play(0, out)
    counts, sent = counts_of(out), trimmed(out)
    assert counts["cuts"] and counts["ends"]
    assert sent.keys() == out.keys() and FEW.keys() <= sent.keys()
    for name, array in sent.items():
        assert len(array) == (counts[FEW[name]] if name in FEW else len(out[name])), name
        assert np.array_equal(array, out[name][: len(array)], equal_nan=array.dtype.kind == "f")
    assert not any(out[name][counts[FEW[name]] :].any() for name in FEW)


def test_of_what_was_said_the_last_is_said_again() -> None:
    crew = Crew([], 5)
    for name, key in (("put", 1), ("flags", None), ("put", 2), ("put", 1)):
        crew.keep(Message(name, {"key": key} if key else {}))
    assert [(one.name, one.facts.get("key")) for one in crew.kept] == [
        ("flags", None),
        ("put", 2),
        ("put", 1),
    ]


def test_deaths_are_counted_told_once_and_end_a_run_at_last() -> None:
    crew, order = Crew([], 3), Order(0, 7)
    with pytest.warns(SparringWarning, match="actor 0 died") as told:
        crew.died(0, "died", [order], words="oh", ready=True)
        crew.died(0, "died", [], words="oh", ready=True)
    assert len(told) == 1 and crew.restarts == 2
    assert crew.lost() == [order] and crew.lost() == []
    with pytest.warns(SparringWarning), pytest.raises(SparringError, match="max_restarts is 3"):
        crew.died(1, "hung", [], ready=True)
        crew.died(1, "hung", [], ready=True)


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_an_actor_that_never_gets_ready_ends_a_run() -> None:
    crew = Crew([], 100)
    crew.died(1, "died", [], ready=True)
    with pytest.raises(SparringError, match="3 times in a row without a rollout"):
        for life in range(1, MAX_FAILED + 1):
            crew.died(0, "died", [], ready=False, life=life)
    with pytest.raises(SparringError, match="before it was ready"):
        crew.died(2, "died", [], ready=False, life=0)


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_kills_say_nothing_of_the_next_life() -> None:
    crew = Crew([], 100)
    for life in range(10):
        crew.died(0, "died", [], ready=True, life=life, killed=True)
    crew.died(1, "died", [], ready=False, life=0, killed=True)
    assert crew.restarts == 11


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_an_actor_that_never_hands_in_anything_ends_a_run_that_is_saved() -> None:
    crew = Crew([], 100)
    for _ in range(2 * MAX_FAILED):
        crew.died(0, "died", [])
        crew.played(0)
    with pytest.raises(LostError, match="3 times in a row without a rollout"):
        for _ in range(MAX_FAILED):
            crew.died(0, "died", [])


def test_flags_vary_from_run_to_run() -> None:
    config = settings(
        "cage2", vary=("set.red=B_LINE,MEANDER", "set.order=[0,1],[1,0]"), set=("max_steps=9",)
    )
    members = members_of(config)
    assert [value_at(member, ["set", "red"]) for member in members] == ["B_LINE", "MEANDER"]
    assert [value_at(member, ["set", "order"]) for member in members] == ["0,1", "1,0"]
    assert all("max_steps=9" in member.set for member in members)
    with pytest.raises(ConfigError, match="names no flag"):
        members_of(settings("cage2", vary=("set=1,2",)))


def test_an_archive_writes_its_folder_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("text", "utf-8")
    unpack_archive(archive(tmp_path / "run"), tmp_path / "there")
    assert (tmp_path / "there" / "run" / "file").read_text("utf-8") == "text"
