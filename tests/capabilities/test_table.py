"""The table of what combines: nothing in it is dead, its advice works, and nobody else decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

import sparring
from sparring import Rules
from sparring.capabilities.refusals import (
    Combination,
    FeatureRequest,
    check_network,
)
from sparring.capabilities.table import (
    ABILITIES,
    FEATURES,
    GAME,
    LEARNER,
    LEARNERS,
    NET_SETTINGS,
    NETWORK,
    NETWORKS,
    PASSES,
    PASSES_OF,
    PLACE,
    PLACES,
)
from sparring.config import HierarchyConfig, HindsightConfig, NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.training.planning.requests import combination

ROOT = Path(sparring.__file__).parent
CHOICES = {LEARNER: LEARNERS, NETWORK: NETWORKS, PLACE: PLACES, PASSES: PASSES_OF}
ALL = {**FEATURES, **NET_SETTINGS}
BY_SETTING = {"state", "frames", "squash", "predicted spread", "trunk", "critic"}
"""Abilities of networks that come with a setting, whatever the kind."""


def needed(part: str) -> set[str]:
    return {ability for one in ALL.values() for ability in one.needs.get(part, ())}


@pytest.mark.parametrize("part", [LEARNER, NETWORK, GAME])
def test_every_ability_has_words_and_is_needed_by_something(part: str) -> None:
    assert needed(part) == set(ABILITIES[part])


@pytest.mark.parametrize("part", CHOICES)
def test_every_ability_that_is_needed_is_offered_by_somebody(part: str) -> None:
    offered = {ability for choice in CHOICES[part].values() for ability in choice.offers}
    assert needed(part) - offered <= (BY_SETTING if part == NETWORK else set())
    if part != PASSES:  # networks ask more of these than settings say
        assert offered <= needed(part)


def test_only_features_are_forbidden() -> None:
    assert {other for one in ALL.values() for other in one.forbids} <= set(ALL)


def cases() -> Iterator[tuple[Rules, TrainConfig]]:
    for game in ("skull_king", "tic_tac_toe", "laser_hockey"):
        for algo in ("ppo", "dqn", "sac"):
            config = TrainConfig(game=game, algo=algo, imitate=("careful",))
            yield Rules(game), config
            hierarchy = HierarchyConfig(on=True)
            yield Rules(game), TrainConfig(game=game, algo=algo, hierarchy=hierarchy, actors=2)
            gru = NetConfig(memory="gru")
            hindsight = HindsightConfig(on=True)
            yield Rules(game), TrainConfig(game=game, algo=algo, net=gru)
            yield Rules(game), TrainConfig(game=game, algo=algo, hindsight=hindsight)


def test_advice_about_learners_can_be_followed() -> None:
    """Whoever is told to use another learner is not refused again."""
    followed = 0
    for rules, config in cases():
        run = combination(rules, config, {"": config.net})
        said = run.refusal()
        for name, choice in LEARNERS.items():
            if choice.typed and f"use {choice.typed}" in said:
                other = combination(rules, with_learner(config, name), {"": config.net}).refusal()
                assert not other, (said, other)
                followed += 1
    assert followed > 3


def with_learner(config: TrainConfig, name: str) -> TrainConfig:
    algo, mode = ("dqn", "rollouts") if name == "pqn" else (name, "replay")
    return replace(config, algo=algo, dqn=replace(config.dqn, mode=mode))


def test_a_network_is_made_whatever_else_its_settings_say_that_does_no_harm() -> None:
    """Presets say what suits other kinds, and so do policies that were saved."""
    settings = {"policy_hidden": (8,), "bptt_steps": 4, "frames": 9, "token_width": 32}
    for names in permutations(settings, 2):
        check_network(NetConfig(**{name: settings[name] for name in names}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"net\.set width=8 needs a custom network"):
        check_network(NetConfig(bptt_steps=4, set=("width=8",)))


def test_refusals_have_one_voice() -> None:
    rules = Rules("skull_king")
    config = TrainConfig(game="skull_king", algo="sac", hindsight=HindsightConfig(on=True))
    assert combination(rules, config, {"": config.net}).refusal() == (
        "hindsight.on needs a learner that relabels decisions in hindsight, and algo sac is "
        "not one; use --algo ppo, or use --algo dqn, or leave hindsight.on out"
    )
    clash = {
        "replicas": FeatureRequest(FEATURES["replicas"], "replicas 2"),
        "actors": FeatureRequest(FEATURES["actors"], "actors 4"),
    }
    run = Combination("ppo", {"": NetConfig()}, "shogi", frozenset({"repeats"}), clash)
    assert run.refusal() == (
        "replicas 2 and actors 4 do not combine: actors play for one learner; leave one of them out"
    )


# Who asks

KINDS = {"ppo", "dqn", "sac", "rollouts", "gru", "stack", "mlp", "residual", "attention"}
"""Names of learners, modes, memories and networks."""
NOT_ASKING = {
    "games/laser_hockey/curriculum.py": "reads the file of another program for one algorithm",
    "training/planning/algorithms.py": "says whose setting it is",
    "training/planning/settings.py": "says whose setting it is",
    "nets/make.py": "makes networks by their names",
    "nets/array_net.py": "makes networks by their names, without torch",
}


def refuses(function: ast.FunctionDef) -> bool:
    """Whether a function refuses, warns, or says what keeps something from being done."""
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc and "ConfigError" in ast.unparse(node.exc):
            return True
        if isinstance(node, ast.Call) and "SparringWarning" in ast.unparse(node.func):
            return True
    return function.name.lstrip("_").startswith(("why_", "unsupported", "is_lean"))


def asks(function: ast.FunctionDef) -> bool:
    """Whether it compares with the name of a learner, a mode, a memory or a network."""
    for node in ast.walk(function):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            words = (one for side in sides for one in ast.walk(side))
            if any(isinstance(one, ast.Constant) and one.value in KINDS for one in words):
                return True
    return False


def test_nobody_else_asks_what_combines() -> None:
    """A function asks if it refuses, warns or explains by the name of what another thing is."""
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if name.startswith(("capabilities/", "config/")) or name in NOT_ASKING:
            continue
        text = file.read_text()
        if not any(f'"{kind}"' in text for kind in KINDS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and asks(node) and refuses(node):
                found.append(f"{name}:{node.lineno} {node.name}")
    assert not found
