"""Many games behind Gymnasium's VectorEnv, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from envs.helpers import ALL_GAMES, choose_all, needs_duel
from sparring import ConfigError, IllegalActionError, Rules
from sparring.envs.gymnasium import SparringEnv, SparringVectorEnv

GAMES = 5
STEPS = 120
MODES = list(AutoresetMode)
each_mode = pytest.mark.parametrize("mode", MODES, ids=[mode.value for mode in MODES])
each_game = pytest.mark.parametrize("game", ALL_GAMES)


def slow_twin(game: str, mode: AutoresetMode) -> SyncVectorEnv[Any, Any]:
    """The same games, one Python object each, batched by Gymnasium."""
    makers = [lambda i=i: SparringEnv(game, first_game=i) for i in range(GAMES)]
    return SyncVectorEnv(makers, autoreset_mode=mode)


def reset_ended(envs: VectorEnv[Any, Any, Any], over: np.ndarray) -> tuple[np.ndarray, Any]:
    return envs.reset(options={"reset_mask": over})


def transitions(game: str, mode: AutoresetMode) -> list[list[tuple[Any, ...]]]:
    """Play, and write down (obs, action, reward, terminated, truncated, next obs) by game."""
    envs = SparringVectorEnv(game, GAMES, seed=7, autoreset_mode=mode)
    told: list[list[tuple[Any, ...]]] = [[] for _ in range(GAMES)]
    obs, info = envs.reset()
    over = np.zeros(GAMES, bool)
    for _ in range(STEPS):
        actions = choose_all(envs.rules, obs, info)
        shown, reward, terminated, truncated, info = envs.step(actions)
        for i in range(GAMES):
            if mode is AutoresetMode.NEXT_STEP and over[i]:
                assert (reward[i], terminated[i], truncated[i]) == (0, False, False)
                continue
            ended = terminated[i] or truncated[i]
            same_step = mode is AutoresetMode.SAME_STEP
            last = info["final_obs"][i] if ended and same_step else shown[i]
            action = actions[i].tobytes()
            step = (obs[i].tobytes(), action, reward[i], terminated[i], truncated[i])
            told[i].append((*step, last.tobytes()))
        obs, over = shown, terminated | truncated
        if mode is AutoresetMode.DISABLED and over.any():
            fresh, fresh_info = reset_ended(envs, over)
            assert np.array_equal(fresh[~over], obs[~over])
            obs = fresh
            for key in ("seat", "action_mask"):
                if key in info:
                    info[key][over] = fresh_info[key][over]
    return told


@each_game
def test_all_modes_tell_the_same_story(game: str) -> None:
    same, following, disabled = (
        transitions(game, mode)
        for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED)
    )
    assert same == disabled
    for whole, part in zip(same, following, strict=True):
        assert whole[: len(part)] == part
        assert sum(step[3] or step[4] for step in part) >= 1, "no game ended"


@pytest.mark.few(5)
@each_mode
@each_game
def test_equals_gymnasium_own_batching(game: str, mode: AutoresetMode) -> None:
    """Observations, rewards, ends and infos are those of SyncVectorEnv, also around resets."""
    fast, slow = SparringVectorEnv(game, GAMES, autoreset_mode=mode), slow_twin(game, mode)
    rules, rng = fast.rules, np.random.default_rng(0)
    assert fast.metadata["autoreset_mode"] is slow.metadata["autoreset_mode"] is mode
    assert fast.observation_space == slow.observation_space
    assert fast.action_space == slow.action_space
    obs, info = fast.reset(seed=3)
    assert data_equivalence((obs, info), slow.reset(seed=[3] * GAMES), exact=True)
    ends = 0
    for step in range(STEPS):
        actions = choose_all(rules, obs, info)
        told = fast.step(actions)
        assert data_equivalence(told, slow.step(actions), exact=True), f"step {step}"
        obs, _, terminated, truncated, info = told
        ends += int((terminated | truncated).sum())
        over = terminated | truncated
        while mode is AutoresetMode.DISABLED and over.any():
            # Ended games one by one, and some that run: those not chosen must show what they did.
            chosen = ~over & (rng.random(GAMES) < 0.2)
            chosen[over.argmax()] = True
            over &= ~chosen
            obs, told_info = fast.reset(options={"reset_mask": chosen})
            expected = slow.reset(options={"reset_mask": chosen})
            assert data_equivalence((obs, told_info), expected, exact=True)
            for key in told_info:
                info[key][chosen] = told_info[key][chosen]
        if step in (9, 10, 100):
            obs, info = fast.reset()
            assert data_equivalence((obs, info), slow.reset(), exact=True)
    assert ends >= 1


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_single_games_can_be_reset_and_seeded(mode: AutoresetMode) -> None:
    envs = SparringVectorEnv("skull_king", GAMES, autoreset_mode=mode)
    obs, info = envs.reset(seed=1)
    for _ in range(5):
        obs, *_, info = envs.step(choose_all(envs.rules, obs, info))
    chosen = np.array([True, False, False, True, False])
    options = {"reset_mask": chosen}
    again, info = envs.reset(seed=1, options=options)
    first, _ = SparringVectorEnv("skull_king", GAMES).reset(seed=1)
    assert np.array_equal(again[chosen], first[chosen])
    assert np.array_equal(again[~chosen], obs[~chosen])
    assert np.array_equal(info["_seat"], chosen)
    assert options == {"reset_mask": chosen}, "the caller's options were changed"


@each_mode
@each_game
def test_a_refused_step_leaves_every_game_as_it_was(game: str, mode: AutoresetMode) -> None:
    envs = SparringVectorEnv(game, GAMES, autoreset_mode=mode)
    twin = SparringVectorEnv(game, GAMES, autoreset_mode=mode)
    obs, info = envs.reset(seed=4)
    twin.reset(seed=4)
    for _ in range(4):
        actions = choose_all(envs.rules, obs, info)
        wrong = actions.copy()
        wrong[-1] = np.nan if envs.rules.box else np.flatnonzero(~info["action_mask"][-1])[0]
        with pytest.raises(IllegalActionError, match=f"game {GAMES - 1}"):
            envs.step(wrong)
        for misshapen in (actions[:-1], actions[None]):
            with pytest.raises(IllegalActionError, match="shape"):
                envs.step(misshapen)
        told = envs.step(actions)
        assert data_equivalence(told, twin.step(actions), exact=True)
        obs, _, terminated, truncated, info = told
        if (terminated | truncated).any():
            break


def test_next_step_ignores_the_action_after_an_end() -> None:
    envs = SparringVectorEnv("tic_tac_toe", GAMES, autoreset_mode=AutoresetMode.NEXT_STEP)
    obs, info = envs.reset(seed=0)
    over = np.zeros(GAMES, bool)
    while not over.any():
        obs, _, terminated, truncated, info = envs.step(choose_all(envs.rules, obs, info))
        over = terminated | truncated
    masks = envs.action_masks()
    assert masks[over].all(), "a masked policy has nothing to choose from"
    assert np.array_equal(masks[~over], info["action_mask"][~over])
    actions = choose_all(envs.rules, obs, info)
    actions[over] = 999
    obs, reward, terminated, truncated, info = envs.step(actions)
    assert not (terminated | truncated)[over].any()
    assert not reward[over].any()
    empty_or_one_stone = obs[over, :18].sum(axis=1)
    assert (empty_or_one_stone <= 1).all()
    running = ~(terminated | truncated)
    assert np.array_equal(envs.action_masks()[running], info["action_mask"][running])


def test_disabled_refuses_to_step_games_that_are_over() -> None:
    envs = SparringVectorEnv("tic_tac_toe", GAMES, autoreset_mode=AutoresetMode.DISABLED)
    obs, info = envs.reset(seed=0)
    over = np.zeros(GAMES, bool)
    while not over.any():
        obs, _, terminated, truncated, info = envs.step(choose_all(envs.rules, obs, info))
        over = terminated | truncated
    with pytest.raises(ResetNeeded, match="reset_mask"):
        envs.step(choose_all(envs.rules, obs, info))
    shown, _ = reset_ended(envs, over)
    assert np.array_equal(shown[~over], obs[~over])


def test_reset_masks_are_checked() -> None:
    envs = SparringVectorEnv("tic_tac_toe", 2, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset()
    for wrong in ([True, False], np.array([1, 0]), np.zeros(2, bool), np.ones(3, bool)):
        with pytest.raises(ConfigError, match="reset_mask"):
            envs.reset(options={"reset_mask": wrong})
    same = SparringVectorEnv("tic_tac_toe", 2)
    with pytest.raises(ConfigError, match="DISABLED"):
        same.reset(options={"reset_mask": np.ones(2, bool)})


@each_mode
def test_what_was_returned_stays(mode: AutoresetMode) -> None:
    """Callers keep observations and masks; later steps must not write into them."""
    envs = SparringVectorEnv("tic_tac_toe", GAMES, autoreset_mode=mode)
    obs, info = envs.reset(seed=0)
    masks = envs.action_masks()
    kept = [obs, info["seat"], info["action_mask"], masks]
    copies = [array.copy() for array in kept]
    told = envs.step(choose_all(envs.rules, obs, info))
    kept += [*told[:4], told[4]["seat"]]
    copies += [array.copy() for array in kept[4:]]
    if not (told[2] | told[3]).any():
        envs.step(choose_all(envs.rules, told[0], told[4]))
    envs.reset()
    for array, copy in zip(kept, copies, strict=True):
        assert np.array_equal(array, copy)


def test_threads_do_not_change_the_games() -> None:
    runs = []
    for threads in (1, 2):
        envs = SparringVectorEnv("skull_king", 64, seed=2, threads=threads)
        obs, info = envs.reset()
        shown = []
        for _ in range(30):
            obs, *_, info = envs.step(choose_all(envs.rules, obs, info))
            shown.append(obs)
        runs.append(np.array(shown))
    assert np.array_equal(runs[0], runs[1])


def test_episode_statistics_agree_between_modes() -> None:
    """Gymnasium's own wrapper reads the mode from the metadata and counts accordingly."""
    counted = []
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        envs = SparringVectorEnv("tic_tac_toe", 1, seed=3, autoreset_mode=mode)
        watched = RecordEpisodeStatistics(envs)
        obs, info = watched.reset()
        while len(watched.return_queue) < 20:
            obs, *_, info = watched.step(choose_all(envs.rules, obs, info))
        counted.append((list(watched.return_queue), list(watched.length_queue)))
    assert counted[0] == counted[1]
    assert len(set(counted[0][0])) > 1, "every game ended alike"


@needs_duel
def test_truncation_and_termination_stay_apart() -> None:
    config = {"limit": 6, "reach": 1.5}
    envs = SparringVectorEnv("duel", 16, config=config, opponents="pusher")
    obs, info = envs.reset(seed=0)
    seen = {"reached": 0, "time limit": 0}
    for _ in range(30):
        obs, _, terminated, truncated, info = envs.step(choose_all(envs.rules, obs, info))
        assert not (terminated & truncated).any()
        for i in np.flatnonzero(terminated | truncated):
            end = info["final_info"]["end"][i]
            seen[end] += 1
            assert truncated[i] == (end == "time limit")
            time = info["final_obs"][i][2] * 20
            assert round(float(time)) == 6 if truncated[i] else time <= 6
            assert obs[i][2] == 0, "the new episode does not show its first position"
    assert all(seen.values()), seen


def test_the_number_of_games_is_checked() -> None:
    for mode in MODES:
        with pytest.raises(ConfigError, match="at least 1"):
            SparringVectorEnv(Rules("tic_tac_toe"), 0, autoreset_mode=mode)
