"""The native Kuhhandel against the slow twin: every state, mask, observation, reward and end."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import sparring
from reference.kuhhandel import Kuhhandel
from reference.kuhhandel_bots import NAMES
from reference.kuhhandel_config import ALLOWED, DEFAULTS
from reference.kuhhandel_rewards import OPTIONS, TERMS
from reference.kuhhandel_rules import ACTIONS, PHASES
from reference.philox import Philox

GAME = "kuhhandel"
CHANCE, BOTS = 0, 1

pytestmark = pytest.mark.skipif(
    GAME not in sparring.game_names(), reason=f"{GAME} is not among the games of this build"
)

# What the native game calls things. Everything else in this file speaks the twin's language.

# Flags that are compared, as {twin: native}; words are handed over by number, default first.
FLAGS = {
    name: name
    for name in (
        "num_players",
        "bluff",
        "pass_mode",
        "pay_mode",
        "open_pay",
        "empty_offer",
        "tie_money",
        "tie_rounds",
        "zeros_return",
        "auto_forced",
        "history",
        "skip_forced",
        "max_decisions",
    )
}
# One edition exists, and weights stand for the reward options; shaping is compared undiscounted.
NOT_COMPARED = {"edition", "reward", "shaping_gamma"}

# Parts whose name is neither a term nor an option of the twin: {part: {term: weight}}.
PART_TERMS: dict[str, dict[str, float]] = {}

# The twin's ends in the order of the native list.
ENDS = ("quartets", "limit")


def native_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The twin's flags as the native game takes them."""
    return {
        FLAGS[flag]: ALLOWED[flag].index(value) if isinstance(value, str) else value
        for flag, value in config.items()
    }


def native_state(state: sparring.State, game: Kuhhandel) -> dict[str, Any]:
    """The native position in the twin's words."""
    f = state.fields()
    n = game.num_players
    return {
        "phase": PHASES[f["phase"][0]],
        "turn": int(f["turn"][0]),
        "deck": f["deck"][int(f["position"][0]) :].tolist(),
        "animals": f["animals"].reshape(5, 10)[:n].tolist(),
        "money": f["money"].reshape(5, 6)[:n].tolist(),
        "known": f["known"].reshape(5, 5, 6)[:n, :n].tolist(),
        "donkeys": int(f["donkeys"][0]),
        "decisions": int(f["decisions"][0]),
    }


def part_terms(part: str) -> dict[str, float]:
    """The terms of the twin that a native part is made of."""
    if part in PART_TERMS:
        return PART_TERMS[part]
    if part in TERMS:
        return {part: 1.0}
    if part.upper() in OPTIONS:
        return {term: float(weight) for term, weight in OPTIONS[part.upper()].items()}
    raise AssertionError(f"PART_TERMS does not say what the part {part!r} pays")


# From here on nothing depends on native names.


def random_config(rng: random.Random) -> dict[str, Any]:
    """Draw flags so that every rule variant meets every other one."""
    config = {flag: rng.choice(list(ALLOWED[flag])) for flag in FLAGS if flag in ALLOWED}
    config["auto_forced"] = int(rng.random() < 0.7)
    config["skip_forced"] = int(rng.random() < 0.3)
    config["max_decisions"] = rng.choice([4000, rng.randint(1, 500)])
    chosen = {flag: value for flag, value in config.items() if rng.random() < 0.6}
    return {**chosen, "num_players": config["num_players"]}


def assert_same(state: sparring.State, game: Kuhhandel, where: str, lookers: Iterable[int]) -> None:
    """Compare everything there is to see."""
    expected = game.state()
    for key, value in native_state(state, game).items():
        assert value == expected[key], f"{where}: {key} is {value}, the twin says {expected[key]}"
    assert (state.terminated, state.truncated) == (game.terminated, game.truncated), where
    assert state.legal() == game.legal(), where
    assert state.scores == game.scores(), where
    if game.terminated:
        assert game.end == ENDS[state.rules.ends.index(state.end)], where
    else:
        assert (state.seat, state.role) == (game.seat, game.role), where
    for seat in lookers:
        wanted = np.array(game.observe(seat), np.float32)
        seen = state.observe(seat)
        assert seen.shape == wanted.shape, where
        bad = np.flatnonzero(seen != wanted)
        names = [state.rules.features[i].name for i in bad]
        assert not len(bad), f"{where}: seat {seat} sees {names}: {seen[bad]}, not {wanted[bad]}"


def play_both(number: int) -> int:
    """One game in both programs, a bot of random strength in every seat; returns decisions."""
    rng = random.Random(number)
    config = random_config(rng)
    seed = rng.getrandbits(64)
    # Every part has a weight of its own, so that a wrong one cannot hide behind another.
    weights = {part: rng.uniform(0.5, 1.5) for part in sparring.Rules(GAME).parts}
    state = sparring.new_state(GAME, seed=seed, config=native_config(config), rewards=weights)
    game = Kuhhandel(config, Philox(seed, 0, 1, CHANCE))
    game.reset()
    bots = Philox(seed, 0, 1, BOTS)
    players = [rng.choice(NAMES) for _ in range(game.num_players)]
    decisions = 0
    where = f"game {number} {config}"
    assert_same(state, game, where, range(game.num_players))
    while not game.terminated:
        chosen = game.bot(players[game.seat], bots)
        asked = state.ask(players[game.seat])
        assert asked == chosen, f"{where}: {players[game.seat]} plays {asked}, not {chosen}"
        paid = game.step(chosen)
        state.apply(chosen)
        expected = np.zeros(game.num_players)
        for part, weight in weights.items():
            for term, share in part_terms(part).items():
                expected += weight * share * np.array(paid[term])
        np.testing.assert_allclose(state.rewards, expected, atol=2e-5, err_msg=where)
        decisions += 1
        lookers = {game.seat, rng.randrange(game.num_players)} - {-1}
        assert_same(state, game, f"{where}, decision {decisions}", lookers)
    assert_same(state, game, f"{where}, at the end", range(game.num_players))
    return decisions


def test_both_have_the_same_shape() -> None:
    assert set(FLAGS) | NOT_COMPARED == set(DEFAULTS)
    for players in (3, 4, 5):
        rules = sparring.Rules(GAME, native_config({"num_players": players}))
        game = Kuhhandel({"num_players": players})
        assert (rules.seats, rules.actions) == (players, ACTIONS)
        assert len(rules.features) == game.observation_size()
        assert set(rules.bots) == set(NAMES)
        assert len(rules.ends) == len(ENDS)
    for part in rules.parts:
        assert part_terms(part)


@pytest.mark.parametrize("block", range(6))
def test_random_games_equal_the_twin(block: int) -> None:
    for number in range(50 * block, 50 * (block + 1)):
        play_both(number)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_games_equal_the_twin() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        decisions = sum(workers.map(play_both, range(1000, 11_000), chunksize=50))
    assert decisions > 1_000_000
