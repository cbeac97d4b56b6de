"""Whole runs: exact resumption, interruption, failure, the parallel smoke test."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.cli import main
from sparring.config import EvaluationConfig, TrainConfig
from sparring.store import checkpoint as checkpoints
from sparring.training.budget import planned_updates
from sparring.training.planning.settings import merged, with_preset
from sparring.training.records.metrics import read
from sparring.training.status import Status
from sparring.training.train import new_run, resume, train, train_with
from training.run_helpers import evaluator_at_hand, trainer_for

PROGRAM = Path(sys.executable).parent / "sparring"
QUICK: dict[str, Any] = {
    "net": {"hidden": (32, 32)},
    "collect": {"games": 32, "steps": 16},
    # Constant schedules: a run's weights then do not depend on how long it was meant to be.
    "ppo": {"epochs": 2, "minibatch": 256, "lr": 1e-3, "entropy": 0.01},
    "eval": {"off": True},
    "tensorboard": False,
}


def settings(tmp_path: Path, game: str = "skull_king", **changes: Any) -> TrainConfig:
    flags = ("rounds=1,2,3",) if game == "skull_king" else ()
    base = merged(with_preset(game), {**QUICK, "set": flags, "runs": str(tmp_path)}, "test")
    config: TrainConfig = merged(base, changes, "test")
    return config


def final(run: Path, update: int) -> checkpoints.Checkpoint:
    return checkpoints.load(run / "checkpoints" / f"{update:08d}")


def assert_same_run(a: Path, b: Path, update: int) -> None:
    """Weights, optimizer, games in flight, open decisions and metrics are equal to the bit."""
    one, two = final(a, update), final(b, update)
    assert one.tensors.keys() == two.tensors.keys()
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, two.tensors[group][name]), (group, name)
    assert one.blobs == two.blobs
    mine, yours = read(a), read(b)
    steady = {n for n in mine if n.startswith(("losses/", "learning/"))} | {"charts/decisions"}
    for name in steady:
        # A run that was killed may have written on past this checkpoint; a resume drops that.
        kept = yours[name][0] <= update
        np.testing.assert_array_equal(mine[name][0], yours[name][0][kept], err_msg=name)
        np.testing.assert_array_equal(mine[name][2], yours[name][2][kept], err_msg=name)


def command(config: TrainConfig, *more: str) -> list[str]:
    collect = config.collect
    words = [str(PROGRAM), "train", config.game, "--runs", config.runs, "--updates"]
    words += [str(config.updates), "--threads", str(config.threads), "--net.hidden", "32", "32"]
    words += ["--collect.games", str(collect.games), "--collect.steps", str(collect.steps)]
    words += ["--ppo.epochs", "2", "--ppo.minibatch", str(config.ppo.minibatch), "--eval.off"]
    words += ["--set", "rounds=1,2,3", "--ppo.lr", "1e-3", "--ppo.entropy", "0.01"]
    return [*words, "--checkpoint-every-s", "0", "--keep", "100", *more]


def wait_for_checkpoint(folder: Path, number: int, process: subprocess.Popen[bytes]) -> Path:
    """Wait until the only run in the folder has reached a checkpoint; return the run."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = list(folder.glob(f"*/checkpoints/{number:08d}"))
        if found:
            return found[0].parents[1]
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("no checkpoint came")


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_six_and_six_updates_equal_twelve_after_a_kill(tmp_path: Path, threads: int) -> None:
    whole = train_with(settings(tmp_path / "whole", updates=12, threads=threads), quiet=True)
    config = settings(tmp_path / "cut", updates=12, threads=threads)
    process = subprocess.Popen(command(config), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run = wait_for_checkpoint(tmp_path / "cut", 6, process)
    process.kill()
    process.communicate()
    again = resume(str(run), number=6, quiet=True)
    assert again.ended == "done"
    assert_same_run(whole.run, again.run, 12)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_and_fifty_resumes(tmp_path: Path) -> None:
    config = settings(tmp_path / "cut", updates=4000, threads=1)
    process = subprocess.Popen(command(config), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run = wait_for_checkpoint(tmp_path / "cut", 1, process)
    rng = random.Random(0)
    reached = 0
    for _ in range(50):
        newest = checkpoints.newest_valid(run / "checkpoints")
        assert newest is not None
        wait_for_checkpoint(tmp_path / "cut", int(newest.name) + 1, process)
        time.sleep(rng.random() * 0.3)
        process.kill()
        process.communicate()
        newest = checkpoints.newest_valid(run / "checkpoints")
        assert newest is not None
        assert int(newest.name) > reached
        reached = int(newest.name)
        checkpoints.load(newest)
        words = [str(PROGRAM), "resume", str(run)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.kill()
    process.communicate()
    whole = train_with(settings(tmp_path / "whole", updates=reached, threads=1), quiet=True)
    assert_same_run(whole.run, run, reached)


@pytest.mark.parametrize(
    ("name", "code"), [("SIGTERM", 143), pytest.param("SIGINT", 130, marks=pytest.mark.slow)]
)
def test_a_polite_stop_saves_and_says_how_to_go_on(tmp_path: Path, name: str, code: int) -> None:
    config = settings(tmp_path, updates=100_000, threads=1)
    process = subprocess.Popen(
        command(config), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False
    )
    run = wait_for_checkpoint(tmp_path, 3, process)
    process.send_signal(getattr(signal, name))
    started = time.monotonic()
    _, told = process.communicate(timeout=20)
    assert time.monotonic() - started < 20
    assert process.returncode == code
    assert f"sparring resume {run}" in told.decode()
    newest = checkpoints.newest_valid(run / "checkpoints")
    assert newest is not None
    more = resume(str(run), updates=int(newest.name) + 2, quiet=True)
    assert more.ended == "done"


def test_a_residual_net_trains_resumes_to_the_bit_and_plays(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "net": {"kind": "residual", "channels": 8, "blocks": 1},
        "collect": {"games": 8},
        "ppo": {"minibatch": 128},
        "set": ("max_plies=60", "material=0.2"),
        "threads": 1,
    }
    whole = train_with(settings(tmp_path / "whole", "shogi", updates=4, **changes), quiet=True)
    cut = train_with(settings(tmp_path / "cut", "shogi", updates=2, **changes), quiet=True)
    again = resume(str(cut.run), updates=4, quiet=True)
    assert_same_run(whole.run, again.run, 4)
    start, end = (final(run, at).tensors["net"] for run, at in ((cut.run, 2), (whole.run, 4)))
    assert not [
        name for name in end if name != "value_scale" and torch.equal(start[name], end[name])
    ]
    assert again.evaluate("random", games=8)["random"].games == 8


def test_a_changed_config_is_refused_on_resume(tmp_path: Path) -> None:
    agent = train_with(settings(tmp_path, updates=2, threads=1), quiet=True)
    file = agent.run / "config.toml"
    file.write_text(file.read_text().replace("minibatch = 256", "minibatch = 128"))
    with pytest.raises(
        sparring.ConfigError, match=r"has changed: ppo.minibatch was 256, is 128; put"
    ):
        resume(str(agent.run), quiet=True)
    file.write_text(file.read_text().replace("minibatch = 128", "minibach = 256"))
    with pytest.raises(sparring.ConfigError, match="did you mean 'minibatch'"):
        resume(str(agent.run), quiet=True)


def test_a_damaged_checkpoint_is_named_and_an_older_one_taken(tmp_path: Path) -> None:
    config = settings(tmp_path, updates=4, threads=1, checkpoint_every_s=0.0, keep=10)
    agent = train_with(config, quiet=True)
    broken = agent.run / "checkpoints" / "00000004" / "net.safetensors"
    raw = bytearray(broken.read_bytes())
    raw[-1] ^= 1
    broken.write_bytes(bytes(raw))
    with pytest.warns(sparring.errors.SparringWarning, match="00000004"):
        again = resume(str(agent.run), updates=4, quiet=True)
    assert again.ended == "done"
    final(agent.run, 4)


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "skulking"], "did you mean 'skull_king'"),
        (["train", "skull_king", "--opponents", "captian=1"], "did you mean 'captain'"),
        (["train", "skull_king", "--opponents", "captain=much"], "NAME=WEIGHT"),
        (["train", "skull_king", "--config", "nowhere.toml"], "cannot read nowhere.toml"),
        (["train", "skull_king", "--device", "cuda"], "torch sees no GPU"),
        (["train", "skull_king", "--device", "tpu"], "use cpu, cuda or auto"),
        (["train", "skull_king", "--device", "cpu", "--pool", "cuda"], "needs the network there"),
        (["train", "skull_king", "--pool", "moon"], "use cpu, cuda or auto"),
        (["train", "skull_king", "--set", "num_players=99"], "outside"),
        (["train", "skull_king", "--device", "cpu", "--population", "2"], "on one GPU"),
        (["train", "skull_king", "--population", "0"], "must be from 1 to 1024"),
        (["train", "skull_king", "--net.kind", "residual"], "needs a game with a board"),
        (["train", "shogi", "--net.kind", "resnet"], "net.kind 'resnet' is unknown"),
        (["train", "shogi", "--net.channels", "0"], "must be from 1 to 1024"),
        (["train", "shogi", "--net.blocks", "0"], "must be from 1 to 128"),
        (["train", "skull_king", "--vary", "ppo.lrr=1,2"], "did you mean 'lr'"),
        (["train", "skull_king", "--vary", "ppo.lr=1e-3,abc"], "key=value,value"),
        (["resume", "no-such-run"], "no-such-run"),
    ],
)
def test_bad_input_is_named(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    if words[0] == "train":
        words = [*words, "--runs", str(tmp_path)]
    assert main(words) in (2, 3)
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())  # what was refused leaves no run behind


