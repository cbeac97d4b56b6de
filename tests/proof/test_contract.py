"""The contract fuzzer finds what is wrong with an environment, says where, and leaves others be."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import own_envs
from proof import broken_envs as broken
from sparring.envs.gymnasium import SparringEnv, SparringVectorEnv
from sparring.envs.pettingzoo import aec_env, parallel_env
from sparring.errors import ConfigError
from sparring.proof.contract import EnvReport, check_env


@cache
def checked(make: Callable[[], Any], **options: Any) -> EnvReport:
    """Check without another process, which costs a second: a partial has no name.

    Ten minutes are more than a stalled machine takes: episodes end by themselves, not by the clock.
    """
    return check_env(partial(make), **{"games": 2, "steps": 300, "seconds": 600.0, **options})


GOOD: dict[str, Callable[[], Any]] = {
    "small": broken.Good,
    "cut": broken.Cut,
    "cards": own_envs.make_cards,
    "walk": own_envs.make_walk,
    "turns": own_envs.make_table,
    "parallel": own_envs.make_parallel,
    "vector": broken.Vector,
    "cartpole": lambda: gymnasium.make("CartPole-v1"),
    "pendulum": lambda: gymnasium.make("Pendulum-v1", max_episode_steps=20),
    "next step": lambda: SyncVectorEnv([broken.Good] * 2),
    "same step": lambda: SyncVectorEnv([broken.Cut] * 2, autoreset_mode=AutoresetMode.SAME_STEP),
    "disabled": lambda: SyncVectorEnv([broken.Cut] * 2, autoreset_mode=AutoresetMode.DISABLED),
    "our env": lambda: SparringEnv("kuhn_poker"),
    "our vector": lambda: SparringVectorEnv("tic_tac_toe", 3, threads=1),
    "our turns": lambda: aec_env("kuhn_poker"),
    "our parallel": lambda: parallel_env("rock_paper_scissors"),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", GOOD)
def test_good_environments_pass(name: str) -> None:
    report = checked(GOOD[name], games=5)
    assert report.passed, report
    unsure = {finding.name for finding in report.findings if finding.verdict == "cannot tell"}
    assert unsure <= {"other process", "memory", "last observation"}, report
    assert report.episodes == 5


BROKEN: list[tuple[Callable[[], Any], str, str]] = [
    (broken.WideNumbers, "observations", "dtype float64, the space says float32"),
    (broken.Beyond, "observations", r"number\[0\] is 12.0, the space says -1 to 10"),
    (broken.NotANumber, "observations", r"number\[0\] is nan"),
    (broken.AList, "observations", "list instead of an array"),
    (broken.Paper, "spaces", "observations have a part Text"),
    (broken.EndlessPay, "rewards", "reward of env is inf"),
    (broken.SomeMasks, "masks", "no action_mask, there was one before"),
    (broken.EmptyMask, "masks", "allows nothing"),
    (broken.LongMask, "masks", r"shape \(5,\), there are 4 actions"),
    (broken.LyingMask, "legal actions", r"ValueError: \d is forbidden \(.*broken_envs.py, line"),
    (broken.Breaks, "legal actions", "ZeroDivisionError: 0 cards left"),
    (broken.OneArray, "kept observations", r"was \[.*\] and has become \["),
    (broken.StartsAgain, "last observation", "is what a reset returns"),
    (broken.StartsAgainAtTheLimit, "last observation", "is what a reset returns"),
    (broken.ResetsItself, "last observation", r"the last step calls reset\(\) and returns what"),
    (broken.make_resetting, "last observation", "the info at the end has a final_observation"),
    (broken.Remembers, "same object", "obs env was .*, now it is"),
    (broken.NeverSeeded, "same object", "obs env was"),
    (broken.NeverSeeded, "fresh object", "obs env was"),
    (broken.EverybodysNumbers, "global random numbers", "obs env was"),
    (broken.DrawnWhenMade, "fresh object", "obs env was"),
    (broken.OneForAll, "independence", "beside another env obs env was"),
    (broken.TwoResets, "reset twice", "obs env was"),
    (broken.OldStep, "reset and step", r"step\(\) returned 4 values"),
    (broken.OldReset, "reset and step", r"reset\(\) returned ndarray"),
    (broken.NumbersForFlags, "ends", r"terminated of env is 0 \(int\)"),
    (broken.ClosesOnce, "close", "RuntimeError: there is no window"),
    (broken.NeverCloses, "close", "there never was a window"),
    (broken.StaysInAgents, "agents", "stepped with None, and is still in agents"),
    (broken.WrongTurn, "reset and step", "agent_selection is 'third', which is not in"),
    (broken.ForgetsAPlayer, "agents", "rewards has no 'second'"),
    (broken.SlipsAway, "agents", "right left agents without being terminated"),
    (broken.ShortAnswer, "agents", "rewards has no 'right'"),
    (broken.LastUnseen, "last observation", "one is truncated and has no last observation"),
    (broken.PaysForAReset, "autoreset", r"only reset in this step \(NextStep\), but it pays 1"),
    (broken.SaysNothing, "autoreset", "no autoreset_mode"),
    (broken.SaysSameStep, "autoreset", "without a final_obs"),
]


@pytest.mark.parametrize(
    ("make", "name", "told"), BROKEN, ids=[f"{make.__name__}-{name}" for make, name, _ in BROKEN]
)
def test_a_mistake_is_found_and_told(make: Callable[[], Any], name: str, told: str) -> None:
    report = checked(make)
    finding = report[name]
    assert finding.verdict == "wrong", report
    assert not report.passed
    assert re.search(told, finding.detail), finding.detail


ONLY = (
    "WideNumbers",
    "Beyond",
    "OneArray",
    "StartsAgain",
    "OneForAll",
    "EverybodysNumbers",
    "NeverCloses",
)


@pytest.mark.parametrize("name", ONLY)
def test_one_mistake_is_one_finding(name: str) -> None:
    report = checked(getattr(broken, name))
    assert [f.name for f in report.findings if f.verdict == "wrong"] == [
        found for make, found, _ in BROKEN if make is getattr(broken, name)
    ]


def test_a_finding_names_seed_episode_and_step() -> None:
    finding = checked(broken.Beyond, seed=40)["observations"]
    assert (finding.seed, finding.episode, finding.step) == (40, 0, 4)
    assert "clip it" in finding.advice
    finding = checked(broken.OneForAll)["independence"]
    assert (finding.seed, finding.step) == (1, 1)


def test_an_episode_without_an_end_cannot_be_judged() -> None:
    finding = checked(broken.NoEnd, games=2, steps=50)["ends"]
    assert finding.verdict == "cannot tell"
    assert "2 of 2 episodes did not end within 50 steps" in finding.detail


def test_what_may_be_meant_is_told() -> None:
    report = checked(broken.Good)
    assert "refused 6 of 6" in report["forbidden actions"].detail
    assert "a step without a reset goes on" in checked(broken.GoesOn)["after the end"].detail
    told = checked(own_envs.make_parallel)["seeds"]
    assert (told.verdict, told.detail) == ("note", "seeds 0 and 1 play the same")
    assert "median" in report["time"].detail


def test_slow_environments_play_as_long_as_they_may() -> None:
    report = checked(own_envs.make_slow_cards, games=1000, seconds=0.3)
    assert report.passed, report
    assert 2 <= report.episodes < 1000
    assert report.steps >= 10


def test_global_random_numbers_are_left_as_they_were() -> None:
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.rand()
    random.seed(5)
    np.random.seed(5)
    checked(broken.Good, games=1)
    assert (random.random(), np.random.rand()) == expected


def test_a_factory_that_makes_something_else_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"returns NoneType; it has to return a gymnasium\.Env"):
        check_env(own_envs.make_nothing)
    with pytest.raises(ConfigError, match="OSError: the simulator's port is taken"):
        check_env("own_envs:make_trouble")
