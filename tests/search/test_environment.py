"""Search in custom environments against the native one, in games that exist on both sides."""

from __future__ import annotations

import copy
import threading
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv

import own_envs
from reference.search import fixed_evaluator
from sparring import ConfigError, Pool, Rules, new_state
from sparring.pools.custom import CustomRules, pool_of
from sparring.pools.custom.seats import TablePool
from sparring.search.budget import Budget
from sparring.search.environment import EnvironmentSearch
from sparring.search.search import Evaluate, Found, Search, SearchConfig

BUDGETS = ("1", "2", "7", "33", "64", "1/puct", "7/puct", "50/puct")


class Bundled(AECEnv):  # type: ignore[misc]
    """A bundled game for two as a custom environment; observations are the native bytes."""

    perfect_information = True
    zero_sum = True

    def __init__(self, game: str) -> None:
        super().__init__()
        self.metadata = {"name": f"own_{game}"}
        self.rules, self.state = Rules(game), new_state(game)
        self.possible_agents = ["first", "second"]
        self.sized = spaces.Box(0, 254, (self.rules.obs_bytes,), np.int16)

    def observation_space(self, agent: Any) -> Any:
        return self.sized

    def action_space(self, agent: Any) -> Any:
        return spaces.Discrete(self.rules.actions)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.state = new_state(self.rules.name)
        self.agents = list(self.possible_agents)
        for name in ("rewards", "_cumulative_rewards"):
            setattr(self, name, dict.fromkeys(self.agents, 0.0))
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.turn()

    def turn(self) -> None:
        mask = np.zeros(self.rules.actions, np.int8)
        if not self.state.over:
            self.agent_selection = self.agents[self.state.native.seat(0)]
            mask[self.state.legal()] = 1
        self.infos = {agent: {"action_mask": mask} for agent in self.agents}

    def observe(self, agent: Any) -> Any:
        return self.state.observe_bytes(self.possible_agents.index(agent)).astype(np.int16)

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[self.agent_selection] = 0.0
        self.state.apply(action)
        paid = self.state.rewards_by_role[:, 0].tolist()
        self.rewards = dict(zip(self.agents, paid, strict=True))
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(self.agents, self.state.over)
        self.turn()

    def clone(self) -> Bundled:
        """The native state is copied by its own method."""
        twin = copy.copy(self)
        twin.state = self.state.clone()
        for name, value in vars(self).items():
            if isinstance(value, dict | list):
                setattr(twin, name, copy.copy(value))
        return twin


def evaluator(rules: Rules) -> Evaluate:
    """The evaluator of the native game for rows of the custom one, which may be padded."""
    fixed = fixed_evaluator(rules.actions)
    return lambda rows: fixed(rows[:, : rules.obs_bytes])


def played(rules: Rules, envs: TablePool, games: Pool, plies: int) -> None:
    """Play the same random moves on both sides, in games that have not ended."""
    for _ in range(plies):
        action = games.sample_actions()
        envs.step(action)
        games.step(action)


@pytest.mark.few(6)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    "game", ["tic_tac_toe", pytest.param("connect_four", marks=pytest.mark.slow)]
)
def test_the_same_trees_as_in_the_native_game(game: str, budget: str) -> None:
    rules, count = Rules(game), 4
    envs = pool_of([Bundled(game) for _ in range(count)])
    games = Pool(game, count, seed=3, threads=1)
    envs.reset()
    games.reset()
    config = SearchConfig(prove=False)
    if budget == "33":
        config = SearchConfig(considered=5, width=4, gamma=0.97, prove=False)
    given: dict[str, Any] = {"budget": Budget.parse(budget), "trees": count, "config": config}
    slow = EnvironmentSearch(envs.rules, evaluator(rules), **given)
    native = Search(rules, evaluator(rules), **given)
    rows = np.arange(count)
    for _ in range(6):
        mine, theirs = slow.from_pool(envs, rows), native.from_pool(games, rows)
        check_equal(mine, theirs)
        assert slow.evaluated == native.evaluated
        for tree in range(count):
            assert slow.line(tree) == native.line(tree)
            check_edges(slow, native, tree)
        played(rules, envs, games, 1 if game == "tic_tac_toe" else 5)


