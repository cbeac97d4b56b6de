"""A policy with a budget: the network evaluates, the search decides."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from reference.search import fixed_evaluator
from sparring import Agent, ConfigError, Policy, Pool, Rules, State, new_state, train
from sparring.config import NetConfig
from sparring.league.arena import play_match
from sparring.nets.heads import POLICY
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.levels import LEVELS
from sparring.nets.make import make_net
from sparring.nets.policy import BY_VALUE, VALUES
from sparring.nets.searching import discount_of, evaluator_of
from sparring.nets.stateful_player import StatefulPlayer
from sparring.search import search as trees
from sparring.search.budget import Budget

GAMES = ("tic_tac_toe", "connect_four")


def fresh(game: str = "tic_tac_toe", *, seed: int = 0, **meta: Any) -> Policy:
    torch.manual_seed(seed)
    rules = Rules(game)
    return Policy(rules, make_net(rules, NetConfig(hidden=(16,))), name="mine", meta=meta)


def remembering() -> Policy:
    rules = Rules("tic_tac_toe")
    net = make_net(rules, NetConfig(hidden=(16,), memory="gru", memory_width=8))
    return Policy(rules, net, name="mine")


def by_role() -> Policy:
    rules = Rules("skull_king")
    nets = {role: make_net(rules, NetConfig(hidden=(8,))) for role in rules.roles}
    return Policy(rules, HierarchyNet(rules, nets), name="mine")


def test_a_budget_is_part_of_the_name_and_leaves_the_policy_as_it_is() -> None:
    policy = fresh()
    searching = policy.searching(64)
    assert (searching.name, searching.net) == ("mine@64", policy.net)
    assert policy.budget is None
    assert policy.searching("800/puct").name == "mine@800/puct"
    assert policy.always(greedy=False).searching(16).name == "mine@sampled@16"


def test_search_sees_a_win_that_the_network_does_not() -> None:
    state = new_state("tic_tac_toe")
    for action in (0, 3, 1, 4):  # X wins with 2, O threatens 5
        state.apply(action)
    searching = fresh().searching(64)
    assert searching.action(state) == 2
    assert searching.act(state, greedy=True) == 2
    assert searching.act([state, state], greedy=True).tolist() == [2, 2]
    assert StatefulPlayer(searching).action(state) == 2
    search = searching.search()
    assert search.from_state(state).visits[0].argmax() == 2
    assert search.line()[0] == 2


def test_a_search_by_time_ends_with_a_move() -> None:
    searching, state = fresh().searching("1ms"), new_state("tic_tac_toe")
    assert searching.name == "mine@0.001s"
    assert searching.action(state) in state.legal()
    result = play_match(searching.rules, [searching, "careful"], games=2)
    assert result.games == 2


@pytest.mark.parametrize("by_state", [True, False])
@pytest.mark.parametrize(("seconds", "made"), [(1.0, 832), (0.03, 16), (0.005, 7)])
def test_halving_within_a_time_plans_its_simulations(
    by_state: bool, seconds: float, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A millisecond per row: 16 simulations and their root take 17, and 0.9 of the rest is planned.

    Where no more than 16 fit, the first search is the answer; it ends with the batch that is late.
    """
    clock = [0.0]
    monkeypatch.setattr(trees, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    exact = fixed_evaluator(7)

    def evaluate(obs: npt.NDArray[np.uint8]) -> Any:
        clock[0] += len(obs) / 1000
        return exact(obs)

    rules = Rules("connect_four")
    found = []
    for budget in (Budget(seconds=seconds, rule="gumbel"), Budget(made)):
        search = trees.Search(rules, evaluate, budget)
        pool = Pool(rules, 1, seed=0)
        pool.reset()
        started = clock[0]
        found.append(
            search.from_state(new_state(rules))
            if by_state
            else search.from_pool(pool, np.zeros(1, np.intp))
        )
        if budget.seconds:
            assert clock[0] - started < seconds + 0.007
    assert found[0].simulations == made
    assert np.array_equal(found[0].visits, found[1].visits)


def test_rows_alone_cannot_be_searched() -> None:
    searching = fresh().searching(8)
    obs, mask = new_state("tic_tac_toe").decision()
    with pytest.raises(ConfigError, match="observations are not positions; give states of tic_tac"):
        searching.act(obs, mask)


@pytest.mark.parametrize("game", GAMES)
def test_rows_of_a_pool_are_searched_as_their_states_are(game: str) -> None:
    searching = fresh(game).searching(12)
    pool = Pool(game, 6, seed=4, threads=2)
    pool.reset()
    for _ in range(3):
        batch = pool.step(pool.sample_actions())
    rows = np.array([4, 1, 5])
    acted, _ = searching.decide(
        batch.obs[rows], batch.mask[rows], greedy=True, roots=[(pool, rows)]
    )
    assert acted.tolist() == [searching.action(pool.state_of(row)) for row in rows.tolist()]


@pytest.mark.parametrize("greedy", [True, False])
def test_a_match_depends_on_its_seed_and_not_on_threads_or_batches(greedy: bool) -> None:
    searching, alone = fresh().searching(8), fresh(seed=1)
    rules = searching.rules

    def played(threads: int, parallel: int) -> list[int]:
        result = play_match(
            rules, [searching, alone], games=24, threads=threads, parallel=parallel, greedy=greedy
        )
        return result.record.action_hash.tolist()

    first = played(1, 24)
    assert first == played(2, 24)
    if greedy:
        assert len(set(first)) > 1  # random openings


def test_sampling_varies_the_moves_and_greedy_does_not() -> None:
    searching, state = fresh().searching(4), new_state("tic_tac_toe")
    assert len({searching.act(state, step=step) for step in range(12)}) > 1
    assert len({searching.act(state, step=step, greedy=True) for step in range(12)}) == 1
    calm = fresh().always(greedy=True).searching(4)
    assert len({calm.act(state, step=step) for step in range(12)}) == 1


def test_search_makes_a_fresh_network_stronger() -> None:
    policy = fresh()
    result = play_match(policy.rules, [policy.searching(32), policy], games=64)
    assert result.first.win_share > 0.6


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (by_role, "has a network for every role"),
        (lambda: fresh(**{BY_VALUE: True}), "has learned action values"),
        (lambda: fresh(**{VALUES: False}), "has no values"),
        (remembering, "has memory"),
    ],
)
def test_what_cannot_search_says_why(policy: object, told: str) -> None:
    assert callable(policy)
    with pytest.raises(ConfigError, match=told) as refused:
        policy().searching(8)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("budget", ["0", "-1", "x", "1.5", "0s", "64/alpha", ""])
