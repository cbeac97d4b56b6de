"""Nothing that was trained is lost or mistaken: going back, damage, budgets, ends."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import sparring
from sparring.cli import main
from sparring.errors import ConfigError, SparringWarning
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy
from sparring.training.evaluate import EvalWorker
from sparring.training.loop import Trainer
from sparring.training.member import Member
from sparring.training.planning.training import run_plan
from sparring.training.records.metrics import read
from sparring.training.train import new_run, resume
from training.run_helpers import WORDS, events, settings, trained, trainer_for

PROGRAM = Path(sys.executable).parent / "sparring"


def spoil(run: Path, number: int) -> None:
    net = run / "checkpoints" / f"{number:08d}" / "net.safetensors"
    net.write_bytes(net.read_bytes()[:50])


# Going back


def test_going_back_begins_a_run_of_its_own_and_keeps_the_old_one(tmp_path: Path) -> None:
    old = trained(tmp_path, updates=12, keep=100)
    before = {p: p.stat().st_mtime_ns for p in old.run.rglob("*") if p.is_file()}
    new = resume(str(old.run), number=4, updates=6, quiet=True)
    assert new.run != old.run
    assert new.policy.meta["update"] == 6
    assert read(new.run)["losses/policy_loss"][0].tolist() == list(range(1, 7))
    assert json.loads((new.run / "origin.json").read_text())["checkpoint"] == 4
    # The old run is as it was, to the byte; a lock may have been touched.
    after = {p: p.stat().st_mtime_ns for p in old.run.rglob("*") if p.is_file()}
    assert {p.name for p in after if after[p] != before.get(p)} <= {".lock", "metrics.sqlite"}
    assert load_policy(old.run).meta["update"] == 12
    same = trained(tmp_path / "whole", updates=6)
    for name, tensor in same.policy.net.state_dict().items():
        assert torch.equal(tensor, new.policy.net.state_dict()[name])


@pytest.mark.slow
def test_the_command_names_the_new_timeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = trained(tmp_path, updates=6, keep=100, eval={"final_games": 16, "off": True})
    words = ["resume", str(old.run), "--checkpoint", "2", "--updates", "3", "--json"]
    assert main(words) == 0
    run = Path(json.loads(capsys.readouterr().out)["run"])
    assert run != old.run
    assert checkpoints.checkpoint_numbers(run / "checkpoints")[-1] == 3


def test_damaged_newer_checkpoints_do_not_count_any_more(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=12, keep=3)
    for number in (11, 12):
        spoil(agent.run, number)
    with pytest.warns(SparringWarning) as told:
        again = resume(str(agent.run), updates=11, quiet=True)
    assert "skipped checkpoint 12" in str(told[0].message)
    assert again.run == agent.run
    assert again.policy.meta["update"] == 11
    assert checkpoints.checkpoint_numbers(agent.run / "checkpoints")[-1] == 11
    assert (agent.run / "checkpoints" / "damaged-00000012").is_dir()


def test_going_back_with_a_full_disk_leaves_no_half_made_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = trained(tmp_path, updates=6, keep=100, name="sk-0.1-a-b-c")
    honest = shutil.copyfile

    def full(source: Any, target: Any, **options: Any) -> Any:
        if os.fspath(source).endswith("manifest.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return honest(source, target, **options)

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(ConfigError, match="check the space on its disk"):
        resume(str(old.run), number=3, updates=4, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == [old.run.name]
    monkeypatch.setattr(shutil, "copyfile", honest)
    assert resume(str(old.run), number=3, updates=4, quiet=True).policy.meta["update"] == 4


def test_a_run_that_is_held_is_not_touched_by_a_resume(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=4)
    before = (agent.run / "config.toml").read_bytes()
    held = sparring.training.records.run.Run.open(agent.run).lock()
    with held, pytest.raises(sparring.SparringError, match="or measured by another process"):
        resume(str(agent.run), updates=999, quiet=True)
    assert (agent.run / "config.toml").read_bytes() == before


@pytest.mark.slow
def test_ten_kills_while_going_back(tmp_path: Path) -> None:
    """Whenever the process dies, the old run is whole, and a new one is there whole or not."""
    rng = random.Random(3)
    old = trained(tmp_path, updates=6, keep=100, checkpoint_every_s=0.0)
    for _ in range(10):
        words = [str(PROGRAM), "resume", str(old.run), "--checkpoint", "3", "--updates", "100000"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = time.monotonic() + 1.0 + 3.0 * rng.random()
        while time.monotonic() < until and len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        time.sleep(0.3 * rng.random())  # the moment of death is what is varied
        process.kill()
        process.communicate()
        assert load_policy(old.run).name == f"{old.run.name}/6"
        assert resume(str(old.run), quiet=True).ended == "done"
        for new in tmp_path.iterdir():
            if new == old.run:
                continue
            if (new / "config.toml").exists():
                assert load_policy(new).meta["update"] >= 3
                update = load_policy(new).meta["update"] + 1
                assert resume(str(new), updates=update, quiet=True).policy.meta["update"] == update
            shutil.rmtree(new)


@pytest.mark.slow
def test_ten_rollbacks(tmp_path: Path) -> None:
    rng = random.Random(1)
    agents = [trained(tmp_path, updates=12, keep=100)]
    for _ in range(10):
        old = rng.choice(agents)
        known = checkpoints.checkpoint_numbers(old.run / "checkpoints")
        back, on = rng.choice(known[:-1]), rng.randrange(1, 6)
        new = resume(str(old.run), number=back, updates=back + on, quiet=True)
        assert new.run not in [agent.run for agent in agents]
        assert new.policy.name == f"{new.run.name}/{back + on}"
        assert load_policy(old.run).name == f"{old.run.name}/{known[-1]}"
        assert read(new.run)["losses/policy_loss"][0].tolist() == list(range(1, back + on + 1))
        if len(checkpoints.checkpoint_numbers(new.run / "checkpoints")) > 1:
            agents.append(new)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_twenty_bit_flips(tmp_path: Path) -> None:
    rng = random.Random(2)
    plan = {"off": False, "every_decisions": 300, "games": 16}
    agent = trained(tmp_path / "whole", updates=8, keep=3, eval=plan)
    files = [p for p in agent.run.rglob("*") if p.is_file() and "tensorboard" not in p.parts]
    assert (agent.run / "best.json") in files
    for number in range(20):
        run = tmp_path / f"flipped-{number}" / agent.run.name
        shutil.copytree(agent.run, run)
        file = run / rng.choice([p for p in files if p.stat().st_size]).relative_to(agent.run)
        raw = bytearray(file.read_bytes())
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        file.write_bytes(bytes(raw))
        loaded = load_policy(run)
        assert loaded.name.startswith(f"{run.name}/"), file
        assert all(torch.isfinite(t).all() for t in loaded.net.state_dict().values())
        try:
            assert resume(str(run), updates=9, quiet=True).policy.meta["update"] in range(1, 10)
        except sparring.SparringError as told:
            assert "\n" not in str(told), file
            assert file.name in ("config.toml", "metrics.sqlite"), (file, told)


# The best checkpoint


def with_best(run: Path, number: int, best: int) -> None:
    """Say in a checkpoint and in best.json which one is the best."""
    saved = checkpoints.load(run / "checkpoints" / f"{number:08d}")
    meta = {**saved.meta, "best": {"update": best, "strength": 0.5}}
    checkpoints.save(
        run / "checkpoints", number, tensors=saved.tensors, blobs=saved.blobs, meta=meta
    )


def test_a_best_checkpoint_that_was_pruned_is_not_named_after_a_resume(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=5, keep=2)
    # An answer came after the last save and before a crash: the file knows, the checkpoint not.
    (agent.run / "best.json").write_text('{"checkpoint": 4}')
    (agent.run / "events.json").write_text('[{"update": 5, "event": "best", "checkpoint": 4}]')
    again = resume(str(agent.run), updates=9, quiet=True)
    assert checkpoints.checkpoint_numbers(agent.run / "checkpoints") == [8, 9]
    assert not (agent.run / "best.json").exists()
    assert not [e for e in events(agent.run) if e["event"] == "best"]
    assert again.policy.meta["update"] == 9


def test_a_damaged_best_checkpoint_is_forgotten_and_the_run_goes_on(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=5, keep=4)
    with_best(agent.run, 5, best=3)
    spoil(agent.run, 3)
    again = resume(str(agent.run), updates=6, quiet=True)
    assert again.policy.meta["update"] == 6
    assert [e["checkpoint"] for e in events(agent.run) if e["event"].startswith("best lost")] == [3]
    assert main(["eval", str(agent.run), "--against", "random", "--games", "16"]) == 0


@pytest.mark.slow
def test_a_better_best_checkpoint_outlives_resumes_that_train_little(tmp_path: Path) -> None:
    wanted = {"off": False, "every_s": 1e9, "games": 16, "final_games": 16}
    agent = trained(tmp_path, updates=3, keep=10, eval=wanted)
    resume(str(agent.run), updates=4, quiet=True)
    before = (agent.run / "best.json").read_text()
    resume(str(agent.run), quiet=True)  # nothing is left to train
    assert (agent.run / "best.json").read_text() == before
    strength = read(agent.run)["eval/strength"]
    best = int(strength[0][strength[2].argmax()])
    assert json.loads(before)["checkpoint"] == best


def test_no_evaluation_that_is_owed_gives_way_to_a_newer_one(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=4, keep=10)
    saved = checkpoints.load(agent.run / "checkpoints" / "00000004")
    meta = {**saved.meta, "waiting": {"1": 0.1, "2": 0.2, "3": 0.3}}
    config = settings(tmp_path, updates=4, eval={"off": False, "games": 16})
    run = sparring.training.records.run.Run.open(agent.run)
    owing = replace(saved, meta=meta)
    trainer = trainer_for(config, run, resume=owing)
    trainer._request_evaluation()
    trainer._close()
    assert list(trainer.members[0].waiting) == [1, 2, 3, 4]


@pytest.mark.slow
def test_an_evaluation_that_a_crash_swallowed_is_asked_for_again(tmp_path: Path) -> None:
    wanted = {"off": False, "every_s": 1e9, "games": 16, "final_games": 16}
    config = settings(tmp_path, updates=4, eval=wanted)
    trainer = trainer_for(config, new_run(config))
    (member,) = trainer.members
    trainer.status.update = 0
    trainer._request_evaluation()
    trainer.save()
    trainer._close()  # before an answer came
    run = member.run.path
    assert not (run / "best.json").exists()
    resume(str(run), updates=2, quiet=True)
    assert read(run)["eval/strength"][0].tolist() == [0, 2]
    assert (run / "best.json").exists()


# Budgets


@pytest.mark.slow
def test_a_longer_budget_is_remembered(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=3)
    process = subprocess.Popen(
        [str(PROGRAM), "resume", str(agent.run), "--updates", "100000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while not checkpoints.checkpoint_numbers(agent.run / "checkpoints")[-1] >= 6:
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"resume it with: sparring resume {agent.run}" in told.decode()
    config = sparring.training.records.run.Run.open(agent.run).config
    assert config["updates"] == 100_000  # so that the command goes on and does not end at once


def test_a_finished_run_is_trained_on_by_minutes(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=3)
    more = resume(str(agent.run), minutes=agent.minutes + 0.02, quiet=True)
    assert more.policy.meta["update"] > 3
    assert more.minutes > agent.minutes
    (budget,) = [e for e in events(agent.run) if e["event"] == "budget"]
    assert budget["update"] == 3
    with pytest.raises(ConfigError, match="budgets are totals"):
        resume(str(agent.run), minutes=0.0001, quiet=True)
    with pytest.raises(ConfigError, match="one budget"):
        resume(str(agent.run), minutes=10, updates=100, quiet=True)


def test_patience_goes_on_counting_after_a_resume(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=3, eval={"off": True, "patience": 4})
    saved = checkpoints.load(agent.run / "checkpoints" / "00000003")
    meta = {**saved.meta, "dry": 3}
    checkpoints.save(
        agent.run / "checkpoints", 3, tensors=saved.tensors, blobs=saved.blobs, meta=meta
    )
    config = settings(tmp_path, updates=3, eval={"off": True, "patience": 4})
    run = sparring.training.records.run.Run.open(agent.run)
    again = checkpoints.load(agent.run / "checkpoints" / "00000003")
    trainer = trainer_for(config, run, resume=again)
    assert trainer.members[0].evaluations_since_best == 3
    assert trainer._stop_reason() == ""
    trainer.members[0].evaluations_since_best += 1
    assert trainer._stop_reason() == "early"
    trainer._close()


@pytest.mark.slow
def test_a_run_whose_patience_ended_is_only_measured_again(tmp_path: Path) -> None:
    plan = {"off": False, "patience": 1, "every_decisions": 100, "games": 16, "final_games": 16}
    agent = trained(tmp_path, updates=500, eval=plan)
    assert agent.ended == "early"
    reached = checkpoints.checkpoint_numbers(agent.run / "checkpoints")[-1]
    assert resume(str(agent.run), quiet=True).ended == "early"
    assert checkpoints.checkpoint_numbers(agent.run / "checkpoints")[-1] == reached
    resume(str(agent.run), updates=reached + 3, quiet=True)  # who asks for more gets more
    assert checkpoints.checkpoint_numbers(agent.run / "checkpoints")[-1] > reached


# Ends


def test_a_signal_at_the_very_end_is_not_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Trainer._close

    def closing(self: Trainer) -> None:
        signal.raise_signal(signal.SIGTERM)
        honest(self)

    monkeypatch.setattr(Trainer, "_close", closing)
    assert trained(tmp_path, updates=2).ended == "SIGTERM"


@pytest.mark.slow
def test_signals_while_measuring_say_that_the_run_is_saved(tmp_path: Path) -> None:
    words = [str(PROGRAM), "train", "tic_tac_toe", "--runs", str(tmp_path), "--updates", "2"]
    words += [*WORDS, "--eval.off", "--eval.final-games", "400000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not [p for p in tmp_path.glob("*/events.json") if '"ended"' in p.read_text()]:
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 143
    assert b"saved" in told
    assert b"Traceback" not in told


def test_results_are_kept_with_parity_and_seats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "tic_tac_toe", "--runs", str(tmp_path), "--updates", "2", *WORDS]
    assert main([*words, "--eval.off", "--eval.final-games", "64", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    run = Path(told["run"])
    kept = json.loads((run / "results.json").read_text())
    assert kept["results"] == told["results"]
    assert kept["checkpoint"] == 2
    for found in kept["results"].values():
        assert found["parity"] == 0.5
        assert len(found["seat_wins"]) == 2
    assert sorted(p.name for p in run.glob("metrics*")) == ["metrics.sqlite"]


def test_members_of_a_population_are_evaluated_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"off": False, "games": 16}
    config = settings(tmp_path, updates=4, eval=wanted)
    trainer = trainer_for(config, new_run(config))
    asked: list[str] = []
    monkeypatch.setattr(EvalWorker, "busy", False)
    monkeypatch.setattr(EvalWorker, "submit", lambda _self, request: asked.append(request["id"]))
    for number in (1, 2):
        other = settings(tmp_path, updates=4, seed=number, eval=wanted)
        trainer.members.append(Member(run_plan(other), new_run(other), trainer.learner.rules))
    for member in trainer.members:
        member.save(trainer.learner.snapshot())
        member.saver.wait()
    for _ in range(6):
        trainer._request_evaluation()
        trainer._submit_evaluation()
    trainer._close()
    assert asked == ["0/0", "1/0", "2/0", "0/0", "1/0", "2/0"]
