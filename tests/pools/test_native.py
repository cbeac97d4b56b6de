"""The native pool as a user meets it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import sparring
from sparring import Lineup, Pool


def play(pool: Pool, steps: int) -> None:
    for _ in range(steps):
        pool.step(pool.sample_actions())


def test_the_public_names() -> None:
    pool = sparring.Pool("skull_king", 64, seed=7, threads=1)
    batch = pool.reset()
    assert batch.obs.shape == (64, 544)
    assert batch.mask.shape == (64, 86)
    assert batch.seat.shape == batch.policy.shape == (64,)
    batch = pool.step(pool.sample_actions())
    assert batch.reward.shape == (64, 4, 2)
    assert batch.terminated.shape == batch.truncated.shape == (64,)
    assert batch.final_obs.shape == (0, 4, 544)
    state = sparring.new_state("skull_king", seed=7)
    assert state.seat in range(4)
    assert [state.action_name(a) for a in state.legal()] == ["bid 0", "bid 1"]
    state.apply(state.legal()[0])
    assert state.observe(0).shape == (531,)
    assert len(state.rewards) == 4
    assert not state.terminated
    assert not state.truncated
    assert sparring.load_state(state.clone().serialize()).legal() == state.legal()


def test_an_illegal_action_leaves_4096_games_untouched() -> None:
    pool = Pool("skull_king", 4096, seed=1)
    pool.reset()
    play(pool, 30)
    before, digest = pool.state(), pool.digest()
    actions = pool.sample_actions().copy()
    illegal = np.flatnonzero(pool.batch().mask[2500] == 0)
    for wrong in (int(illegal[0]), -1, 86, 2**40):
        bad = actions.astype(np.int64)
        bad[2500] = wrong
        with pytest.raises(sparring.IllegalActionError) as refused:
            pool.step(bad)
        text = str(refused.value)
        assert "game 2500" in text
        assert f"seat {pool.batch().seat[2500]}" in text
        legal = [int(a) for a in np.flatnonzero(pool.batch().mask[2500])]
        assert all(f"{a} ({pool.rules.action_name(a)})" in text for a in legal)
    # Sampling has moved its own counter since; nothing else may have changed.
    assert pool.digest() == digest
    other = Pool("skull_king", 4096, seed=1)
    other.load_state(before)
    for each in (pool, other):
        each.step(actions)
    assert pool.digest() == other.digest()


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros(3, np.int32), r"shape \(3,\), need \(4,\)"),
        (np.zeros(4, np.float32), "need integers"),
    ],
)
def test_malformed_actions_are_named(actions: Any, message: str) -> None:
    pool = Pool("tic_tac_toe", 4)
    pool.reset()
    with pytest.raises(sparring.IllegalActionError, match=message):
        pool.step(actions)


def test_a_nan_is_refused_with_its_place() -> None:
    pool = Pool("duel", 4, seed=1)
    pool.reset()
    before = pool.digest()
    actions = np.zeros((8, 2), np.float32)
    actions[5, 1] = np.nan
    with pytest.raises(sparring.IllegalActionError, match=r"game 2, seat 1 .*component 1 is nan"):
        pool.step(actions)
    assert pool.digest() == before


def test_stepping_before_reset_says_so() -> None:
    with pytest.raises(sparring.IllegalActionError, match="call reset"):
        Pool("tic_tac_toe", 4).step(np.zeros(4, np.int32))


@pytest.mark.parametrize("game", ["skull_king", "tic_tac_toe", "duel"])
def test_slots_play_the_same_games_as_steps(game: str) -> None:
    whole, halves = Pool(game, 50, seed=5, threads=1), Pool(game, 50, seed=5, threads=2, slots=3)
    whole.reset()
    halves.reset()
    for _ in range(150):
        expected = whole.step(whole.sample_actions())
        for slot in range(3):
            halves.send(halves.sample_actions(slot).copy(), slot)
        for slot in (2, 0, 1):
            halves.recv(slot)
        assert halves.digest() == whole.digest()
        both = halves.batch()
        np.testing.assert_array_equal(both.final_game, expected.final_game)
        np.testing.assert_array_equal(both.final_obs, expected.final_obs)
        np.testing.assert_array_equal(both.final_score, expected.final_score)


def test_a_slot_in_flight_is_protected() -> None:
    pool = Pool("tic_tac_toe", 8, slots=2, threads=1)
    pool.reset()
    pool.send(pool.sample_actions(0), 0)
    for forbidden in (
        lambda: pool.send(np.zeros(4, np.int32), 0),
        lambda: pool.step(np.zeros(8, np.int32)),
        pool.state,
        lambda: pool.sample_actions(0),
    ):
        with pytest.raises(sparring.IllegalActionError, match="recv"):
            forbidden()
    pool.recv(0)
    pool.step(pool.sample_actions())


def test_ends_carry_the_last_observation_of_their_own_episode() -> None:
    """Replay every game of a pool alone and compare what the pool kept of its end."""
    pool = Pool("tic_tac_toe", 16, seed=11, threads=2)
    pool.reset()
    moves: list[list[int]] = [[] for _ in range(16)]
    ended = 0
    for _ in range(60):
        actions = pool.sample_actions().copy()
        for game, action in enumerate(actions):
            moves[game].append(int(action))
        batch = pool.step(actions)
        for place, game in enumerate(batch.final_game):
            state = sparring.new_state("tic_tac_toe", seed=0)
            for action in moves[game]:
                state.apply(action)
            assert state.terminated
            assert batch.terminated[game]
            for seat in range(2):
                np.testing.assert_array_equal(
                    batch.final_obs[place, seat], state.observe_bytes(seat)
                )
            assert batch.final_score[place].tolist() == state.scores
            assert batch.final_length[place] == len(moves[game])
            assert pool.rules.ends[batch.final_reason[place]] == state.end
            assert not batch.obs[game][:18].any(), "the next game has not begun"
            moves[game] = []
            ended += 1
    assert ended > 50


def test_a_truncated_game_offers_the_mask_and_is_not_terminated() -> None:
    pool = Pool("duel", 8, seed=1, config={"limit": 3, "reach": 50})
    pool.reset()
    for _ in range(3):
        batch = pool.step(pool.sample_actions())
    assert batch.truncated.all()
    assert not batch.terminated.any()
    assert len(batch.final_game) == 8
    assert {pool.rules.ends[r] for r in batch.final_reason} == {"time limit"}
    time = [f.name for f in pool.rules.features].index("line.time")
    assert (pool.rules.widen(batch.final_obs)[..., time] == np.float32(3 / 20)).all()


def test_bots_move_inside_the_step_and_only_the_learner_is_asked() -> None:
    pool = Pool("skull_king", 64, seed=2, lineups=[Lineup((0, "captain", "rule_hard", "random"))])
    batch = pool.reset()
    seats = Counter()
    for _ in range(200):
        assert (batch.policy == 0).all()
        batch = pool.step(pool.sample_actions())
        for members in batch.final_policy:
            names = sorted(pool.player_name(m) for m in members)
            assert names == ["captain", "policy 0", "random", "rule_hard"]
            seats[int(np.flatnonzero(members == 0)[0])] += 1
        assert pool.audit() == ""
    assert set(seats) == {0, 1, 2, 3}


def test_opponents_never_change_within_a_game() -> None:
    pool = Pool("tic_tac_toe", 32, seed=2, lineups=[Lineup((0, 1)), Lineup((0, 2)), Lineup((0, 3))])
    batch = pool.reset()
    seen: list[dict[int, int]] = [{} for _ in range(32)]
    others = Counter()
    for _ in range(300):
        for game in range(32):
            seat, policy = int(batch.seat[game]), int(batch.policy[game])
            assert seen[game].setdefault(seat, policy) == policy
        batch = pool.step(pool.sample_actions())
        for game, members in zip(batch.final_game, batch.final_policy, strict=True):
            assert {s: int(members[s]) for s in seen[game]} == seen[game]
            seen[game] = {}
            others[max(int(m) for m in members)] += 1
    assert min(others.values()) > 0.25 * sum(others.values())


def test_new_lineups_wait_for_the_next_game() -> None:
    pool = Pool("tic_tac_toe", 32, seed=2, lineups=[Lineup((0, 1))])
    pool.reset()
    pool.step(pool.sample_actions())
    pool.set_lineups([Lineup((0, 9))])
    batch = pool.batch()
    started = [False] * 32
    for _ in range(20):
        for game in range(32):
            assert int(batch.policy[game]) in ((0, 9) if started[game] else (0, 1))
        batch = pool.step(pool.sample_actions())
        for game in batch.final_game:
            started[game] = True
    assert all(started)


def test_a_table_of_bots_plays_one_decision_per_step() -> None:
    pool = Pool("skull_king", 4, seed=1, lineups=[Lineup(("captain",) * 4)])
    batch = pool.reset()
    for step in range(260):
        assert (batch.policy == sparring.pools.NO_POLICY).all()
        batch = pool.step(np.zeros(4, np.int32))
        assert batch.terminated.all() == (step == 259)
    assert len(batch.final_game) == 4


def test_rewards_add_up_to_the_scores() -> None:
    """Bots earn between the learner's decisions and before its first one; nothing is lost."""
    pool = Pool("skull_king", 32, seed=4, lineups=[Lineup((0, "random", "captain", "rule_easy"))])
    batch = pool.reset()
    total = np.zeros((32, 4))
    games = 0
    for _ in range(200):
        batch = pool.step(pool.sample_actions())
        total += batch.reward[..., 0]
        for place, game in enumerate(batch.final_game):
            np.testing.assert_allclose(total[game], batch.final_score[place] / 100, atol=1e-4)
            total[game] = 0
            games += 1
    assert games > 50


