"""The native search against the slow one of tests/reference, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from reference.search import Found as SlowFound
from reference.search import Options, fixed_evaluator
from reference.search import Search as SlowSearch
from sparring import Lineup, Pool, Rules, State, new_state
from sparring.games.shogi import action_of
from sparring.search.budget import Budget
from sparring.search.search import Found, Search, SearchConfig

SIMULATIONS = (0, 1, 2, 3, 7, 16, 33, 64)


@dataclass(frozen=True)
class Case:
    """Positions of a game: with these flags, so many random decisions apart."""

    game: str
    apart: int
    flags: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.game, *(f"{flag}={self.flags[flag]}" for flag in self.flags)])

    def pools(self, games: int, *, sets: int) -> Iterator[Pool]:
        """A pool whose games go on between one yield and the next."""
        pool = Pool(self.game, games, seed=3, threads=1, config=self.flags)
        pool.reset()
        for _ in range(sets):
            yield pool
            for _ in range(self.apart):
                pool.step(pool.sample_actions())


CASES = [
    Case("tic_tac_toe", 2),
    Case("connect_four", 8),
    Case("shogi", 25),
    Case("cage2", 12),
    Case("laser_hockey", 30),
    Case("laser_hockey_discrete", 30),
    *(Case("skull_king", 17, {"num_players": seats}) for seats in (2, 3, 4)),
]
EDGE_CASES = [
    Case("tic_tac_toe", 3, {"skip_forced": 1}),  # forced moves
    Case("skull_king", 17, {"num_players": 3, "skip_forced": 1}),
    Case("shogi", 3, {"max_plies": 9, "at_limit": "CUT"}),  # truncation
    Case("shogi", 3, {"max_plies": 9, "at_limit": "DRAW"}),
    Case("cage2", 6, {"max_steps": 14}),
    Case("rock_paper_scissors", 1),  # simultaneous moves without chance
    Case("duel", 1),  # roles in a box game
    Case("stairs", 3),  # roles of one seat
]
VARIANTS = {
    "gumbel": Options(),
    "gumbel with noise": Options(noise=True, seed=7),
    "gumbel, narrow": Options(considered=3, width=5, samples=5, gamma=0.9, noise=True),
    "gumbel, sharp": Options(considered=8, c_scale=2.5, c_visit=3, noise=True, squash=True),
    "puct": Options(rule="puct"),
    "gumbel, unproven": Options(prove=False),
    "puct, unproven": Options(rule="puct", prove=False, gamma=0.9),
    "puct, narrow": Options(rule="puct", width=4, samples=4, gamma=0.97, c_puct=2.1),
}
"""Values are rescaled where the game is not zero-sum; there the usual `c_scale` is 0.1."""


def outputs(rules: Rules) -> int:
    return 2 * rules.box or rules.actions


def fast_search(rules: Rules, options: Options, roots: int, threads: int) -> Search:
    scale = None if options.c_scale == Options.c_scale else options.c_scale
    config = SearchConfig(
        considered=options.considered,
        width=options.width,
        samples=options.samples,
        c_visit=options.c_visit,
        c_scale=scale,
        c_puct=options.c_puct,
        gamma=options.gamma,
        prove=options.prove,
    )
    return Search(
        rules,
        fixed_evaluator(outputs(rules)),
        Budget(simulations=64, rule=options.rule),
        trees=roots,
        threads=threads,
        seed=options.seed,
        squash=options.squash,
        noise=options.noise,
        config=config,
        open_cards=rules.hides and rules.seats > 1,
    )


def slow_search(state: State, row: int, options: Options, simulations: int) -> SlowFound:
    return new_slow_search(state, row, options, simulations).run()


def new_slow_search(state: State, row: int, options: Options, simulations: int) -> SlowSearch:
    rules = state.rules
    if not rules.zero_sum:
        scale = 0.1 if options.c_scale == Options.c_scale else options.c_scale
        options = replace(options, rescale=True, c_scale=scale)
    resample = rules.hides and rules.seats == 1
    options = replace(options, simulations=simulations, resample=resample)
    return SlowSearch(state, row, fixed_evaluator(outputs(rules)), options)


def check_tree(search: Search, found: Found, tree: int, expected: SlowFound) -> None:
    """All that a search returns."""
    assert found.simulations[tree] == sum(expected.visits)
    check_result(search, found, tree, expected)


def check_result(search: Search, found: Found, tree: int, expected: SlowFound) -> None:
    """All but the number of new simulations, by choice of the root."""
    visits, policy, q = (np.zeros(found.visits.shape[1], dtype) for dtype in (int, "f4", "f4"))
    visits[expected.actions] = expected.visits
    policy[expected.actions] = expected.policy
    q[expected.actions] = expected.q
    assert found.visits[tree].tolist() == visits.tolist()
    assert found.q[tree].tolist() == q.tolist()
    assert found.policy[tree].tolist() == policy.tolist()
    assert found.value[tree] == np.float32(expected.value)
    assert search.line(tree) == expected.line
    assert search.native.nodes(tree) == expected.nodes
    assert np.array_equal(found.action[tree], expected.action)


def check_pool(search: Search, pool: Pool, options: Options, each: list[int]) -> None:
    """Search the first rows of a pool in both ways, each with its number of simulations."""
    found = search.from_pool(pool, np.arange(len(each)), np.array(each, np.int32))
    for root, simulations in enumerate(each):
        game, row = divmod(root, pool.rules.rows)
        expected = slow_search(pool.state_of(game), row, options, simulations)
        check_tree(search, found, root, expected)


def check_case(case: Case, options: Options, roots: int, *, sets: int, threads: int) -> int:
    """Search so many rows of each pool in both ways; return how many it were."""
    rules = Rules(case.game, case.flags)
    search, made = fast_search(rules, options, roots, threads), 0
    for pool in case.pools(roots // rules.rows, sets=sets):
        check_pool(search, pool, options, [SIMULATIONS[(made + i) % 8] for i in range(roots)])
        made += roots
    return made


@pytest.mark.parametrize("sets", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_native_search_equals_the_slow_one(case: Case, variant: str, sets: int) -> None:
    options = VARIANTS[variant]
    check_case(case, options, 2, sets=sets, threads=3 if options.noise else 1)


@pytest.mark.few(8)
@pytest.mark.parametrize("rule", ["gumbel", "puct"])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_ends_forced_moves_and_roles(case: Case, rule: str) -> None:
    check_case(case, Options(rule=rule, noise=True, gamma=0.9), 4, sets=2, threads=1)


def test_threads_and_single_states_change_nothing() -> None:
    """Nor does it matter which other roots are searched beside one."""
    case = CASES[-1]
    (pool,) = case.pools(12, sets=1)
    options = Options(noise=True)
    one, three = (fast_search(pool.rules, options, 12, threads) for threads in (1, 3))
    by_one, by_three = (search.from_pool(pool, np.arange(12)) for search in (one, three))
    for name in ("action", "policy", "value", "visits", "q"):
        assert np.array_equal(getattr(by_one, name), getattr(by_three, name)), name
    alone = fast_search(pool.rules, options, 1, 1)
    for game in range(12):
        found = alone.from_state(pool.state_of(game))
        assert np.array_equal(found.policy[0], by_one.policy[game])
        assert alone.line() == one.line(game)


@pytest.mark.parametrize("game", ["tic_tac_toe", "skull_king"])
def test_a_tree_has_the_rewards_of_its_pool_but_not_the_bots(game: str) -> None:
    rules = Rules(game)
    rewards = {"skull_king": {"score_delta": (0.1, 0.25), "win": (2, 1)}}.get(game)
    lineups = [Lineup((0, *["random"] * (rules.seats - 1)))]
    pool = Pool(rules, 8, seed=5, threads=1, lineups=lineups, rewards=rewards, first_game=100)
    pool.reset()
    for _ in range(2):
        pool.step(pool.sample_actions())
    options = Options(noise=True, seed=-3)
    check_pool(fast_search(rules, options, 8, 1), pool, options, list(SIMULATIONS))


@pytest.mark.parametrize("rule", ["gumbel", "puct"])
def test_a_tree_knows_the_positions_before_its_root(rule: str) -> None:
    """Two kings go to and fro; a position that comes for the fourth time is drawn."""
    state = new_state("shogi", sfen="4k4/9/9/9/9/9/9/9/4K4 b - 1")
    options = Options(rule=rule, width=3)
    search = fast_search(state.rules, options, 1, 1)
    for move in ("5i5h", "5a5b", "5h5i", "5b5a") * 3:
        found = search.from_state(state)
        check_tree(search, found, 0, slow_search(state, 0, options, 64))
        last = action_of(state, move)
        state.apply(last)
    assert state.end == "repetition"
    assert found.visits[0, last] > 0
    assert found.q[0, last] == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_thousand_positions_of_each_game(case: Case) -> None:
    made = sum(check_case(case, options, 10, sets=17, threads=3) for options in VARIANTS.values())
    assert made >= 1000


@pytest.mark.few(1)
@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four", "shogi"])
def test_what_a_tree_knows_of_the_next_position_is_kept(game: str) -> None:
    """Two searches take turns, as players do: each finds its next root two moves below its last."""
    state, options = new_state(game), Options(rule="puct", width=6, c_puct=2.1)
    players = [fast_search(state.rules, options, 1, 1) for _ in range(2)]
    slow: list[SlowSearch | None] = [None, None]
    rng, kept = np.random.default_rng(3), 0
    played: list[int] = []
    while not state.over and len(played) < 30:
        search, before = players[state.seat], slow[state.seat]
        expected = new_slow_search(state, 0, options, 64)
        if before:
            expected.keep(before, played[-2:])
        kept += 64 - expected.options.simulations
        slow[state.seat] = expected
        wanted, found = expected.run(), search.from_state(state, keep=True)
        assert found.simulations[0] == expected.options.simulations
        check_result(search, found, 0, wanted)
        legal = state.legal()
        played.append(int(found.action[0]) if rng.random() < 0.8 else int(rng.choice(legal)))
        state.apply(played[-1])
    assert kept > 50


def test_a_tree_is_kept_for_the_same_position_and_dropped_for_another() -> None:
    state, options = new_state("connect_four"), Options(rule="puct")
    search = fast_search(state.rules, options, 1, 1)
    first = search.from_state(state, simulations=20)
    again = search.from_state(state, simulations=50, keep=True)
    assert (first.simulations[0], again.simulations[0]) == (20, 30)
    check_result(search, again, 0, slow_search(state, 0, options, 50))
    other = new_state("connect_four")
    for action in (3, 3, 3, 3, 3, 3):
        other.apply(action)
    assert search.from_state(other, simulations=20, keep=True).simulations[0] == 20


def test_sequential_halving_begins_anew() -> None:
    state = new_state("connect_four")
    search = fast_search(state.rules, Options(), 1, 1)
    search.from_state(state)
    assert search.from_state(state, keep=True).simulations[0] == 64
