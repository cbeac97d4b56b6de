"""The native Kuhhandel against the slow twin: every state, mask, observation, reward and end."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import sparring
from reference.kuhhandel.bots import NAMES
from reference.kuhhandel.config import ALLOWED, DEFAULTS, PRESETS, checked_config
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.rewards import OPTIONS, TERMS
from reference.kuhhandel.rules import ACTIONS, AUCTION_PHASES, COMPOSING_PHASES, PHASES
from reference.philox import Philox
from sparring.games import kuhhandel

GAME = "kuhhandel"
CHANCE, BOTS = 0, 1
# The twin's ends in the order of the native list.
ENDS = ("quartets", "limit")


def random_config(rng: random.Random) -> dict[str, Any]:
    """Draw flags so that every rule variant meets every other one."""
    config = {flag: rng.choice(list(values)) for flag, values in ALLOWED.items()}
    config["auto_forced"] = int(rng.random() < 0.7)
    config["skip_forced"] = int(rng.random() < 0.3)
    config["max_decisions"] = rng.choice([4000, 4000, rng.randint(2, 500)])
    config["potential_gamma"] = rng.choice([0.0, 0.5, 0.96875])
    chosen = {flag: value for flag, value in config.items() if rng.random() < 0.6}
    return {**chosen, "num_players": config["num_players"]}


def counts(money: int) -> list[int]:
    """Cards by denomination."""
    return [int(money) >> 8 * d & 0xFF for d in range(6)]


def flags(bits: int, players: int) -> list[bool]:
    return [bool(int(bits) >> seat & 1) for seat in range(players)]


def native_state(state: sparring.State, game: Kuhhandel) -> dict[str, Any]:
    """The native position in the twin's words."""
    fields = state.fields()
    one = {name: int(values[0]) for name, values in fields.items() if len(values) == 1}
    n = game.num_players
    phase = PHASES[one["phase"]]
    known = fields["known"].view(np.uint8).reshape(5, 5, 8)[:n, :n, :6].tolist()
    auction = {
        "animal": one["lot"],
        "auctioneer": one["turn"],
        "high": 10 * one["high_tens"],
        "high_bidder": one["high_bidder"],
        "last_bid": (10 * fields["last_bid_tens"][:n]).tolist(),
        "passed": flags(one["passed"], n),
        "exposed": flags(one["exposed"], n),
        "hundreds": one["hundreds"],
    }
    trade = {
        "challenger": one["turn"],
        "target": one["target"],
        "animal": one["traded"],
        "stake": one["stake"],
        "rebid": one["ties"] > 0,
        "tied": 10 * one["tied_tens"],
        "offer": counts(one["offer"]),
    }
    pays, buys = phase == "PAY", one["actor"] == one["turn"]
    composing = {
        "selected": counts(one["chosen"]),
        "denomination": one["pointer"],
        "price": 10 * one["high_tens"] if pays else 0,
        "payer": one["actor"] if pays else -1,
        "payee": (one["high_bidder"] if buys else one["turn"]) if pays else -1,
    }
    return {
        "phase": phase,
        "seat": -1 if phase == "DONE" else one["actor"],
        "turn": one["turn"],
        "deck": fields["deck"][one["drawn"] :].tolist(),
        "animals": fields["animals"].reshape(5, 10)[:n].tolist(),
        "money": [known[seat][seat] for seat in range(n)],
        "known": known,
        "donkeys": one["donkeys"],
        "decisions": one["decisions"],
        "lot": one["lot"],
        "auction": auction if phase in AUCTION_PHASES else None,
        "trade": trade if one["target"] >= 0 else None,
        "composing": composing if phase in COMPOSING_PHASES else None,
    }


