"""Policies, functions and factories in the other seats, against games played by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sparring
from envs.helpers import choose, choose_all, needs_duel
from sparring import ConfigError, IllegalActionError, Policy, Rules, State
from sparring.config import NetConfig
from sparring.envs.gymnasium import SparringEnv, SparringVectorEnv
from sparring.envs.opponents import LocalGame
from sparring.envs.pettingzoo import aec_env, parallel_env
from sparring.envs.sb3 import SparringVecEnv
from sparring.nets.mlp import Perceptron
from sparring.store.policies import save_policy

GAMES = [
    ("tic_tac_toe", {}),
    ("skull_king", {"rounds": [1, 2]}),
    ("kuhhandel", {"max_decisions": 60}),  # cut, often where another is to decide
    ("laser_hockey_discrete", {"mode": "TRAIN_SHOOTING"}),
    pytest.param("duel", {}, marks=needs_duel),
]
each_game = pytest.mark.parametrize(("game", "flags"), GAMES)


def fresh(game: str, seed: int = 0, **flags: Any) -> Policy:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rules = Rules(game, flags)
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.normal_(net.policy_head.weight)
    return Policy(rules, net, name=f"policy {seed}")


def lowest(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mask.argmax(axis=1)


def any_legal(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(mask.shape) * mask).argmax(axis=1)


def play_on(state: State, learner: int, policy: Policy, action: Any = None) -> float:
    """Play one game by hand: the learner's action, then the policy's until the learner is due."""
    paid = 0.0
    while not state.over and (action is not None or learner not in state.seats_to_act):
        rows: list[Any] = []
        for row in range(state.rules.rows):
            seat = state.native.seat(row)
            if seat < 0:
                rows.append(0)
            elif seat == learner:
                rows.append(action)
            else:
                rows.append(policy.action(state, row=row, greedy=True))
        state.apply(np.array(rows))
        paid += float(state.rewards[learner])
        action = None
    return paid


@each_game
def test_a_game_is_the_one_that_is_played_by_hand(game: str, flags: dict[str, Any]) -> None:
    policy = fresh(game, **flags)
    env = SparringEnv(policy.rules, opponents=policy.always(greedy=True))
    cut = 0
    for seed in range(3):
        obs, info = env.reset(seed=seed)
        learner = info["seat"]
        state = sparring.new_state(policy.rules, seed=seed)
        owed = play_on(state, learner, policy)
        over = False
        while not over:
            np.testing.assert_array_equal(obs, state.observe(learner))
            action = choose(env.rules, obs, info.get("action_mask"))
            owed += play_on(state, learner, policy, action)
            obs, reward, terminated, truncated, info = env.step(action)
            assert reward == pytest.approx(owed, abs=1e-6)
            assert (terminated, truncated) == (state.terminated, state.truncated)
            over, owed = terminated or truncated, 0.0
        np.testing.assert_array_equal(obs, state.observe(learner))
        assert (list(info["scores"]), info["end"]) == (state.scores, state.end)
        cut += truncated
    assert cut or "max_decisions" not in flags


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.DISABLED,
        AutoresetMode.SAME_STEP,
        pytest.param(AutoresetMode.NEXT_STEP, marks=pytest.mark.slow),
    ],
    ids=lambda mode: mode.value,
)
@each_game
def test_many_games_are_the_single_ones(
    game: str, flags: dict[str, Any], mode: AutoresetMode
) -> None:
    """Two policies that draw, and a bot where there are seats for it: batched or one by one."""
    policies = [fresh(game, seed, **flags) for seed in range(2)]
    rules = policies[0].rules
    others: list[Any] = [*policies, *["random"] * 9][: rules.seats - 1]
    options: dict[str, Any] = {"opponents": others, "seed": 3}
    fast = SparringVectorEnv(rules, 4, autoreset_mode=mode, **options)
    makers = [lambda i=i: SparringEnv(rules, first_game=i, **options) for i in range(4)]
    slow = SyncVectorEnv(makers, autoreset_mode=mode)
    obs, info = fast.reset(seed=3)
    assert data_equivalence((obs, info), slow.reset(seed=[3] * 4), exact=True)
    ends, exact = 0, not rules.box  # networks answer batches with other roundings
    for step in range(24):
        actions = choose_all(rules, obs, info)
        told = fast.step(actions)
        assert data_equivalence(told, slow.step(actions), exact=exact), f"step {step}"
        obs, _, terminated, truncated, info = told
        over = terminated | truncated
        ends += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            obs, told_info = fast.reset(options={"reset_mask": over})
            expected = slow.reset(options={"reset_mask": over})
            assert data_equivalence((obs, told_info), expected, exact=exact)
            for key in told_info:
                info[key][over] = told_info[key][over]
    assert ends or rules.rows > 1


@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four", "laser_hockey_discrete"])
def test_an_opponent_that_searches_looks_ahead_from_its_position(game: str) -> None:
    policy = fresh(game).searching(6)
    greedy = policy.always(greedy=True)
    env = SparringEnv(policy.rules, opponents=greedy)
    obs, info = env.reset(seed=1)
    state = sparring.new_state(policy.rules, seed=1)
    if not policy.rules.chance:
        play_on(state, info["seat"], policy)
    for _ in range(3):
        action = choose(env.rules, obs, info.get("action_mask"))
        obs, *_, info = env.step(action)
        if not policy.rules.chance:  # there the search draws by the seed
            play_on(state, info["seat"], policy, action)
            np.testing.assert_array_equal(obs, state.observe(info["seat"]))
    fast = SparringVectorEnv(policy.rules, 4, opponents=policy, seed=3)
    single = SparringEnv(policy.rules, opponents=policy, seed=3, first_game=2)
    obs, info = fast.reset(seed=3)
    one, _ = single.reset(seed=3)
    np.testing.assert_array_equal(obs[2], one)
    actions = choose_all(policy.rules, obs, info)
    np.testing.assert_array_equal(fast.step(actions)[0][2], single.step(actions[2])[0])


def test_a_policy_is_asked_for_all_games_at_once() -> None:
    asked: list[int] = []

    def counted(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        asked.append(len(obs))
        return any_legal(obs, mask, rng)

    env = SparringVectorEnv("skull_king", 32, opponents=counted)
    obs, info = env.reset(seed=1)
    for _ in range(20):
        obs, *_, info = env.step(choose_all(env.rules, obs, info))
    assert np.mean(asked) > 8


def test_tables_are_drawn_by_weight_and_seats_by_lot() -> None:
    asked: list[int] = []

    def counted(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        asked.append(len(obs))
        return lowest(obs, mask, rng)

    env = SparringEnv("tic_tac_toe", opponents=["random=1", (counted, 3)], seed=5)
    sat: Counter[tuple[int, bool]] = Counter()
    for _ in range(600):
        _, info = env.reset()
        env.step(info["action_mask"].argmax())  # whoever sits there has moved by now
        sat[info["seat"], bool(asked)] += 1
        asked.clear()
    for seat in range(2):  # 300 +- 12 games, of which 225 +- 11 with the function
        assert abs(sat[seat, True] - 225) < 45
        assert abs(sat[seat, False] - 75) < 36


def test_a_factory_is_called_at_every_reset_and_nobody_changes_seats_in_a_game() -> None:
    games: list[LocalGame] = []
    played: defaultdict[int, set[tuple[int, str]]] = defaultdict(set)
    tables: Counter[tuple[str, ...]] = Counter()

    def factory(seats: int, game: LocalGame) -> list[Any]:
        assert seats == 3
        games.append(game)
        number = len(games)

        def player(name: str) -> Any:
            def act(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
                assert len(obs) == 1, "a function of one episode sees that episode alone"
                played[number].add((game.position().seat, name))
                return any_legal(obs, mask, rng)

            return act

        return [player("a"), player("b"), "captain"]

    env = SparringEnv("skull_king", opponents=factory, config={"rounds": [1]})
    for _ in range(30):
        _, info = env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(info["action_mask"].argmax())
            over = terminated or truncated
    assert len(games) == 30
    assert all(game.rules.name == "skull_king" and game.index == 0 for game in games)
    for found in played.values():
        assert len({seat for seat, _ in found}) == len({name for _, name in found}) == 2
        tables[tuple(name for _, name in sorted(found))] += 1
    assert len(tables) == 2, "seats are shuffled"


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_a_factory_serves_many_games(mode: AutoresetMode) -> None:
    made: Counter[int] = Counter()

    def factory(seats: int, game: LocalGame) -> Any:
        made[game.index] += 1
        return lowest if made[game.index] % 2 else "careful"

    env = SparringVectorEnv("tic_tac_toe", 3, opponents=factory, autoreset_mode=mode)
    obs, info = env.reset(seed=1)
    begun = np.ones(3, int)
    over = np.zeros(3, bool)
    for _ in range(30):
        begun += over if mode is AutoresetMode.NEXT_STEP else 0
        obs, _, terminated, truncated, info = env.step(choose_all(env.rules, obs, info))
        over = terminated | truncated
        if mode is AutoresetMode.SAME_STEP:
            begun += over
        elif mode is AutoresetMode.DISABLED and over.any():
            begun += over
            obs, fresh_info = env.reset(options={"reset_mask": over})
            info["action_mask"][over] = fresh_info["action_mask"][over]
    # A game that ends before its learner is asked is followed by another; here that cannot be.
    assert [made[i] for i in range(3)] == begun.tolist()
    assert len(env._seats._opponents.seated) <= 1, "who left is forgotten"


def test_runs_folders_and_agents_sit_down(tmp_path: Path) -> None:
    policy = fresh("tic_tac_toe")
    path = str(save_policy(policy, tmp_path / "p"))
    told = []
    for opponent in (path, policy, sparring.Agent(policy, tmp_path, "done")):
        env = SparringEnv("tic_tac_toe", opponents=opponent)
        story = []
        for seed in range(4):
            obs, info = env.reset(seed=seed)
            over = False
            while not over:
                obs, reward, over, _, info = env.step(info["action_mask"].argmax())
                story.append((obs.tobytes(), reward))
        told.append(story)
    assert told[0] == told[1] == told[2]


def test_sb3_meets_policies_too() -> None:
    env = SparringVecEnv("tic_tac_toe", 4, opponents=fresh("tic_tac_toe"), seed=1)
    env.reset()
    ended = 0
    for _ in range(20):
        _, reward, done, infos = env.step(env.action_masks().argmax(axis=1))
        for i in np.flatnonzero(done):
            assert infos[i]["episode"]["r"] == reward[i] == infos[i]["score"]
            ended += 1
    assert ended > 4


def test_the_end_is_shown_where_a_policy_moved_last() -> None:
    env = SparringEnv("tic_tac_toe", opponents=lowest, render_mode="ansi")
    lost = 0
    for seed in range(8):
        obs, info = env.reset(seed=seed)
        over, reward = False, 0.0
        while not over:
            legal = np.flatnonzero(info["action_mask"])
            obs, reward, over, _, info = env.step(legal[-1])
        text = env.render()
        lost += reward < 0
        for mark, seat in (("X", 0), ("O", 1)):
            mine = obs[:9] if info["seat"] == seat else obs[9:18]
            assert text.count(mark) == mine.sum()
    assert lost


@pytest.mark.parametrize(
    ("opponents", "told"),
    [
        ("self", "2 seats are self, and this environment has one learner"),
        ("past", "past exists only in a training run"),
        ("carefull", "did you mean 'careful'"),
        (7, "7 is no player"),
        (lambda obs: obs, "takes 1 arguments; a player takes (obs, mask, rng), a player factory"),
        ([], "names 0 of the 2 seats"),
        (["careful=0", "random"], "must be above 0"),
    ],
)
def test_who_cannot_sit_there_is_refused_in_words(opponents: object, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        SparringEnv("tic_tac_toe", opponents=opponents)
    assert told in str(refused.value)
    with pytest.raises(ConfigError, match="plays tic_tac_toe, not skull_king"):
        SparringEnv("skull_king", opponents=fresh("tic_tac_toe"))


def test_a_function_that_breaks_the_rules_is_named() -> None:
    def always_first(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(len(obs), int)

    env = SparringVectorEnv("tic_tac_toe", 8, opponents=always_first)
    with pytest.raises(IllegalActionError, match="always_first, row 0: action 0 is not legal"):
        _, info = env.reset(seed=1)
        for _ in range(3):
            *_, info = env.step(info["action_mask"].argmax(axis=1))


def test_pettingzoo_asks_for_the_seats_of_self_alone() -> None:
    """Two seats are ours, a greedy policy and a bot have the others: as played by hand."""
    policy = fresh("skull_king", rounds=[1, 2]).always(greedy=True)
    env = aec_env(policy.rules, opponents=["self", policy, "self", "captain"])
    seats = set()
    for seed in range(6):
        env.reset(seed=seed)
        mine = [int(agent.removeprefix("seat_")) for agent in env.agents]
        assert len(mine) == 2
        seats.update(mine)
        others = [seat for seat in range(4) if seat not in mine]
        total = dict.fromkeys(env.agents, 0.0)
        moves = []
        for agent in env.agent_iter():
            obs, reward, terminated, truncated, info = env.last()
            total[agent] += reward
            if terminated or truncated:
                env.step(None)
                continue
            moves.append(int(obs["action_mask"].argmax()))
            env.step(moves[-1])
        # One of the two ways to seat policy and bot is the game that was played.
        stories = [
            by_hand(seed, mine, dict(zip(others, who, strict=True)), list(moves), policy)
            for who in ((policy, "captain"), ("captain", policy))
        ]
        assert (info["scores"], total) in stories
    assert seats == {0, 1, 2, 3}


def by_hand(
    seed: int, mine: list[int], others: dict[int, Any], moves: list[int], policy: Policy
) -> tuple[list[float], dict[str, float]] | None:
    """Return scores and payments of a game with these moves of ours, None if they do not fit."""
    state = sparring.new_state(policy.rules, seed=seed)
    paid = np.zeros(4)
    while not state.over:
        player = others.get(state.seat)
        if player is None:
            if not moves or moves[0] not in state.legal():
                return None
            action = moves.pop(0)
        else:
            action = state.ask(player) if isinstance(player, str) else player.action(state)
        state.apply(action)
        paid += state.rewards
    return state.scores, {f"seat_{seat}": float(paid[seat]) for seat in mine}


def test_pettingzoo_plays_at_once_against_a_policy() -> None:
    policy = fresh("laser_hockey_discrete")
    env = parallel_env("laser_hockey_discrete", opponents=policy)
    seats: Counter[str] = Counter()
    for seed in range(8):
        obs, _ = env.reset(seed=seed)
        (agent,) = env.agents
        assert list(obs) == [agent]
        seats[agent] += 1
        for _ in range(3):
            obs, reward, _, _, info = env.step({agent: 0})
            assert list(obs) == list(reward) == list(info) == [agent]
    assert len(seats) == 2


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_an_illegal_action_is_refused_before_any_game_moves(mode: AutoresetMode) -> None:
    env = SparringVectorEnv("tic_tac_toe", 4, opponents=lowest, autoreset_mode=mode)
    _, info = env.reset(seed=1)
    legal = info["action_mask"].argmax(axis=1)
    before = [env._seats.position(game).text() for game in range(4)]
    for wrong in (9, 2**40, -5):
        actions = legal.copy()
        actions[2] = wrong
        with pytest.raises(IllegalActionError, match=f"game 2, .* action {min(wrong, 2**31 - 1)}"):
            env.step(actions)
    assert [env._seats.position(game).text() for game in range(4)] == before
    env.step(legal)
