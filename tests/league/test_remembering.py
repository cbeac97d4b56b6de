"""What policies remember is carried through matches and single games, against slow loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from remembering import KINDS, remembering
from sparring import ConfigError, Lineup, Pool, Rules
from sparring.config.commands import EvalConfig
from sparring.games import shogi
from sparring.games.shogi.protocol import read_position, replay
from sparring.league.arena import evaluate, play_match
from sparring.league.cage2_challenge import score_repairs
from sparring.league.deals import choose_actions
from sparring.league.match_batch import MatchBatch, ReplayRecorder
from sparring.league.players import BatchPlayer, random_player
from sparring.league.usi.match import Opening, Referee
from sparring.league.usi.server import UsiServer
from sparring.nets.stateful_player import StatefulPlayer, max_memory_bytes

MEMORIES = ("gru", "stack")


# The policy itself


@pytest.mark.parametrize("kind", KINDS)
def test_what_decide_returns_is_what_the_next_decision_is_given(kind: str) -> None:
    policy = remembering("leduc_poker", kind)
    batch = Pool(policy.rules, 8, threads=1, memory=policy.memory_bytes).reset()
    obs, mask = batch.obs[:, : policy.rules.obs_bytes], batch.mask
    first, memory = policy.decide(obs, mask, policy.initial_memory(8), greedy=True)
    assert (first == policy.act(batch.obs, mask, greedy=True)).all()  # a pool's rows have it
    assert memory.shape == (8, policy.memory_bytes) and memory.any() == bool(kind)
    shares = [policy.probabilities(obs, mask, held) for held in (policy.initial_memory(8), memory)]
    assert np.allclose(*shares) != bool(kind)
    values = [policy.value(obs, mask, held) for held in (policy.initial_memory(8), memory)]
    assert np.allclose(*values) != bool(kind)


def test_rows_without_what_is_remembered_are_refused() -> None:
    policy = remembering("tic_tac_toe")
    batch = Pool("tic_tac_toe", 2, threads=1).reset()
    with pytest.raises(ConfigError, match=r"gru 0 has 32 bytes of .*decide\(obs, mask, memory"):
        policy.act(batch.obs, batch.mask)
    with pytest.raises(ConfigError, match=r"memory is uint8 \(3, 32\); gru 0 needs uint8 \(2, 32"):
        policy.decide(batch.obs, batch.mask, policy.initial_memory(3))
    with pytest.raises(ConfigError, match=r"which a state does not contain; use `StatefulPlayer"):
        policy.action(new_game("tic_tac_toe"))


def new_game(game: str) -> Any:
    pool = Pool(game, 1, threads=1)
    pool.reset()
    return pool.state_of(0)


# Matches


@pytest.mark.parametrize(
    ("game", "flags", "players"),
    [
        ("leduc_poker", {}, ("gru", "wide")),
        ("kuhhandel", {"max_decisions": 40}, ("stack", "", "gru")),
        pytest.param(
            *("laser_hockey_discrete", {"mode": "TRAIN_SHOOTING"}, ("gru", "stack")),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_match_is_a_loop_that_remembers_by_game_seat_and_episode(
    game: str, flags: dict[str, Any], players: tuple[str, ...]
) -> None:
    rules = Rules(game, flags)
    policies: dict[int, BatchPlayer] = {
        at: remembering(rules, kind, at) for at, kind in enumerate(players)
    }
    policies[len(players)] = random_player(rules)  # who remembers nothing and sees less
    size = max_memory_bytes(list(policies.values()))
    lineups = [Lineup((*range(rules.seats),)), Lineup((*range(1, rules.seats), len(players)))]
    pool = Pool(rules, 6, seed=4, threads=1, lineups=lineups, memory=size)
    tables = MatchBatch(pool, np.full(6, 1 << 20))
    held: dict[tuple[int, int, int], Any] = {}
    episode, begun = np.zeros(6, np.int64), 0
    for step in range(90):
        batch = tables.batch
        wanted = {}
        for number, policy in policies.items():
            mine = np.flatnonzero(batch.policy == number)
            if not len(mine):
                continue
            keys = [(r // rules.rows, batch.seat[r], episode[r // rules.rows]) for r in mine]
            begun += sum(key not in held for key in keys)
            nothing = np.zeros(policy.memory_bytes, np.uint8)
            memory = np.stack([held.get(key, nothing) for key in keys])
            how: dict[str, Any] = {"greedy": True, "seed": 4, "rollout": number, "step": step}
            obs = batch.obs[mine, : rules.obs_bytes]
            actions, after = policy.decide(obs, batch.mask[mine], memory, **how)
            wanted |= dict(zip(mine, actions, strict=True))
            held |= dict(zip(keys, after, strict=True))
        (action,) = choose_actions([tables], policies, greedy=True, step=step)
        assert all(action[row] == wanted[row] for row in wanted)
        tables.batch = pool.step(action)
        episode[tables.batch.final_game] += 1
    assert episode.sum() >= 6 and begun > 12
    assert any(np.any(memory) for memory in held.values())


@pytest.mark.parametrize("kind", ["gru", pytest.param("stack", marks=pytest.mark.slow)])
def test_a_game_alone_is_the_same_game_in_a_batch(kind: str) -> None:
    policy, recorder = remembering("kuhhandel", kind), ReplayRecorder(max_games=3)
    seats = [policy, "dealer", "random"]
    play_match(policy.rules, seats, games=3, seed=2, threads=1, recorder=recorder)
    assert len(recorder.replays) == 3 and not recorder.failed
    for game, seat in zip(recorder.replays, recorder.seats, strict=True):
        mind, asked = StatefulPlayer(policy), 0
        states = list(game.states())
        for state, (action,) in zip(states, game.actions, strict=False):
            if state.seat == seat:
                assert mind.action(state) == action
                asked += 1
        assert asked > 5


@pytest.mark.parametrize("kind", MEMORIES)
def test_whoever_evaluates_carries_it(kind: str) -> None:
    policy = remembering("leduc_poker", kind)
    results = evaluate(policy, ["solid", remembering("leduc_poker", "wide", 1)], games=40)
    assert [result.games for result in results.values()] == [40, 40]
    cage2 = remembering(Rules("cage2", {"max_steps": 10}), kind)
    assert score_repairs(cage2, cage2.rules, games=4, seed=0, threads=1)


@pytest.mark.parametrize("factory", ["make_cards", "make_table", "make_vector"])
def test_environments_of_ones_own_are_played_with_what_is_remembered(factory: str) -> None:
    """Given decision by decision: with another memory every policy would play other episodes."""
    pytest.importorskip("gymnasium")
    from sparring.pools.custom.cache import cached_pool

    rules: Any = cached_pool(f"own_envs:{factory}", 1).rules
    rules.factory = f"own_envs:{factory}"
    policy, calls = remembering(rules), []
    decide = policy.decide

    def noted(obs: Any, mask: Any, memory: Any, **how: Any) -> Any:
        action, after = decide(obs, mask, memory, **how)
        calls.append((memory, after))
        return action, after

    policy.decide = noted  # type: ignore[method-assign]
    result = play_match(rules, [policy] * rules.seats, games=4)
    known = {bytes(policy.memory_bytes)} | {after.tobytes() for _, rows in calls for after in rows}
    given = [held.tobytes() for rows, _ in calls for held in rows]
    assert set(given) <= known
    assert given.count(bytes(policy.memory_bytes)) == result.games * rules.seats


# Single games


def test_moves_that_are_forced_are_not_noticed_where_training_skipped_them() -> None:
    policy = remembering("kuhhandel")
    mind, state, noticed = StatefulPlayer(policy, skip_forced=True), new_game("kuhhandel"), 0
    for _ in range(40):
        before, choices = mind.memory_of(state.seat).tobytes(), len(state.legal())
        mind.observe(state)
        assert (mind.memory_of(state.seat).tobytes() != before) == (choices > 1)
        noticed += choices > 1
        state.apply(state.legal()[0])
    assert 0 < noticed < 40


OPENING = ["7g7f", "3c3d", "2g2f", "8c8d", "2f2e", "8d8e", "6i7h", "4a3b"]


def test_a_usi_engine_recalls_the_whole_game_however_it_is_told() -> None:
    policy = remembering("shogi")
    told: dict[int, list[str]] = {}
    server = UsiServer(policy, policy.rules)
    for plies in (0, 2, 4, 6, 8, 3, 5):  # as it goes on, then moves are taken back
        server.answer(f"position startpos moves {' '.join(OPENING[:plies])}")
        told[plies] = server.answer("go")
    for plies, answer in told.items():
        fresh = UsiServer(policy, policy.rules)
        fresh.answer(f"position startpos moves {' '.join(OPENING[:plies])}")
        assert fresh.answer("go") == answer
    mind, state = StatefulPlayer(policy), new_game("shogi")
    for ply, move in enumerate(OPENING):  # as the seats would have been asked
        if state.seat == 0 and ply in told:
            assert told[ply][-1] == f"bestmove {shogi.usi(state, mind.action(state))}"
        elif state.seat == 0:
            mind.observe(state)
        shogi.play(state, move)


def test_a_referee_begins_every_game_with_nothing_remembered() -> None:
    class Engine:
        """Plays the first legal move of the position that it is told."""

        name = "first"

        def new_game(self) -> None:
            pass

        def move(self, place: str, go: str, timeout_s: float) -> str:
            start, moves = read_position(place.split()[1:])
            return min(shogi.moves(replay(policy.rules, start, moves)))

    policy = remembering(Rules("shogi", {"max_plies": 16}))
    terms = EvalConfig("first", engine_timeout_s=1.0)
    engine: Any = Engine()
    opening = Opening(shogi.START, tuple(OPENING[:2]))
    referee = Referee(policy, engine, policy.rules, terms, skip_forced=False)
    first, second = (referee.play(opening, 1, 0).moves for _ in range(2))
    assert first == second and len(first) == 16
    mind, state = StatefulPlayer(policy), new_game("shogi")
    for ply, move in enumerate(first):
        if ply >= 2 and state.seat == 1:
            assert shogi.usi(state, mind.action(state)) == move
        shogi.play(state, move)