def assert_same(state: sparring.State, game: Kuhhandel, where: str, lookers: Iterable[int]) -> None:
    """Compare everything there is to see."""
    got = native_state(state, game)
    for key, value in game.state().items():
        if key != "events":  # they are compared as they are observed
            assert got[key] == value, f"{where}: {key} is {got[key]}, the twin says {value}"
    assert (state.terminated, state.truncated) == (game.terminated, game.truncated), where
    assert state.legal() == game.legal(), where
    assert state.scores == game.scores(), where
    assert not state.audit(), f"{where}: {state.audit()}"
    if game.over:
        assert game.end == ENDS[state.rules.ends.index(str(state.end))], where
    else:
        assert (state.seat, state.role) == (game.seat, game.role), where
    for seat in lookers:
        wanted = np.array(game.observe(seat), np.float32)
        seen = state.observe(seat)
        assert seen.shape == wanted.shape, where
        bad = np.flatnonzero(seen != wanted)
        names = [state.rules.features[i].name for i in bad]
        assert not names, f"{where}: seat {seat} sees {names}: {seen[bad]}, not {wanted[bad]}"


def play_both(number: int, mixed: bool = False) -> int:
    """One game in both programs, a bot of random strength in every seat; returns decisions.

    Mixed: another bot at every decision, so that one has to go on from what another began.
    """
    rng = random.Random(number)
    config = random_config(rng)
    seed = rng.getrandbits(64)
    # Every part has a weight of its own, so that a wrong one cannot hide behind another.
    weights = {term: rng.uniform(0.5, 1.5) for term in TERMS}
    state = sparring.new_state(GAME, seed=seed, config=config, rewards=weights)
    game = Kuhhandel(config, Philox(seed, 0, 1, CHANCE))
    game.reset()
    bots = Philox(seed, 0, 1, BOTS)
    players = [rng.choice(NAMES) for _ in range(game.num_players)]
    decisions = 0
    where = f"game {number} {config}"
    assert_same(state, game, where, range(game.num_players))
    while not game.over:
        player = rng.choice(NAMES) if mixed else players[game.seat]
        chosen = game.bot(player, bots)
        asked = state.ask(player)
        assert asked == chosen, f"{where}: {player} plays {asked}, not {chosen}"
        paid = game.step(chosen)
        state.apply(chosen)
        expected = np.array(list(weights.values())) @ np.array([paid[term] for term in weights])
        assert np.abs(state.rewards - expected).max() < 2e-5, f"{where}: {state.rewards}, {paid}"
        decisions += 1
        lookers = {game.seat, rng.randrange(game.num_players)} - {-1}
        assert_same(state, game, f"{where}, decision {decisions}", lookers)
    assert_same(state, game, f"{where}, at the end", range(game.num_players))
    return decisions


def test_both_have_the_same_shape() -> None:
    rules = sparring.Rules(GAME)
    assert rules.config == DEFAULTS
    assert tuple(rules.parts) == TERMS
    assert set(rules.bots) == set(NAMES)
    assert len(rules.ends) == len(ENDS)
    for name, preset in kuhhandel.PRESETS.items():
        assert sparring.Rules(GAME, preset).config == checked_config(PRESETS[name])
    for players in (3, 4, 5):
        for history in (0, 1):
            config = {"num_players": players, "history": history}
            rules = sparring.Rules(GAME, config)
            assert (rules.seats, rules.actions) == (players, ACTIONS)
            assert len(rules.features) == Kuhhandel(config).observation_size()


@pytest.mark.parametrize("reward", OPTIONS)
def test_reward_options_weigh_the_parts_alike(reward: str) -> None:
    rules = sparring.Rules(GAME, {"reward": reward})
    weights = [float(OPTIONS[reward].get(term, 0)) for term in TERMS]
    for role in range(len(rules.roles)):
        assert rules.weights(None)[role :: len(rules.roles)] == pytest.approx(weights)


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 40))]
)
def test_random_games_equal_the_twin(block: int) -> None:
    for number in range(8 * block, 8 * (block + 1)):
        play_both(number)


@pytest.mark.slow
def test_bots_go_on_from_what_others_began() -> None:
    play_both(500, mixed=True)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_games_equal_the_twin() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        decisions = sum(workers.map(play_both, range(1000, 11_000), chunksize=50))
    assert decisions > 1_000_000


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_bots_go_on_from_what_others_began_in_many_games() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        decisions = sum(workers.map(partial(play_both, mixed=True), range(600, 1000)))
    assert decisions > 40_000
