"""Games behind PettingZoo's AECEnv and ParallelEnv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import sparring
from envs.helpers import TURN_GAMES, choose, needs_duel
from sparring import ConfigError, IllegalActionError, Rules
from sparring.envs.pettingzoo import aec_env, parallel_env

# PettingZoo says so of every game with a mask that is not on its own list of names.
ignores_dict_warnings = pytest.mark.filterwarnings(
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably",
    "ignore:Action mask numpy array is all zeros",
)


@ignores_dict_warnings
@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("game", TURN_GAMES)
def test_pettingzoo_accepts_the_aec_env(game: str) -> None:
    api_test(aec_env(game, render_mode="ansi"), num_cycles=100)


@pytest.mark.parametrize("game", TURN_GAMES)
def test_a_seed_fixes_the_game(game: str) -> None:
    seed_test(lambda: aec_env(game), num_cycles=50)


@needs_duel
@pytest.mark.filterwarnings("error::UserWarning")
def test_pettingzoo_accepts_the_parallel_env() -> None:
    parallel_api_test(parallel_env("duel"), num_cycles=100)
    parallel_seed_test(lambda: parallel_env("duel"), num_cycles=50)


@pytest.mark.parametrize("game", TURN_GAMES)
def test_the_env_is_the_game_itself(game: str) -> None:
    """Turns, observations, masks and rewards are those of a state played alongside."""
    env = aec_env(game)
    env.reset(seed=3)
    state = sparring.new_state(game, seed=3)
    rules = state.rules
    owed = np.zeros(rules.seats)
    for agent in env.agent_iter():
        obs, reward, terminated, truncated, info = env.last()
        seat = int(agent.removeprefix("seat_"))
        assert reward == pytest.approx(owed[seat], abs=1e-5)
        assert np.array_equal(obs["observation"], state.observe(seat))
        assert (terminated, truncated) == (state.terminated, state.truncated)
        if terminated or truncated:
            assert not obs["action_mask"].any()
            assert info == {
                "score": state.scores[seat],
                "scores": state.scores,
                "end": state.end,
            }
            env.step(None)
            continue
        assert state.seat == seat
        assert np.flatnonzero(obs["action_mask"]).tolist() == state.legal()
        other = env.observe(f"seat_{(seat + 1) % rules.seats}")
        assert not other["action_mask"].any()
        action = choose(rules, obs["observation"], obs["action_mask"])
        env.step(action)
        state.apply(action)
        owed[seat] = 0
        owed += state.rewards
    assert state.over
    assert env.agents == []


def play_out(env: Any) -> list[bytes]:
    shown = []
    for agent in env.agent_iter():
        obs, _, terminated, truncated, _ = env.last()
        shown.append(agent.encode() + obs["observation"].tobytes())
        over = terminated or truncated
        env.step(None if over else int(np.flatnonzero(obs["action_mask"])[0]))
    return shown


def test_resets_without_a_seed_go_on_from_the_last_one() -> None:
    def run(env: Any, seed: int | None) -> list[list[bytes]]:
        games = []
        for number in range(3):
            env.reset(seed=seed if number == 0 else None)
            games.append(play_out(env))
        return games

    env = aec_env("skull_king", seed=8)
    first = run(env, None)
    assert first == run(env, 8)
    assert first[0] != first[1] != first[2]
    assert first != run(env, 9)


def test_a_reset_amid_the_farewells_starts_cleanly() -> None:
    env = aec_env("tic_tac_toe")
    env.reset(seed=0)
    while not any(env.terminations.values()):
        obs, *_ = env.last()
        env.step(int(np.flatnonzero(obs["action_mask"])[0]))
    env.step(None)
    assert len(env.agents) == 1
    env.reset(seed=0)
    again = play_out(env)
    env.reset(seed=0)
    assert again == play_out(env)


def test_an_illegal_action_changes_nothing() -> None:
    env = aec_env("tic_tac_toe")
    env.reset()
    env.step(4)
    before = env.last()
    for wrong in (4, 9, -1, 0.5, None):
        with pytest.raises(IllegalActionError):
            env.step(wrong)
    after = env.last()
    assert env.agent_selection == "seat_1"
    assert np.array_equal(before[0]["observation"], after[0]["observation"])
    assert before[1:] == after[1:]


def test_rewards_are_weighted() -> None:
    env = aec_env("tic_tac_toe", rewards={"result": 5.0})
    env.reset()
    for action in (0, 3, 1, 4, 2):
        env.step(action)
    assert env._cumulative_rewards == {"seat_0": 5.0, "seat_1": -5.0}
    with pytest.raises(ConfigError, match="no reward part"):
        aec_env("tic_tac_toe", rewards={"resutl": 1.0})


def test_render_shows_the_position() -> None:
    env = aec_env("tic_tac_toe", render_mode="ansi")
    env.reset()
    env.step(4)
    assert env.render() == ". . .\n. X .\n. . .\n"
    silent = aec_env("tic_tac_toe")
    silent.reset()
    assert silent.render() is None
    with pytest.raises(ConfigError, match="render_mode='human'"):
        aec_env("tic_tac_toe", render_mode="human")


@pytest.mark.parametrize("game", TURN_GAMES)
def test_turn_games_are_not_parallel(game: str) -> None:
    with pytest.raises(ConfigError, match="use aec_env"):
        parallel_env(game)


@needs_duel
def test_games_that_move_at_once_are_not_aec() -> None:
    with pytest.raises(ConfigError, match="use parallel_env"):
        aec_env("duel")


@needs_duel
def test_the_parallel_env_is_the_game_itself() -> None:
    env = parallel_env("duel", config={"limit": 7})
    rules = Rules("duel", {"limit": 7})
    state = sparring.new_state(rules, seed=2)
    obs, _ = env.reset(seed=2)
    while env.agents:
        actions = {agent: choose(rules, obs[agent], None) for agent in env.agents}
        obs, reward, terminated, truncated, infos = env.step(actions)
        state.apply(np.array([actions["seat_0"], actions["seat_1"]]))
        for seat, agent in enumerate(env.possible_agents):
            assert np.array_equal(obs[agent], state.observe(seat))
            assert reward[agent] == pytest.approx(float(state.rewards[seat]))
            assert terminated[agent] == state.terminated
            assert truncated[agent] == state.truncated
    assert state.over
    assert infos["seat_0"]["end"] == state.end
    with pytest.raises(IllegalActionError, match="over"):
        env.step(actions)


@needs_duel
def test_the_parallel_env_refuses_what_is_missing_or_not_finite() -> None:
    env = parallel_env("duel")
    still = np.zeros(2, np.float32)
    with pytest.raises(IllegalActionError, match=r"call reset\(\) first"):
        env.step({"seat_0": still, "seat_1": still})
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="no action for seat_1"):
        env.step({"seat_0": still})
    with pytest.raises(IllegalActionError, match="finite"):
        env.step({"seat_0": still, "seat_1": still * np.nan})
    obs, *_ = env.step({"seat_0": still, "seat_1": still})
    assert obs["seat_0"][2] == pytest.approx(1 / 20), "a refused step was played"
