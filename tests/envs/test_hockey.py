"""Laser hockey behind the interface of the original package, and behind the general adapters."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

import sparring.envs.hockey as h_env
from sparring import Rules, new_state
from sparring.envs.gymnasium import SparringEnv, SparringVectorEnv
from sparring.envs.pettingzoo import parallel_env
from vectors.laser_hockey import data, traces

NOTHING = np.zeros(8)


def recorded(name: str) -> Any:
    return next(trace for trace in traces() if trace.name == name)


def test_the_original_loop_runs() -> None:
    env = h_env.HockeyEnv(mode=h_env.Mode.NORMAL, keep_mode=True)
    one, two = h_env.BasicOpponent(weak=False, seed=1), h_env.BasicOpponent(weak=True, seed=2)
    obs, info = env.reset(seed=3)
    terminated = truncated = False
    steps = 0
    while not (terminated or truncated):
        action = np.hstack([one.act(obs), two.act(env.obs_agent_two())])
        obs, reward, terminated, truncated, info = env.step(action)
        two_info = env.get_info_agent_two()
        assert reward == pytest.approx(env.get_reward(info), abs=1e-5)
        assert info["winner"] == -two_info["winner"]
        assert info["reward_puck_direction"] == pytest.approx(-two_info["reward_puck_direction"])
        steps += 1
    assert steps == env.time
    assert obs.dtype == np.float32 and obs.shape == (18,)
    assert set(info) == {
        "winner",
        "reward_closeness_to_puck",
        "reward_touch_puck",
        "reward_puck_direction",
    }


@pytest.mark.parametrize("name", ["r01_racket", "g03_strong_strong", "d00_defense", "w02_wall"])
def test_a_recorded_match_comes_out(name: str) -> None:
    trace = recorded(name)
    env = h_env.HockeyEnv(mode=trace.mode, timeout_as_terminated=True)
    h_env.set_position(env._state, trace.start)  # a kick is in no observation
    for step in range(trace.steps):
        obs, reward, terminated, truncated, info = env.step(trace.actions[step].ravel())
        np.testing.assert_allclose(obs[:16], trace.obs[step, :16], rtol=0, atol=1e-2)
        assert reward == pytest.approx(trace.reward[step, 0], abs=1e-3)
        assert env.get_reward_agent_two(env.get_info_agent_two()) == pytest.approx(
            trace.reward[step, 1], abs=1e-3
        )
        assert info["reward_closeness_to_puck"] == pytest.approx(
            trace.raw["closeness"][step], abs=1e-3
        )
        assert info["reward_touch_puck"] == trace.raw["touch"][step]
    assert terminated and not truncated
    assert info["winner"] == trace.raw["winner"] == env.winner
    np.testing.assert_allclose(
        env.obs_agent_two()[:16], trace.raw["final_obs_agent_two"][:16], rtol=0, atol=1e-2
    )


def test_a_state_can_be_set() -> None:
    trace = recorded("g01_strong_weak")
    env = h_env.HockeyEnv()
    without_spin = [step for step in range(1, trace.steps) if trace.spin[step - 1] == 0]
    assert len(without_spin) > 10
    for step in without_spin:
        env.set_state(trace.obs[step - 1])
        seen = env.obs_agent_two()
        np.testing.assert_allclose(seen[6:12], trace.obs[step - 1, :6] * TURNED, atol=1e-6)
        assert seen[16:].tolist() == trace.obs[step - 1, [17, 16]].tolist()
        obs, *_ = env.step(trace.actions[step].ravel())
        np.testing.assert_allclose(obs[:16], trace.obs[step, :16], rtol=0, atol=1e-2)


TURNED = np.array([-1, -1, 1, -1, -1, 1])


def test_bad_states_are_refused() -> None:
    env = h_env.HockeyEnv()
    before = env.obs_agent_two()
    far, fast, kept, one, odd = (np.zeros(18) for _ in range(5))
    far[13], fast[14], kept[16], one[16], odd[17] = -50.1, 500, 1e30, 1, 3.9
    for wrong, hint in (
        (np.zeros(16), "shape"),
        (np.full(18, np.nan), "finite"),
        (np.full(18, 1e6), "place 1e\\+06 m"),
        (far, "place 50.1 m .* 50 m is the farthest"),
        (fast, "velocity x is not in -120..120"),
        (kept, "from 0 to 15, not 1e\\+30 and 0"),
        (one, "keep counter must be"),
        (odd, "whole numbers from 0 to 15, not 0 and 3.9"),
    ):
        with pytest.raises(ValueError, match=hint):
            env.set_state(wrong)
    np.testing.assert_array_equal(env.obs_agent_two(), before)


def test_a_state_leaves_the_shot_that_is_to_come() -> None:
    env, other = (h_env.HockeyEnv(mode="TRAIN_DEFENSE") for _ in range(2))
    seen, _ = env.reset(seed=4)
    other.reset(seed=4)
    env.set_state(seen)
    np.testing.assert_allclose(env.step(NOTHING)[0], other.step(NOTHING)[0], atol=1e-5)


def test_films_are_made_elsewhere() -> None:
    with pytest.raises(ValueError, match=r"render_mode='human'.*sparring render"):
        h_env.HockeyEnv(render_mode="human")


def test_a_refused_step_leaves_the_opponent_alone() -> None:
    env = h_env.HockeyEnv_BasicOpponent()
    env.reset(seed=1)
    phase, chance = env.opponent.phase, env.opponent._rng.bit_generator.state
    for wrong in (np.full(4, np.nan), np.zeros(3)):
        with pytest.raises(ValueError, match=r"NaN|shape"):
            env.step(wrong)
    assert (env.opponent.phase, env.opponent._rng.bit_generator.state) == (phase, chance)
    while not env.done:
        env.step(np.zeros(4))
    assert env.opponent.phase > phase
    phase, chance = env.opponent.phase, env.opponent._rng.bit_generator.state
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(4))
    assert (env.opponent.phase, env.opponent._rng.bit_generator.state) == (phase, chance)


def test_players_serve_in_turn() -> None:
    env = h_env.HockeyEnv()
    halves = [env.reset()[0][12] > 0 for _ in range(4)]
    assert halves == [True, False, True, False]  # player two first, as in the original
    assert env.reset(one_starting=True)[0][12] < 0
    assert env.reset(one_starting=False)[0][12] > 0
    assert env.reset()[0][12] < 0


def test_a_seed_fixes_the_episodes_that_follow() -> None:
    one, other = h_env.HockeyEnv(), h_env.HockeyEnv()
    assert one.reset(seed=5)[0].tolist() == other.reset(seed=5)[0].tolist()
    assert one.reset()[0].tolist() == other.reset()[0].tolist()
    assert one.reset(seed=6)[0].tolist() != other.reset(seed=5)[0].tolist()


def test_modes() -> None:
    env = h_env.HockeyEnv(mode="TRAIN_DEFENSE")
    assert env.max_timesteps == 80
    env.reset(seed=1)  # one shot in a hundred bounces off the player at once
    env.step(NOTHING)
    assert env.obs_agent_two()[14] > 20  # the puck flies toward the left goal
    env.reset(mode=h_env.Mode.NORMAL)
    assert env.max_timesteps == 250
    env.reset(mode=1)
    assert env.mode is h_env.Mode.TRAIN_SHOOTING
    for wrong in (3, "TRAIN", -1):
        with pytest.raises(ValueError):
            h_env.HockeyEnv(mode=wrong)
    for untyped in (None, 1.0):
        with pytest.raises(TypeError):
            h_env.HockeyEnv(mode=untyped)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", [False, True])
def test_a_time_out_truncates_or_terminates(flag: bool) -> None:
    env = h_env.HockeyEnv(mode=1, timeout_as_terminated=flag)
    for step in range(81):
        *_, terminated, truncated, info = env.step(NOTHING)
        assert (terminated or truncated) == (step == 80)
    assert (terminated, truncated) == (flag, not flag)
    assert info["winner"] == 0
    with pytest.raises(ResetNeeded):
        env.step(NOTHING)


def test_bad_actions_are_refused_and_far_ones_clipped() -> None:
    env = h_env.HockeyEnv()
    for wrong in (np.zeros(7), np.zeros(9), np.zeros((2, 4)), np.full(8, np.nan)):
        with pytest.raises(ValueError, match=r"shape|NaN"):
            env.step(wrong)
    assert env.time == 0
    start = env.obs_agent_two().copy()
    start[[0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 14, 15]] *= -1
    obs, *_ = env.step([np.inf, -np.inf, 5, 0, 0, 0, 0, 0])
    other = h_env.HockeyEnv()
    own = np.concatenate([start[6:12], start[0:6], start[12:]])
    other.set_state(own)
    again, *_ = other.step([1, -1, 1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(obs, again, atol=1e-6)


def test_discrete_actions() -> None:
    env = h_env.HockeyEnv()
    assert env.discrete_action_space.n == 8
    table = [env.discrete_to_continous_action(code).tolist() for code in range(8)]
    assert table[0] == [0, 0, 0, 0] and table[7] == [0, 0, 0, 1]
    assert table[1:7] == [
        [-1, 0, 0, 0],
        [1, 0, 0, 0],
        [0, -1, 0, 0],
        [0, 1, 0, 0],
        [0, 0, -1, 0],
        [0, 0, 1, 0],
    ]
    bare = h_env.HockeyEnv(keep_mode=False)
    assert bare.discrete_to_continous_action(6).tolist() == [0, 0, 1]
    for code in (-1, 8, 1.5):
        with pytest.raises(ValueError, match="discrete action"):
            env.discrete_to_continous_action(code)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"outside 0\.\.6"):
        bare.discrete_to_continous_action(7)


def test_without_keep_mode_everything_is_shorter() -> None:
    env = h_env.HockeyEnv(keep_mode=False)
    assert env.observation_space.shape == (16,) and env.action_space.shape == (6,)
    opponent = h_env.BasicOpponent(weak=False, keep_mode=False)
    action = opponent.act(env.obs_agent_two())
    assert action.shape == (3,)
    obs, *_ = env.step(np.hstack([action, action]))
    assert obs.shape == (16,)


def test_the_scripted_player_answers_as_recorded() -> None:
    for vector in data()["policy"]:
        seen = np.array(vector["obs"])
        action = h_env.basic_action(seen, vector["phase"], weak=vector["weak"], keep_mode=True)
        np.testing.assert_allclose(action, vector["action"], rtol=0, atol=1e-6)


def test_one_player_against_the_scripted_one() -> None:
    env = h_env.HockeyEnv_BasicOpponent(weak_opponent=False)
    lost = 0
    for episode in range(20):
        env.reset(seed=episode)
        while not env.done:
            *_, info = env.step(np.zeros(4))
        lost += info["winner"] < 0
    assert lost > 3
    with pytest.raises(ValueError, match="need"):
        h_env.HockeyEnv_BasicOpponent().step(np.zeros(8))


def test_kept_pucks_can_survive_a_reset() -> None:
    for clear, wanted in ((True, 0.0), (False, 9.0)):
        env = h_env.HockeyEnv(clear_keep_on_reset=clear)
        state = np.zeros(18)
        state[[0, 6, 12, 16]] = -3, 3, -2.7, 9
        env.set_state(state)
        assert env.reset()[0][16] == wanted


@pytest.mark.parametrize("env_id", ["sparring/Hockey-v0", "sparring/Hockey-One-v0"])
def test_gymnasium_accepts_it(env_id: str) -> None:
    env = gymnasium.make(env_id).unwrapped
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=True)
    # Floats have no honest bound, and the original's reset takes more than a seed.
    expected = ("probably too", "infinity")
    assert [str(w.message) for w in caught if not any(e in str(w.message) for e in expected)] == []


def test_the_rink_is_shown_as_text() -> None:
    assert "o" in h_env.HockeyEnv(render_mode="ansi").render()
    assert h_env.HockeyEnv().render() is None


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_pettingzoo_accepts_it_with_both_seats(game: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(parallel_env(game), num_cycles=300)
        parallel_seed_test(lambda: parallel_env(game), num_cycles=100)


def test_both_seats_of_the_parallel_env_are_the_games_own() -> None:
    env = parallel_env("laser_hockey")
    seen, _ = env.reset(seed=4)
    state = new_state("laser_hockey", seed=4)
    rng = np.random.default_rng(1)
    while env.agents:
        for seat in (0, 1):
            np.testing.assert_array_equal(seen[f"seat_{seat}"], state.observe(seat))
        actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
        seen, reward, terminated, truncated, _ = env.step(
            {"seat_0": actions[0], "seat_1": actions[1]}
        )
        state.apply(actions)
        assert [reward["seat_0"], reward["seat_1"]] == pytest.approx(state.rewards.tolist())
    assert (terminated["seat_0"], truncated["seat_0"]) == (state.terminated, state.truncated)


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_the_general_adapter_plays_both_seats(game: str) -> None:
    env = SparringEnv(game, opponents="strong", seed=1)
    seats = set()
    for episode in range(6):
        _, info = env.reset(seed=episode)
        seats.add(info["seat"])
        for _ in range(20):
            obs, *_ = env.step(env.action_space.sample())
            assert obs[0] < 0  # everybody plays from the left
    assert seats == {0, 1}
    envs = SparringVectorEnv(game, 8, opponents="weak", threads=1)
    envs.reset(seed=2)
    ended = 0
    for _ in range(300):
        *_, terminated, truncated, _ = envs.step(envs.action_space.sample())
        ended += int((terminated | truncated).sum())
    assert ended >= 8
    assert envs.observation_space.shape == (8, len(Rules(game).features))
