"""A policy for inference: batches, single games, and folders on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from make import played
from sparring import ConfigError, Rules, SparringError, new_state
from sparring.config import NetConfig
from sparring.errors import SparringWarning
from sparring.league.seating import load_player
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.checkpoint import CheckpointError, save
from sparring.store.policies import load_policy, save_policy


def make_policy(game: str = "skull_king", seed: int = 0, **config: int) -> Policy:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rules = Rules(game, config)
    net = Perceptron(rules, NetConfig(hidden=(32, 16)))
    for head in (net.policy_head, net.value_head):  # a fresh net has hardly any opinion
        torch.nn.init.normal_(head.weight)
    net.rescale_value_head(40.0)
    return Policy(rules, net)


def rows(policy: Policy, games: int = 64) -> tuple[np.ndarray, np.ndarray]:
    _, obs, mask = played(policy.rules, games, steps=9, seed=1)
    return obs, mask


def meta_of(policy: Policy, **changes: object) -> dict[str, object]:
    rules = policy.rules
    net = {"hidden": [32, 16], "shared": True, "activation": "relu", "sparse": True}
    meta = {"game": rules.name, "rules_version": rules.rules_version, "update": 3, "best": {}}
    return {**meta, "game_config": rules.config, "net": net, **changes}


def save_run(run: Path, *policies: Policy, **changes: object) -> None:
    """A run's checkpoints, as training leaves them."""
    for number, policy in enumerate(policies):
        tensors = {"net": policy.net.state_dict()}
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        meta = meta_of(policy, **changes)
        save(run / "checkpoints", number, tensors=tensors, blobs={}, meta=meta)


def test_probabilities_respect_the_mask_and_greedy_takes_the_largest() -> None:
    policy = make_policy()
    obs, mask = rows(policy)
    shares = policy.probabilities(obs, mask)
    assert (shares[mask == 0] == 0).all()
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
    greedy = policy.act(obs, mask, greedy=True)
    assert greedy.dtype == np.int32
    np.testing.assert_array_equal(greedy, shares.argmax(1))


def test_drawn_actions_follow_the_probabilities() -> None:
    policy = make_policy("tic_tac_toe")
    obs, mask = rows(policy, 1)
    wanted = policy.probabilities(obs, mask)[0]
    many = 20_000
    drawn = policy.act(np.repeat(obs, many, 0), np.repeat(mask, many, 0), seed=4)
    found = np.bincount(drawn, minlength=9) / many
    np.testing.assert_allclose(found, wanted, atol=0.015)
    assert (found[mask[0] == 0] == 0).all()


def test_draws_depend_on_seed_rollout_and_step_alone() -> None:
    policy = make_policy()
    obs, mask = rows(policy)
    plain = policy.act(obs, mask, seed=1, rollout=2, step=3)
    np.testing.assert_array_equal(plain, policy.act(obs, mask, seed=1, rollout=2, step=3))
    np.testing.assert_array_equal(
        plain[:10], policy.act(obs[:10], mask[:10], seed=1, rollout=2, step=3)
    )
    for other in ({"seed": 2}, {"rollout": 3}, {"step": 4}):
        changed = {"seed": 1, "rollout": 2, "step": 3, **other}
        assert (policy.act(obs, mask, **changed) != plain).any()


def test_values_are_in_units_of_reward() -> None:
    policy = make_policy()
    obs, _ = rows(policy)
    with torch.no_grad():
        unscaled = policy.net(torch.from_numpy(obs))["value"].numpy()
    assert unscaled.std() > 0.001
    np.testing.assert_allclose(policy.value(obs), 40 * unscaled, rtol=1e-6)


def test_a_single_game_is_played_like_a_row_of_a_pool() -> None:
    policy = make_policy()
    state = new_state(policy.rules, seed=3)
    while not state.over:
        mask = np.zeros((1, policy.rules.actions), np.uint8)
        mask[0, state.legal()] = 1
        obs = state.observe_bytes(state.seat)[None]
        action = policy.action(state)
        assert action == policy.act(obs, mask, greedy=True)[0]
        state.apply(action)
    with pytest.raises(SparringError, match="no seat is to act"):
        policy.action(state)


def test_wrong_arrays_and_games_are_refused() -> None:
    policy = make_policy()
    obs, mask = rows(policy)
    with pytest.raises(ConfigError, match="544"):
        policy.act(obs[:, :-1], mask)
    with pytest.raises(ConfigError, match="uint8"):
        policy.value(obs.astype(np.float32))
    with pytest.raises(ConfigError, match="86"):
        policy.act(obs, mask[:-1])
    with pytest.raises(ConfigError, match="num_players=4"):
        policy.action(new_state("skull_king", config={"num_players": 3}))
    with pytest.raises(ConfigError, match="plays skull_king"):
        policy.action(new_state("tic_tac_toe"))
    policy.action(new_state("skull_king", config={"skip_forced": 1}))