def check_equal(mine: Found, theirs: Found) -> None:
    assert mine.visits.tolist() == theirs.visits.tolist()
    assert mine.action.tolist() == theirs.action.tolist()
    assert mine.simulations.tolist() == theirs.simulations.tolist()
    for name in ("q", "policy", "value"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), atol=1e-6)


def check_edges(mine: Search, theirs: Search, tree: int, node: int = 0) -> None:
    """All nodes below, by the order in which they were made."""
    ours, native = mine.edges(tree, node), theirs.edges(tree, node)
    assert [(a, v, c) for a, _, v, _, c in ours] == [(a, v, c) for a, _, v, _, c in native]
    for *_, child in ours:
        if child:
            check_edges(mine, theirs, tree, child)


class Line(gymnasium.Env[Any, Any]):
    """Walk to the right end of five fields, which pays 1; every step costs a little."""

    observation_space = spaces.Box(0, 1, (5,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.steps = 2, [0]
        return self.seen(), {}

    def seen(self) -> Any:
        return np.eye(5, dtype=np.float32)[self.at]

    def step(self, action: Any) -> Any:
        self.at = max(self.at + (1 if action else -1), 0)
        self.steps[0] += 1
        end = self.at == 4
        return self.seen(), float(end) - 0.01, end, self.steps[0] >= 20, {}


class Dice(Line):
    """A throw pays what it shows; the generator is Gymnasium's."""

    def step(self, action: Any) -> Any:
        self.steps[0] += 1
        thrown = float(self.np_random.integers(6)) if action else 2.6
        return self.seen(), thrown, True, False, {}


class Push(Line):
    """Continuous: a push of 0.5 is best."""

    action_space = spaces.Box(0, 1, (1,), np.float32)  # type: ignore[assignment]

    def step(self, action: Any) -> Any:
        return self.seen(), 1 - abs(float(action[0]) - 0.5), True, False, {}


def knows_nothing(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((len(rows), 2), np.float32), np.zeros(len(rows), np.float32)


def search_in(env: Any, budget: str = "32", **options: Any) -> tuple[EnvironmentSearch, TablePool]:
    pool = pool_of(env)
    pool.reset(0)
    evaluate = options.pop("evaluate", knows_nothing)
    return EnvironmentSearch(pool.rules, evaluate, Budget.parse(budget), **options), pool


@pytest.mark.parametrize("budget", ["16", "64/puct"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_environment_that_can_be_deep_copied(budget: str, wrapped: bool) -> None:
    env = gymnasium.wrappers.TimeLimit(Line(), 50) if wrapped else Line()
    search, pool = search_in([env], budget)
    before = copy.deepcopy(vars(pool.tables[0].env.unwrapped))
    found = search.from_pool(pool, np.array([0]))
    assert (found.action[0], search.line()[:2]) == (1, [1, 1])
    assert found.q[0, 1] > found.q[0, 0] + 0.1
    after = vars(pool.tables[0].env.unwrapped)
    assert (after["at"], after["steps"]) == (before["at"], before["steps"])
    assert pool.step([1]).obs[0].any()


def test_a_halted_search_answers_with_what_it_has() -> None:
    search, pool = search_in([Line()], "2s")
    search.halted = True
    found = search.from_pool(pool, np.array([0]))
    assert (found.simulations.tolist(), found.action.tolist()) == ([0], [0])


def test_a_truncated_game_counts_by_its_value() -> None:
    def sure(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(rows), 2), np.float32), np.full(len(rows), 7, np.float32)

    search, pool = search_in([gymnasium.wrappers.TimeLimit(Line(), 1)], "8", evaluate=sure)
    found = search.from_pool(pool, np.array([0]))
    assert found.q[0].tolist() == pytest.approx([6.99, 6.99])


def test_no_simulation_foresees_the_dice() -> None:
    """Of the copied generator, all simulations would see the same throw."""
    for seed in range(3):
        search, pool = search_in([Dice()], "200", seed=seed)
        found = search.from_pool(pool, np.array([0]))
        assert found.q[0, 1] == pytest.approx(2.5, abs=0.5)


def test_reseed_draws_what_a_copy_would_show() -> None:
    class Card(Line):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.card = 5
            return super().reset(seed=seed)

        def step(self, action: Any) -> Any:
            return self.seen(), float(self.card) if action else 2.6, True, False, {}

        def reseed(self, seed: int) -> None:
            self.card = int(np.random.default_rng(seed).integers(6))

    search, pool = search_in([Card()], "200")
    assert search.from_pool(pool, np.array([0])).q[0, 1] == pytest.approx(2.5, abs=0.5)
    assert pool.tables[0].env.card == 5


def test_continuous_actions_are_sampled() -> None:
    search, pool = search_in([Push()], "64", config=SearchConfig(c_scale=1.0))
    found = search.from_pool(pool, np.array([0]))
    assert found.numbers.shape == (1, 16, 1)
    assert found.numbers[0, 0] == 0  # the mean
    assert abs(found.action[0, 0]) < 0.3
    assert found.visits.sum() == 64


def test_noise_varies_the_actions_and_a_seed_repeats_them() -> None:
    def actions(seed: int) -> list[int]:
        search, pool = search_in([Line() for _ in range(16)], "1", seed=seed, noise=True)
        return search.from_pool(pool, np.arange(16)).action.tolist()

    assert actions(1) == actions(1) != actions(2)
    assert len(set(actions(1))) == 2


class Locked(Line):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class Cloned(Locked):
    def clone(self) -> Cloned:
        twin = Cloned()
        twin.at, twin.steps = self.at, list(self.steps)
        return twin


class Itself(Line):
    def clone(self) -> Itself:
        return self


class Shared(Line):
    """Ends after 20 steps, which its copies count together."""

    def clone(self) -> Shared:
        return copy.copy(self)

    def seen(self) -> Any:
        return np.full(5, self.steps[0] / 20, np.float32)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Locked, "search copies Locked, and copy.deepcopy fails: TypeError: cannot pickle"),
        (Itself, r"and its clone\(\) returns itself; offer clone\(\) in it"),
        (Shared, "two copies play differently after the same action"),
    ],
)
def test_what_cannot_be_copied_is_refused(kind: type[Line], reason: str) -> None:
    search, pool = search_in([kind()])
    with pytest.raises(ConfigError, match=reason):
        search.from_pool(pool, np.array([0]))


def test_clone_comes_before_deepcopy_also_below_wrappers() -> None:
    search, pool = search_in([gymnasium.wrappers.TimeLimit(Cloned(), 50)])
    assert search.from_pool(pool, np.array([0])).action.tolist() == [1]


def test_several_seats_declare_that_nothing_is_hidden() -> None:
    env = Bundled("tic_tac_toe")
    env.perfect_information = False
    with pytest.raises(ConfigError, match="declare it in the environment: perfect_information"):
        search_in([env])
    env.perfect_information, env.zero_sum = True, False
    search, pool = search_in([env], evaluate=fixed_evaluator(9))
    found = search.from_pool(pool, np.array([0]))
    assert (found.visits.sum(), search.evaluated) == (32, 2 * 33)  # both seats at every leaf
    assert CustomRules(**pool.rules.plain()).hides is False


def test_all_at_once_and_vectors_are_refused() -> None:
    pool = pool_of(own_envs.Hands())
    with pytest.raises(ConfigError, match="all agents decide at once"):
        EnvironmentSearch(pool.rules, knows_nothing, Budget(8))
    search, _ = search_in([Line()])
    vector = pool_of(gymnasium.vector.SyncVectorEnv([Line]))
    with pytest.raises(ConfigError, match="stepped by a vector or by workers"):
        search.from_pool(vector, np.array([0]))