@pytest.mark.parametrize("seed", range(8))
def test_what_bots_earn_before_the_first_row_comes_with_the_first_step(seed: int) -> None:
    """Replay the pool's game alone, bots included; every seat earned the same."""
    config = {"rounds": [1, 2], "reward": "FLAT_SHAPED", "skip_forced": seed % 2}
    lineup = Lineup((0, "random", "captain", "rule_easy"))
    pool = Pool("skull_king", 1, seed=seed, lineups=[lineup], config=config)
    pool.reset()
    total, answers = np.zeros(4), []
    while not pool.batch().terminated[0]:
        answers.append(int(pool.sample_actions()[0]))
        total += pool.step([answers[-1]]).reward[0, :, 0]
    members = [pool.player_name(m) for m in pool.batch().final_policy[0]]
    state = sparring.new_state("skull_king", seed=seed, config=config)
    alone = np.zeros(4)
    while not state.over:
        name = members[state.seat]
        state.apply(answers.pop(0) if name == "policy 0" else state.ask(name))
        alone += state.rewards
    assert not answers
    np.testing.assert_allclose(total, alone, atol=1e-4)
    assert state.scores == pool.batch().final_score[0].tolist()


def test_reward_weights_change_between_steps() -> None:
    pool = Pool("skull_king", 64, seed=4, rewards={"flat_shaped": [1.0, 0.0]})
    pool.reset()
    batch = pool.step(pool.sample_actions())
    assert (batch.reward[..., 1] == 0).all()
    assert batch.reward[..., 0].any()
    pool.set_rewards({"flat_shaped": [0.0, 2.0]})
    batch = pool.step(pool.sample_actions())
    assert (batch.reward[..., 0] == 0).all()
    assert batch.reward[..., 1].any()