def test_a_net_that_is_not_finite_is_refused() -> None:
    policy = make_policy()
    policy.net.value_head.bias.data.fill_(float("nan"))
    with pytest.raises(SparringError, match="value_head"):
        Policy(policy.rules, policy.net)


def test_a_policy_survives_its_folder(tmp_path: Path) -> None:
    policy = make_policy(num_players=3)
    obs, mask = rows(policy)
    path = save_policy(policy, tmp_path / "nested" / "mine")
    again = load_policy(path)
    np.testing.assert_array_equal(policy.probabilities(obs, mask), again.probabilities(obs, mask))
    np.testing.assert_array_equal(policy.value(obs), again.value(obs))
    assert again.rules.config == policy.rules.config
    assert again.name == "mine"
    save_policy(make_policy(seed=1, num_players=3), path)
    assert (load_policy(path).value(obs) != policy.value(obs)).any()
    assert [inside.name for inside in path.parent.iterdir()] == ["mine"]
    (tmp_path / "notes").mkdir()
    with pytest.raises(ConfigError, match="choose another name"):
        save_policy(policy, tmp_path / "notes")


def test_a_run_gives_its_best_or_its_newest(tmp_path: Path) -> None:
    run = tmp_path / "skull"
    policies = [make_policy(seed=seed) for seed in range(3)]
    save_run(run, *policies)
    obs, _ = rows(policies[0])

    def number(path: Path) -> int:
        value = load_policy(path).value(obs)
        return next(i for i, policy in enumerate(policies) if (policy.value(obs) == value).all())

    assert number(run) == 2
    assert number(run / "checkpoints" / "00000001") == 1
    (run / "best.json").write_text(json.dumps({"checkpoint": 1}))
    assert number(run) == 1
    loaded = load_policy(run)
    assert (loaded.name, loaded.meta["update"]) == ("skull/1", 3)
    (run / "best.json").write_text(json.dumps({"checkpoint": 9}))
    with pytest.warns(SparringWarning, match="taking checkpoint 2, .* 9, cannot be used"):
        assert number(run) == 2
    (run / "best.json").write_text("{")
    with pytest.warns(SparringWarning, match="taking the newest"):
        assert number(run) == 2


def test_a_damaged_best_checkpoint_gives_way_to_the_newest_whole_one(tmp_path: Path) -> None:
    run = tmp_path / "skull"
    save_run(run, *[make_policy(seed=seed) for seed in range(4)])
    (run / "best.json").write_text(json.dumps({"checkpoint": 1}))
    for number in (1, 3):
        net = run / "checkpoints" / f"{number:08d}" / "net.safetensors"
        net.write_bytes(net.read_bytes()[:100])
    with pytest.warns(SparringWarning) as told:
        assert load_policy(run).name == "skull/2"
    assert "skipped checkpoint 3" in str(told[0].message)
    assert "taking checkpoint 2" in str(told[1].message)


def test_runs_are_found_by_name_and_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_run(tmp_path / "runs" / "mine", make_policy("tic_tac_toe"))
    assert load_policy("mine").name == "mine/0"
    (tmp_path / "runs" / "mine" / "config.toml").write_text("")
    assert load_policy("latest").name == "mine/0"
    assert load_policy("mi").name == "mine/0"
    assert load_policy("latest/0").name == "mine/0"
    with pytest.raises(ConfigError, match="has no checkpoint 7; there are: 0"):
        load_policy("latest/7")
    failed = tmp_path / "runs" / "newer"
    (failed / "checkpoints").mkdir(parents=True)
    (failed / "config.toml").write_text("")
    assert load_policy("latest").name == "mine/0"  # a run without a checkpoint is passed over


def test_other_rules_are_refused_with_what_to_do(tmp_path: Path) -> None:
    save_run(tmp_path, make_policy(), rules_version=0)
    with pytest.raises(
        CheckpointError, match=r"version 0 .* train anew: sparring train skull_king"
    ):
        load_policy(tmp_path)


def test_broken_folders_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no policy"):
        load_policy(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        load_policy(tmp_path)
    policy = make_policy("tic_tac_toe")
    other_net = {"hidden": [8, 8], "shared": True, "activation": "relu", "sparse": True}
    save_run(tmp_path / "a", policy, net=other_net)
    with pytest.raises(CheckpointError, match=r"first[.]weight is float32"):
        load_policy(tmp_path / "a")
    save_run(tmp_path / "b", policy, net={**other_net, "depth": 3})
    with pytest.raises(CheckpointError, match="depth"):
        load_policy(tmp_path / "b")


def test_players_are_bots_or_folders(tmp_path: Path) -> None:
    policy = make_policy("tic_tac_toe")
    path = str(save_policy(policy, tmp_path / "p"))
    assert load_player("careful", policy.rules) == "careful"
    found = load_player(path, policy.rules)
    assert isinstance(found, Policy)
    assert found.name == path
    with pytest.raises(ConfigError, match="did you mean 'careful'"):
        load_player("carefull", policy.rules)
    with pytest.raises(ConfigError, match="plays tic_tac_toe"):
        load_player(path, Rules("skull_king"))
