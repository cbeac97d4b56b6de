"""The native transitions against plain float64 Python."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import sparring
from sparring.learn.transitions import NOT_A_SAMPLE, Transitions

GAMMA, LAMBDA = 0.9, 0.8
TABLES = [
    ("tic_tac_toe", {}, (0, 0), False),
    ("tic_tac_toe", {}, (0, "random"), False),
    ("shogi", {"max_plies": 60}, (0, 0), False),
    ("skull_king", {"rounds": [1, 2, 3]}, (0, 0, 0, 0), False),
    ("skull_king", {"rounds": [1, 2], "skip_forced": 1}, (0, "captain", 0, 1), False),
    ("skull_king", {"rounds": [1, 2, 3]}, (0, 0, "random", 0), True),
    ("duel", {"limit": 5}, (0, 0), False),
    ("duel", {"limit": 5}, (0, "pusher"), True),
]


@dataclass
class Recorded:
    """A long rollout with made-up values."""

    rules: sparring.Rules
    steps: int
    games: int
    arrays: dict[str, Any] = field(default_factory=dict)


def record(game: str, config: dict[str, Any], members: tuple[Any, ...], steps: int) -> Recorded:
    """Play random games; nobody writes into what is kept."""
    return recorded(game, tuple(sorted((k, str(v)) for k, v in config.items())), members, steps)


@functools.cache
def recorded(
    game: str, config: tuple[tuple[str, str], ...], members: tuple[Any, ...], steps: int
) -> Recorded:
    rules = sparring.Rules(game, {name: json.loads(word) for name, word in config})
    rewards = {part: [0.5 + i, 1.5 - i][: len(rules.roles)] for i, part in enumerate(rules.parts)}
    pool = sparring.Pool(
        rules, 6, seed=3, threads=1, lineups=[sparring.Lineup(members)], rewards=rewards
    )
    batch = pool.reset()
    rng = np.random.default_rng(0)
    names = ("seat", "role", "policy", "value", "rho", "trace")
    kept: dict[str, list[Any]] = {name: [] for name in names}
    for name in ("reward", "terminated", "truncated", "final_value", "skipped"):
        kept[name] = []
    for _ in range(steps):
        for name in ("seat", "role", "policy"):
            kept[name].append(getattr(batch, name).copy())
        kept["value"].append(rng.normal(size=len(batch.seat)).astype(np.float32))
        ratio = np.exp(rng.normal(size=len(batch.seat)))  # how much likelier it would be now
        kept["rho"].append(np.minimum(ratio, 1.2).astype(np.float32))
        kept["trace"].append(np.minimum(ratio, 0.9).astype(np.float32))
        batch = pool.step(pool.sample_actions())
        for name in ("reward", "terminated", "truncated", "skipped"):
            kept[name].append(getattr(batch, name).copy())
        final = np.full((6, rules.seats), np.nan, np.float32)
        # After a cut one seat's value is known and the other's is not.
        final[batch.truncated, 0] = rng.normal(size=int(batch.truncated.sum()))
        kept["final_value"].append(final)
    arrays = {name: np.stack(rows) for name, rows in kept.items()}
    return Recorded(rules, steps, 6, arrays)


def slow_transitions(rec: Recorded, by_role: bool) -> dict[tuple[int, int], dict[str, Any]]:
    """Every learner decision (step, row) with its reward, discount, end and successor."""
    a, rules = rec.arrays, rec.rules
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for game in range(rec.games):
        waiting: dict[tuple[int, int], tuple[int, int]] = {}
        for step in range(rec.steps):
            for row in range(game * rules.rows, (game + 1) * rules.rows):
                if a["policy"][step, row] != 0:
                    continue
                key = (int(a["seat"][step, row]), int(a["role"][step, row]) if by_role else 0)
                if key in waiting:
                    found[waiting[key]].update(end="next", next=(step, row))
                waiting[key] = (step, row)
                role = int(a["role"][step, row])
                found[step, row] = {"paid": 0.0, "role": role, "count": 1, "end": "open"}
            for key, at in waiting.items():
                found[at]["paid"] += float(a["reward"][step, game, key[0], found[at]["role"]])
                found[at]["count"] += int(a["skipped"][step, game, key[0]])
                if a["terminated"][step, game]:
                    found[at]["end"] = "terminated"
                elif a["truncated"][step, game]:
                    tail = float(a["final_value"][step, game, key[0]])
                    found[at].update(end="dropped" if np.isnan(tail) else "cut", tail=tail)
            if a["terminated"][step, game] or a["truncated"][step, game]:
                waiting = {}
    return found


def slow_completed(
    rec: Recorded, found: dict[tuple[int, int], dict[str, Any]], horizon: int
) -> dict[tuple[int, int], int]:
    """In which rollout every decision is completed, when rollouts end every `horizon` steps."""
    completed: dict[tuple[int, int], int] = {}
    for at, t in found.items():
        if t["end"] == "next":
            completed[at] = t["next"][0] // horizon
        elif t["end"] in ("terminated", "cut"):
            completed[at] = last_step(rec, at) // horizon
    return completed


def slow_advantages(
    rec: Recorded, by_role: bool, lam: float, horizon: int
) -> dict[tuple[int, int], float]:
    """Advantages when rollouts end every `horizon` steps.

    A decision is learned from in the rollout in which it is completed; the sum goes on only
    through decisions that are completed in the same one.
    """
    found = slow_transitions(rec, by_role)
    value = rec.arrays["value"].astype(np.float64)
    completed = slow_completed(rec, found, horizon)
    result: dict[tuple[int, int], float] = {}
    for at in sorted(completed, reverse=True):
        t = found[at]
        discount = GAMMA ** t["count"]
        advantage = t["paid"] - value[at]
        if t["end"] == "next":
            advantage += discount * value[t["next"]]
            if completed.get(t["next"]) == completed[at]:
                advantage += discount * lam * result[t["next"]]
        elif t["end"] == "cut":
            advantage += discount * t["tail"]
        result[at] = advantage
    return result


def slow_vtrace(
    rec: Recorded, by_role: bool, lam: float, horizon: int
) -> dict[tuple[int, int], float]:
    """v - V by the sum of Espeholt et al. 2018, section 4.1, with a discount for every step:

    v_s = V_s + sum_t (prod_i<t gamma_i c_i) rho_t (r_t + gamma_t V_t+1 - V_t); c has lambda in it,
    as in their remark 2.
    """
    found = slow_transitions(rec, by_role)
    arrays = {name: rec.arrays[name].astype(np.float64) for name in ("value", "rho", "trace")}
    value, rho, trace = arrays["value"], arrays["rho"], arrays["trace"]
    completed = slow_completed(rec, found, horizon)
    result: dict[tuple[int, int], float] = {}
    for start in completed:
        terms, weight, at = [], 1.0, start
        while completed.get(at) == completed[start]:
            t = found[at]
            discount = GAMMA ** t["count"]
            after = {"next": 0.0, "terminated": 0.0, "cut": t.get("tail", 0.0)}[t["end"]]
            if t["end"] == "next":
                after = value[t["next"]]
            terms.append(weight * rho[at] * (t["paid"] + discount * after - value[at]))
            if t["end"] != "next":
                break
            weight *= discount * lam * trace[at]
            at = t["next"]
        result[start] = math.fsum(terms)
    return result


def last_step(rec: Recorded, at: tuple[int, int]) -> int:
    game = at[1] // rec.rules.rows
    over = rec.arrays["terminated"][:, game] | rec.arrays["truncated"][:, game]
    return int(at[0] + np.argmax(over[at[0] :]))


def native_advantages(
    rec: Recorded, by_role: bool, lam: float, horizon: int, *, weighted: bool = False
) -> dict[tuple[int, int], float]:
    """Run the transitions rollout by rollout, carrying open decisions over.

    weighted: with importance weights, all of which are 1 otherwise or left out.
    """
    transitions = Transitions(rec.rules, rec.games, horizon, by_role=by_role)
    where = np.full((transitions.places, 2), -1)
    columns = {name: np.zeros(transitions.places, np.float32) for name in ("value", "rho", "trace")}
    result: dict[tuple[int, int], float] = {}
    rows = rec.games * rec.rules.rows
    for start in range(0, rec.steps, horizon):
        part = {name: array[start : start + horizon] for name, array in rec.arrays.items()}
        steps, numbers = np.divmod(np.arange(horizon * rows), rows)
        where[transitions.max_pending :] = np.stack([start + steps, numbers], axis=1)
        for name, column in columns.items():
            column[transitions.max_pending :] = part.pop(name).ravel()
        transitions.link(**part, gamma=GAMMA)
        given = {name: columns[name] for name in ("rho", "trace") if weighted}
        advantage = transitions.advantages(columns["value"], lam, **given)
        if not weighted:
            ones = np.ones(transitions.places, np.float32)
            same = transitions.advantages(columns["value"], lam, rho=ones, trace=ones)
            assert same.tobytes() == advantage.tobytes()
        for place in transitions.samples():
            at = (int(where[place, 0]), int(where[place, 1]))
            assert at not in result, "a decision was learned from twice"
            result[at] = float(advantage[place])
        pending_rows = transitions.pending_rows()
        kept = pending_rows >= 0
        for column in (where, *columns.values()):
            column[: transitions.max_pending][kept] = column[pending_rows[kept]]
    return result


def check_close(got: dict[tuple[int, int], float], expected: dict[tuple[int, int], float]) -> None:
    wrong = [at for at, value in expected.items() if not abs(got[at] - value) <= 2e-4]
    assert not wrong, {at: (got[at], expected[at]) for at in wrong[:5]}


@pytest.mark.parametrize(
    ("horizon", "lam"),
    [
        (7, 0.0),
        (700, LAMBDA),
        pytest.param(7, LAMBDA, marks=pytest.mark.slow),
        pytest.param(700, 0.0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("game", "config", "members", "by_role"), TABLES)
def test_equal_to_the_slow_reference(
    game: str,
    config: dict[str, Any],
    members: tuple[Any, ...],
    by_role: bool,
    horizon: int,
    lam: float,
) -> None:
    rec = record(game, config, members, 700)
    expected = slow_advantages(rec, by_role, lam, horizon)
    got = native_advantages(rec, by_role, lam, horizon)
    assert got.keys() == expected.keys()
    assert len(got) > 200
    check_close(got, expected)


@pytest.mark.parametrize(
    ("horizon", "lam"),
    [
        (7, 1.0),
        (700, LAMBDA),
        pytest.param(7, LAMBDA, marks=pytest.mark.slow),
        pytest.param(700, 1.0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("game", "config", "members", "by_role"), TABLES)
def test_weighted_advantages_are_those_of_vtrace(
    game: str,
    config: dict[str, Any],
    members: tuple[Any, ...],
    by_role: bool,
    horizon: int,
    lam: float,
) -> None:
    rec = record(game, config, members, 700)
    expected = slow_vtrace(rec, by_role, lam, horizon)
    got = native_advantages(rec, by_role, lam, horizon, weighted=True)
    assert got.keys() == expected.keys()
    check_close(got, expected)


@pytest.mark.parametrize(("game", "config", "members", "by_role"), TABLES)
def test_short_and_long_rollouts_have_equal_residuals(
    game: str, config: dict[str, Any], members: tuple[Any, ...], by_role: bool
) -> None:
    rec = record(game, config, members, 700)
    short = native_advantages(rec, by_role, 0.0, 7)
    long = native_advantages(rec, by_role, 0.0, 700)
    assert short == long


def test_reward_earned_during_other_turns_belongs_to_the_last_decision() -> None:
    rec = record("tic_tac_toe", {}, (0, 0), 700)
    losing = [
        (step, game)
        for step in range(1, 700)
        for game in range(rec.games)
        if rec.arrays["reward"][step, game].any()
    ]
    transitions = Transitions(rec.rules, rec.games, 700)
    made_up = {"value", "rho", "trace"}
    arrays = {name: array for name, array in rec.arrays.items() if name not in made_up}
    transitions.link(**arrays, gamma=1.0)
    for step, game in losing:
        loser = transitions.max_pending + (step - 1) * rec.games + game
        winner = transitions.max_pending + step * rec.games + game
        assert transitions.paid[winner] == -transitions.paid[loser] != 0


def test_skipping_forced_decisions_keeps_monte_carlo_returns() -> None:
    """At gamma 1 the returns of the decisions that remain are those of the full game."""
    returns = {}
    for skip in (0, 1):
        config = {"rounds": [1, 2, 3, 4], "skip_forced": skip}
        state = sparring.new_state("skull_king", seed=9, config=config)
        steps = []
        while not state.over:
            legal = state.legal()
            seat, name = state.seat, (state.seat, len(steps))
            chosen = legal[hash((seat, tuple(legal))) % len(legal)]
            state.apply(chosen)
            steps.append((name[0], len(legal) > 1, state.rewards.copy()))
        total = np.zeros(4)
        back = []
        for seat, free, paid in reversed(steps):
            total = total + paid
            if free:
                back.append((seat, round(float(total[seat]), 4)))
        returns[skip] = back[::-1]
    assert returns[0] == returns[1]


def test_wrong_shapes_are_named() -> None:
    rules = sparring.Rules("tic_tac_toe")
    transitions = Transitions(rules, 2, 3)
    rows = np.zeros((3, 2), np.int8)
    with pytest.raises(sparring.ConfigError, match=r"reward has shape \(3, 2, 2\), need"):
        transitions.link(
            seat=rows,
            role=rows,
            policy=rows.astype(np.int16),
            reward=np.zeros((3, 2, 2), np.float32),
            terminated=rows.astype(bool),
            truncated=rows.astype(bool),
            gamma=1.0,
        )
    assert (transitions.end == NOT_A_SAMPLE).all()
    with pytest.raises(sparring.ConfigError, match=r"value has shape \(6,\), need \(10,\)"):
        transitions.advantages(np.zeros(6, np.float32), 1.0)
    values, short = np.zeros(10, np.float32), np.ones(6, np.float32)
    with pytest.raises(sparring.ConfigError, match=r"rho has shape \(6,\), need \(10,\)"):
        transitions.advantages(values, 1.0, rho=short, trace=short)
    with pytest.raises(sparring.ConfigError, match="rho and trace go together"):
        transitions.advantages(values, 1.0, rho=values)
