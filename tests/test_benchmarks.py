"""Measuring training: the same work for the ceiling, real games, ratios. No word about speed."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from make import make_ppo
from sparring import Pool
from sparring.cli import main
from sparring.commands.bench.train import read_settings
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.config.commands import BenchTrainConfig
from sparring.learn.ppo import PPO
from sparring.schedule import Schedule
from sparring.training.planning.settings import with_preset

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "train_vs_peers.py"
SMALL = (
    "--games 16 --steps 24 --epochs 1 --minibatch 128 --hidden 16 --threads 1 --rounds 3 "
    "--no-utilization"
)


def learner(game: str, members: tuple[Any, ...]) -> PPO:
    config = PPOConfig(epochs=2, minibatch=64, target_kl=Schedule.constant(0.0))
    collect = CollectConfig(games=16, steps=20)
    return make_ppo(game, config, NetConfig(hidden=(16,)), members=members, collect=collect)


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
    """The rows of the last rollout are answered and learned from once more, as many as before."""
    real = learner(game, members)
    real.iterate(0.0)
    (played,) = real.iterate(0.0)
    rollout = real.collector.rollout
    front = real.collector.transitions.max_pending
    rows = {name: rollout.rows()[name][front:].copy() for name in ("obs", "mask")}
    for _ in range(2):
        (rehearsed,) = real.dry_run()
        for name, array in rows.items():
            assert np.array_equal(rollout.rows()[name][front:], array), name
        for name in ("decisions", "optimizer_steps"):
            key = f"learning/{name}"
            assert rehearsed.stats[key] == played.stats[key], name
        samples = rehearsed.stats["learning/samples"], played.stats["learning/samples"]
        assert samples[0] == pytest.approx(samples[1], rel=0.05)
        assert np.isfinite(list(rehearsed.stats.values())).all()


def test_a_rehearsal_changes_nothing() -> None:
    """Training goes on as if it had not been: games, weights, optimizer, open decisions."""
    rehearsing, honest = learner("tic_tac_toe", (0, 0)), learner("tic_tac_toe", (0, 0))
    for _ in range(3):
        rehearsing.iterate(0.0)
        honest.iterate(0.0)
        before = rehearsing.pool.state()
        rehearsing.dry_run()
        assert rehearsing.pool.state() == before
    one, two = rehearsing.snapshot(), honest.snapshot()
    assert one.blobs == two.blobs
    assert one.meta == two.meta
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, two.tensors[group][name]), (group, name)


def test_the_learner_is_that_of_training_unless_options_differ() -> None:
    preset = with_preset("skull_king")
    usual = read_settings(BenchTrainConfig("skull_king", threads=1))
    assert usual.net == preset.net
    assert usual.opponents == preset.opponents
    assert (usual.collect, usual.ppo.epochs) == (preset.collect, preset.ppo.epochs)
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
    assert changed.collect.games == 32
    assert changed.collect.steps == preset.collect.steps
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
        assert {"inference", "update"} <= set(side["phases"])
        assert side["forced_per_s"] > 0
    assert ours["optimizer_steps_per_round"] == ceiling["optimizer_steps_per_round"] == 3
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


@pytest.mark.slow
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
        ("skull_king --rounds 0", 2, "rounds 0 must be at least 1"),
        ("skull_king --warm-up 0", 2, "warm_up 0 must be at least 1"),
        ("skull_king --channels 8", 2, "--channels is for nets of kind residual; skull_king is"),
        ("shogi --hidden 16", 2, "--hidden is for nets of kind mlp; shogi is trained with kind re"),
        ("shogi --blocks -1", 2, "blocks -1 must be from 0 to 128"),
        ("skull_king --opponents capten=1", 2, "did you mean 'captain'?"),
        (f"skull_king {SMALL} --steps 2", 3, "no game was finished in 10 steps"),
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
def figures() -> Iterator[ModuleType]:
    pytest.importorskip("sb3_contrib")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield importlib.import_module("peers.figures")


@pytest.fixture(scope="module")
def replies(figures: ModuleType) -> dict[str, list[dict[str, Any]]]:
    """What every contestant answers, asked in this process."""
    peers, serve = (importlib.import_module(f"peers.{name}") for name in ("entries", "serve"))
    found = {}
    for entry in peers.entries([16], [16], 16):
        turn = ["train", "ceiling"] if entry.ours else ["train"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO("\n".join([*turn * 3, "proof"])))
            patch.setattr(sys, "stdout", said := io.StringIO())
            serve.serve(entry, replace(peers.QUICK, threads=1))
        found[entry.kind] = [json.loads(line) for line in said.getvalue().splitlines()]
    return found


def test_every_contestant_trains_on_whole_games(replies: dict[str, list[dict[str, Any]]]) -> None:
    assert list(replies) == ["maskable", "plain", "dense", "sparse", "shared", "unforced"]
    for kind, (*_, proof) in replies.items():
        assert proof["problems"] == [], kind
        assert proof["games_finished"] > 0, kind


def test_the_same_nets_are_the_same_size(replies: dict[str, list[dict[str, Any]]]) -> None:
    sizes = {kind: begun["parameters"] for kind, (begun, *_) in replies.items()}
    assert sizes["maskable"] == sizes["plain"] == sizes["dense"] == sizes["sparse"]
    assert sizes["shared"] == sizes["unforced"] < sizes["dense"]


def test_only_skipped_moves_are_decisions_without_a_sample(
    replies: dict[str, list[dict[str, Any]]],
) -> None:
    for kind, (_, *turns, _) in replies.items():
        for turn in (one for one in turns if "decisions" in one):
            assert (turn["decisions"] > turn["samples"]) == (kind == "unforced"), kind


def test_ratios_are_those_of_the_rates(figures: ModuleType) -> None:
    contest = importlib.import_module("peers.contest")
    (record,) = importlib.import_module("pages").stored("train")
    best = contest.compare(record["contestants"])
    by_name = {one["name"]: one for one in record["contestants"]}
    fastest = by_name[best["maskable"]]["samples_per_s"]["rounds"]
    for one in by_name.values():
        wanted = np.divide(one["samples_per_s"]["rounds"], fastest)
        assert one["to_maskable"]["rounds"] == pytest.approx(wanted, abs=1e-3)
        assert one["to_plain"]["median"] > 0
        assert ("of_ceiling" in one) == (one["kind"] not in ("maskable", "plain"))


def test_the_docs_show_what_is_stored(figures: ModuleType) -> None:
    pages, docs = importlib.import_module("pages"), ROOT / "docs/inside/benchmarks.md"
    table = figures.docs_figures(pages.stored("train"))
    assert docs.read_text() == pages.with_table(docs, "train figures", table), (
        "run: python benchmarks/train_vs_peers.py --stored --update-docs"
    )


@pytest.mark.slow
def test_a_contest_is_held_shown_and_taken_up_by_the_docs(
    figures: ModuleType, tmp_path: Path
) -> None:
    """Everybody in a process of his own, which takes seconds to start."""
    words = ("--quick", "--threads", "1", "--original", "--out", str(tmp_path))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (record,) = importlib.import_module("pages").stored("train", tmp_path)
    assert record["valid"]
    text = figures.docs_figures([record])
    for one in record["contestants"]:
        assert one["problems"] == []
        assert one["games_finished"] > 0
        assert one["samples_per_s"]["median"] > 0
        assert one["label"] in done.stdout
        assert f"| {one['label']}" in text
    assert record["commit"] in text
    assert "938 agent steps/s" in done.stdout
    assert "cannot be compared" in done.stdout
