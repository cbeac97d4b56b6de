"""Opponents that remember, in environments, against games played by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.helpers import choose, choose_all
from remembering import remembering
from sparring import Policy, Rules, State, new_state
from sparring.envs.gymnasium import SparringEnv, SparringVectorEnv
from sparring.envs.opponents import LocalGame
from sparring.envs.state_opponents import StateOpponents
from sparring.nets.stateful_player import StatefulPlayer

RULES = Rules("kuhhandel", {"max_decisions": 24})


def play_on(state: State, learner: int, mind: StatefulPlayer, action: Any = None) -> None:
    """Play the learner's action, then the others' until the learner is due."""
    while not state.over and (action is not None or state.seat != learner):
        state.apply(mind.action(state) if state.seat != learner else action)
        action = None


@pytest.mark.parametrize("kind", ["gru", "stack"])
@pytest.mark.parametrize("factory", [False, True], ids=["policy", "factory"])
def test_a_game_is_the_one_that_is_played_by_hand(kind: str, factory: bool) -> None:
    """Nothing is remembered from one episode to the next."""
    policy = remembering(RULES, kind).always(greedy=True)

    def others(seats: int, game: LocalGame) -> list[Policy]:
        return [policy] * seats

    env = SparringEnv(RULES, opponents=others if factory else policy)
    for seed in range(2):
        obs, info = env.reset(seed=seed)
        learner, mind = info["seat"], StatefulPlayer(policy)
        state = new_state(RULES, seed=seed)
        play_on(state, learner, mind)
        over = False
        while not over:
            np.testing.assert_array_equal(obs, state.observe(learner))
            action = choose(RULES, obs, info.get("action_mask"))
            play_on(state, learner, mind, action)
            obs, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        assert (list(info["scores"]), info["end"]) == (state.scores, state.end)
        assert any(held.any() for held in mind.memories.values())


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.DISABLED,
        *(pytest.param(m, marks=pytest.mark.slow) for m in list(AutoresetMode)[:2]),
    ],
)
def test_many_games_are_the_single_ones(mode: AutoresetMode) -> None:
    """Two who remember different amounts at a table, and who draw; batched or one by one."""
    others = [remembering(RULES, "stack"), remembering(RULES, "gru", 1)]
    options: dict[str, Any] = {"opponents": others, "seed": 3}
    fast = SparringVectorEnv(RULES, 3, autoreset_mode=mode, **options)
    makers = [lambda i=i: SparringEnv(RULES, first_game=i, **options) for i in range(3)]
    slow = SyncVectorEnv(makers, autoreset_mode=mode)
    obs, info = fast.reset(seed=3)
    assert data_equivalence((obs, info), slow.reset(seed=[3] * 3), exact=True)
    ends = 0
    for step in range(20):
        actions = choose_all(RULES, obs, info)
        told = fast.step(actions)
        assert data_equivalence(told, slow.step(actions), exact=True), f"step {step}"
        obs, _, terminated, truncated, info = told
        over = terminated | truncated
        ends += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            obs, begun = fast.reset(options={"reset_mask": over})
            assert data_equivalence(
                (obs, begun), slow.reset(options={"reset_mask": over}), exact=True
            )
            for key in begun:
                info[key][over] = begun[key][over]
    assert ends > 3


def test_agents_of_pettingzoo_meet_who_remembers_this_game_alone() -> None:
    policy = remembering(RULES).always(greedy=True)
    company = StateOpponents(RULES, [policy, "self", "self"])
    for seed in (7, 8, 7):
        state, alone = new_state(RULES, seed=seed), new_state(RULES, seed=seed)
        ours, mind = company.assign_seats(state), StatefulPlayer(policy)
        while not alone.over:
            mine = alone.seat in ours
            alone.apply(alone.legal()[0] if mine else mind.action(alone))
        company.play(state)
        while not state.over:
            state.apply(state.legal()[0])
            company.play(state)
        assert state.scores == alone.scores
        assert any(held.any() for held in mind.memories.values())
