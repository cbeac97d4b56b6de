"""Search over worlds: the native one equals the slow one, exact steps, what a seat may not know."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reference.search import fixed_evaluator
from reference.worlds import Options, Worlds, exact_returns, mirror_step
from search.test_reference import Case
from sparring import ConfigError, Pool, Rules, State, new_state
from sparring.config import NetConfig
from sparring.nets.heads import check_hidden
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.search.budget import Budget
from sparring.search.search import Found, Search, SearchConfig
from sparring.search.worlds import WorldsConfig

CASES = [
    Case("kuhn_poker", 1),
    Case("leduc_poker", 1),
    Case("kuhn_poker_3", 1),
    Case("goofspiel", 1),  # simultaneous moves
    Case("skull_king", 11, {"num_players": 2}),
    Case("skull_king", 11, {"num_players": 4, "skip_forced": 1}),
    Case("kuhhandel", 31, {"num_players": 3}),
    Case("kuhhandel", 31, {"num_players": 5, "skip_forced": 1}),
]
VARIANTS = {
    "one decision": Options(horizon=1),
    "cautious, with noise": Options(horizon=2, noise=True, seed=5, caution=1, eta=2, alpha=0.1),
    "narrow, discounted": Options(horizon=3, gamma=0.9, considered=4, least=20, eta=0.3),
    "ends by role": Options(horizon=2, gamma_into=(0, 1), seed=-3),
}
TRUNCATED = Case("kuhhandel", 3, {"num_players": 3, "max_decisions": 20})


def fast(rules: Rules, options: Options, roots: int = 1, threads: int = 1) -> Search:
    worlds = WorldsConfig(
        considered=options.considered,
        least=options.least,
        horizon=options.horizon,
        eta=options.eta,
        alpha=options.alpha,
        caution=options.caution,
    )
    config = SearchConfig(gamma=options.gamma, gamma_into=options.gamma_into, worlds=worlds)
    budget, evaluate = Budget(options.playouts), fixed_evaluator(rules.actions)
    given: dict[str, Any] = {"seed": options.seed, "noise": options.noise, "config": config}
    return Search(rules, evaluate, budget, trees=roots, threads=threads, **given)


def check(found: Found, root: int, slow: Worlds) -> None:
    """All that a search returns, bit for bit."""
    expected, actions = slow.run(), found.policy.shape[1]
    visits, q, policy = np.zeros(actions, int), np.zeros(actions, "f4"), np.zeros(actions, "f4")
    visits[list(expected.visits)] = list(expected.visits.values())
    q[list(expected.q)] = list(expected.q.values())
    policy[slow.legal] = expected.policy
    assert found.action[root] == expected.action
    assert found.visits[root].tolist() == visits.tolist()
    assert found.q[root].tolist() == q.tolist()
    assert found.policy[root].tolist() == policy.tolist()
    assert found.value[root] == np.float32(expected.value)
    assert found.simulations[root] == visits.sum()


def check_case(case: Case, options: Options, roots: int, *, sets: int, threads: int) -> int:
    """Search so many rows of each pool in both ways; return how many it were."""
    rules = Rules(case.game, case.flags)
    options = options if len(rules.roles) == 2 else replace(options, gamma_into=())
    search = fast(rules, options, roots, threads)
    for pool in case.pools(-(-roots // rules.rows), sets=sets):
        found = search.from_pool(pool, np.arange(roots))
        for root in range(roots):
            game, row = divmod(root, rules.rows)
            evaluate = fixed_evaluator(rules.actions)
            check(found, root, Worlds(pool.state_of(game), row, evaluate, options))
    return roots * sets


@pytest.mark.few(16)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_native_search_equals_the_slow_one(case: Case, variant: str) -> None:
    options = replace(VARIANTS[variant], playouts=20)
    check_case(case, options, 2, sets=2, threads=3 if options.noise else 1)


@pytest.mark.parametrize("playouts", [1, 2, 3])
def test_few_playouts_and_the_end_of_a_truncated_game(playouts: int) -> None:
    check_case(TRUNCATED, Options(playouts=playouts, gamma=0.5), 3, sets=3, threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_some_hundred_positions_of_each_game(case: Case) -> None:
    made = sum(check_case(case, options, 10, sets=8, threads=3) for options in VARIANTS.values())
    assert made >= 300


def test_threads_batches_and_single_states_change_nothing() -> None:
    case, options = CASES[5], Options(horizon=2, noise=True, playouts=600)
    (pool,) = case.pools(12, sets=1)
    one, three = (fast(pool.rules, options, 12, threads) for threads in (1, 3))
    by_one, by_three = (search.from_pool(pool, np.arange(12)) for search in (one, three))
    for name in ("action", "policy", "value", "visits", "q"):
        assert np.array_equal(getattr(by_one, name), getattr(by_three, name)), name
    alone = fast(pool.rules, options)
    for game in range(12):
        found = alone.from_state(pool.state_of(game))
        assert np.array_equal(found.policy[0], by_one.policy[game])
        assert found.action[0] == by_one.action[game]


@pytest.mark.parametrize(
    "game", ["kuhn_poker", "leduc_poker", "liars_dice", "goofspiel", "phantom_tic_tac_toe"]
)
def test_what_a_seat_does_not_see_changes_nothing(game: str) -> None:
    search, rng = fast(Rules(game), Options()), np.random.default_rng(1)
    for seed in range(6):
        state = new_state(game, seed=seed)
        moves = 0
        while not state.over and moves < seed:
            row = [int(rng.choice(state.legal(row))) for row in range(state.rules.rows)]
            state.apply(row if len(row) > 1 else row[0])
            moves += 1
        if state.over:
            continue
        found, same = search.from_state(state), state.clone()
        for again in range(3):
            assert same.resample_hidden(state.native.seat(0), again)
            assert np.array_equal(search.from_state(same).policy, found.policy)


def deal_all(game: str, count: int) -> list[State]:
    """Return the start of every deal."""
    starts = (new_state(game, seed=seed) for seed in itertools.count())
    found: dict[bytes, State] = {}
    while len(found) < count:
        state = next(starts)
        found.setdefault(state.fields()["cards"].tobytes(), state)
    return list(found.values())


Table = dict[bytes, np.ndarray]
"""Probabilities by row."""


def positions_of(starts: list[State], draw: Callable[[int], float]) -> Iterator[Any]:
    """Yield every position with the probability that the other seat plays its moves."""

    def walk(state: State, reach: tuple[float, float]) -> Iterator[Any]:
        if state.over:
            return
        yield state, reach[1 - state.seat]
        for action in state.legal():
            after = state.clone()
            after.apply(action)
            share = draw(hash((state.observe_bytes(state.seat).tobytes(), action)))
            mine = tuple(r * share if at == state.seat else r for at, r in enumerate(reach))
            yield from walk(after, mine)  # type: ignore[arg-type]

    for start in starts:
        yield from walk(start, (1.0, 1.0))


def information_states(game: str, deals: int) -> list[tuple[list[State], list[float]]]:
    """Return the worlds of every information state, with weights of an arbitrary policy."""
    found: dict[bytes, tuple[list[State], list[float]]] = {}
    draw = lambda key: float(np.random.default_rng(key % 2**32).uniform(0.1, 1))  # noqa: E731
    for state, weight in positions_of(deal_all(game, deals), draw):
        worlds, weights = found.setdefault(state.observe_bytes(state.seat).tobytes(), ([], []))
        worlds.append(state)
        weights.append(weight)
    return list(found.values())


def evaluator(table: Table) -> Any:
    def evaluate(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shares = np.array([table[row.tobytes()] for row in obs])
        with np.errstate(divide="ignore"):
            logits = np.maximum(np.log(shares), -1e4).astype(np.float32)
        return logits, np.zeros(len(obs), np.float32)

    return evaluate


def pure(state: State, rng: np.random.Generator) -> np.ndarray:
    shares = np.zeros(state.rules.actions)
    shares[rng.choice(state.legal())] = 1
    return shares


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("game", "deals", "every"), [("kuhn_poker", 6, 1), ("leduc_poker", 120, 3)]
)
def test_a_step_over_all_worlds_equals_a_tabular_one(game: str, deals: int, every: int) -> None:
    """Weighted by how the other seat came there, where the seats play on by pure strategies."""
    infos, rng = information_states(game, deals), np.random.default_rng(4)
    rules, table = Rules(game), {}
    for worlds, _ in infos:
        table[worlds[0].observe_bytes(worlds[0].seat).tobytes()] = pure(worlds[0], rng)
    options = SearchConfig(worlds=WorldsConfig(eta=0.3, alpha=0.2, caution=0, unit=2))
    for worlds, weights in infos[::every]:
        root, legal = worlds[0], worlds[0].legal()
        prior = rng.dirichlet(np.ones(len(legal)))
        shares = np.zeros(rules.actions)
        shares[legal] = prior
        mine = evaluator(table | {root.observe_bytes(root.seat).tobytes(): shares})
        search = Search(rules, mine, Budget(len(worlds) * len(legal)), config=options)
        found = search.from_worlds(worlds, weights)
        policy = lambda obs, _: [table[row.tobytes()] for row in obs]  # noqa: E731
        exact = [exact_returns(world, root.seat, policy) for world in worlds]
        q = np.array([np.average([one[a] for one in exact], weights=weights) for a in legal])
        np.testing.assert_allclose(found.q[0, legal], q, rtol=1e-6, atol=1e-6)
        step = mirror_step(prior, q, 0.3 / 2, 0.2 * 2)
        np.testing.assert_allclose(found.policy[0, legal], step, atol=1e-6)
        assert found.simulations[0] == len(worlds) * len(legal)


def test_pure_strategies_mixed_by_a_policy_have_the_returns_of_that_policy() -> None:
    """In Kuhn poker, where all that may follow a decision is a few pure strategies."""
    rng = np.random.default_rng(7)
    infos = information_states("kuhn_poker", 6)
    keys = [worlds[0].observe_bytes(worlds[0].seat).tobytes() for worlds, _ in infos]
    table = {key: rng.dirichlet((1, 1)) for key in keys}
    policy = lambda obs, _: [table[row.tobytes()] for row in obs]  # noqa: E731
    for (worlds, weights), key in list(zip(infos, keys, strict=True))[:6]:
        met: list[bytes] = sorted(rows_below(worlds) - {key})
        mixed = np.zeros(2)
        for choice in itertools.product((0, 1), repeat=len(met)):
            chance = np.prod([table[row][at] for row, at in zip(met, choice, strict=True)])
            strategy = {row: np.eye(2)[at] for row, at in zip(met, choice, strict=True)}
            mine = evaluator({**strategy, key: table[key]})
            search = Search(Rules("kuhn_poker"), mine, Budget(2 * len(worlds)))
            mixed += chance * search.from_worlds(worlds, weights).q[0]
        exact = [exact_returns(world, worlds[0].seat, policy) for world in worlds]
        q = [np.average([one[a] for one in exact], weights=weights) for a in (0, 1)]
        np.testing.assert_allclose(mixed, q, atol=1e-6)


def rows_below(worlds: list[State]) -> set[bytes]:
    found: set[bytes] = set()
    for world in worlds:
        for state, _ in positions_of([world], lambda _: 1.0):
            found.add(state.observe_bytes(state.seat).tobytes())
    return found


def test_a_search_by_time_counts_whole_worlds() -> None:
    rules, pool = Rules("skull_king"), Pool("skull_king", 1, seed=2)
    pool.reset()
    search = Search(rules, fixed_evaluator(rules.actions), Budget.parse("20ms"))
    found = search.from_pool(pool, np.zeros(1, np.intp))
    visits = found.visits[0]
    assert set(visits.tolist()) <= {0, visits.max()}
    assert found.simulations[0] == visits.sum()
    search.halted = True
    assert search.from_state(new_state("skull_king")).simulations[0] == 0


@pytest.mark.parametrize("budget", ["64/puct", "2s/gumbel"])
def test_rules_of_trees_mean_nothing_in_worlds(budget: str) -> None:
    with pytest.raises(ConfigError, match="hides cards, so no tree is grown by"):
        Search(Rules("kuhn_poker"), fixed_evaluator(2), Budget.parse(budget))


def test_worlds_in_which_another_seat_decides_are_refused() -> None:
    first, second = new_state("kuhn_poker"), new_state("kuhn_poker")
    second.apply(0)
    search = fast(first.rules, Options())
    with pytest.raises(ValueError, match="another seat decides in a world"):
        search.from_worlds([first, second])
    with pytest.raises(ValueError, match="a weight must be above 0"):
        search.from_worlds([first, first], [1.0, 0.0])
    other = new_state("leduc_poker")
    for action in (2, 2):  # raised twice: nobody may raise again
        other.apply(action)
    calm = new_state("leduc_poker")
    with pytest.raises(ValueError, match="other actions are legal in a world"):
        fast(calm.rules, Options()).from_worlds([calm, other])


def test_worlds_are_drawn_by_a_belief() -> None:
    state, rules = new_state("kuhn_poker", seed=0), Rules("kuhn_poker")
    assert "seat 0: Q" in str(state)

    def all_bet(obs: Any) -> Any:
        return np.tile(np.float32([0, 30]), (len(obs), 1)), np.zeros(len(obs), np.float32)

    def returns(belief: list[float] | None) -> list[float]:
        def believe(obs: Any) -> Any:
            return np.tile(np.float32(belief), (len(obs), 1))

        given: dict[str, Any] = {} if belief is None else {"believe": believe}
        search = Search(rules, all_bet, Budget(64), config=SearchConfig(), **given)
        return search.from_state(state).q[0].tolist()

    assert returns([0, -12, -12]) == [2, 2]  # a jack: both bet, and the queen wins
    assert returns([-12, -12, 0]) == [-2, -2]
    assert -2 < returns(None)[1] < 2


def test_a_policy_believes_what_its_head_predicts() -> None:
    rules = Rules("leduc_poker")
    usual = {"policy": rules.actions, "value": 1}
    of_before = {"hidden": 6}  # when the head had the table's card, too
    for extra in ({}, {"hidden": check_hidden(rules).width}, of_before):
        net = make_net(rules, NetConfig(hidden=(8,)), heads={**usual, **extra})
        policy = Policy(rules, net)
        believes = bool(extra) and extra is not of_before
        assert (policy.search().believe is not None) == believes
        uniform = SearchConfig(worlds=WorldsConfig(belief=False))
        assert policy.search(config=uniform).believe is None
    trees = Search(Rules("connect_four"), fixed_evaluator(7), Budget(4))
    with pytest.raises(ValueError, match="takes no belief"):
        trees.native.believe(np.zeros((1, 6), np.float32))
