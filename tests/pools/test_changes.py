"""What may change in a running pool, and that running games stay as they began."""

from __future__ import annotations

import numpy as np
import pytest

from sparring.errors import ConfigError
from sparring.games.state import new_state
from sparring.pools import LEARNER, Lineup, Mix, Pool
from sparring.pools.starts import Start

PAST, BEST = Mix("past"), Mix("best")


def test_pots_keep_who_is_in_them_when_line_ups_change() -> None:
    pool = Pool("tic_tac_toe", 32, threads=1, lineups=[Lineup((LEARNER, PAST))], mixes=("best",))
    assert pool.mixes == ("past", "best")
    pool.set_mixes({"past": {1: 1.0}, "best": {2: 1.0}})
    assert pool.policies == {LEARNER, 1}, "nobody draws from the other one"
    pool.set_lineups([Lineup((LEARNER, BEST))], pool.mixes)
    assert pool.policies == {LEARNER, 2}
    pool.reset()
    assert pool.seated(3).tolist() == [32, 0, 32]
    pool.set_lineups([Lineup((LEARNER, LEARNER))], pool.mixes)
    pool.set_mixes({"past": {3: 1.0}})
    pool.set_lineups([Lineup((LEARNER, PAST))])
    assert pool.policies == {LEARNER, 3}
    with pytest.raises(ConfigError, match="no line-up draws from a mix 'best'"):
        pool.set_mixes({"best": {1: 1.0}})


def test_line_ups_by_way_of_others_play_the_same_games() -> None:
    def digest(*, around: bool) -> int:
        straight = [Lineup((LEARNER, PAST, "captain", BEST))]
        pool = Pool("skull_king", 16, threads=1, lineups=None if around else straight)
        if around:
            pool.set_lineups([Lineup((BEST, LEARNER, LEARNER, LEARNER))], mixes=("past",))
            pool.set_mixes({"past": {1: 1.0, 2: 3.0}, "best": {4: 1.0}})
            pool.set_lineups(straight)
        else:
            pool.set_mixes({"past": {1: 1.0, 2: 3.0}, "best": {4: 1.0}})
        pool.reset()
        for _ in range(60):
            pool.step(pool.sample_actions())
        return pool.digest()

    assert digest(around=True) == digest(around=False)


def test_a_change_alters_no_running_game() -> None:
    """Rules, seats and start are those with which a game began; weights act from the next step."""
    draw = np.random.default_rng(5)
    lineups = [[Lineup((LEARNER, *(who,) * 3))] for who in ("captain", LEARNER, 1, 2)]
    weights = [[1, 1], [1, 2, 3], [0, 0, 1], [2]]
    later = new_state("skull_king", seed=1)
    for _ in range(30):
        later.apply(later.legal()[0])
    starts = [[], [Start(later), Start(weight=2.0)]]

    def make() -> Pool:
        return Pool("skull_king", 8, seed=3, threads=1, lineups=lineups[0])

    changed, still = make(), make()
    changed.reset()
    ended = 0
    for _ in range(8):
        for _ in range(int(draw.integers(1, 25))):
            changed.step(changed.sample_actions())
        still.set_config(round_weights=changed.rules.config["round_weights"])
        still.load_state(changed.state())
        changed.set_lineups(lineups[draw.integers(4)])
        changed.set_starts(starts[draw.integers(2)])
        changed.set_config(round_weights=weights[draw.integers(4)])
        changed.set_rewards({"score_delta": 2.0})
        still.set_rewards({"score_delta": 1.0})
        begun = np.zeros(8, np.bool_)
        for _ in range(70):
            now, plain = changed.batch(), still.batch()
            assert (now.obs == plain.obs)[~begun].all()
            assert (now.mask == plain.mask)[~begun].all()
            assert (now.policy == plain.policy)[~begun].all()
            actions = changed.sample_actions().copy()
            changed.step(actions)
            others = still.sample_actions().copy()
            others[~begun] = actions[~begun]
            still.step(others)
            assert (changed.batch().reward == 2 * still.batch().reward)[~begun].all()
            begun |= changed.batch().terminated
        ended += int(begun.sum())
    assert ended > 20
