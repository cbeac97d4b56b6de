"""Errors before a cluster is used, and the bookkeeping of a supervisor. Needs no Ray."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparring
from cluster.supervisors import settings
from sparring import trusted
from sparring.cluster.actors.learner import actor_shares
from sparring.cluster.actors.packing import counts_of
from sparring.cluster.actors.runner import ActorRunner
from sparring.cluster.actors.supervisor import MAX_FAILED, ActorSupervisor, RolloutRequest
from sparring.cluster.ray.host import PADDED, ActorHost, trim
from sparring.cluster.ray.replicas import ReplicaHost
from sparring.cluster.ray.resources import ResourceRequest, check_fits, names, waiting_line
from sparring.cluster.ray.runs import TRAIN, work
from sparring.cluster.ray.session import connect, restored_environment
from sparring.cluster.ray.tasks import archive, unpack_archive
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.learn.learner import LostError
from sparring.messages import Message
from sparring.training.planning.settings import members_of, value_at, written


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    trusted.allow("10.0.0.1:6379", "127.0.0.1:1")
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
    with pytest.raises(ConfigError, match="/nowhere/token is not a file"):
        connect("10.0.0.1:6379")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(ConfigError, match="lets anyone in"):
        connect("auto")
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_what_is_no_address_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    some_ray(monkeypatch)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    with pytest.raises(ConfigError, match="give local, auto, or HOST:PORT"):
        connect("locl")
    with pytest.raises(SparringError, match="no connection"):
        connect("127.0.0.1:1")
    assert "RAY_AUTH_MODE" not in os.environ


def test_a_port_that_is_not_rays_is_refused_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some_ray(monkeypatch)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        trusted.allow(address)

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        greeting = threading.Thread(target=greet)
        greeting.start()
        with pytest.raises(SparringError, match=f"{address}: something else than Ray listens"):
            connect(address)
        greeting.join()


def test_what_no_machine_has_is_refused_and_what_is_in_use_is_waited_for() -> None:
    machines = [{"CPU": 2.0, "GPU": 1.0}, {"CPU": 4.0}]
    run = ResourceRequest(2, 0.5)
    assert run.count(machines) == 1 and ResourceRequest(1, 0.5).count(machines) == 2
    assert ResourceRequest(1).count(machines) == 6
    check_fits(machines, run, "a run")
    with pytest.raises(ConfigError, match="needs 4 CPUs and 1 GPU on one machine, and the cluster"):
        check_fits(machines, ResourceRequest(4, 1), "a run")
    total, free = {"CPU": 6.0, "GPU": 1.0}, {"CPU": 2.0}
    line = waiting_line(total, free, ResourceRequest(1, 1), names("actor", [0, 2, 3]))
    assert line == (
        "actors 0, 2 and 3: waiting for 1 CPU and 1 GPU: the cluster has 6 CPUs, 4 in use, the "
        "free ones on several machines or already promised and 1 GPU, 1 in use"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--seeds 2 --distributed.gpus 0.5", "it has no effect here; add --cluster"),
        ("--seeds 2 --distributed.gpus 2", "distributed.gpus 2.0 must be at most 1"),
    ],
)
def test_a_share_of_a_gpu_without_a_use_is_refused(
    words: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from sparring.cli import main

    assert main(["train", "tic_tac_toe", *words.split(), "--updates", "1"]) == 2
    assert why in capsys.readouterr().err


def test_variables_are_as_before() -> None:
    with restored_environment():
        os.environ["RAY_AUTH_MODE"] = "token"
    assert "RAY_AUTH_MODE" not in os.environ


def test_one_run_alone_has_no_use_for_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    from sparring.cli import main

    assert main(["train", "tic_tac_toe", "--cluster", "local", "--updates", "1"]) == 2
    assert "a single run does not use a cluster" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_what_is_sent_leaves_out_unused_room() -> None:
    config = settings("cage2", actors=1, set=("max_steps=5",))
    runner = ActorRunner(written(config), actor_shares(config)[0])
    out: dict[str, Any] = {
        name: np.zeros(shape, kind) for name, (kind, shape) in runner.shapes.items()
    }
    runner.play(0, out)
    counts, sent = counts_of(out), trim(out)
    assert counts["cuts"] and counts["ends"]
    assert sent.keys() == out.keys() and PADDED.keys() <= sent.keys()
    for name, array in sent.items():
        assert len(array) == (counts[PADDED[name]] if name in PADDED else len(out[name])), name
        assert np.array_equal(array, out[name][: len(array)], equal_nan=array.dtype.kind == "f")
    assert not any(out[name][counts[PADDED[name]] :].any() for name in PADDED)


def test_of_what_was_said_the_last_is_said_again() -> None:
    supervisor = ActorSupervisor([], 5)
    for name, key in (("put", 1), ("flags", None), ("put", 2), ("put", 1)):
        supervisor.remember(Message(name, {"key": key} if key else {}))
    assert [(one.name, one.payload.get("key")) for one in supervisor.remembered] == [
        ("flags", None),
        ("put", 2),
        ("put", 1),
    ]


def test_deaths_are_counted_told_once_and_end_a_run_at_last() -> None:
    supervisor, request = ActorSupervisor([], 3), RolloutRequest(0, 7)
    with pytest.warns(SparringWarning, match="actor 0 died") as told:
        supervisor.note_death(0, "died", [request], output="oh", ready=True)
        supervisor.note_death(0, "died", [], output="oh", ready=True)
    assert len(told) == 1 and supervisor.restarts == 2
    assert supervisor.pop_lost() == [request] and supervisor.pop_lost() == []
    with pytest.warns(SparringWarning), pytest.raises(SparringError, match="max_restarts 3"):
        supervisor.note_death(1, "hung", [], ready=True)
        supervisor.note_death(1, "hung", [], ready=True)


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_an_actor_that_never_gets_ready_ends_a_run() -> None:
    supervisor = ActorSupervisor([], 100)
    supervisor.note_death(1, "died", [], ready=True)
    with pytest.raises(SparringError, match="3 times in a row without a rollout"):
        for incarnation in range(1, MAX_FAILED + 1):
            supervisor.note_death(0, "died", [], ready=False, incarnation=incarnation)
    with pytest.raises(SparringError, match="before it was ready"):
        supervisor.note_death(2, "died", [], ready=False, incarnation=0)


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_kills_say_nothing_of_the_next_life() -> None:
    supervisor = ActorSupervisor([], 100)
    for incarnation in range(10):
        supervisor.note_death(0, "died", [], ready=True, incarnation=incarnation, killed=True)
    supervisor.note_death(1, "died", [], ready=False, incarnation=0, killed=True)
    assert supervisor.restarts == 11


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_an_actor_that_never_hands_in_anything_ends_a_run_that_is_saved() -> None:
    supervisor = ActorSupervisor([], 100)
    for _ in range(2 * MAX_FAILED):
        supervisor.note_death(0, "died", [])
        supervisor.note_rollout(0)
    with pytest.raises(LostError, match="3 times in a row without a rollout"):
        for _ in range(MAX_FAILED):
            supervisor.note_death(0, "died", [])


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


def test_a_machine_with_another_version_says_so_in_one_line() -> None:
    config = settings(actors=1)
    (share,) = actor_shares(config)
    plain = {"index": 0, "games": share.games, "threads": 1}
    begin = json.dumps({"settings": written(config), "share": plain, "version": "0.0.9"})
    refused = (
        Message.unpack(ReplicaHost().begin(begin)).payload,
        json.loads(ActorHost().begin(begin)),
    )
    job = np.frombuffer(Message(TRAIN, {"version": "0.0.9"}).pack(), np.uint8)
    for error in (*refused, Message.unpack(work(job).data).payload):
        assert error["kind"] == "ConfigError" and "\n" not in error["text"]
        assert f"has sparring {sparring.__version__}, and the run 0.0.9; install" in error["text"]