def test_nonsense_is_no_budget(budget: str) -> None:
    with pytest.raises(ConfigError):
        fresh().searching(budget)


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "leduc_poker", "goofspiel"])
@pytest.mark.parametrize("budget", [8, "5ms"])
def test_hidden_cards_are_searched_by_number_and_by_time(game: str, budget: int | str) -> None:
    searching, state = fresh(game).searching(budget), new_state(game)
    action = searching.act(state)
    assert all(a in state.legal(row) for row, a in enumerate(np.atleast_1d(action)))
    with pytest.raises(ConfigError, match="so no tree is grown by puct; leave /puct out"):
        fresh(game).searching("64/puct")


def test_worlds_take_discounts_and_unit_from_the_training() -> None:
    config = {"algo": "ppo", "ppo": {"gamma": 0.99, "gamma_into": (0, 1)}}
    policy = fresh("skull_king", config=config)
    policy.net.value_scale.fill_(4.0)
    found = policy.search().config
    assert (found.gamma, found.gamma_into, found.worlds.unit) == (0.99, (0, 1), 4.0)


def test_more_than_memory_holds_is_refused_with_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparring.machine.free_memory", lambda: 2**26)
    with pytest.raises(ConfigError, match=r"search=1000000: .* at most \d+ simulations fit"):
        fresh("shogi").searching(1_000_000)
    with pytest.raises(ConfigError, match=r"search=1000000: 64 decisions .* at most \d+ simul"):
        fresh("skull_king").search(budget=Budget(1_000_000), trees=64)


