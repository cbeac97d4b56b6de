"""What programs ask an agent: positions, and observations as environments give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import own_envs
from sparring import ConfigError, Rules, new_state
from sparring.config import NetConfig
from sparring.envs.gymnasium import SparringEnv
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.predict import rows_of
from sparring.pools.custom import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.training.agent import Agent


def agent_of(game: str | Rules = "tic_tac_toe", **net: Any) -> Agent:
    torch.manual_seed(0)
    rules = Rules(game) if isinstance(game, str) else game
    config = NetConfig(hidden=(16,), **net)
    made = make_net(rules, config, memory=memory_bytes_of(rules, config))
    torch.nn.init.normal_(made.get_submodule("policy_head").weight)
    return Agent(Policy(rules, made, name="me"), Path(), "done")


def test_a_state_is_played_to_its_end() -> None:
    agent, state = agent_of(), new_state("tic_tac_toe", seed=1)
    while not state.over:
        action = agent.act(state)
        assert isinstance(action, int)
        assert action == agent.policy.act(state, greedy=True) == agent.policy.action(state)
        state.apply(action)
    with pytest.raises(ConfigError, match=r"the game of tic_tac_toe is over"):
        agent.act(state)


def test_several_states_are_asked_at_once() -> None:
    agent = agent_of()
    states = [new_state("tic_tac_toe", seed=1) for _ in range(3)]
    for number, state in enumerate(states):
        for _ in range(number):
            state.apply(state.legal()[0])
    np.testing.assert_array_equal(agent.act(states), [agent.act(state) for state in states])


def test_where_seats_move_at_once_everybody_is_answered() -> None:
    agent, state = agent_of("laser_hockey"), new_state("laser_hockey", seed=1)
    actions = agent.act(state)
    assert actions.shape == (2, agent.policy.rules.box)
    state.apply(actions)


def test_states_that_cannot_be_answered_are_refused_in_a_line() -> None:
    agent = agent_of()
    with pytest.raises(ConfigError, match="me plays tic_tac_toe, not kuhn_poker"):
        agent.act(new_state("kuhn_poker"))
    with pytest.raises(ConfigError, match="leave the mask out"):
        agent.policy.act(new_state("tic_tac_toe"), np.ones((1, 9), np.uint8))
    with pytest.raises(ConfigError, match="state 1 is str; give states alone"):
        agent.act([new_state("tic_tac_toe"), "b2"])
    with pytest.raises(ConfigError, match="StatefulPlayer"):
        agent_of(memory="gru", memory_width=16).act(new_state("tic_tac_toe"))


def test_predict_steps_an_environment_as_in_sb3() -> None:
    agent, env = agent_of(), SparringEnv("tic_tac_toe", seed=1)
    obs, _ = env.reset(seed=1)
    over = False
    while not over:
        action, hidden = agent.predict(obs, action_masks=env.action_masks(), deterministic=True)
        assert hidden is None
        assert action == agent.act(obs, env.action_masks())[0]
        obs, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    batch, _ = agent.predict(np.stack([obs] * 4), None, None, True)
    assert batch.shape == (4,)


def test_numbers_and_bytes_of_one_position_are_the_same_question() -> None:
    agent, state = agent_of("kuhn_poker"), new_state("kuhn_poker", seed=3)
    obs, mask = state.decision()
    np.testing.assert_array_equal(agent.policy.rules.pack(state.observe(0)[None]), obs)
    assert agent.predict(state.observe(0), action_masks=mask, deterministic=True) == (
        agent.act(obs, mask)[0],
        None,
    )


def test_drawn_actions_differ_from_call_to_call() -> None:
    agent, state = agent_of(), new_state("tic_tac_toe")
    assert len({int(agent.predict(state.observe(0))[0]) for _ in range(50)}) > 1
    assert len({agent.act(state, deterministic=False) for _ in range(50)}) > 1


def test_predict_carries_what_a_network_remembers() -> None:
    agent = agent_of(memory="gru", memory_width=16)
    seen = np.stack([new_state("tic_tac_toe").observe(0)] * 2)
    _, first = agent.predict(seen)
    _, second = agent.predict(seen, first)
    assert first is not None and first.shape == (2, agent.policy.memory_bytes)
    assert (first != second).any()
    _, anew = agent.predict(seen, second, episode_start=np.array([True, False]))
    np.testing.assert_array_equal(anew[0], first[0])
    assert (anew[1] != first[1]).any()
    with pytest.raises(ConfigError, match=r"state has shape \(1, "):
        agent.predict(seen, first[:1])


def test_predict_takes_what_an_environment_of_ones_own_gives() -> None:
    env = gymnasium.make("CartPole-v1")
    agent = agent_of(make_pool(lambda: gymnasium.make("CartPole-v1"), 1).rules)
    obs, _ = env.reset(seed=1)
    action, _ = agent.predict(obs)
    assert action in env.action_space
    with pytest.raises(ConfigError, match=r"float32 \(3,\); CartPole-v1 has 4 numbers each"):
        agent.predict(obs[:3])
    with pytest.raises(ConfigError, match=r"obs\[2\] of row 0 is nan"):
        agent.predict(np.array([0, 0, np.nan, 0]))


def test_a_dictionary_brings_its_mask_along() -> None:
    agent = agent_of(make_pool(own_envs.make_table, 1).rules)
    rules = agent.policy.rules
    given = {block.name: np.zeros(block.rows) for block in rules.blocks}
    only = np.eye(rules.actions)[2]
    assert agent.predict({**given, "action_mask": only})[0] == 2
    with pytest.raises(ConfigError, match=r"sticks.* is missing"):
        agent.predict({"action_mask": only})


class Seen(gymnasium.Env[Any, Any]):
    """An environment with one observation space; it is never stepped."""

    def __init__(self, space: Any) -> None:
        self.observation_space, self.action_space = space, spaces.Discrete(4)


LIFT = spaces.Dict(
    {
        "at": spaces.Discrete(8),
        "called": spaces.Discrete(8, start=1),
        "action_mask": spaces.MultiBinary(4),
    }
)
OBSERVATIONS = {
    "choices in a dictionary": LIFT,
    "a choice": spaces.Discrete(16),
    "choices": spaces.MultiDiscrete([3, 2, 4], start=[0, 5, -1]),
    "the only choice": spaces.Dict({"at": spaces.Discrete(1), "far": spaces.Box(0, 1, (2,))}),
    "a tuple": spaces.Tuple((spaces.Discrete(5), spaces.Box(-1, 1, (2, 2)))),
    "nested": spaces.Dict(
        {"hand": spaces.Dict({"card": spaces.Discrete(6)}), "table": spaces.Tuple((LIFT["at"],))}
    ),
}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_an_observation_is_taken_as_the_environment_gives_it(name: str) -> None:
    space = OBSERVATIONS[name]
    rules = make_pool(lambda: Seen(space), 1).rules
    saved = CustomRules(**json.loads(json.dumps(rules.plain())))
    space.seed(3)
    for _ in range(20):
        obs = space.sample()
        seen, without = obs, space
        if isinstance(space, spaces.Dict):
            seen = {key: obs[key] for key in obs if key != "action_mask"}
            without = spaces.Dict({key: space[key] for key in seen})
        rows, single = rows_of(saved, obs, saved.obs_bytes)
        assert single
        np.testing.assert_array_equal(rows, saved.pack(spaces.flatten(without, seen))[None])


def test_a_batch_of_dictionaries_and_their_masks() -> None:
    agent = agent_of(make_pool(lambda: Seen(LIFT), 1).rules)
    masks = np.eye(4, dtype=np.int8)[[2, 0, 1, 3, 2, 0, 1, 3]]
    batch = {"at": np.arange(8), "called": np.arange(1, 9), "action_mask": masks}
    np.testing.assert_array_equal(agent.predict(batch)[0], masks.argmax(axis=1))
    one = {"at": 3, "called": 8, "action_mask": masks[0]}
    assert agent.predict(one)[0] == agent.policy.predict(one)[0] == 2
    with pytest.raises(ConfigError, match=r"called is 9; it has choices 1\.\.8"):
        agent.predict({**one, "called": 9})
    with pytest.raises(ConfigError, match=r"called of .* is int64 \(3,\); it needs 1 or 8 numbers"):
        agent.predict({**one, "called": np.zeros(3, int)})


@pytest.mark.parametrize("asked", ["act", "predict"])
def test_a_mask_without_an_action_is_refused(asked: str) -> None:
    agent, seen = agent_of(), new_state("tic_tac_toe").observe(0)
    masks = {"act": "mask", "predict": "action_masks"}
    with pytest.raises(ConfigError, match="mask: row 0 allows no action of tic_tac_toe"):
        getattr(agent, asked)(seen, **{masks[asked]: np.zeros(9)})