def test_an_unknown_option_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "skull_king", "--ppo.lrr", "1", "--runs", str(tmp_path)]) == 2
    assert "did you mean --ppo.lr?" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_goes_before_the_preset_and_the_command_line_before_both(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("minutes = 3\n[ppo]\nepochs = 7\nlr = 0.5\n")
    config = with_preset("skull_king", str(file))
    assert (config.minutes, config.ppo.epochs, str(config.ppo.lr)) == (3.0, 7, "0.5")
    assert config.ppo.minibatch == with_preset("skull_king").ppo.minibatch
    file.write_text("[ppo]\nepoch = 7\n")
    with pytest.raises(sparring.ConfigError, match="did you mean 'epochs'"):
        with_preset("skull_king", str(file))


def test_a_busy_start_does_not_shorten_a_run(tmp_path: Path) -> None:
    config = settings(tmp_path, updates=0, minutes=10.0)
    trainer = trainer_for(config, new_run(config))
    status, learner = trainer.status, trainer.learner
    while not trainer._finished():  # ten times slower for the first twenty seconds
        learner.updates += 1
        status.update = learner.updates
        status.seconds += 1.0 if status.seconds < 20 else 0.1
        trainer._plan_updates()
    trainer._close()
    assert 0.9 * 600 < status.seconds < 1.05 * 600


def played_out(timeout_s: float, *paces: tuple[int, float, bool]) -> tuple[Status, list[int]]:
    """Let updates pass until the minutes end the run: so many, of so many seconds, that learn.

    Returns how it ended, and the numbers of updates that were planned.
    """
    status = Status("tic_tac_toe", Path("runs/a"), timeout_s=timeout_s)
    events: list[dict[str, Any]] = []
    for count, took, learns in paces:
        for _ in range(count):
            status.update += 1
            status.seconds += took
            status.count(100 * status.update, status.samples + 100 * learns)
            if total := planned_updates(status, events):
                status.total_updates = total
                now = {"update": status.update, "seconds": status.seconds}
                events.append({"event": "planned", "total_updates": total, **now})
            if status.progress >= 1:
                return status, [event["total_updates"] for event in events]
    raise AssertionError(f"{status.seconds} s of {timeout_s} s, and it goes on")


def test_minutes_end_a_run_after_the_update_that_passes_them() -> None:
    assert played_out(6.0, (9, 13.0, True))[0].update == 1
    assert played_out(6.0, (9, 4.0, True))[0].update == 2
    late, plans = played_out(100.0, (850, 0.1, True), (99, 6.0, True))  # after the last correction
    assert late.seconds == pytest.approx(103.0)
    assert plans[-1] == late.update == late.total_updates


def test_minutes_are_not_planned_by_the_pace_of_a_warm_up() -> None:
    """Updates that only fill a replay are many times as fast as those that learn."""
    status, plans = played_out(36.0, (10, 0.3, False), (99, 2.0, True))
    assert 0.9 * 36 < status.seconds <= 38
    assert all(abs(total - status.update) <= 1 for total in plans)
    assert played_out(2.0, (99, 0.3, False))[0].seconds == pytest.approx(2.1)


def test_minutes_become_a_recorded_number_of_updates(tmp_path: Path) -> None:
    agent = train("tic_tac_toe", minutes=0.02, runs=str(tmp_path), quiet=True, eval={"off": True})
    events = json.loads((agent.run / "events.json").read_text())
    plans = [e for e in events if e["event"] == "planned"]
    assert [e["update"] for e in plans] == sorted({e["update"] for e in plans})
    newest = checkpoints.newest_valid(agent.run / "checkpoints")
    assert newest is not None
    assert int(newest.name) == plans[-1]["total_updates"]


def test_parallel_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two threads, evaluation beside training, 40 updates; nothing is left behind."""
    plan = {"off": False, "every_s": 0.1, "games": 64, "against": ("captain",), "final_games": 64}
    config = settings(tmp_path, updates=40, threads=2, eval=plan)
    assert config.eval == EvaluationConfig(
        every_s=0.1, games=64, final_games=64, against=("captain",)
    )
    with evaluator_at_hand():
        agent = train_with(config)
    assert agent.ended == "done"
    assert capsys.readouterr().err.count("waiting for the last evaluation\n") == 1
    curves = read(agent.run)
    assert len(curves["eval/captain/win"][0]) >= 2
    assert len(curves["eval/previous best/win"][0]) >= 1
    assert curves["losses/policy_loss"][0].tolist() == list(range(1, 41))
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if children.exists():
        names = [Path(f"/proc/{c}/cmdline").read_text() for c in children.read_text().split()]
        assert not [n for n in names if "evaluate" in n]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_tic_tac_toe_never_loses_to_random_after_half_a_minute(tmp_path: Path) -> None:
    agent = train("tic_tac_toe", minutes=0.4, runs=str(tmp_path), quiet=True, eval={"off": True})
    found = agent.evaluate("random", games=8192)["random"].first
    assert found.losses == 0


@pytest.mark.slow
def test_three_lines_of_python(tmp_path: Path) -> None:
    agent = train("tic_tac_toe", updates=20, runs=str(tmp_path), quiet=True, eval={"off": True})
    found = agent.evaluate("random", games=256)
    where = agent.save(tmp_path / "policy")
    assert found["random"].first.win_share > 0.5
    loaded = sparring.load(where)
    state = sparring.new_state("tic_tac_toe")
    assert loaded.action(state) == agent.policy.action(state)