def test_round_weights_change_on_a_live_pool() -> None:
    config = {"episode": "ROUND", "round_weights": [0] * 6 + [1] * 4}
    pool = Pool("skull_king", 64, seed=4, config=config)
    first = next(b.first for b in pool.rules.blocks if b.name == "round")

    def rounds() -> set[int]:
        wide = pool.rules.widen(pool.batch().obs)[:, first : first + 10]
        return {int(r) + 1 for r in wide.argmax(1)}

    pool.reset()
    assert rounds() <= {7, 8, 9, 10}
    pool.set_config(round_weights=[1, 1, 1])
    play(pool, 60)
    assert rounds() == {1, 2, 3}
    with pytest.raises(sparring.ConfigError, match="num_players cannot change"):
        pool.set_config(num_players=5)


def test_saved_states_continue_and_foreign_ones_are_refused() -> None:
    pool = Pool("skull_king", 16, seed=4)
    pool.reset()
    play(pool, 100)
    saved = pool.state()
    play(pool, 50)
    other = Pool("skull_king", 16, seed=99, threads=1)
    other.load_state(saved)
    play(other, 50)
    assert other.state() == pool.state()
    digest = other.digest()
    for broken, message in (
        (saved[:-1], "damaged"),
        (b"nonsense", "not a saved state"),
        (saved.replace(b'"rules_version": 1', b'"rules_version": 9'), "rules version 9"),
        (make_state(8), "games 8"),
    ):
        with pytest.raises(sparring.StateError, match=message):
            other.load_state(broken)
    assert other.digest() == digest


