"""Where games begin: shares, order, single games from the same positions, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from reference.philox import Philox
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.starts import SavedPosition, saved_position
from sparring.games.state import State, new_state
from sparring.pools import Lineup, Pool, Start, read_starts

STARTS_STREAM = 8


def after(game: str | Rules, *actions: int, seed: int = 0) -> State:
    state = new_state(game, seed=seed)
    for action in actions:
        state.apply(action)
    return state


def wandered(rules: Rules, moves: int, seed: int) -> State:
    state = new_state(rules, seed=seed)
    for _ in range(moves):
        state.apply(state.ask("random"))
    return state


def openings() -> list[Start]:
    weights = {(4,): 1.0, (0, 8): 3.0, (2, 4, 6): 0.5}
    return [Start(after("tic_tac_toe", *cells), weight) for cells, weight in weights.items()]


def drawn(pool: Pool, count: int) -> list[bytes]:
    """Reset a pool until it has begun so many games, and return where they began."""
    size = pool._native.game_bytes
    found: list[bytes] = []
    while len(found) < count:
        pool.reset()
        found += [bytes(table[:size]) for table in pool.tables]
    return found[:count]


def test_shares_are_the_weights() -> None:
    """Chi-square over 20,000 games, the usual start among them."""
    starts = [Start(None, 1.5), *openings()]
    pool = Pool("tic_tac_toe", 500, seed=11, threads=1, starts=starts)
    keys = [saved_position(s.position or new_state("tic_tac_toe")).game for s in starts]
    found = Counter(drawn(pool, 20_000))
    assert set(found) == set(keys)
    weights = np.array([start.weight for start in starts])
    expected = 20_000 * weights / weights.sum()
    counts = np.array([found[key] for key in keys])
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # 3 degrees of freedom: 1 in 1000


def test_every_draw_is_that_of_its_own_stream() -> None:
    """Slow and plain: cumulated weights, a number of the stream, the first weight above it."""
    weights = np.linspace(1, 3, 40)
    states = [after("tic_tac_toe", *cells) for cells in np.ndindex(9, 9) if cells[0] != cells[1]]
    starts = [Start(state, w) for state, w in zip(states, weights, strict=False)]
    pool = Pool(
        "tic_tac_toe", 64, seed=7, threads=1, first_game=100, starts=[Start(None, 2), *starts]
    )
    up_to = np.cumsum([2, *weights])
    keys = [saved_position(s.position).game for s in starts]
    for episode in range(1, 6):
        pool.reset()
        for game in range(64):
            rng = Philox(7, 100 + game, episode, STARTS_STREAM)
            at = int(np.searchsorted(up_to, rng.u32() / 2**32 * up_to[-1], "right"))
            size = pool._native.game_bytes
            begun = bytes(pool.tables[game][:size])
            assert begun == (keys[at - 1] if at else saved_position(new_state("tic_tac_toe")).game)


def starts_of(game: str) -> list[Start]:
    """Some starts: given positions, rounds to be dealt, bytes beside the game."""
    rules = Rules(game)
    if game == "tic_tac_toe":
        return openings()
    if game == "kuhhandel":
        return [Start(wandered(rules, 40, seed)) for seed in range(3)]
    if game == "shogi":
        played = Start(wandered(rules, 10, 1))
        return [*read_starts(rules, ["sfen:4k4/9/9/9/9/9/9/9/R3K4 b 2G 1"]), played]
    return list(read_starts(rules, ["usual", "rounds:8-10=2"]))


@pytest.mark.parametrize("game", ["tic_tac_toe", "skull_king", "kuhhandel", "shogi"])
def test_threads_slots_and_splits_change_nothing(game: str) -> None:
    def digest(steps: int = 60, **options: Any) -> int:
        first = options.pop("first_game", 0)
        pool = Pool(game, seed=5, first_game=first, starts=starts_of(game), **options)
        pool.reset()
        for _ in range(steps):
            pool.step(pool.sample_actions())
        return pool.digest()

    whole = digest(num_games=24, threads=1)
    assert digest(num_games=24, threads=3) == whole
    assert digest(num_games=24, threads=2, slots=3) == whole
    halves = [digest(num_games=12, threads=1, first_game=first) for first in (0, 12)]
    assert sum(halves) % 2**64 == whole


def test_games_without_starts_draw_nothing() -> None:
    """Taking the starts away again leaves the games of a pool that never had any."""
    never, once = (Pool("skull_king", 16, seed=2, threads=1) for _ in range(2))
    once.set_starts(starts_of("skull_king"))
    once.set_starts([])
    for pool in (never, once):
        pool.reset()
        pool.run_random(300)
    assert never.state() == once.state()


@pytest.mark.parametrize(
    ("game", "moves"), [("tic_tac_toe", 3), ("shogi", 12), ("leduc_poker", 1), ("kuhn_poker", 1)]
)
def test_a_single_game_from_the_position_is_the_same(game: str, moves: int) -> None:
    """Rows, rewards and scores of a state that is played on by hand."""
    rules = Rules(game)
    start = wandered(rules, moves, 3)
    pool = Pool(rules, 4, seed=9, threads=1, starts=[Start(start)])
    pool.reset()
    singles = [start.clone() for _ in range(4)]
    for _ in range(40):
        actions = pool.sample_actions().copy()
        before = pool.batch()
        for row, single in enumerate(singles):
            assert before.seat[row] == single.seat
            np.testing.assert_array_equal(before.obs[row], single.observe_bytes(single.seat))
            assert np.flatnonzero(before.mask[row]).tolist() == single.legal()
        batch = pool.step(actions)
        for row, single in enumerate(singles):
            single.apply(int(actions[row]))
            np.testing.assert_array_equal(batch.reward[row], single.rewards_by_role)
            assert (batch.terminated[row], batch.truncated[row]) == (
                single.terminated,
                single.truncated,
            )
            if single.over:
                singles[row] = start.clone()


def test_games_with_chance_go_on_as_a_copy_of_them_does() -> None:
    """A copy of a game that began elsewhere plays on as the game itself."""
    pool = Pool("skull_king", 3, seed=4, threads=1, starts=starts_of("skull_king")[1:])
    pool.reset()
    copies = [pool.state_of(game) for game in range(3)]
    for _ in range(60):
        actions = pool.sample_actions().copy()
        for row, copy in enumerate(copies):
            if not copy.over:
                np.testing.assert_array_equal(pool.batch().obs[row], copy.observe_bytes(copy.seat))
                copy.apply(int(actions[row]))
        pool.step(actions)


def test_line_ups_are_drawn_as_without_starts() -> None:
    lineups = [Lineup((0, 1)), Lineup((0, 2), weight=2.0)]
    with_starts, without = (
        Pool("tic_tac_toe", 200, seed=6, threads=1, lineups=lineups, starts=starts)
        for starts in ([Start(after("tic_tac_toe", 4))], ())
    )
    for pool in (with_starts, without):
        pool.reset()
    np.testing.assert_array_equal(with_starts.seated(3), without.seated(3))
    first, second = (pool.state_of(7).native for pool in (with_starts, without))
    assert first.position() != second.position()


def test_running_games_and_saved_ones_go_on() -> None:
    """A start is where a game begins, and nothing else."""
    plain = Pool("skull_king", 8, seed=3, threads=1)
    changed = Pool("skull_king", 8, seed=3, threads=1)
    for pool in (plain, changed):
        pool.reset()
        pool.run_random(20)
    changed.set_starts(starts_of("skull_king"))
    assert plain.state() == changed.state()
    for pool in (plain, changed):
        pool.run_random(40)
    assert plain.state() == changed.state()
    changed.run_random(400)
    other = Pool("skull_king", 8, seed=1, threads=1, starts=starts_of("skull_king"))
    other.load_state(changed.state())
    for pool in (changed, other):
        pool.run_random(300)
    assert changed.state() == other.state()


def test_a_round_is_dealt_anew_every_time() -> None:
    rules = Rules("skull_king")
    pool = Pool(rules, 60, seed=1, threads=1, starts=read_starts(rules, ["round:7@10,-20,30,40"]))
    pool.reset()
    states = [pool.state_of(game).fields() for game in range(60)]
    assert {tuple(s["total"][:4]) for s in states} == {(10, -20, 30, 40)}
    assert {(int(s["round"][0]), int(s["cards"][0]), int(s["phase"][0])) for s in states} == {
        (7, 7, 0)
    }
    assert len({s["hand"].tobytes() for s in states}) == 60
    assert {int(s["leader"][0]) for s in states} == {0, 1, 2, 3}
    assert pool.audit() == ""
    lengths = []
    for _ in range(200):
        lengths += pool.step(pool.sample_actions()).final_length.tolist()
    assert set(lengths) == {4 * (7 + 8 + 9 + 10) + 16}
    pool.set_config(episode="ROUND")
    pool.reset()
    assert pool.step(pool.sample_actions()).final_length.size == 0
    while not (ended := pool.step(pool.sample_actions()).final_length).size:
        pass
    assert ended[0] == 32


def test_kuhhandel_shuffles_what_nobody_knows() -> None:
    rules = Rules("kuhhandel")
    start = wandered(rules, 40, 3)
    pool = Pool(rules, 30, seed=1, threads=1, starts=[Start(start)])
    pool.reset()
    given = start.fields()
    begun = int(given["drawn"][0])
    decks = [pool.state_of(game).fields()["deck"] for game in range(30)]
    assert all((deck[:begun] == given["deck"][:begun]).all() for deck in decks)
    assert all(sorted(deck) == sorted(given["deck"]) for deck in decks)
    assert len({deck.tobytes() for deck in decks}) == 30


def test_hockeys_phases_and_server_are_no_part_of_a_start() -> None:
    rules = Rules("laser_hockey", {"serve": "ALTERNATING"})
    pool = Pool(rules, 20, seed=1, threads=1, starts=read_starts(rules, ["face_off"]))
    pool.reset()
    phases = {tuple(pool.state_of(game).fields()["phase"]) for game in range(20)}
    assert len(phases) == 20


OVER, FULL = (0, 3, 1, 4, 2), (0, 1, 2, 4, 3, 5, 7, 6, 8)
BAD = {
    "the game is over": lambda: Start(after("tic_tac_toe", *OVER)),
    "of kuhn_poker, and the game is tic_tac_toe": lambda: Start(new_state("kuhn_poker")),
    "weight 0 must be above 0": lambda: Start(after("tic_tac_toe", 1), weight=0),
    "weight nan must be": lambda: Start(after("tic_tac_toe", 1), weight=float("nan")),
    "not a saved state": lambda: Start(b"junk"),
    "another game or build": lambda: Start(SavedPosition(b"short")),
    "start 1: the game is over": lambda: Start(saved_position(after("tic_tac_toe", *FULL))),
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_start_refuses_all(why: str) -> None:
    pool = Pool("tic_tac_toe", 50, seed=1, threads=1, starts=[Start(after("tic_tac_toe", 4))])
    with pytest.raises(ConfigError, match=why):
        pool.set_starts([Start(after("tic_tac_toe", 8)), BAD[why]()])
    pool.reset()
    assert {bytes(table) for table in pool.tables[:, : pool._native.game_bytes]} == {
        saved_position(after("tic_tac_toe", 4)).game
    }


def test_other_flags_are_refused_unless_they_are_live() -> None:
    pool = Pool("skull_king", 2, threads=1)
    five = Rules("skull_king", {"num_players": 5})
    with pytest.raises(ConfigError, match="num_players=5, and the game has num_players=4"):
        pool.set_starts([Start(new_state(five))])
    pool.set_starts([Start(new_state(Rules("skull_king", {"episode": "ROUND"})))])


def test_saved_bytes_are_a_start() -> None:
    state = wandered(Rules("shogi"), 9, 1)
    first, second = (
        Pool("shogi", 2, threads=1, starts=[Start(given)]) for given in (state, state.serialize())
    )
    assert first.reset().obs.tobytes() == second.reset().obs.tobytes()
