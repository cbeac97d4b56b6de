"""Configurations become one plan; settings that moved say where they went."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit

import sparring
from sparring import trusted
from sparring.cli import main
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.starts import with_absolute_path
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import (
    members_of,
    merged,
    read_config,
    with_preset,
    written,
)


def test_a_plan_decides_everything_once() -> None:
    config = with_preset("skull_king")
    plan = resolve(
        [merged(config, {"device": "cpu", "threads": 3, "set": ("num_players=3",)}, "t")]
    )
    assert (plan.rules.seats, plan.threads, plan.device, plan.games_on) == (3, 3, "cpu", "cpu")
    assert not plan.fused
    assert [lineup.players for lineup in plan.participants.lineups] == [
        (0, 0, 0),
        (0, "captain", "captain"),
    ]
    assert plan.settings == (config.ppo,)
    assert plan.collect.cpu != "auto", "how the network is computed is decided, too"
    assert replace(plan.collect, cpu=config.collect.cpu) == config.collect
    pool = plan.host_pool()
    assert (pool.num_games, pool.policies) == (config.collect.games, {0})


def test_games_of_a_plan_begin_where_it_says() -> None:
    words = ("usual=1", "rounds:9-10=3")
    changes = {"device": "cpu", "threads": 1, "starts": words, "collect": {"games": 64}}
    plan = resolve([merged(with_preset("skull_king"), changes, "t")])
    assert [start.weight for start in plan.starts] == [1, 1.5, 1.5]
    pool = plan.native_pool(slots=1)
    pool.reset()
    rounds = [int(pool.state_of(game).fields()["round"][0]) for game in range(64)]
    assert set(rounds) == {1, 9, 10}
    assert 6 < rounds.count(1) < 28


def test_a_start_that_cannot_be_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = ["--runs", str(tmp_path / "runs")]
    assert main(["train", "skull_king", "--starts", "round:11", *runs]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "sparring: starts: round 11 is outside 1..10"
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_survives_its_file() -> None:
    lr = "0:0.001,5000000:0.0001 stepped"
    config = merged(with_preset("skull_king"), {"ppo": {"lr": lr, "entropy": 0.02}}, "test")
    table = tomllib.loads(tomlkit.dumps(written(config)))
    assert table["ppo"]["lr"] == lr
    assert table["ppo"]["entropy"] == 0.02
    assert read_config(table, "file") == config


def test_members_vary_schedules_too() -> None:
    words = ('ppo.lr=1e-3,"0%:1e-3,100%:1e-5",[[0, 1.0], [2e6, 0.2]]',)
    config = merged(TrainConfig(), {"vary": words}, "test")
    assert [str(member.ppo.lr) for member in members_of(config)] == [
        "0.001",
        "0%:0.001,100%:1e-05",
        "0:1.0,2000000:0.2",
    ]


def test_no_two_members_are_the_same_run() -> None:
    def seeds(**settings: Any) -> list[int]:
        return [member.seed for member in members_of(merged(TrainConfig(), settings, "test"))]

    assert seeds(vary=("ppo.lr=1e-3,1e-4",), seeds=2) == [0, 0, 1, 1], "the same games"
    assert seeds(vary=("ppo.lr=1e-3,1e-4,1e-3",)) == [0, 0, 1]
    roles = ('league.role="main","exploiter","exploiter"',)
    assert seeds(vary=roles) == [0, 0, 1]
    assert seeds(vary=roles, league={"shared": True}) == [0, 1, 2]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--ppo.games 8", "no option --ppo.games; did you mean --collect.games?"),
        ("--ppo.lambda 0.9", "no option --ppo.lambda; did you mean --ppo.gae-lambda?"),
        ("--ppo.lr fast", "'fast' is not a schedule"),
        ("--ppo.lr 0:1e-3,10:-5", "ppo.lr 0:1e-3,10:-5 must be at least 0"),
        ("--ppo.gamma 1.5", "ppo.gamma 1.5 must be from 0 to 1"),
        ("--ppo.minibatch 0", "ppo.minibatch 0 must be at least 1"),
        ("--collect.steps 0", "collect.steps 0 must be at least 1"),
        ("--net.hidden 0", "net.hidden 0 must be from 1 to 8192"),
        ("--algo-set lr=1", "algo_set is for a custom learner; ppo has the settings ppo"),
        ("--algo .a:b", "neither module:factory"),
    ],
)
def test_a_flag_that_is_elsewhere_names_its_place(
    words: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tic_tac_toe", *words.split(), "--runs", str(tmp_path / "runs")]) == 2
    assert hint in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_ignored_for_an_environment_of_ones_own(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make_vec("CartPole-v1", num_envs=4)
    for settings, hint in (
        ({"pool": "cuda"}, "pool cuda: CartPole-v1 is a custom environment, it is stepped where"),
        ({"set": ("num_players=3",)}, "set num_players=3: CartPole-v1 is a custom environment"),
        ({"opponents": ("self=1", "captain=1")}, "no player 'captain' for CartPole-v1"),
        ({"opponents": ("random=1",)}, "CartPole-v1 has one seat, there is none for random"),
        (
            {"eval": {"against": ("captain",)}},
            "eval.against captain: .* cannot evaluate",
        ),
        ({"eval": {"patience": 3}}, "eval.patience 3: .* other processes cannot evaluate"),
        ({"workers": 2}, "workers 2: other processes make environments by a name"),
        ({"collect": {"groups": 2}}, "collect.groups 2: .* stepped together"),
        ({"seed": 10**22}, "seed 10000000000000000000000 must be at most"),
        ({"threads": 10**6}, "threads 1000000 must be"),
        ({"population": 3}, "CartPole-v1 and a population of 3 do not combine"),
        ({"dry_run": True}, "dry_run: use `sparring train --dry-run`"),
        ({"collect": {"games": 99}}, "collect.games 99: the environment has 4 games"),
        ({"collect": 5}, "collect needs a table of settings, not 5"),
        ({"algo_set": ("a=1",)}, "algo_set is for a custom learner"),
        ({"starts": ("usual=1",)}, "its reset decides where games start"),
    ):
        with pytest.raises(sparring.SparringError, match=hint):
            sparring.train(env, updates=1, quiet=True, runs=str(tmp_path / "runs"), **settings)
    assert list(tmp_path.iterdir()) == []


def test_a_learner_of_ones_own_has_its_games_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    trusted.allow("mine:make")
    config = merged(TrainConfig(), {"algo": "mine:make", "device": "cuda"}, "test")
    plan = resolve([config])
    assert (plan.device, plan.games_on, plan.fused, plan.spare_threads) == ("cuda", "cpu", False, 1)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["cudaa", "cuda:x", "cuda:", "cuda:-1", "cuda:0x1", "gpu", "CPU"])
def test_a_device_that_cannot_be_is_refused_before_anything_is_made(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tic_tac_toe", "--device", name, "--runs", str(tmp_path / "runs")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sparring: device {name!r} is unknown; use cpu, cuda or auto")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "table",
    [
        {"eval": 3.0},
        {"ppo": "fast"},
        {"ppo": {"games": 4}, "collect": []},
        {"ppo": {"lr": "x", "lr_end": 0.1}},
        {"ppo": {"lr": 1e-3, "lr_end": "0.1"}},
    ],
    ids=str,
)
def test_a_damaged_file_of_before_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="old: "):
        read_config({"game": "tic_tac_toe", **table}, "old")


def test_files_of_starts_are_kept_by_their_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.sfen").write_text("any\n")
    assert with_absolute_path("mine.sfen=2") == f"{tmp_path / 'mine.sfen'}=2"
    assert with_absolute_path("usual=3") == "usual=3"
    assert with_absolute_path("rounds:7-10") == "rounds:7-10"
