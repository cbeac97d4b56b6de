"""Runs that meet their past: what is kept, who is met, and that resuming goes on to the bit."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.config import TrainConfig
from sparring.errors import ConfigError, IllegalActionError, SparringWarning
from sparring.store import checkpoint as checkpoints
from sparring.store.archive import Archive
from sparring.store.archive_index import ArchiveIndex
from sparring.training.member import Member
from sparring.training.planning.training import run_plan
from sparring.training.records.run import Run
from sparring.training.train import resume, train_with
from training.run_helpers import settings, trained

LEAGUE: dict[str, Any] = {
    "opponents": ("self=1", "past=2", "past:2=1", "random=0.5"),
    "league": {"every_decisions": 300, "slots": 3},
    "checkpoint_every_s": 1e6,
}


def newest(run: Path) -> checkpoints.Checkpoint:
    path = checkpoints.latest(run / "checkpoints")
    assert path is not None
    return checkpoints.load(path)


def assert_same(one: checkpoints.Checkpoint, two: checkpoints.Checkpoint) -> None:
    assert one.number == two.number
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, two.tensors[group][name]), (group, name)
    assert one.blobs == two.blobs
    for key in ("decisions", "samples", "opponent_rows"):
        assert one.meta[key] == two.meta[key]
    mine, theirs = (dict(each.meta["league"]) for each in (one, two))
    mine.pop("home"), theirs.pop("home")
    assert mine == theirs


def matches(run: Path) -> set[tuple[Any, ...]]:
    with closing(sqlite3.connect(run / "league.sqlite")) as index:
        wanted = "SELECT update_number, name, wins, draws, losses FROM results"
        joined = "JOIN players ON players.id = results.player WHERE kind = 'match'"
        return set(index.execute(f"{wanted} {joined}"))


@pytest.mark.parametrize(
    "choose", ["pfsp", *(pytest.param(c, marks=pytest.mark.slow) for c in ("uniform", "forgotten"))]
)
def test_a_run_with_a_league_is_resumed_to_the_bit(tmp_path: Path, choose: str) -> None:
    changes = {**LEAGUE, "league": {**LEAGUE["league"], "sampling": choose}}
    whole = trained(tmp_path, name="whole", updates=30, **changes)
    part = trained(tmp_path, name="part", updates=17, **changes)
    assert newest(part.run).meta["league"]["mixes"]["past"], "somebody was met"
    resume(str(part.run), updates=30, quiet=True)
    assert_same(newest(whole.run), newest(part.run))
    hashes = [
        [entry.hash for entry in ArchiveIndex(run).entries()] for run in (whole.run, part.run)
    ]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("gigabytes", [pytest.param(4.0, marks=pytest.mark.slow), 1e-9])
def test_an_older_checkpoint_begins_a_run_with_the_league_of_then(
    tmp_path: Path, gigabytes: float
) -> None:
    """Also where snapshots that were there then have left the archive since."""
    bounded = {**LEAGUE, "league": {**LEAGUE["league"], "gigabytes": gigabytes}}
    saved = {**bounded, "keep": 100, "checkpoint_every_s": 0.0}
    whole = trained(tmp_path, name="whole", updates=25, **saved)
    long = trained(tmp_path, name="long", updates=30, **saved)
    branch = resume(str(long.run), number=15, updates=25, quiet=True)
    assert branch.run != long.run
    assert_same(newest(whole.run), newest(branch.run))
    numbers = [ArchiveIndex(run).entries()[-1].number for run in (long.run, branch.run)]
    assert numbers[0] > numbers[1]


@pytest.mark.slow
def test_an_evaluation_that_is_asked_for_again_meets_the_same_past(tmp_path: Path) -> None:
    changes = {**LEAGUE, "league": {**LEAGUE["league"], "sampling": "forgotten"}}
    plan = {"off": False, "every_decisions": 1500, "games": 16, "final_games": 16}
    long = trained(
        tmp_path,
        name="long",
        updates=50,
        keep=100,
        checkpoint_every_decisions=1,
        eval=plan,
        **changes,
    )
    saved = [checkpoints.load(path).meta for path in sorted((long.run / "checkpoints").glob("0*"))]
    asked = max(int(n) for meta in saved[:45] for n in meta["waiting"])
    at = next(m["update"] for m in saved if m["update"] > asked + 6 and str(asked) in m["waiting"])
    killed = shutil.copytree(long.run, tmp_path / "killed")
    for path in (killed / "checkpoints").glob("0*"):
        if int(path.name) > at:
            shutil.rmtree(path)
    forgotten = "DELETE FROM results WHERE kind = 'match' AND update_number >= ?"
    with closing(sqlite3.connect(killed / "league.sqlite")) as index, index:
        index.execute(forgotten, (asked,))
    resume(str(killed), updates=50, quiet=True)
    assert matches(killed) == matches(long.run)
    assert_same(newest(long.run), newest(killed))


def test_a_missing_or_damaged_snapshot_is_reported_and_left_out(tmp_path: Path) -> None:
    part = trained(tmp_path, name="part", updates=25, **LEAGUE)
    slots = newest(part.run).meta["league"]["slots"].values()
    held = [slot["hash"] for slot in slots if slot["hash"]]
    index = ArchiveIndex(part.run)
    index.file(held[0]).unlink()
    index.file(held[1]).write_bytes(b"x" * 100)
    with pytest.warns(SparringWarning, match="a past self is left out") as told:
        resume(str(part.run), updates=40, quiet=True)
    assert len([w for w in told if "left out" in str(w.message)]) == 2
    after = newest(part.run).meta["league"]
    assert sorted(after["lost"]) == sorted(held[:2])
    assert not {slot["hash"] for slot in after["slots"].values()} & set(held[:2])


def test_past_before_the_first_snapshot_is_the_learner_itself(tmp_path: Path) -> None:
    alone = trained(tmp_path, name="self", updates=5, opponents=("self=1",))
    past = trained(
        tmp_path,
        name="past",
        updates=5,
        opponents=("past=1",),
        league={"every_decisions": 10**9, "slots": 2},
    )
    one, two = newest(alone.run), newest(past.run)
    assert all(torch.equal(t, two.tensors["net"][n]) for n, t in one.tensors["net"].items())
    assert two.meta["opponent_rows"] == 0


def test_a_saved_policy_is_an_opponent_by_its_name(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    first = trained(tmp_path / "runs", name="first", updates=3)
    second = trained(tmp_path / "runs", name="second", updates=4, opponents=("latest@greedy=1",))
    saved = newest(second.run)
    (word,) = saved.meta["config"]["opponents"]
    assert word == "runs/first/checkpoints/00000003@greedy=1", "latest is another run by now"
    assert saved.meta["opponent_rows"] > 0
    (slot,) = saved.meta["league"]["slots"].values()
    assert slot["fixed"] and slot["greedy"]
    resume(str(second.run), updates=6, quiet=True)
    whole = trained(tmp_path / "runs", name="whole", updates=6, opponents=("first/3@greedy=1",))
    assert_same(newest(whole.run), newest(second.run))
    assert first.run.exists()


def test_functions_and_other_networks_are_asked_apart(tmp_path: Path) -> None:
    small = trained(tmp_path, name="small", updates=2, net={"hidden": (8,)})
    seen: list[tuple[int, ...]] = []

    def lowest(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        seen.append(obs.shape)
        return mask.argmax(axis=1)

    config = settings(tmp_path, name="mixed", updates=3)
    given = [(lowest, 2.0), small, "self=1"]
    agent = train_with(config, quiet=True, opponents=given)
    assert seen and newest(agent.run).meta["opponent_rows"] > sum(rows for rows, _ in seen)


def test_objects_of_a_program_are_given_again(tmp_path: Path) -> None:
    def lowest(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return mask.argmax(axis=1)

    small = {"net": {"hidden": (8,)}, "collect": {"games": 8, "steps": 8}, "eval": {"off": True}}
    agent = sparring.train(
        "tic_tac_toe",
        updates=2,
        opponents=[lowest],
        quiet=True,
        runs=str(tmp_path),
        tensorboard=False,
        **small,
    )
    with pytest.raises(ConfigError, match=r"lowest came from the program.*opponents="):
        resume(str(agent.run), updates=4, quiet=True)
    resume(str(agent.run), updates=4, opponents=[lowest], quiet=True)
    assert newest(agent.run).number == 4


def test_an_answer_that_cannot_be_played_names_the_function(tmp_path: Path) -> None:
    def wrong(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.full(len(obs), 99)

    with pytest.raises(IllegalActionError, match="wrong, row 0: action 99 is not legal"):
        train_with(settings(tmp_path, updates=2), quiet=True, opponents=[wrong])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("past", "past@greedy"), "greedy or sampled, not both"),
        (("pas",), "no player 'pas' for .*; did you mean 'past'"),
        (("past:0",), "not past:N"),
        (("past,past,past",), "names 3 of the 2 seats"),
    ],
)
def test_what_nobody_can_play_against_is_refused(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        trained(tmp_path / "none", updates=2, opponents=words)
    assert not (tmp_path / "none").exists()


def test_a_policy_of_another_game_is_refused(tmp_path: Path) -> None:
    other = trained(tmp_path, name="other", updates=2)
    base = settings(tmp_path, updates=2)
    config = TrainConfig(**{**vars(base), "game": "skull_king", "opponents": (f"{other.run}=1",)})
    with pytest.raises(ConfigError, match="plays tic_tac_toe, not skull_king"):
        train_with(config, quiet=True)


def test_a_gate_keeps_those_that_do_not_pass_out(tmp_path: Path) -> None:
    config = {**LEAGUE, "league": {**LEAGUE["league"], "gate": 1.0}}
    agent = trained(tmp_path, name="gated", updates=30, **config)
    assert len(ArchiveIndex(agent.run).entries()) == 1, "the first passes, nobody beats all"


def test_results_are_counted_as_they_were_played(tmp_path: Path) -> None:
    agent = trained(tmp_path, name="counted", updates=20, **LEAGUE)
    totals = ArchiveIndex(agent.run).totals()
    assert "random" in totals and len(totals) > 3
    assert all(sum(tally) > 0 for tally in totals.values())


def test_a_bound_on_the_disk_leaves_what_is_needed(tmp_path: Path) -> None:
    one = Archive(tmp_path / "none", max_bytes=1)
    assert one.entries() == []
    plain = trained(tmp_path, name="plain", updates=3, **LEAGUE)
    entry = ArchiveIndex(plain.run).entries()[0]
    tight = {**LEAGUE["league"], "gigabytes": 4.5 * entry.bytes / 1e9}
    saved = {**LEAGUE, "league": tight, "checkpoint_every_s": 0.0}
    agent = trained(tmp_path, name="tight", updates=30, **saved)
    left = ArchiveIndex(agent.run).entries()
    assert 3 <= len(left) < len(ArchiveIndex(agent.run).entries(removed=True))
    held = {slot["hash"] for slot in newest(agent.run).meta["league"]["slots"].values()}
    assert held - {None} <= {each.hash for each in left}
    resume(str(agent.run), updates=33, quiet=True)


def test_a_league_that_was_deleted_is_missed_not_fatal(tmp_path: Path) -> None:
    part = trained(tmp_path, name="part", updates=15, **LEAGUE)
    shutil.rmtree(part.run / "league")
    with pytest.warns(SparringWarning, match="left out"):
        resume(str(part.run), updates=20, quiet=True)
    assert json.loads((part.run / "events.json").read_text())


def test_a_lost_index_is_said(tmp_path: Path) -> None:
    part = trained(tmp_path, name="part", updates=17, **LEAGUE)
    (part.run / "league.sqlite").unlink()
    with pytest.warns(SparringWarning, match="league.sqlite is gone"):
        resume(str(part.run), updates=20, quiet=True)


def test_other_opponents_than_a_run_began_with_are_refused(tmp_path: Path) -> None:
    part = trained(tmp_path, name="part", updates=3)
    with pytest.raises(ConfigError, match=r"was started with .*, and now there are random"):
        resume(str(part.run), updates=5, opponents=["random"], quiet=True)


def test_nobody_is_the_best_without_evaluations(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"leave --eval\.off or best out"):
        trained(tmp_path / "none", updates=2, opponents=("best",))


def test_a_branch_does_not_wait_for_a_checkpoint_that_it_does_not_have(tmp_path: Path) -> None:
    agent = trained(tmp_path, name="part", updates=3, keep=1)
    saved = newest(agent.run)
    asked = {"1": 0.5, str(saved.number): 1.0}
    owing = replace(saved, meta={**saved.meta, "waiting": asked})
    plan, run = run_plan(settings(tmp_path)), Run.open(str(agent.run))
    member = Member(plan, run, agent.policy.rules, resume=owing)
    assert member.waiting == {saved.number: 1.0}
    member.close()
