"""What environments of one's own call their actions: shown wherever an action is shown."""

from __future__ import annotations

import io
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import own_envs
from sparring import factories
from sparring.commands.shared.custom_game import CustomGame, TerminalGame
from sparring.commands.shared.results import next_command
from sparring.config import NetConfig
from sparring.errors import ConfigError, IllegalActionError
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.proof.contract import check_env


class Lift(gymnasium.Env[Any, Any]):
    """Three floors; its actions count from 1."""

    observation_space: Any = spaces.Box(0, 2, (1,), np.float32)
    action_space: Any = spaces.Discrete(3, start=1)

    def __init__(self) -> None:
        self.floor = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.floor = 0
        return np.array([self.floor], np.float32), {}

    def step(self, action: Any) -> Any:
        self.floor = min(max(self.floor + int(action) - 2, 0), 2)
        return np.array([self.floor], np.float32), 0.0, self.floor == 2, False, {}


class Named(Lift):
    action_names = ("go down", "wait", "go up")


class Atari(Lift):
    def get_action_meanings(self) -> list[str]:
        return ["DOWN", "NOOP", "UP"]


class Wrong(Lift):
    action_names = ("down", "up")


class ByNumber(Lift):
    action_names = {3: "up", 1: "down", 2: "wait"}  # noqa: RUF012  (as people write it)


class ByName(Lift):
    action_names = {"up": 3, "down": 1, "wait": 2}  # noqa: RUF012


class Gap(Lift):
    action_names = {1: "down", 3: "up"}  # noqa: RUF012


class Two(gymnasium.ActionWrapper[Any, Any, Any]):
    """A wrapper that leaves one action out."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.action_space = spaces.Discrete(2)

    def action(self, action: Any) -> Any:
        return 1 + 2 * action


def rules_of(env: Any) -> CustomRules:
    return make_pool(lambda: env, copies=1).rules


def names(rules: CustomRules) -> list[str]:
    return [rules.action_name(action) for action in range(rules.actions)]


def test_names_come_from_the_environment() -> None:
    assert names(rules_of(Lift())) == ["1", "2", "3"]
    assert names(rules_of(Named())) == ["go down", "wait", "go up"]
    assert names(rules_of(gymnasium.wrappers.TimeLimit(Named(), 9))) == ["go down", "wait", "go up"]
    assert names(rules_of(Atari())) == ["DOWN", "NOOP", "UP"]
    vector = gymnasium.vector.SyncVectorEnv([Named, Named])
    assert names(rules_of(vector)) == ["go down", "wait", "go up"]


def test_an_illegal_action_is_told_with_the_names_of_legal_ones() -> None:
    pool = make_pool(Named, 1)
    pool.reset()
    with pytest.raises(IllegalActionError, match=r"legal: 0 \(go down\), 1 \(wait\), 2 \(go up\)"):
        pool.step([7])


def test_a_checkpoint_keeps_them() -> None:
    rules = rules_of(Named())
    assert names(CustomRules(**rules.plain())) == names(rules)
    assert "action_names" not in rules_of(Lift()).plain()


def test_names_that_are_not_one_for_each_action_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Wrong: action_names has 2 names.*there are 3 actions"):
        rules_of(Wrong())
    assert names(rules_of(Two(Atari()))) == ["0", "1"], "a wrapper's actions have other meanings"


def test_a_dict_is_read_by_the_actions_in_it() -> None:
    assert names(rules_of(ByNumber())) == ["down", "wait", "up"]
    assert names(rules_of(ByName())) == ["down", "wait", "up"]
    with pytest.raises(ConfigError, match=r"Gap: action_names has 2 names.*there are 3 actions"):
        rules_of(Gap())


def test_check_says_what_to_do_about_too_few_names() -> None:
    finding = check_env(Wrong, games=2, seconds=1.0).findings[0]
    assert (finding.name, finding.advice) == ("spaces", "give one name per action")
    assert "action_names has 2 names" in finding.detail


def test_a_person_types_names_or_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = rules_of(Named())
    rules.factory = factories.register_object(Named, "Named")
    torch.manual_seed(0)
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,))))
    game = CustomGame("me", rules)
    game.start(1)
    monkeypatch.setattr("sys.stdin", io.StringIO("up\nGo Up\n3\n"))
    TerminalGame(game, 0, {}, policy).play("run")
    shown = capsys.readouterr().out
    assert "legal: 1: go down  2: wait  3: go up\n" in shown
    assert "is not legal; type one of 1: go down  2: wait  3: go up." in shown
    assert "terminated after 2 steps" in shown


def test_play_is_offered_where_a_person_can_choose() -> None:
    assert next_command(rules_of(Lift()), "runs/x") == "sparring eval runs/x"
    assert next_command(rules_of(Named()), "runs/x") == "sparring play runs/x"
    table = make_pool(own_envs.make_table, 1).rules
    assert next_command(table, "runs/x") == "sparring play runs/x"
