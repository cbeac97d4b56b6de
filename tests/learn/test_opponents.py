"""Opponents that are answered on a CPU: what they say is what games are given."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.players import CallablePlayer
from sparring.learn.acting import PlayerActor, RngKeys, SlotActor
from sparring.learn.ppo import PPO
from sparring.learn.rollout import FinishedGames
from sparring.nets.frozen.cpu import GroupedNet
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools import LEARNER, Lineup, Mix, Pool

Actions = npt.NDArray[Any]


@pytest.mark.parametrize("squash", [False, True])
def test_games_are_given_what_a_player_of_another_kind_said(squash: bool) -> None:
    rules = Rules("duel")

    def steady(obs: Actions, mask: Actions, rng: np.random.Generator) -> Actions:
        return np.tile(np.linspace(-1, 1, rules.box), (len(obs), 1))

    torch.manual_seed(0)
    theirs = Policy(rules, make_net(rules, NetConfig(hidden=(8,), squash=not squash)), name="x")
    ppo = PPO(
        Pool(rules, 8, seed=1, lineups=[Lineup((LEARNER, 1)), Lineup((LEARNER, 2))]),
        CollectConfig(games=8, steps=4),
        PPOConfig(minibatch=16),
        NetConfig(hidden=(8,), squash=squash),
        seed=1,
        actors={
            1: PlayerActor(CallablePlayer(rules, steady), 1),
            2: PlayerActor(theirs, 1, greedy=True),
        },
    )
    collector = ppo.collector
    collector.collect(0)
    seen = set()
    for step in range(4):
        (group,) = collector.groups
        at, policy = collector._places(step, group), collector.rollout.policy[step]
        given = collector._env_actions(at).clip(-1, 1)
        obs, mask = collector.rollout.obs[at], collector.rollout.mask[at]
        for number, player in ((1, CallablePlayer(rules, steady)), (2, theirs)):
            mine = policy == number
            wanted = player.act(obs[mine], mask[mine], greedy=True)
            np.testing.assert_allclose(given[mine], wanted, atol=1e-5)
            seen |= {number} if mine.any() else set()
    assert seen == {1, 2}


def test_every_call_of_a_function_has_chances_of_its_own() -> None:
    rules, drawn = Rules("tic_tac_toe"), []

    def lots(obs: Actions, mask: Actions, rng: np.random.Generator) -> Actions:
        drawn.append(rng.random())
        return mask.argmax(axis=1)

    actor = PlayerActor(CallablePlayer(rules, lots), 5)
    obs, mask = np.zeros((2, rules.obs_bytes), np.uint8), np.ones((2, rules.actions), np.uint8)
    for rollout, step, first in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 8), (0, 0, 0)):
        actor.act(obs, mask, RngKeys(rollout, step, np.array([first, first + 1])))
    assert len(set(drawn)) == 4 and drawn[0] == drawn[4]


def test_a_slot_is_greedy_or_draws_and_an_empty_one_is_refused() -> None:
    rules, config = Rules("tic_tac_toe"), NetConfig(hidden=(8,))
    torch.manual_seed(0)
    nets = [make_net(rules, config) for _ in range(2)]
    actor = SlotActor(GroupedNet(rules, config, 3), 3, seed=4)
    for slot, net in enumerate(nets, start=1):
        actor.put(slot, net.state_dict(), greedy=slot == 2)
    rng = np.random.default_rng(0)
    obs = rng.integers(0, 2, (400, rules.obs_bytes), np.uint8)
    mask = np.ones((400, rules.actions), np.uint8)
    slot, rows = np.tile([1, 2], 200).astype(np.int16), 7 + 3 * np.arange(400)
    action = actor.act(obs, mask, slot, RngKeys(3, 2, rows)).action
    for number, net in enumerate(nets, start=1):
        mine = slot == number
        expected = Policy(rules, net).act(
            obs[mine],
            mask[mine],
            greedy=number == 2,
            seed=4,
            rollout=3,
            step=2,
            rows=rows[mine],
        )
        assert (action[mine] == expected).mean() > 0.99
    with pytest.raises(ConfigError, match="policy 3 has seats in games and its slot is empty"):
        actor.act(obs[:1], mask[:1], np.array([3], np.int16), RngKeys(0, 0, rows[:1]))
    for wrong in (0, 4):
        with pytest.raises(ConfigError, match=f"slot {wrong} is outside 1..3"):
            actor.put(wrong, nets[0].state_dict(), greedy=False)


def test_games_are_counted_as_a_plain_loop_counts_them() -> None:
    """Every seat of the learner against every other seat, by score, from the learner's side."""
    seats = (LEARNER, Mix("past"), "captain", LEARNER)
    pool = Pool("skull_king", 64, seed=3, threads=1, lineups=[Lineup(seats)], observe=False)
    pool.set_mixes({"past": {1: 1.0, 2: 2.0}})
    pool.reset()
    finished, bots = FinishedGames(), pool.rules.bots
    expected = np.zeros((3 + len(bots), 3), np.int64)
    while finished.episodes() is None or len(finished.episodes() or ()) < 300:
        batch = pool.step(pool.sample_actions())
        finished.add(batch)
        for score, players in zip(batch.final_score, batch.final_policy, strict=True):
            for mine, other in itertools.product(range(4), range(4)):
                if players[mine] != LEARNER or players[other] == LEARNER:
                    continue
                name = pool.player_name(int(players[other]))
                at = int(players[other]) if players[other] > 0 else 3 + bots.index(name)
                won, drew = score[mine] > score[other], score[mine] == score[other]
                expected[at, 0 if won else 1 if drew else 2] += 1
    played = finished.episodes()
    assert played is not None
    found = played.met(3, len(bots))
    assert np.array_equal(found, expected)
    captain = 3 + bots.index("captain")
    assert found[captain, 2] > 2 * found[captain, 0], "who plays at random loses to a captain"
    assert found[[1, 2]].sum() > 0 and not found[LEARNER].any()
