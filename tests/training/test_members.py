"""Members of a population with flags and rewards of their own: what is refused, how they begin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparring.config import NetConfig, TrainConfig
from sparring.curriculum.curriculum import START, Curriculum
from sparring.curriculum.reading import read_phases
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.learner import Overrides, apply_game_overrides
from sparring.learn.plan import Participants, Plan
from sparring.pools import Pool
from sparring.training.planning.curricula import curriculum_of, first_overrides, rules_of_members
from sparring.training.planning.custom import rules_of
from sparring.training.planning.participants import participants_of
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of

GAMES, STEPS = 8, 130

ORDERS = TrainConfig(
    game="cage2",
    set=("orders=FIXED", "order_bonus=0.5", "max_steps=40", "mask=1"),
    device="cpu",
    vary=("set.order=[0,1,2,3,4],[4,3,2,1,0],[2,0,1,4,3]", "set.red=B_LINE,MEANDER"),
)
ROUNDS = TrainConfig(
    game="skull_king",
    set=("episode=ROUND", "rounds=1,2,3"),
    device="cpu",
    vary=("set.start_round=1,3", 'rewards=["win=1"],["score_delta=2", "win=1"]'),
)
HOCKEY = TrainConfig(
    game="laser_hockey",
    algo="sac",
    device="cpu",
    net=NetConfig(squash=True, std="predicted"),
    vary=("set.mode=NORMAL,TRAIN_DEFENSE",),
)


def curriculum_in(config: TrainConfig, rules: Rules, participants: Participants) -> Curriculum:
    return curriculum_of(config, rules, read_phases(rules, config), participants)


def planned(config: TrainConfig) -> tuple[list[TrainConfig], Plan]:
    """The members and as much of a plan as their games need; a whole one needs a GPU."""
    members = members_of(config)
    rules = rules_of(members[0])
    participants = participants_of(rules, members[0], {"": config.net})
    own = rules_of_members(members, rules)
    curricula = [curriculum_in(*one, participants) for one in zip(members, own, strict=True)]
    plan = Plan(
        rules=rules,
        participants=participants,
        seeds=tuple(member.seed for member in members),
        threads=1,
        device="cpu",
        games_on="cpu",
        fused=False,
        collect=config.collect,
        net=config.net,
        settings=tuple(getattr(member, config.algo) for member in members),
        rewards=curricula[0].rewards_at(0, START, START),
        custom_rules=own,
        first=first_overrides(own, curricula),
    )
    return members, plan


@pytest.mark.parametrize("config", [ORDERS, ROUNDS, HOCKEY], ids=lambda one: one.game)
def test_games_made_for_the_first_begin_as_a_members_own(config: TrainConfig) -> None:
    members, plan = planned(config)
    assert plan.first[0] == Overrides()
    for index, member in enumerate(members):
        alone = Pool(
            rules_of(member),
            GAMES,
            seed=member.seed,
            threads=1,
            lineups=plan.participants.lineups,
            rewards=curriculum_in(member, plan.rules_of(index), plan.participants).rewards_at(
                0, START, START
            ),
        )
        shared = Pool(
            *(plan.rules, GAMES),
            seed=member.seed,
            threads=1,
            lineups=plan.participants.lineups,
            rewards=plan.rewards,
        )
        apply_game_overrides(shared, plan.first[index])
        assert shared.rules.config == alone.rules.config
        for pool in (alone, shared):
            pool.reset()
        for _ in range(STEPS):
            first, second = (pool.step(pool.sample_actions()) for pool in (alone, shared))
            for name in ("obs", "reward", "terminated", "truncated", "policy"):
                np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert alone.state() == shared.state(), "either loads where it goes on as a run of its own"


def test_a_first_phase_goes_before_flags_of_its_own() -> None:
    phases = ('{"name": "one", "decisions": 9, "set": {"start_round": 2}}', '{"name": "rest"}')
    config = replace(ROUNDS, vary=("set.start_round=1,3", "set.episode=ROUND,GAME"), phases=phases)
    members, plan = planned(config)
    begun = [overrides.flags for overrides in plan.first]
    assert begun == [{"start_round": 2}, {"start_round": 2, "episode": "GAME"}]
    usual = [plan.rules_of(member).config["start_round"] for member in range(len(members))]
    assert usual == [1, 3], "what holds after the phase is the member's own"


def test_flags_that_shape_the_game_are_refused_by_name() -> None:
    config = replace(ORDERS, vary=("set.order_bonus=0.5,1",))
    with pytest.raises(ConfigError, match=r"share order_bonus, .* train it apart.*mix, order\)"):
        resolve(members_of(config))
    config = TrainConfig(game="skull_king", device="cpu", vary=("set.skip_forced=0,1",))
    with pytest.raises(ConfigError, match="share skip_forced"):
        resolve(members_of(config))
    config = replace(ROUNDS, vary=('rewards=["manager.win=1"],["win=1"]',))
    with pytest.raises(ConfigError, match=r"rewards: some members .* train them apart"):
        resolve(members_of(config))


def test_what_may_differ_asks_for_nothing_but_a_gpu() -> None:
    for config in (ORDERS, ROUNDS, HOCKEY):
        with pytest.raises(ConfigError, match="needs games and networks on one GPU"):
            resolve(members_of(config))
    wrong = replace(ORDERS, vary=("set.order=[0,1,2,3,4],[0,0,1,2,3]",))
    with pytest.raises(ConfigError, match="order must name each unit 0 to 4 once"):
        resolve(members_of(wrong))


def test_one_without_rewards_is_paid_by_the_game() -> None:
    config = replace(ROUNDS, vary=('rewards=["win=3"],[]',))
    _, plan = planned(config)
    rules = plan.rules
    assert plan.first[1].rewards is not None
    assert rules.weights(plan.first[1].rewards) == rules.weights(None)
