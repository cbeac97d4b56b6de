"""Policies by name, snapshots among them, and that they are loaded once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.seating import load_player
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store import checkpoint
from sparring.store.archive import Archive
from sparring.store.cache import PolicyCache
from sparring.store.checkpoint import CheckpointError
from sparring.store.policies import load_policy, policy_meta, save_policy
from sparring.store.snapshots import pack_snapshot


def fresh(seed: int, hidden: int = 16) -> Policy:
    torch.manual_seed(seed)
    rules = Rules("tic_tac_toe")
    return Policy(rules, make_net(rules, NetConfig(hidden=(hidden,))))


def same(one: Policy, two: Policy) -> bool:
    mine, other = one.net.state_dict(), two.net.state_dict()
    return all(torch.equal(mine[name], other[name]) for name in mine)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with three snapshots of its past."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "mine"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.toml").write_text('game = "tic_tac_toe"\n')
    meta = policy_meta(fresh(0).rules, fresh(0).net)
    with Archive(folder, max_bytes=2**30, policy=meta) as archive:
        for number in range(3):
            net = fresh(number).net.state_dict()
            archive.add(
                net,
                role="main",
                member="mine",
                update=10 * number,
                decisions=1000 * number,
                seconds=1.0,
            )
    return folder


@pytest.mark.parametrize("text", ["mine/past/2", "latest/past/2", "runs/mine/past/2", "mi/past/2"])
def test_a_snapshot_can_be_named_wherever_a_policy_can(run: Path, text: str) -> None:
    policy = load_policy(text)
    assert same(policy, fresh(2))
    assert policy.name == "mine/past/2"
    assert (policy.meta["update"], policy.meta["decisions"]) == (20, 2000)
    found = load_player(text, policy.rules)
    assert isinstance(found, Policy)
    assert found.name == text


def test_a_snapshot_file_is_a_policy_wherever_it_lies(run: Path, tmp_path: Path) -> None:
    entry = Archive(run, max_bytes=1).entries()[1]
    shutil.copy(run / "league" / f"{entry.hash}.safetensors", tmp_path / "friend.safetensors")
    policy = load_policy(tmp_path / "friend.safetensors")
    assert same(policy, fresh(1))
    assert policy.rules.name == "tic_tac_toe"


def test_a_snapshot_of_half_the_bytes_plays_like_its_numbers(tmp_path: Path) -> None:
    policy = fresh(0)
    halves = {name: value.half() for name, value in policy.net.state_dict().items()}
    file = tmp_path / "small.safetensors"
    file.write_bytes(pack_snapshot(halves, policy_meta(policy.rules, policy.net)))
    loaded = load_policy(file)
    for name, value in loaded.net.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, halves[name].float())


def test_snapshots_that_are_not_there_are_refused_with_those_that_are(run: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"snapshot 7 of .*mine does not exist.*nearest of 3 snapshots: 0, 1, 2"
    ):
        load_policy("mine/past/7")
    archive = Archive(run, max_bytes=1)
    archive.prune([], None, {})
    with pytest.raises(ConfigError, match=r"snapshot 0 of .*mine was removed.*snapshots: 2"):
        load_policy("mine/past/0")
    (run.parent / "other").mkdir()
    (run.parent / "other" / "config.toml").write_text("")
    with pytest.raises(ConfigError, match="has no snapshots; it was trained without a league"):
        load_policy("other/past/0")


def test_a_damaged_snapshot_is_no_policy(run: Path) -> None:
    archive = Archive(run, max_bytes=1)
    file = archive.file(archive.entries()[0].hash)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="is damaged"):
        load_policy("mine/past/0")


def test_a_policy_is_loaded_once(run: Path, tmp_path: Path) -> None:
    saved = save_policy(fresh(5), tmp_path / "saved")
    cache = PolicyCache(2**20)
    one = cache.get(saved)
    assert cache.get(saved) is one
    assert same(one, fresh(5))
    past = cache.get("mine/past/1")
    assert cache.get("latest/past/1") is past
    named = cache.get(saved, name="friend")
    assert (named.name, named.net) == ("friend", one.net)
    assert cache.get(saved, name="friend") is named
    assert one.name == "saved"
    found = cache.statistics
    assert (found.hits, found.misses, found.evictions, found.entries) == (4, 2, 0, 2)
    assert "2 in memory" in str(found)
    assert "4 hits, 2 misses, 0 evictions" in str(found)


def test_a_changed_file_is_noticed_and_a_new_date_alone_is_none(tmp_path: Path) -> None:
    saved = save_policy(fresh(1), tmp_path / "saved")
    cache = PolicyCache(2**20)
    one = cache.get(saved)
    os.utime(saved / "net.safetensors", ns=(1, 1))
    assert cache.get(saved) is one
    save_policy(fresh(2), saved)
    assert same(cache.get(saved), fresh(2))
    assert cache.statistics.misses == 2
    shutil.rmtree(saved)
    with pytest.raises(ConfigError, match="no policy"):
        cache.get(saved)


def test_a_run_gives_its_best_checkpoint_of_now(run: Path) -> None:
    cache = PolicyCache(2**20)
    for number in (1, 2):
        policy = fresh(10 + number)
        meta = policy_meta(policy.rules, policy.net)
        tensors = {"net": policy.net.state_dict()}
        checkpoint.save(run / "checkpoints", number, tensors=tensors, blobs={}, meta=meta)
        (run / "best.json").write_text(f'{{"checkpoint": {number}}}')
        assert same(cache.get("mine"), fresh(10 + number))
    (run / "best.json").write_text('{"checkpoint": 1}')
    assert same(cache.get("mine"), fresh(11))
    assert cache.statistics.hits == 1


def test_the_least_used_goes_first_and_the_bound_holds(tmp_path: Path) -> None:
    places = [save_policy(fresh(seed), tmp_path / str(seed)) for seed in range(3)]
    one = sum(t.nbytes for t in fresh(0).net.state_dict().values())
    cache = PolicyCache(2 * one)
    first = cache.get(places[0])
    cache.get(places[1])
    cache.get(places[0])
    cache.get(places[2])  # 1 goes, it was used longest ago
    assert cache.get(places[0]) is first
    assert cache.statistics.evictions == 1
    assert cache.statistics.bytes == 2 * one
    cache.get(places[1])
    assert cache.statistics.misses == 4


def test_what_is_larger_than_the_cache_is_loaded_and_not_kept(tmp_path: Path) -> None:
    small, large = save_policy(fresh(0), tmp_path / "s"), save_policy(fresh(1, 512), tmp_path / "l")
    cache = PolicyCache(8 * 1024)
    kept = cache.get(small)
    assert same(cache.get(large), fresh(1, 512))
    assert cache.statistics.entries == 1
    assert cache.get(small) is kept
