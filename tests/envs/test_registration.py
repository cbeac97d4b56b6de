"""The games in Gymnasium's registry: made by name, checked, rendered, played without masks."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from envs.helpers import TURN_GAMES, choose_all
from sparring import ConfigError, IllegalActionError, _native
from sparring.envs.gymnasium import SparringEnv, SparringVectorEnv
from sparring.envs.registration import NAMESPACE, env_id, register_games
from sparring.games.rules import TEST_GAMES, game_names

GAMES = game_names()
NAMES = {"skull_king": "sparring/SkullKing-v0", "tic_tac_toe": "sparring/TicTacToe-v0"}


def test_every_game_has_a_name() -> None:
    known = {name for name in gymnasium.registry if name.startswith(f"{NAMESPACE}/")}
    assert {env_id(game) for game in GAMES} <= known
    assert set(NAMES.values()) <= known
    assert not {env_id(game) for game in TEST_GAMES if game in _native.game_names()} & known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_games()  # again, as a second import may


@pytest.mark.parametrize("game", GAMES)
def test_gymnasium_finds_nothing_to_complain_about(game: str) -> None:
    env = gymnasium.make(env_id(game)).unwrapped
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)  # render modes included
    # Hockey's numbers are floats, which have no honest bound.
    allowed = "probably too" if game.startswith("laser_hockey") else "no warning at all"
    assert [str(w.message) for w in caught if allowed not in str(w.message)] == []


def test_a_name_is_found_without_an_import() -> None:
    """As programs that take an environment's name as an option have it."""
    program = """
import gymnasium
env = gymnasium.make("sparring.envs.gymnasium:sparring/SkullKing-v0", opponents="captain")
print(env.reset(seed=1)[0].shape)
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("(531,)", 0), done.stderr


def test_the_page_begins_with_a_name_that_needs_no_import() -> None:
    """And the package promises nothing to a loader of plugins that Gymnasium no longer has."""
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert "gymnasium.envs" not in project.get("entry-points", {})
    first = (root / "docs/reference/adapters.md").read_text().split("```")[1]
    assert f'gymnasium.make("sparring.envs.gymnasium:{NAMES["skull_king"]}"' in first
    assert "import sparring" not in first


@pytest.mark.parametrize("game", TURN_GAMES)
def test_many_games_are_made_by_name(game: str) -> None:
    env = gymnasium.make_vec(env_id(game), num_envs=3, opponents="random", threads=1)
    assert isinstance(env.unwrapped, SparringVectorEnv)
    twin = SparringVectorEnv(game, 3, threads=1)
    for one, other in zip(env.reset(seed=4), twin.reset(seed=4), strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one.keys() > {*other}
    sync = gymnasium.make_vec(env_id(game), num_envs=2, vectorization_mode="sync")
    assert sync.reset(seed=1)[0].shape[0] == 2


@pytest.mark.few(6)
@pytest.mark.parametrize("game", GAMES)
def test_a_rendered_game_is_the_one_that_is_played(game: str) -> None:
    """The text shows the position, also the last one, though the pool has begun the next game."""
    env = SparringEnv(game, render_mode="ansi", first_game=3)
    plain = SparringEnv(game, first_game=3)
    assert env.metadata["render_modes"][0] == "ansi"
    env.reset(seed=2)
    obs, info = plain.reset(seed=2)
    rng = np.random.default_rng(1)
    for _ in range(400):
        seat = info["seat"]
        assert env.render() == env._seats.position(0).text()
        assert np.array_equal(env._seats.position(0).observe(seat), obs)
        action: Any = rng.uniform(-1, 1, plain.rules.box).astype(np.float32)
        if not plain.rules.box:
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        env.step(action)
        obs, _, terminated, truncated, info = plain.step(action)
        if terminated or truncated:
            break
    else:
        pytest.skip("the game is longer")
    assert env._seats.position(0).over
    assert env._seats.position(0).scores == list(info["scores"])
    env.reset()
    assert not env._seats.position(0).over


def test_pixels_change_with_the_position() -> None:
    env = gymnasium.make(NAMES["tic_tac_toe"], render_mode="rgb_array")
    env.reset(seed=1)
    before = env.render()
    env.step(int(env.unwrapped.action_masks().argmax()))
    after = env.render()
    assert before.dtype == after.dtype == np.uint8
    assert before.shape == after.shape == (*before.shape[:2], 3)
    assert not np.array_equal(before, after)


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
def test_a_vector_renders_every_game(mode: str) -> None:
    env = SparringVectorEnv("tic_tac_toe", 3, autoreset_mode=mode, render_mode="ansi")
    obs, info = env.reset(seed=1)
    frames = env.render()
    assert frames is not None
    assert len(frames) == 3
    env.step(choose_all(env.rules, obs, info))
    assert env.render() != frames


def test_a_mode_that_a_game_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="render_mode='human': tic_tac_toe has None, 'ansi'"):
        SparringEnv("tic_tac_toe", render_mode="human")
    env = SparringEnv("tic_tac_toe")
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def without_masks(env: Any, steps: int, seed: int = 1) -> list[Any]:
    """Play whatever the action space offers."""
    env.action_space.seed(seed)
    env.reset(seed=seed)
    played = []
    for _ in range(steps):
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        played.append((obs.tobytes(), reward, terminated, info["illegal_actions"]))
        if terminated or truncated:
            env.reset()
    return played


def test_a_learner_without_masks_can_play() -> None:
    env = SparringEnv("tic_tac_toe", illegal="random", illegal_reward=-0.25)
    played = without_masks(env, 60)
    assert played == without_masks(env, 60), "the same seed plays the same"
    assert played != without_masks(env, 60, seed=2)
    counts = [count for *_, count in played]
    assert max(counts) > 1
    last = 0
    for _, reward, over, count in played:
        fined = count - last
        assert fined in (0, 1)
        outcome = reward + 0.25 * fined
        assert outcome == 0 or over, "an illegal action costs a quarter, and nothing else changes"
        last = 0 if over else count
    with pytest.raises(IllegalActionError, match="not legal"):
        env.step(9)  # outside the action space
    with pytest.raises(IllegalActionError, match=r"call reset\(\) first"):
        SparringEnv("tic_tac_toe", illegal="random").step(0)


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_a_vector_replaces_what_single_games_replace(mode: str) -> None:
    options: dict[str, Any] = {"illegal": "random", "illegal_reward": -1.0, "seed": 5}
    vector = SparringVectorEnv("tic_tac_toe", 4, autoreset_mode=mode, **options)
    singles = [SparringEnv("tic_tac_toe", first_game=i, **options) for i in range(4)]
    vector.reset(seed=5)
    for env in singles:
        env.reset(seed=5)
    rng = np.random.default_rng(0)
    ended = np.zeros(4, np.bool_)
    for _ in range(40):
        actions = rng.integers(0, 9, 4)
        _, reward, terminated, _, info = vector.step(actions)
        for i, env in enumerate(singles):
            if ended[i] and mode == "NextStep":
                env.reset()
                ended[i] = False
                continue
            _, single_reward, over, _, single_info = env.step(int(actions[i]))
            assert (reward[i], terminated[i]) == (single_reward, over)
            told = info
            if over and mode == "SameStep":
                told = info["final_info"]
                env.reset()
            ended[i] = over
            assert told["illegal_actions"][i] == single_info["illegal_actions"]


def test_what_is_done_with_illegal_actions_is_checked() -> None:
    with pytest.raises(ConfigError, match="illegal='randm' is unknown; did you mean 'random'"):
        SparringEnv("tic_tac_toe", illegal="randm")
    with pytest.raises(ConfigError, match="illegal_reward=nan must be finite"):
        SparringEnv("tic_tac_toe", illegal="random", illegal_reward=float("nan"))
    with pytest.raises(ConfigError, match="needs illegal="):
        SparringEnv("tic_tac_toe", illegal_reward=-1.0)
