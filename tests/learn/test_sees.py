"""A learner that sees what is hidden: its rows, those of its opponents, and its steps.

Rows are held against those that `CriticRows` builds of the pool, native passes against autograd.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from make import make_ppo, some_net
from sparring import Rules
from sparring.capabilities.refusals import games_offering
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.league.players import CallablePlayer
from sparring.learn.acting import PlayerActor
from sparring.learn.ppo import PPO
from sparring.learn.transitions import NOT_A_SAMPLE
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import POLICY
from sparring.nets.roots import roots_in
from sparring.schedule import Moment, Schedule

GAMES = games_offering("hidden")
SEES = NetConfig(hidden=(32, 16), sees=True)
COLLECT = CollectConfig(games=16, steps=24)


def learner(game: str = "leduc_poker", **options: Any) -> PPO:
    none = Schedule.constant(0.0)
    config = PPOConfig(epochs=2, minibatch=100, lr=Schedule.constant(3e-3), target_kl=none)
    run: PPO = make_ppo(game, config, SEES, **{"collect": COLLECT, **options})
    return run


def rows_now(pool: Any) -> np.ndarray:
    """The rows of a pool, one after the other."""
    rows, batch = CriticRows(pool.rules), pool.batch()
    tables = np.repeat(pool.tables, pool.rules.rows, axis=0)[:, rows.state_field.byte_slice]
    arrays = batch.obs.copy(), tables.copy(), batch.seat.copy()
    found: np.ndarray = rows.build(*map(torch.from_numpy, arrays)).numpy()
    return found


@pytest.mark.few(9)
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("groups", [1, 2])
def test_the_learner_reads_rows_with_what_is_hidden_and_others_those_of_the_pool(
    game: str, groups: int
) -> None:
    rules = Rules(game)
    collect = replace(COLLECT, steps=1, groups=groups)
    pool = sparring.Pool(
        rules,
        collect.games,
        seed=1,
        threads=1,
        slots=groups,
        lineups=[sparring.Lineup((0,) + (1,) * (rules.seats - 1))],
    )
    met: list[np.ndarray] = []

    def other(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        met.append(obs)
        return mask.argmax(1)

    actors = {1: PlayerActor(CallablePlayer(rules, other), 0)}
    run = PPO(pool, collect, PPOConfig(), SEES, actors=actors)
    rollout, first = run.collector.rollout, run.collector.transitions.max_pending
    seen = 0
    for number in range(12):
        wanted, obs, batch = rows_now(pool), pool.batch().obs.copy(), pool.batch()
        policy = batch.policy.copy()
        met.clear()
        run.collector.collect(number)
        assert (rollout.obs[first:][policy == 0] == wanted[policy == 0]).all()
        if (policy == 1).any():
            assert (np.concatenate(met) == obs[policy == 1]).all()
            seen += 1
        run.collector.link(gamma=1.0, required=False)
        run.collector.keep_pending()
    assert seen


def test_frozen_opponents_in_slots_see_no_more_than_their_seat() -> None:
    collect = replace(COLLECT, steps=1, cpu="float32")
    pool = sparring.Pool("leduc_poker", 16, seed=1, threads=1, lineups=[sparring.Lineup((0, 1))])
    run = PPO(pool, collect, PPOConfig(), SEES, slots=1, threads=1)
    frozen = some_net("leduc_poker", replace(SEES, sees=False))
    run.put(1, frozen.state_dict(), greedy=True)
    first, met = run.collector.transitions.max_pending, 0
    for number in range(12):
        batch = pool.batch()
        theirs = np.flatnonzero(batch.policy == 1)
        met += len(theirs)
        obs, mask = (torch.from_numpy(rows[theirs]) for rows in (batch.obs, batch.mask))
        with torch.no_grad():
            wanted = frozen(obs)[POLICY].masked_fill(mask == 0, -torch.inf).argmax(1)
        run.collector.collect(number)
        assert (run.collector.rollout.action[first:][theirs] == wanted.numpy()).all()
        run.collector.link(gamma=1.0, required=False)
        run.collector.keep_pending()
    assert met > 16


@pytest.mark.parametrize("game", GAMES)
def test_a_policy_reads_the_same_rows_of_the_pools_of_a_match(game: str) -> None:
    policy = learner(game).policy()
    pools = [sparring.Pool(policy.rules, 8, seed=seed, threads=1) for seed in (1, 2, 3)]
    for pool in pools:
        pool.reset()
        pool.step(pool.sample_actions())
    mine = [np.flatnonzero(pool.batch().seat >= 0)[::2] for pool in pools]
    mine[1] = mine[1][:0]  # of a rotation it may have no row
    roots = list(zip(pools, mine, strict=True))
    obs, mask = (
        np.concatenate([getattr(pool.batch(), name)[rows] for pool, rows in roots])
        for name in ("obs", "mask")
    )
    action, memory = policy.decide(obs, mask, greedy=True, roots=roots)
    rows = np.concatenate([rows_now(pool)[at] for pool, at in roots])
    with torch.no_grad():
        logits = policy.net(torch.from_numpy(rows))[POLICY]
    wanted = logits.masked_fill(torch.from_numpy(mask) == 0, -torch.inf).argmax(1)
    assert len(action) and (action == wanted.numpy()).all() and memory.shape == (len(obs), 0)


def test_without_a_pool_it_refuses_to_play() -> None:
    policy, state = learner().policy(), sparring.new_state("leduc_poker")
    obs, mask = state.decision()
    told = "update 0 sees what is hidden from its seat: .* never plays; name another policy"
    for ask in (
        lambda: policy.act(obs, mask),
        lambda: policy.action(state),
        lambda: policy.act(state),
        lambda: policy.decide(obs, mask, roots=roots_in(state)),
        lambda: policy.searching(8),
        lambda: sparring.train("leduc_poker", opponents=[policy], updates=1, quiet=True),
    ):
        with pytest.raises(ConfigError, match=told):
            ask()


def test_native_steps_are_those_of_torch() -> None:
    runs = [learner(collect=replace(COLLECT, cpu=cpu)) for cpu in ("float32", "torch")]
    assert [run.forward.native is not None for run in runs] == [True, False]
    for _ in range(3):
        one, other = (run.iterate(0.0)[0].stats for run in runs)
        for name in ("losses/policy_loss", "losses/value_loss", "losses/entropy"):
            assert one[name] == pytest.approx(other[name], rel=0.02, abs=2e-3), name
    for mine, theirs in zip(*(run.net.parameters() for run in runs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=2e-3, rtol=0.02)


def test_a_resumed_run_goes_on_to_the_bit() -> None:
    run, again = learner(), learner()
    for _ in range(2):
        run.iterate(0.0)
    again.restore(run.snapshot())
    for each in (run, again):
        each.iterate(0.0)
    for mine, theirs in zip(run.net.parameters(), again.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_last_decisions_of_truncated_games_are_left_out() -> None:
    """What was hidden at the end is gone when the game has restarted."""
    run = learner("kuhhandel", flags={"max_decisions": 9})
    run.iterate(0.0)
    run.collector.collect(1)
    rollout, transitions = run.collector.rollout, run.collector.transitions
    run.targets(run.hparams_at(Moment(0, 0.0)))
    assert rollout.truncated.any() and not rollout.terminated.any()
    assert not rollout.truncations.obs
    ended = transitions.end[transitions.max_pending :].reshape(COLLECT.steps, -1)
    step, game = np.nonzero(rollout.truncated)
    assert (ended[step, game] == NOT_A_SAMPLE).all()