def test_levels_go_from_free_drawing_to_search() -> None:
    policy, state = fresh(), new_state("tic_tac_toe")
    first, best, last = (policy.at_level(number) for number in (1, 4, 9))
    assert first.name == "mine@level1"
    assert len({first.act(state, step=step, greedy=True) for step in range(20)}) > 4
    assert best.act(state) == policy.act(state, greedy=True)
    assert last.budget
    assert last.budget.simulations == LEVELS[9].simulations
    with pytest.raises(ConfigError, match=r"level 10 is outside 1\.\.9"):
        policy.at_level(10)
    with pytest.raises(ConfigError, match="no probabilities to sample from"):
        fresh(**{BY_VALUE: True}).at_level(2)


def test_a_finished_game_has_nothing_to_search() -> None:
    state: State = new_state("tic_tac_toe")
    for action in (0, 3, 1, 4, 2):
        state.apply(action)
    with pytest.raises(ConfigError, match="is over"):
        fresh().searching(8).act(state)


def test_the_discount_is_that_of_the_training() -> None:
    assert discount_of({}) == 1.0
    assert discount_of({"config": {"algo": "ppo", "ppo": {"gamma": 0.99}}}) == 0.99
    assert discount_of({"config": {"algo": "ppo", "ppo": {"gamma": "0%:0.9,100%:0.95"}}}) == 0.95
    assert discount_of({"config": {"algo": "my:learner", "my:learner": 3}}) == 1.0


def test_an_agent_searches_states_and_says_that_observations_are_none(tmp_path: Path) -> None:
    agent = Agent(fresh(), tmp_path, "done").searching(8)
    state = new_state("tic_tac_toe")
    assert agent.act(state) in state.legal()
    assert agent.policy.name == "mine@8"
    with pytest.raises(ConfigError, match="observations are not positions"):
        agent.predict(state.observe(0))
    assert agent.evaluate("careful", games=4)["careful"].games == 4


def test_a_learner_trains_against_a_search(tmp_path: Path) -> None:
    def weights(threads: int, **collect: int) -> bytes:
        agent = train(
            "tic_tac_toe",
            opponents=[fresh().searching(4)],
            updates=2,
            quiet=True,
            threads=threads,
            runs=str(tmp_path),
            name=f"{threads}-{len(collect)}",
            eval={"off": True},
            collect={"games": 16, "steps": 8, **collect},
            net={"hidden": (8,)},
            tensorboard=False,
        )
        state = agent.policy.net.state_dict()
        return b"".join(tensor.numpy().tobytes() for tensor in state.values())

    assert weights(1) == weights(2)
    with pytest.raises(ConfigError, match="mine@4 searches in games that stand still"):
        weights(1, groups=4)


@pytest.mark.parametrize("game", GAMES)
def test_native_passes_of_a_search_are_those_of_the_network(game: str) -> None:
    policy, pool = fresh(game), Pool(game, 64, seed=2)
    rows = pool.reset().obs
    head, value = evaluator_of(policy)(rows)
    slow = policy.heads(rows)
    np.testing.assert_allclose(head, slow[POLICY], atol=1e-5)
    np.testing.assert_allclose(value, policy.value(rows), atol=1e-5)


def test_trees_that_are_used_again_decide_as_new_ones() -> None:
    pool, policy = Pool("connect_four", 32, seed=2), fresh("connect_four")
    kept, batch = policy.searching(16), pool.reset()
    for step in range(6):
        rows = np.arange(len(batch.obs))[step:]  # fewer and fewer games
        options: dict[str, Any] = {"step": step, "roots": [(pool, rows)]}
        mine, _ = kept.decide(batch.obs[rows], batch.mask[rows], **options)
        new, _ = (
            fresh("connect_four").searching(16).decide(batch.obs[rows], batch.mask[rows], **options)
        )
        assert mine.tolist() == new.tolist()
        batch = pool.step(pool.sample_actions())


def test_a_policy_that_searched_is_released() -> None:
    policy = fresh().searching(4)
    policy.action(new_state("tic_tac_toe"))
    pool = Pool("tic_tac_toe", 4)
    batch = pool.reset()
    policy.decide(batch.obs, batch.mask, roots=[(pool, np.arange(4))])
    net = weakref.ref(policy.net)
    del policy
    gc.collect()
    assert net() is None
