"""Which trained weights may begin a run, and how they get into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from sparring.cli import main
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.transfer import transfer_weights
from sparring.store.policies import save_policy
from sparring.training.starting import check_game

TINY = "--updates 1 --threads 1 --eval.off --eval.final-games 8 --no-tensorboard --device cpu"
TINY += " --collect.games 8 --collect.steps 8"


def policy_of(game: str, *hidden: int, **flags: int) -> Policy:
    rules = Rules(game, flags)
    torch.manual_seed(1)
    return Policy(rules, make_net(rules, NetConfig(hidden=hidden or (8,))), name="x")


def test_another_game_is_no_start_unless_most_of_what_it_sees_is_known() -> None:
    with pytest.raises(ConfigError, match="init: x plays tic_tac_toe, not shogi, and knows"):
        check_game("x", policy_of("tic_tac_toe"), Rules("shogi"))
    with pytest.raises(ConfigError, match="init: x plays kuhhandel, not skull_king, and knows"):
        check_game("x", policy_of("kuhhandel"), Rules("skull_king"))
    numbers, choices = policy_of("laser_hockey"), policy_of("laser_hockey_discrete")
    check_game("x", numbers, choices.rules)
    found = transfer_weights("init: x", choices.net, numbers.net, choices.net.state_dict())
    kept = {one.name: one.how for one in found.kept}
    assert (kept["first.weight"], kept["policy_head.weight"]) == ("whole", "fresh")


def test_what_would_be_kept_of_a_policy_for_fewer_players_is_told_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_policy(policy_of("skull_king", 8, num_players=3), tmp_path / "three")
    words = f"train skull_king --net.hidden 16 --init {tmp_path / 'three'} {TINY}"
    words += f" --runs {tmp_path / 'runs'}"
    assert main([*words.split(), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tensors = {one["name"]: one for one in told["init"]["tensors"]}
    assert tensors["first.weight"]["how"] == "in part"
    assert tensors["first.weight"]["part"] == "425 of 531 rows, 8 of 16 columns"
    assert main([*words.split(), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"init: {told['init']['summary']}" in shown
    assert "in part: 425 of 531 rows, 8 of 16 columns" in shown
    assert f"\n{told['path']}; {told['network']['parameters']:,} parameters, " in shown
    assert not (tmp_path / "runs").exists()


def test_a_run_keeps_what_it_began_with_and_how_large_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_policy(policy_of("tic_tac_toe", 8), tmp_path / "small")
    words = f"train tic_tac_toe --net.hidden 16 --init {tmp_path / 'small'} {TINY} --json"
    assert main([*words.split(), "--runs", str(tmp_path / "runs"), "--name", "x"]) == 0
    told = json.loads(capsys.readouterr().out)
    run = tmp_path / "runs" / "x"
    assert "first.weight in part (8 of 16 columns)" in told["init"]["summary"]
    assert json.loads((run / "events.json").read_text())[0] == told["init"]
    written = json.loads((run / "network.json").read_text())
    assert told["network"] == {key: written[key] for key in ("parameters", "macs")}
    assert written["parameters"] == sum(layer["parameters"] for layer in written["layers"])
