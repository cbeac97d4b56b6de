"""The native Skull King against the slow twin: every state, mask, observation, reward and end."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import sparring
from reference.philox import Philox
from reference.skull_king.game import SkullKing

PHASES = ("BID", "CANNON", "PLAY", "ROSIE", "DISCARD", "WAGER", "HARRY", "END")
CHANCE, BOTS = 0, 1
ROUND_LISTS = (
    list(range(1, 11)),
    [2, 2, 4, 4, 6, 6, 8, 8, 10, 10],
    [6, 7, 8, 9, 10],
    [5] * 5,
    [10, 10, 10],
    [9, 9, 7, 7, 5, 5, 3, 3, 1, 1],
    [1],
)


def random_config(rng: random.Random) -> dict[str, Any]:
    """Draw flags so that every rule variant meets every other one."""
    scoring = rng.choice(["SKULL_KING", "RASCAL"])
    rounds = rng.choice(ROUND_LISTS)
    config = {
        "num_players": rng.randint(2, 8),
        "deck": rng.choice(["FULL74", "FULL74", "STANDARD70", "CLASSIC66"]),
        "ghost": rng.randint(0, 1),
        "scoring": scoring,
        "cannonball": int(scoring == "RASCAL" and rng.random() < 0.5),
        "abilities": rng.randint(0, 1),
        "dedupe": rng.randint(0, 1),
        "skip_forced": int(rng.random() < 0.3),
        "episode": rng.choice(["GAME", "ROUND"]),
        "start_round": rng.choice([0, 0, rng.randint(1, len(rounds))]),
        "round_weights": [rng.choice([0.5, 1.0, 2.0]) for _ in range(10)],
        "rounds": rounds,
        "kraken_lead": rng.choice(["WOULD_HAVE_WON", "LEFT_OF_KRAKEN"]),
        "follow_rule": rng.choice(["OFFICIAL", "FIRST_SUIT", "SEED"]),
        "whale_loot": rng.randint(0, 1),
        "tigress_bonus": rng.randint(0, 1),
        "cap8": rng.choice([8, 9]),
        "rascal_last": rng.randint(0, 1),
        "open_bids": rng.randint(0, 1),
        "obs": rng.choice(["FULL", "COMPACT"]),
        "phase_embed": rng.randint(0, 1),
        "history": rng.randint(0, 1),
    }
    return {key: value for key, value in config.items() if rng.random() < 0.6} | {
        key: config[key]
        for key in ("num_players", "scoring", "cannonball", "rounds", "start_round")
    }


def ids(words: np.ndarray) -> list[int]:
    whole = int(words[0]) | int(words[1]) << 64
    return [i for i in range(74) if whole >> i & 1]


def native_state(state: sparring.State, game: SkullKing) -> dict[str, Any]:
    """The native position in the twin's words."""
    f = state.fields()
    players, seats = game.num_players, game.seats
    sets = {name: [ids(w) for w in f[name].reshape(-1, 2)] for name in ("hand", "played", "priv")}
    order = f["ghost_order"][: int(f["cards"][0])]
    laid = sets["played"][2] if game.ghost else []
    tokens = zip(f["trick_seat"], f["trick_token"], strict=True)
    return {
        "phase": PHASES[f["phase"][0]],
        "seat": state.seat,
        "leader": int(f["leader"][0]),
        "first": int(f["first"][0]),
        "round": int(f["round"][0]),
        "cards": int(f["cards"][0]),
        "tricks_done": int(f["tricks_done"][0]),
        "hands": sets["hand"][:seats],
        "played": sets["played"][:seats],
        "stock": ids(f["stock"]),
        "priv": sets["priv"][:players],
        "trick": [(int(s), int(t)) for s, t in tokens][: f["trick_size"][0]],
        "bid": f["bid"][:seats].tolist(),
        "won": f["won"][:seats].tolist(),
        "sum_bid": f["sum_bid"][:players].tolist(),
        "sum_err": f["sum_err"][:players].tolist(),
        "bonus": f["bonus"][:seats].tolist(),
        "score": f["total"][:players].tolist(),
        "void": [[bool(v >> s & 1) for s in range(4)] for v in f["void_suits"][:seats]],
        "loot": [list(map(int, pair)) for pair in zip(f["loot_by"], f["loot_with"], strict=True)],
        "ghost_order": [int(i) for i in order if int(i) not in laid] if game.ghost else [],
        "wager": f["wager"][:players].tolist(),
        "cannon": f["cannon"][:players].tolist(),
        "harry": int(f["harry"][0]),
        "pending": int(f["pending"][0]),
        "follow": int(f["follow"][0]),
        "last_round": last_round(f, players),
    }


