"""Agents written for the original simulator of CAGE-2 run on this one."""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
import pytest

from sparring import ConfigError, IllegalActionError
from sparring.envs.cage2 import (
    B_lineAgent,
    ChallengeWrapper,
    CybORG,
    RedMeanderAgent,
    SleepAgent,
)
from sparring.games.cage2 import ACTIONS, HOSTS


class RestoreWhatLooksBad:
    """An agent in the style of the challenge: get_action, end_episode."""

    def get_action(self, observation: Any, action_space: int) -> int:
        assert action_space == 145
        for h, host in enumerate(HOSTS):
            if observation[4 * h + 3] and host != "User0":
                return 132 + h
        return 0

    def end_episode(self) -> None:
        pass


def evaluate(red: type, steps: int, episodes: int) -> float:
    """The loop of the challenge's own evaluation script."""
    cyborg = CybORG("Scenario2", "sim", agents={"Red": red}, seed=3)
    wrapped = ChallengeWrapper(env=cyborg, agent_name="Blue")
    agent = RestoreWhatLooksBad()
    observation = wrapped.reset()
    action_space = wrapped.get_action_space("Blue")
    totals = []
    for _ in range(episodes):
        rewards = []
        for _ in range(steps):
            action = agent.get_action(observation, action_space)
            observation, reward, done, _ = wrapped.step(action)
            rewards.append(reward)
            assert not done
            assert str(cyborg.get_last_action("Blue")) == ACTIONS[action]
        agent.end_episode()
        totals.append(sum(rewards))
        observation = wrapped.reset()
    return mean(totals)


def test_the_evaluation_of_the_challenge_gives_the_known_score() -> None:
    # Mean and spread over 400,000 episodes: -14.90 [2.5] and -11.47 [0.9].
    assert evaluate(B_lineAgent, 30, 60) == pytest.approx(-14.90, abs=4 * 2.5 / 60**0.5)
    assert evaluate(RedMeanderAgent, 30, 60) == pytest.approx(-11.47, abs=4 * 0.9 / 60**0.5)
    assert evaluate(SleepAgent, 30, 2) == 0


def test_spaces_and_types_are_those_of_the_original() -> None:
    env = ChallengeWrapper("Blue", CybORG(agents={"Red": B_lineAgent()}), max_steps=3)
    observation = env.reset()
    assert observation.shape == (52,) and observation.dtype == np.int64 and not observation.any()
    assert env.observation_space.shape == (52,)
    assert env.action_space.n == 145
    for step in range(3):
        observation, reward, done, info = env.step(env.action_space.sample())
        assert set(np.unique(observation)) <= {0, 1}
        assert isinstance(reward, float) and isinstance(info, dict)
        assert done == (step == 2)
    assert env.reset().sum() == 0 and env.step_counter == 0


def test_what_agents_ask_for_is_there() -> None:
    env = ChallengeWrapper(env=CybORG(agents={"Red": B_lineAgent}, seed=1), agent_name="Blue")
    env.reset()
    assert env.get_last_action("Blue") is None
    env.step(None)
    assert str(env.get_last_action("Blue")) == "Sleep"
    assert str(env.get_last_action("Red")) == "DiscoverRemoteSystems User"
    assert env.get_attr("get_last_action")("Red").name == "DiscoverRemoteSystems"
    actions = env.get_attr("possible_actions")
    assert [str(action) for action in actions] == list(ACTIONS)
    assert actions[132].hostname == "Defender" and actions[0].hostname == ""
    assert (env.get_observation("Blue") == env.env.vector()).all()
    assert set(env.get_ip_map()) == set(HOSTS)
    assert env.get_attr("step_counter") == 1
    true = env.get_agent_state("True")
    assert true["User0"]["Sessions"] == [{"Agent": "Red", "Level": "privileged"}]
    assert true["User1"]["Sessions"] == []
    env.step(ACTIONS.index("Restore User1"))
    assert env.get_rewards() == {"Blue": -1.0, "Red": 0.0}


def test_a_seed_gives_the_same_episodes() -> None:
    def rewards(cyborg: CybORG) -> list[float]:
        cyborg.reset()
        return [cyborg.step(action % 145) for action in range(300)]

    one, two = (CybORG(agents={"Red": RedMeanderAgent}, seed=9) for _ in range(2))
    first = rewards(one)
    assert first == rewards(two)
    assert rewards(one) != first
    one.set_seed(9)
    two.set_seed(9)
    assert rewards(one) == rewards(two)


def test_versions_can_be_chosen() -> None:
    cyborg = CybORG(
        agents={"Red": B_lineAgent}, config={"preset": "CHALLENGE", "actions": "WINNER"}
    )
    env = ChallengeWrapper(env=cyborg)
    assert env.get_action_space("Blue") == 36
    rules = cyborg.rules
    assert [str(action) for action in env.possible_actions] == [
        rules.action_name(action) for action in range(36)
    ]


def test_appended_numbers_arrive_whole() -> None:
    cyborg = CybORG(
        agents={"Red": RedMeanderAgent},
        config={"scan_history": "ALL", "decoys_left": 1},
        seed=2,
    )
    env = ChallengeWrapper(env=cyborg)
    env.reset()
    for action in (0, 30, 0, 60, 0, 0):
        seen = env.step(action)[0]
        assert seen.tolist() == cyborg._state.observe(0).tolist()
        assert env.observation_space.contains(seen)
    assert (seen % 1 != 0).any()


def test_mistakes_are_answered_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="Scenario2"):
        CybORG("Scenario1b")
    with pytest.raises(ConfigError, match="B_lineAgent"):
        CybORG(agents={"Red": object()})
    with pytest.raises(ConfigError, match="only Blue"):
        ChallengeWrapper("Red", CybORG())
    env = ChallengeWrapper(env=CybORG())
    with pytest.raises(ConfigError, match="only Blue"):
        env.get_observation("Red")
    for wrong in (145, 1.9, True, "3", float("nan")):
        with pytest.raises(IllegalActionError):
            env.step(wrong)
    with pytest.raises(ConfigError, match="'red'; only 'Red'"):
        CybORG(agents={"red": B_lineAgent})
    with pytest.raises(ConfigError, match="both name a red"):
        CybORG(agents={"Red": B_lineAgent}, config={"red": "SLEEP"})
