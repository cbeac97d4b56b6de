"""One way to act for every policy, drawn from or by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from make import played
from sparring import ConfigError, Rules, new_state
from sparring.config import NetConfig
from sparring.league.players import is_random
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.archive import Archive
from sparring.store.lookup import snapshot_file
from sparring.store.policies import load_policy, policy_meta, save_policy

Bytes = npt.NDArray[np.uint8]


def make_policy(game: str = "tic_tac_toe", **meta: Any) -> Policy:
    torch.manual_seed(0)
    rules = Rules(game)
    net = Perceptron(rules, NetConfig(hidden=(16,), squash=bool(rules.box)))
    for head in (net.policy_head, net.value_head):  # a fresh net has hardly any opinion
        torch.nn.init.normal_(head.weight)
    return Policy(rules, net, meta=meta)


def rows(policy: Policy, games: int = 32) -> tuple[Bytes, Bytes]:
    _, obs, mask = played(policy.rules, games, steps=3, seed=1)
    return obs, mask


def test_deterministic_is_greedy_and_act_batch_is_act() -> None:
    policy = make_policy()
    obs, mask = rows(policy)
    best = policy.probabilities(obs, mask).argmax(1)
    for how in ({"deterministic": True}, {"greedy": True}):
        np.testing.assert_array_equal(policy.act(obs, mask, **how), best)
        np.testing.assert_array_equal(policy.act_batch(obs, mask, **how), best)
    drawn = policy.act(obs, mask, deterministic=False, seed=3)
    np.testing.assert_array_equal(drawn, policy.act_batch(obs, mask, seed=3))
    assert (drawn != best).any()


@pytest.mark.parametrize("game", ["tic_tac_toe", "laser_hockey"])
def test_without_a_mask_everything_is_legal(game: str) -> None:
    policy = make_policy(game)
    obs, mask = rows(policy)
    actions = policy.act(obs, seed=1)
    np.testing.assert_array_equal(actions, policy.act(obs, np.ones_like(mask), seed=1))
    if not policy.rules.box:
        taken = (mask == 0).any(axis=1)
        assert (policy.probabilities(obs)[taken] > 0).all()


def test_a_single_row_is_refused_as_one_not_as_a_wrong_mask() -> None:
    policy = make_policy()
    row = np.zeros(policy.rules.obs_bytes, np.uint8)
    with pytest.raises(ConfigError, match="observations are uint8"):
        policy.act(row, np.ones(policy.rules.actions, np.uint8))


def test_a_policy_by_value_takes_its_best_action_whatever_it_is_asked_for() -> None:
    policy = make_policy(by_value=True)
    obs, mask = rows(policy)
    usual = make_policy()
    best = usual.act(obs, mask, greedy=True)
    for seed in range(3):
        np.testing.assert_array_equal(policy.act(obs, mask, greedy=False, seed=seed), best)
    shares = policy.probabilities(obs, mask)
    assert shares.dtype == np.float32
    np.testing.assert_array_equal(shares, np.eye(9, dtype=np.float32)[best])
    state = new_state(policy.rules, seed=0)
    assert len({policy.action(state, greedy=False, seed=seed) for seed in range(9)}) == 1
    assert not is_random(policy, greedy=False)
    assert policy.always(greedy=True).name == "policy@greedy"
    with pytest.raises(
        ConfigError, match="plays the best action; there are no probabilities to sample"
    ):
        policy.always(greedy=False)


@pytest.mark.parametrize("dueling", [False, True])
def test_the_value_of_a_policy_by_value_is_that_of_its_best_action(dueling: bool) -> None:
    policy = make_policy(by_value=True, dueling=dueling)
    obs, mask = rows(policy)
    heads = policy.heads(obs)
    actions, state = heads["policy"], heads["value"]
    for row in range(len(obs)):
        legal = np.flatnonzero(mask[row])
        wanted = actions[row, legal].max()
        if dueling:
            wanted += state[row] - actions[row, legal].mean()
        np.testing.assert_allclose(policy.value(obs, mask)[row], wanted, rtol=1e-5)
    free = policy.value(obs[:1])
    np.testing.assert_allclose(free, policy.value(obs[:1], np.ones((1, 9), np.uint8)))


def test_a_value_head_that_was_never_trained_is_no_value() -> None:
    policy = make_policy(values=False)
    with pytest.raises(ConfigError, match="policy has no values: its value head was never"):
        policy.value(rows(policy)[0])


def test_saved_and_archived_policies_stay_by_value(tmp_path: Path) -> None:
    policy = make_policy(by_value=True, dueling=True)
    obs, mask = rows(policy)
    meta = policy_meta(policy.rules, policy.net, policy.meta)
    with Archive(tmp_path, max_bytes=2**30, policy=meta) as archive:
        when = {"update": 1, "decisions": 1, "seconds": 0.0}
        entry = archive.add(policy.net.state_dict(), role="main", member="mine", **when)
    for place in (save_policy(policy, tmp_path / "policy"), snapshot_file(tmp_path, entry.number)):
        loaded = load_policy(place)
        assert (loaded.is_value_based, loaded.greedy) == (True, True)
        np.testing.assert_array_equal(loaded.act(obs, mask, seed=5), policy.act(obs, mask))
        np.testing.assert_array_equal(loaded.value(obs, mask), policy.value(obs, mask))
