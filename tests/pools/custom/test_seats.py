"""PettingZoo envs that people bring along: every agent is a seat."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from pettingzoo.utils import parallel_to_aec

from envs.helpers import needs_duel
from pools.foreign_envs import Fading, MatchingPennies, by_hash, episodes
from sparring import IllegalActionError, Lineup, Pool, Rules, SparringError, Start
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.envs.pettingzoo import aec_env, parallel_env
from sparring.errors import ConfigError
from sparring.learn.ppo import PPO
from sparring.learn.transitions import TERMINATED, TO_NEXT, TRUNCATED
from sparring.pools.custom import AECPool, ParallelPool, pool_of
from sparring.pools.lineups import LEARNER


def play_both(native: Any, custom: Any, steps: int, *, same_obs: bool = True) -> int:
    """Play two pools in step, demand that they are equal, and return how many games ended."""
    ended = 0
    ours, theirs = native.reset(), custom.reset()
    for _ in range(steps):
        assert np.array_equal(ours.mask, theirs.mask)
        assert np.array_equal(ours.seat, theirs.seat)
        assert np.array_equal(ours.policy, theirs.policy)
        if same_obs:
            wide = native.rules.widen(ours.obs)
            assert np.array_equal(wide, custom.rules.widen(theirs.obs))
        seen = custom.rules.widen(theirs.obs)
        action = [by_hash(one, mask) for one, mask in zip(seen, theirs.mask, strict=True)]
        ours, theirs = native.step(action), custom.step(action)
        assert np.array_equal(ours.reward[..., :1], theirs.reward)
        for name in ("terminated", "truncated", "final_game", "final_length", "final_policy"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        if same_obs and len(ours.final_game):
            last = native.rules.widen(ours.final_obs)
            assert np.array_equal(last, custom.rules.widen(theirs.final_obs))
        assert not theirs.final_mask.any()
        ended += len(ours.final_game)
        if ended and native.rules.name == "skull_king":
            break  # the env draws its next games from other seeds
    return ended


def test_turn_games_are_those_of_the_native_pool() -> None:
    native = Pool("tic_tac_toe", 3, seed=5, threads=1)
    custom = pool_of([aec_env("tic_tac_toe") for _ in range(3)], seed=5)
    assert isinstance(custom, AECPool)
    assert (custom.rules.seats, custom.rules.rows) == (2, 1)
    assert play_both(native, custom, 60) > 15


def test_rewards_between_decisions_are_those_of_the_native_pool() -> None:
    native = Pool("skull_king", 1, seed=5, threads=1)
    assert play_both(native, pool_of(aec_env("skull_king"), seed=5), 1000) == 1


def test_every_env_has_a_seed_of_its_own() -> None:
    first, second, again = (
        pool_of([aec_env("skull_king") for _ in range(2)], seed=seed).reset().obs.copy()
        for seed in (5, 6, 5)
    )
    assert np.array_equal(first, again)
    assert np.array_equal(first[1], second[0])
    assert not np.array_equal(first[0], first[1])


def test_pettingzoos_own_tic_tac_toe() -> None:
    """Their board counts by columns and ours by rows, which leaves all lines where they are."""
    tictactoe = pytest.importorskip("pettingzoo.classic.tictactoe_v3", exc_type=ImportError)
    native = Pool("tic_tac_toe", 1, seed=5, threads=1)
    custom = pool_of(tictactoe.env())
    assert custom.rules.name == "tictactoe_v3"
    assert play_both(native, custom, 60, same_obs=False) > 6


@pytest.mark.parametrize("turns", [False, True])
def test_agents_that_leave_one_after_the_other(turns: bool) -> None:
    env = parallel_to_aec(Fading()) if turns else Fading()
    pool = pool_of(env)
    assert isinstance(pool, AECPool if turns else ParallelPool)
    found = episodes(pool, 24)
    assert set(found) == {(0, 0), (0, 1), (0, 2)}
    for (_, seat), ended in found.items():
        assert len(ended) >= 4
        for episode in ended:
            assert [one.paid for one in episode.decisions] == [0.5] * seat + [10.0 * seat]
            assert [one.link for one in episode.decisions] == [TO_NEXT] * seat + [TERMINATED]
            seen = [np.frombuffer(one.obs, np.float32).tolist() for one in episode.decisions]
            assert seen == [[time, seat] for time in range(seat + 1)]
            assert np.frombuffer(episode.last_obs, np.float32).tolist() == [seat + 1, seat]
            assert episode.score == 10.0 * seat + 0.5 * seat
    if not turns:
        batch = pool.reset()
        assert batch.seat.tolist() == [0, 1, 2]
        batch = pool.step([0, 0, 0])
        assert batch.seat.tolist() == [-1, 1, 2]
        assert batch.policy.tolist() == [-1, 0, 0]


@pytest.mark.parametrize("turns", [False, True])
def test_a_cut_after_some_have_left(turns: bool) -> None:
    """Those who were cut can be bootstrapped; for the one who had left nothing follows."""
    fading = Fading(limit=2)
    pool = pool_of(parallel_to_aec(fading) if turns else fading)
    batch = pool.reset()
    while not len(batch.final_game):
        batch = pool.step([0] * pool.rules.rows)
    assert (batch.terminated.tolist(), batch.truncated.tolist()) == ([False], [True])
    # In round 2 the rules end the part of player_1 and the limit ends that of player_2.
    assert batch.final_over.tolist() == [[True, True, False]]
    assert batch.final_mask.any(axis=2).tolist() == [[False, False, True]]
    assert batch.final_obs[0].view(np.float32)[:, :2].tolist() == [[1, 0], [2, 1], [2, 2]]
    links = [one.link for one in episodes(pool, 16)[0, 2][0].decisions]
    assert links == [TO_NEXT, TRUNCATED]


def test_everyone_at_once_trains_on_every_seat() -> None:
    pool = pool_of([MatchingPennies() for _ in range(4)])
    assert (pool.rules.seats, pool.rules.rows, pool.num_games) == (2, 2, 4)
    assert pool.rules.numbers == 11 + 2
    config = PPOConfig(epochs=2, minibatch=80)
    collect = CollectConfig(games=4, steps=20)
    ppo = PPO(pool, collect, config, NetConfig(hidden=(16,)), seed=1)
    for update in range(3):
        stats = ppo.iterate(update / 3)[0].stats
        assert (stats["charts/games"], stats["charts/length"]) == (4 * 2, 2 * 10)
        assert stats["charts/score"] == 0  # what one wins the other loses
        assert stats["learning/samples"] == 2 * 20 * 4
        assert np.isfinite(stats["losses/policy_loss"])


def test_a_turn_game_trains() -> None:
    pool = pool_of([aec_env("tic_tac_toe") for _ in range(4)])
    collect = CollectConfig(games=4, steps=32)
    ppo = PPO(pool, collect, PPOConfig(minibatch=64), NetConfig(hidden=(16,)), seed=1)
    for update in range(2):
        stats = ppo.iterate(update / 2)[0].stats
        assert stats["charts/games"] > 8
        assert stats["learning/samples"] > 100


def test_seats_are_drawn_from_line_ups_at_every_start() -> None:
    """Half of the games seat a frozen policy, in either seat; nobody is exchanged in mid-game."""
    pool = pool_of([aec_env("tic_tac_toe") for _ in range(32)], seed=3)
    assert pool.policies == {0}
    pool.set_lineups([Lineup((0, 0)), Lineup((0, 1))])
    assert pool.policies == {0, 1}
    batch = pool.reset()
    met: Counter[tuple[int, ...]] = Counter()
    seen: list[dict[int, int]] = [{} for _ in range(32)]
    for _ in range(120):
        for game, (seat, policy) in enumerate(zip(batch.seat, batch.policy, strict=True)):
            assert seen[game].setdefault(int(seat), int(policy)) == policy
        batch = pool.step(pool.sample_actions())
        for at, game in enumerate(batch.final_game):
            players = tuple(int(player) for player in batch.final_policy[at])
            assert seen[game].items() <= dict(enumerate(players)).items()
            met[players] += 1
            seen[game] = {}
    total = met.total()
    assert total > 300
    assert met[0, 0] / total == pytest.approx(0.5, abs=0.1)
    assert met[0, 1] / total == pytest.approx(0.25, abs=0.1)
    assert met[1, 0] / total == pytest.approx(0.25, abs=0.1)
    with pytest.raises(ConfigError, match="no bot 'captain'"):
        pool.set_lineups([Lineup((0, "captain"))])
    with pytest.raises(ConfigError, match="needs 2 players"):
        pool.set_lineups([Lineup((0,))])
    with pytest.raises(ConfigError, match="has no flags"):
        pool.set_config(num_players=3)
    with pytest.raises(ConfigError, match="begins its games itself"):
        pool.set_starts([Start()])
    pool.set_starts([])


def test_rewards_are_weighted_and_scores_are_not() -> None:
    pool = pool_of([aec_env("tic_tac_toe") for _ in range(4)], seed=3)
    pool.set_rewards({"reward": 0.5})
    pool.reset()
    won = 0
    for _ in range(60):
        batch = pool.step(pool.sample_actions())
        for at, game in enumerate(batch.final_game):
            score = batch.final_score[at]
            won += int(score.any())
            assert batch.reward[game, :, 0].min() == pytest.approx(0.5 * score.min())
    assert won > 5


def test_memory_is_shown_behind_the_observation_and_forgotten_at_a_reset() -> None:
    pool = pool_of([aec_env("tic_tac_toe") for _ in range(3)], seed=3, memory=16)
    width = pool.rules.obs_bytes
    batch = pool.reset()
    assert (pool.memory_bytes, pool.row_bytes, batch.obs.shape[1]) == (16, width + 16, width + 16)
    for _ in range(40):
        for game, seat in enumerate(batch.seat):
            held = batch.obs[game, width:]
            assert (held == pool.memory[game, seat]).all()
        pool.memory[np.arange(3), batch.seat] += 1
        kept = pool.memory.copy()
        batch = pool.step(pool.sample_actions())
        for at, game in enumerate(batch.final_game):
            assert (batch.final_obs[at, :, width:] == kept[game]).all()
            assert not pool.memory[game].any()
    with pytest.raises(ConfigError, match="multiple of 16"):
        pool_of([aec_env("tic_tac_toe")], memory=10)


def test_an_illegal_action_names_the_agent() -> None:
    pool = pool_of([aec_env("tic_tac_toe") for _ in range(2)])
    pool.reset()
    pool.step([4, 0])
    with pytest.raises(IllegalActionError) as refused:
        pool.step([0, 0])
    text = "tic_tac_toe_v1 env 1, seat 1 (seat_1): action 0 is not legal; legal: 1, 2, 3, 4, 5, "
    assert str(refused.value) == text + "6, 7, 8"
    assert pool.step([8, 8]).mask[0].tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 0]


class Faulty(Fading):
    """Does what `fault` says in its second step."""

    fault = ""

    def step(self, actions: dict[str, int]) -> Any:
        obs, paid, over, cut, infos = super().step(actions)
        if self.round == 2:
            if self.fault == "observation":
                obs["player_2"][0] = np.nan
            elif self.fault == "reward":
                paid["player_2"] = np.inf
            elif self.fault == "silent":
                self.agents.remove("player_2")
            elif self.fault == "back":
                self.agents.append("player_0")
                obs["player_0"] = obs["player_2"]
            elif self.fault == "mask":
                infos["player_2"]["action_mask"] = np.ones(2)
        return obs, paid, over, cut, infos


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("observation", r"fading_v0 env 1, step 2 \(player_2\): observation\[0\] is nan"),
        ("reward", r"fading_v0 env 1, step 2.*: reward.* is inf"),
        ("silent", "player_2 is gone from agents"),
        ("back", "player_0 came back"),
        ("mask", "player_2 has an action_mask"),
    ],
)
def test_faults_are_named(fault: str, message: str) -> None:
    envs = [Fading(), Faulty()]
    envs[1].fault = fault
    pool = pool_of(envs)
    pool.reset()
    with pytest.raises(SparringError, match=message):
        for _ in range(2):
            pool.step([0] * 6)


def test_envs_that_cannot_share_a_pool() -> None:
    env = Fading()
    with pytest.raises(ConfigError, match="twice"):
        pool_of([env, env])
    with pytest.raises(ConfigError, match="other agents or spaces"):
        pool_of([Fading(3), Fading(2)])
    with pytest.raises(ConfigError, match="cannot be trained on"):
        pool_of([Fading(), aec_env("tic_tac_toe")])


@needs_duel
def test_a_continuous_game_is_that_of_the_native_pool() -> None:
    config = {"limit": 6, "reach": 100}
    native = Pool(Rules("duel", config), 1, seed=5, threads=1)
    custom = pool_of(parallel_env("duel", config=config), seed=5)
    assert custom.rules.box == native.rules.box > 0
    rng = np.random.default_rng(2)
    ours, theirs = native.reset(), custom.reset()
    while not len(ours.final_game):
        assert np.array_equal(native.rules.widen(ours.obs), custom.rules.widen(theirs.obs))
        action = rng.uniform(-1.5, 1.5, (2, native.rules.box)).astype(np.float32)
        ours, theirs = native.step(action), custom.step(action)
        assert np.array_equal(ours.reward[..., :1], theirs.reward)
    assert theirs.truncated.all()
    assert not theirs.final_over.any()
    last = native.rules.widen(ours.final_obs)
    assert np.array_equal(last, custom.rules.widen(theirs.final_obs))


def test_a_seed_decides_who_sits_where() -> None:
    pool = pool_of([aec_env("tic_tac_toe") for _ in range(32)], seed=3)
    pool.set_lineups([Lineup((LEARNER, 1))])

    def seated(seed: int) -> list[int]:
        return [int(one) for one in pool.reset(seed=seed).policy]

    first = seated(5)
    assert seated(6) != first
    assert seated(5) == first
