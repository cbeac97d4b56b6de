"""Measuring training: the same work for the ceiling, real games, ratios. No word about speed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sparring import Lineup, Pool
from sparring.cli import main
from sparring.commands.bench.train import FreePool, free_twin, read_settings
from sparring.config import BenchTrainConfig, NetConfig, PPOConfig
from sparring.learn.ppo import PPO
from sparring.training.settings import with_preset

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "train_vs_peers.py"
SMALL = "--games 16 --steps 24 --epochs 1 --minibatch 128 --hidden 16 --threads 1 --rounds 3"


def learner(game: str, members: tuple[Any, ...]) -> PPO:
    config = PPOConfig(games=16, steps=20, epochs=2, minibatch=64, target_kl=0.0)
    pool = Pool(game, config.games, seed=1, threads=1, lineups=[Lineup(members)])
    return PPO(pool, config, NetConfig(hidden=(16,)), seed=1)


@pytest.mark.parametrize(
    ("game", "members"),
    [
        ("skull_king", (0, 0, 0, 0)),
        ("skull_king", (0, "random", "random", "random")),
        ("tic_tac_toe", (0, 0)),
        ("tic_tac_toe", (0, "random")),
    ],
)
def test_the_ceiling_has_the_same_work(game: str, members: tuple[Any, ...]) -> None:
    real = learner(game, members)
    real.collect()
    real.update(0.0)
    twin = free_twin(real, threads=1)
    rows = slice(real.assembler.carried, None)
    for _ in range(2):
        twin.collect()
        for name in ("obs", "mask"):
            given, wanted = (getattr(one.rollout, name)[rows] for one in (twin, real))
            assert np.array_equal(given[16:], wanted[16:]), name
        for name in ("seat", "role", "policy"):
            given, wanted = (getattr(one.rollout, name) for one in (twin, real))
            assert np.array_equal(given[1:], wanted[1:]), name
        for name in ("reward", "terminated", "truncated", "skipped"):
            assert np.array_equal(getattr(twin.rollout, name), getattr(real.rollout, name)), name
        stats = twin.update(0.0)
        assert np.isfinite(list(stats.values())).all()
    # Once the circle is closed, every row of the learner is a sample, as on real games.
    assert stats["learning/samples"] == np.count_nonzero(twin.rollout.policy == 0)


def test_a_free_pool_plays_nothing() -> None:
    real = learner("tic_tac_toe", (0, 0))
    pool = real.pool
    before = pool.state()
    twin = free_twin(real, threads=1)
    assert real.pool is pool
    played = pool.state()
    assert played != before
    twin.collect()
    twin.update(0.0)
    assert pool.state() == played
    free = twin.pool
    assert isinstance(free, FreePool)
    first = free.reset()
    shown = [id(free.step(None)) for _ in range(2 * real.config.steps)]
    assert shown[: real.config.steps] == shown[real.config.steps :]
    assert len(set(shown)) == real.config.steps
    assert id(first) not in shown


def test_the_learner_is_that_of_training_unless_options_differ() -> None:
    preset = with_preset("skull_king")
    usual = read_settings(BenchTrainConfig("skull_king", threads=1))
    assert usual.net == preset.net
    assert usual.opponents == preset.opponents
    assert (usual.ppo.games, usual.ppo.epochs) == (preset.ppo.games, preset.ppo.epochs)
    changed = read_settings(
        BenchTrainConfig(
            "skull_king",
            games=32,
            hidden=(8, 8),
            shared=False,
            opponents=("random=1",),
            set=("num_players=3",),
        )
    )
    assert changed.ppo.games == 32
    assert changed.ppo.steps == preset.ppo.steps
    assert (changed.net.hidden, changed.net.shared) == ((8, 8), False)
    assert changed.net.sparse == preset.net.sparse
    assert (changed.opponents, changed.set) == (("random=1",), ("num_players=3",))


def test_residual_nets_have_options_of_their_own() -> None:
    usual = read_settings(BenchTrainConfig("shogi", threads=1)).net
    assert usual == with_preset("shogi").net
    changed = read_settings(BenchTrainConfig("shogi", channels=8, blocks=1)).net
    assert (changed.kind, changed.channels, changed.blocks) == ("residual", 8, 1)
    assert read_settings(BenchTrainConfig("shogi", blocks=1)).net.channels == usual.channels


def test_bench_train_reports_rates_phases_and_the_fraction(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = f"bench train skull_king {SMALL} --opponents random=1 --set skip_forced=1"
    assert main([*words.split(), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["valid"]
    assert shown["flags"] == {"skip_forced": 1}
    assert shown["training"]["games"] == 16
    ours, ceiling = shown["measured"]["ours"], shown["measured"]["ceiling"]
    assert ours["games_finished"] > 0
    for side in (ours, ceiling):
        for rate in (side["decisions_per_s"], side["samples_per_s"]):
            assert 0 < rate["min"] <= rate["median"] <= rate["max"]
            assert len(rate["rounds"]) == 3
        assert sum(side["phases"].values()) == pytest.approx(1, abs=0.01)
        assert {"stepping", "inference", "update"} <= set(side["phases"])
        assert side["forced_per_s"] > 0
    assert ours["gradient_steps_per_round"] == ceiling["gradient_steps_per_round"] == 3
    pairs = zip(ours["samples_per_s"]["rounds"], ceiling["samples_per_s"]["rounds"], strict=True)
    wanted = [mine / free for mine, free in pairs]
    assert shown["fraction"]["rounds"] == pytest.approx(wanted, rel=0.01)


def test_bench_train_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"bench train tic_tac_toe {SMALL}".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tic_tac_toe: valid, ")
    assert "one trunk 16 relu, sparse first layer" in " ".join(lines)
    for start in ("decisions/s", "samples/s", "  stepping", "  update", "fraction of the ceiling:"):
        assert any(line.startswith(start) for line in lines), start


def test_bench_train_measures_a_residual_net(capsys: pytest.CaptureFixture[str]) -> None:
    small = SMALL.replace("--hidden 16", "--channels 8 --blocks 1 --set max_plies=30")
    assert main(f"bench train shogi {small} --opponents self=1".split()) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("shogi max_plies=30 ")
    assert "residual net, blocks: 1, channels: 8" in shown


def test_broken_games_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Pool, "audit", lambda self: "game 7: cards were lost or doubled")
    assert main([*f"bench train skull_king {SMALL}".split(), "--json"]) == 3
    shown = json.loads(capsys.readouterr().out)
    assert shown["valid"] is False
    assert "measured" not in shown


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ("skull_king --rounds 0", 2, "--rounds must be at least 1"),
        ("skull_king --warm-up 0", 2, "--warm-up must be at least 1"),
        ("skull_king --channels 8", 2, "--channels is for nets of kind residual; skull_king is"),
        ("shogi --hidden 16", 2, "--hidden is for nets of kind mlp; shogi is trained with kind re"),
        ("shogi --blocks -1", 2, "must be at least 1"),
        ("skull_king --opponents capten=1", 2, "did you mean 'captain'?"),
        (f"skull_king {SMALL} --steps 2", 3, "no game was finished in 12 steps"),
    ],
)
def test_a_mistake_says_what_to_do(
    words: str, code: int, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "train", *words.split()]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert hint in shown.err


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    pytest.importorskip("sb3_contrib")
    spec = importlib.util.spec_from_file_location("train_vs_peers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def quick(peers: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    folder = tmp_path_factory.mktemp("results")
    words = ("--quick", "--threads", "1", "--original", "--out", str(folder))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (record,) = peers.stored(folder)
    return record, done.stdout


def test_every_contestant_trains_on_whole_games(quick: tuple[Any, str]) -> None:
    record, _ = quick
    assert record["valid"]
    kinds = ["maskable", "plain", "dense", "sparse", "shared", "unforced"]
    assert [one["kind"] for one in record["contestants"]] == kinds
    for one in record["contestants"]:
        assert one["problems"] == []
        assert one["games_finished"] > 0
        assert one["samples_per_s"]["median"] > 0


def test_the_same_nets_are_the_same_size(quick: tuple[Any, str]) -> None:
    sizes = {one["kind"]: one["parameters"] for one in quick[0]["contestants"]}
    assert sizes["maskable"] == sizes["plain"] == sizes["dense"] == sizes["sparse"]
    assert sizes["shared"] == sizes["unforced"] < sizes["dense"]


def test_ratios_are_those_of_the_rates(quick: tuple[Any, str]) -> None:
    by_name = {one["name"]: one for one in quick[0]["contestants"]}
    best = by_name[quick[0]["best"]["maskable"]]["samples_per_s"]["rounds"]
    for one in by_name.values():
        wanted = np.divide(one["samples_per_s"]["rounds"], best)
        assert one["to_maskable"]["rounds"] == pytest.approx(wanted, abs=1e-3)
        assert one["to_plain"]["median"] > 0
        assert ("of_ceiling" in one) == (one["kind"] not in ("maskable", "plain"))


def test_only_skipped_moves_are_decisions_without_a_sample(quick: tuple[Any, str]) -> None:
    for one in quick[0]["contestants"]:
        samples, decisions = (one[f"{name}_per_s"]["median"] for name in ("samples", "decisions"))
        if one["kind"] == "unforced":
            assert decisions > samples
        else:
            assert decisions == samples


def test_the_table_names_everybody(quick: tuple[Any, str]) -> None:
    record, shown = quick
    for one in record["contestants"]:
        assert one["label"] in shown
    assert "938 agent steps/s" in shown
    assert "cannot be compared" in shown


def test_the_docs_show_what_is_stored(peers: ModuleType) -> None:
    text = peers.DOCS.read_text()
    assert text == peers.with_figures(text, peers.stored()), (
        "run: python benchmarks/train_vs_peers.py --stored --update-docs"
    )


def test_the_docs_take_up_a_record(peers: ModuleType, quick: tuple[Any, str]) -> None:
    text = peers.with_figures(peers.DOCS.read_text(), [quick[0]])
    for one in quick[0]["contestants"]:
        assert f"| {one['label']}" in text
    assert quick[0]["commit"] in text