def make_state(games: int) -> bytes:
    pool = Pool("skull_king", games)
    pool.reset()
    return pool.state()


def test_a_seed_names_its_games() -> None:
    a, b = Pool("skull_king", 8, seed=4), Pool("skull_king", 8, seed=5)
    a.reset()
    b.reset()
    assert a.digest() != b.digest()
    play(b, 20)
    b.reset(seed=4)
    assert a.digest() == b.digest()


def test_memory_per_game_is_within_a_kilobyte() -> None:
    pool = Pool("skull_king", 64)
    native = pool._native
    per_game = native.envs.shape[1]
    per_game += 16 + 4 + 1  # legal actions, the action, the reason
    for name in ("reward", "skipped", "terminated", "truncated", "final_game", "final_length"):
        per_game += getattr(native, name).nbytes / 64
    for name in ("final_reason", "final_score", "final_policy"):
        per_game += getattr(native, name).nbytes / 64
    assert per_game <= 1024


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"config": {"num_player": 4}}, "did you mean 'num_players'"),
        ({"config": {"num_players": 9}}, r"num_players=9 is outside 2..8"),
        ({"config": {"deck": "FULL75"}}, "did you mean 'FULL74'"),
        ({"config": {"cannonball": 1}}, "cannonball=1 needs scoring=RASCAL"),
        ({"config": {"rounds": []}}, "rounds is empty"),
        ({"config": {"rounds": [1] * 11}}, "at most 10"),
        ({"rewards": {"scoredelta": 1}}, "did you mean 'score_delta'"),
        ({"rewards": {"win": float("nan")}}, "not finite"),
        ({"lineups": [Lineup((0, "captian", 0, 0))]}, "did you mean 'captain'"),
        ({"lineups": [Lineup((0, 0))]}, "needs 4 players, got 2"),
        ({"lineups": [Lineup((0,) * 4, weight=0)]}, "must be above 0"),
        ({"threads": 0}, r"threads=0 must be 1\.\.1024"),
        ({"device": "cuda"}, "runs on 'cpu'"),
    ],
)
def test_bad_input_is_named(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(sparring.ConfigError, match=message):
        Pool("skull_king", 4, **kwargs)


def test_an_unknown_game_is_named() -> None:
    with pytest.raises(sparring.ConfigError, match="did you mean 'skull_king'"):
        Pool("skullking", 4)


def test_a_pool_that_has_not_started_has_no_state() -> None:
    with pytest.raises(sparring.IllegalActionError, match="call reset"):
        Pool("skull_king", 2).state()


def test_a_state_belongs_to_its_own_games() -> None:
    pool = Pool("skull_king", 2, first_game=2)
    with pytest.raises(sparring.StateError, match="first_game 0, this pool has 2"):
        pool.load_state(make_state(2))


def test_skip_forced_cannot_change_in_a_running_pool() -> None:
    with pytest.raises(sparring.ConfigError, match="skip_forced cannot change"):
        Pool("skull_king", 2).set_config(skip_forced=1)
