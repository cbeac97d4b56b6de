"""One game behind Gymnasium's Env."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from envs.helpers import ALL_GAMES, TURN_GAMES, LegalEnv, choose, needs_duel, replay
from sparring import ConfigError, IllegalActionError, Rules
from sparring.envs.gymnasium import SparringEnv
from sparring.envs.opponents import OpponentGroup


def play_episode(env: SparringEnv, obs: np.ndarray, info: dict[str, Any]) -> list[Any]:
    steps = []
    terminated = truncated = False
    while not (terminated or truncated):
        action = choose(env.rules, obs, info.get("action_mask"))
        obs, reward, terminated, truncated, info = env.step(action)
        steps.append((obs, reward, terminated, truncated, info))
    return steps


@pytest.mark.parametrize("game", ALL_GAMES)
def test_gymnasium_accepts_the_env(game: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(LegalEnv(game), skip_render_check=True)
    # Duel's features are floats, which have no honest bound.
    allowed = "probably too" if game == "duel" else "no warning at all"
    assert [str(w.message) for w in caught if allowed not in str(w.message)] == []


def test_gymnasium_makes_it_by_name() -> None:
    gymnasium.register(
        "sparring/test-v0",
        entry_point="sparring.envs.gymnasium:SparringEnv",
        kwargs={"game": "tic_tac_toe"},
    )
    try:
        env = gymnasium.make("sparring/test-v0", opponents="careful", max_episode_steps=1)
        _, info = env.reset(seed=1)
        *_, truncated, _ = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        assert truncated
        assert env.get_wrapper_attr("action_masks")().dtype == np.bool_
    finally:
        del gymnasium.registry["sparring/test-v0"]


@pytest.mark.parametrize(
    ("game", "bot"),
    [
        ("tic_tac_toe", "random"),
        ("tic_tac_toe", "careful"),
        ("skull_king", "random"),
        ("skull_king", "rule_medium"),
        pytest.param("duel", "pusher", marks=needs_duel),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_episode_is_the_game_itself(game: str, bot: str, seed: int) -> None:
    """Observations, masks, rewards and the end are those of a single state played alongside."""
    env = SparringEnv(game, opponents=bot)
    obs, info = env.reset(seed=seed)
    learner = info["seat"]
    terminated = truncated = False
    for state, answer in replay(env.rules, seed, learner, bot):
        assert np.array_equal(obs, state.observe(learner))
        if state.over:
            break
        assert not (terminated or truncated)
        action = choose(env.rules, obs, info.get("action_mask"))
        if not env.rules.box:
            assert np.flatnonzero(env.action_masks()).tolist() == state.legal()
            assert np.array_equal(info["action_mask"], env.action_masks())
        obs, reward, terminated, truncated, info = env.step(action)
        assert reward == pytest.approx(answer(action), abs=1e-5)
        assert info["seat"] == learner
    assert (terminated, truncated) == (state.terminated, state.truncated)
    assert info["scores"].tolist() == state.scores
    assert info["score"] == state.scores[learner]
    assert info["end"] == state.end
    if not env.rules.box:
        assert not info["action_mask"].any()


@needs_duel
def test_a_time_limit_truncates() -> None:
    env = SparringEnv("duel", config={"limit": 4, "reach": 100})
    steps = play_episode(env, *env.reset(seed=3))
    assert [step[2:4] for step in steps] == [(False, False)] * 3 + [(False, True)]
    assert steps[-1][0][2] == pytest.approx(4 / 20), "the observation is not the last one"
    assert steps[-1][4]["end"] == "time limit"


@pytest.mark.parametrize("game", ALL_GAMES)
def test_a_seed_fixes_the_sequence_of_episodes(game: str) -> None:
    def run(env: SparringEnv, seed: int | None) -> list[bytes]:
        shown = []
        for episode in range(4):
            obs, info = env.reset(seed=seed if episode == 0 else None)
            shown.append(obs.tobytes() + bytes([info["seat"]]))
            if episode == 2:
                continue  # given up: the next reset must start another one
            shown += [step[0].tobytes() for step in play_episode(env, obs, info)]
        return shown

    env = SparringEnv(game, seed=5)
    first = run(env, None)
    assert first == run(env, 5) == run(SparringEnv(game), 5)
    assert first != run(env, 6)


def test_the_next_reset_shows_the_episode_that_follows() -> None:
    """No episode is skipped when one has ended, and none is repeated when one is given up."""
    env = SparringEnv("skull_king", seed=1)
    played = []
    for _ in range(4):
        obs, info = env.reset()
        played.append(obs.tobytes())
        play_episode(env, obs, info)
    env.reset(seed=1)
    given_up = [played[0]] + [env.reset()[0].tobytes() for _ in range(3)]
    assert given_up == played


def test_the_seat_is_drawn_for_every_episode() -> None:
    env = SparringEnv("skull_king")
    seats = [env.reset()[1]["seat"] for _ in range(200)]
    assert all(seats.count(seat) > 25 for seat in range(4)), seats


@pytest.mark.parametrize("game", TURN_GAMES)
def test_an_illegal_action_changes_nothing(game: str) -> None:
    env, twin = SparringEnv(game), SparringEnv(game)
    obs, info = env.reset(seed=2)
    twin.reset(seed=2)
    terminated = False
    while not terminated:
        illegal = int(np.flatnonzero(~np.append(info["action_mask"], False))[0])
        for wrong in (illegal, -1, env.rules.actions, 0.5):
            with pytest.raises(IllegalActionError):
                env.step(wrong)
        assert np.array_equal(env.action_masks(), info["action_mask"])
        action = choose(env.rules, obs, info["action_mask"])
        obs, reward, terminated, _, info = env.step(action)
        expected = twin.step(action)
        assert np.array_equal(obs, expected[0])
        assert reward == expected[1]


def test_the_error_says_what_is_legal() -> None:
    env = SparringEnv("tic_tac_toe")
    _, info = env.reset(seed=0)
    action = int(np.flatnonzero(info["action_mask"])[0])
    env.step(action)
    with pytest.raises(IllegalActionError, match="is not legal; legal: "):
        env.step(action)


def test_stepping_without_a_running_episode_is_refused() -> None:
    env = SparringEnv("tic_tac_toe")
    with pytest.raises(IllegalActionError, match=r"call reset\(\) first"):
        env.step(0)
    play_episode(env, *env.reset())
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_rewards_are_weighted() -> None:
    plain = SparringEnv("tic_tac_toe")
    double = SparringEnv("tic_tac_toe", rewards={"result": 2.0})
    paid = [0.0]
    for seed in range(10):
        paid.append(play_episode(plain, *plain.reset(seed=seed))[-1][1])
        assert play_episode(double, *double.reset(seed=seed))[-1][1] == 2 * paid[-1]
    assert any(paid)


def test_opponents_take_the_other_seats() -> None:
    rules = Rules("skull_king")

    def seats(opponents: object) -> tuple[object, ...]:
        (lineup,) = OpponentGroup(rules, opponents, games=1, first_game=0).lineups
        assert lineup.shuffle
        return lineup.players

    assert seats(None) == (0, "random", "random", "random")
    assert seats("captain") == (0, "captain", "captain", "captain")
    assert seats(["random", "captain", "rule_easy"]) == (0, "random", "captain", "rule_easy")
    with pytest.raises(ConfigError, match="names 1 of the 4 seats"):
        SparringEnv("skull_king", opponents=["random"])
    with pytest.raises(ConfigError, match="did you mean 'captain'"):
        SparringEnv("skull_king", opponents="captian")


def test_every_observation_lies_in_the_space() -> None:
    env = SparringEnv("skull_king", opponents="captain")
    assert np.isfinite(env.observation_space.low).all()
    assert np.isfinite(env.observation_space.high).all()
    for seed in range(3):
        obs, info = env.reset(seed=seed)
        assert env.observation_space.contains(obs)
        for step in play_episode(env, obs, info):
            assert env.observation_space.contains(step[0])


@needs_duel
def test_a_game_without_masks_says_so() -> None:
    env = SparringEnv("duel")
    _, info = env.reset()
    assert "action_mask" not in info
    with pytest.raises(ConfigError, match="continuous"):
        env.action_masks()
    with pytest.raises(IllegalActionError, match="finite"):
        env.step(np.array([0.0, np.nan], np.float32))