def last_round(f: dict[str, np.ndarray], players: int) -> dict[str, list[int]] | None:
    if f["last_cards"][0] == 0:
        return None
    names = ("bid", "won", "bonus", "loot", "loot_exact", "points")
    lists = {name: f[f"last_{name}"][:players].tolist() for name in names}
    return {**lists, "cards": [int(f["last_cards"][0])] * players}


def assert_same(state: sparring.State, game: SkullKing, where: str, lookers: Iterable[int]) -> None:
    """Compare everything there is to see."""
    expected = game.state()
    got = native_state(state, game)
    for key, value in expected.items():
        as_lists = [list(p) for p in value] if key in ("loot", "void") else value
        assert got[key] == as_lists, f"{where}: {key} is {got[key]}, the twin says {as_lists}"
    assert state.terminated == game.terminated, where
    assert state.legal() == game.legal(), where
    if not game.terminated:
        assert state.role == game.role, where
    for seat in lookers:
        wanted = np.array(game.observe(seat), np.float32)
        seen = state.observe(seat)
        bad = np.flatnonzero(seen != wanted)
        names = [state.rules.features[i].name for i in bad]
        assert not len(bad), f"{where}: seat {seat} sees {names}: {seen[bad]}, not {wanted[bad]}"


def play_both(number: int) -> int:
    """One game in both programs, a bot of random strength in every seat; returns decisions."""
    rng = random.Random(number)
    config = random_config(rng)
    seed = rng.getrandbits(64)
    # Every part has a weight of its own, so that a wrong one cannot hide behind another.
    weights = {part: rng.uniform(0.5, 1.5) for part in sparring.Rules("skull_king").parts}
    state = sparring.new_state("skull_king", seed=seed, config=config, rewards=weights)
    game = SkullKing(config, Philox(seed, 0, 1, CHANCE))
    game.reset()
    bots = Philox(seed, 0, 1, BOTS)
    players = [rng.choice(state.rules.bots) for _ in range(game.num_players)]
    decisions = 0
    where = f"game {number} {config}"
    assert_same(state, game, where, range(game.num_players))
    while not game.terminated:
        chosen = game.bot(players[game.seat], bots)
        asked = state.ask(players[game.seat])
        assert asked == chosen, f"{where}: {players[game.seat]} plays {asked}, not {chosen}"
        paid = game.step(chosen)
        state.apply(chosen)
        expected = sum(weights[part] * np.array(amounts) for part, amounts in paid.items())
        np.testing.assert_allclose(state.rewards, expected, atol=2e-5, err_msg=where)
        decisions += 1
        lookers = {game.seat, rng.randrange(game.num_players)} - {-1}
        assert_same(state, game, f"{where}, decision {decisions}", lookers)
    return decisions


QUICK = (0,)
"""Blocks of games that always run; in the second a loot falls into a whale's trick."""


@pytest.mark.parametrize(
    "block", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in range(30)]
)
def test_random_games_equal_the_twin(block: int) -> None:
    for number in range(10 * block, 10 * (block + 1)):
        play_both(number)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_games_equal_the_twin() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        decisions = sum(workers.map(play_both, range(1000, 11_000), chunksize=50))
    assert decisions > 100_000
