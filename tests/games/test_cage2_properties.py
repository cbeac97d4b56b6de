"""What holds in every episode of CAGE-2, over random flags and random play (section 13.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparring
from sparring.games import cage2
from sparring.games.cage2 import ACTIONS, HOSTS, LABELS, Cage2Position, action_id, read

SOME = settings(max_examples=25, deadline=None)
VALUES = dict.fromkeys(HOSTS, 0.1) | {
    **dict.fromkeys(("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0"), 1.0),
    "User0": 0.0,
}

flags = st.fixed_dictionaries(
    {
        "preset": st.sampled_from(["FINAL", "CHALLENGE"]),
        "obs_rule": st.sampled_from(["OFFICIAL", "CARDIFF"]),
        "red": st.sampled_from(["B_LINE", "MEANDER", "SLEEP", "MIX"]),
        "green": st.integers(0, 1),
        "relink_on_restore": st.integers(0, 1),
        "actions": st.sampled_from(["ALL", "WINNER"]),
        "mask": st.integers(0, 1),
        "scan_history": st.sampled_from(["NONE", "WINNER", "ALL"]),
        "decoys_left": st.integers(0, 1),
        "orders": st.sampled_from(["NONE", "DRAWN"]),
        "max_steps": st.integers(1, 60),
    }
)
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Moment:
    """One step of an episode."""

    was: Cage2Position
    now: Cage2Position
    state: sparring.State


def random_episode(config: dict[str, Any], seed: int) -> Iterator[Moment]:
    """Play at random; the last state is over."""
    state = sparring.new_state("cage2", seed=seed, config=config)
    rng = np.random.default_rng(seed)
    now = read(state)
    while not state.over:
        state.apply(int(rng.choice(state.legal())))
        was, now = now, read(state)
        yield Moment(was, now, state)


@SOME
@given(flags, seeds)
def test_the_reward_is_the_formula(config: dict[str, Any], seed: int) -> None:
    for moment in random_episode(config, seed):
        now = moment.now
        owned = [h for h, level in zip(HOSTS, now.levels, strict=True) if level == "privileged"]
        cost = sum(VALUES[host] for host in owned)
        cost += 0 if now.service_up else 10
        cost += now.blue_action.startswith("Restore")
        assert float(moment.state.rewards[0]) == pytest.approx(-cost, abs=1e-5)
        assert now.total == pytest.approx(moment.was.total - cost, abs=1e-5)


@SOME
@given(flags, seeds)
def test_an_episode_is_cut_and_never_ends(config: dict[str, Any], seed: int) -> None:
    moments = list(random_episode(config, seed))
    assert len(moments) == config["max_steps"]
    last = moments[-1].state
    assert last.truncated and not last.terminated and last.end == "step limit"
    assert last.audit() == ""


@SOME
@given(flags, seeds)
def test_malware_and_labels_change_as_blue_acts(config: dict[str, Any], seed: int) -> None:
    for moment in random_episode(config, seed):
        was, now = moment.was, moment.now
        for h, host in enumerate(HOSTS):
            if was.malware[h] and not now.malware[h]:
                assert now.blue_action == f"Restore {host}"
            if now.labels[h] == "privileged" != was.labels[h]:
                assert now.blue_action == f"Analyse {host}" and was.malware[h]
            if was.labels[h] != "no" == now.labels[h]:
                assert now.blue_action == f"Restore {host}"
            if was.levels[h] == "privileged" != now.levels[h]:
                assert now.blue_action == f"Restore {host}" and host != "User0"


@SOME
@given(flags, seeds)
def test_the_row_shows_what_the_position_says(config: dict[str, Any], seed: int) -> None:
    for moment in random_episode(config, seed):
        now, state = moment.now, moment.state
        row = state.observe(0)
        names = {feature.name: row[i] for i, feature in enumerate(state.rules.features)}
        for h, host in enumerate(HOSTS):
            active, exploit, low, high = row[4 * h : 4 * h + 4]
            assert (
                now.activity[h]
                == {(0, 0): "none", (1, 0): "scan", (1, 1): "exploit"}[int(active), int(exploit)]
            )
            assert now.labels[h] == LABELS[int(low + 2 * high)]
            assert names[f"{host}.active"] == active
        width = 52 + {"NONE": 0, "WINNER": 10, "ALL": 13}[config["scan_history"]]
        width += 13 * config["decoys_left"] + (25 if now.order else 0)
        assert len(row) == width
        if now.order:
            matrix = row[-25:].reshape(5, 5)
            assert tuple(cage2.UNITS[unit] for unit in matrix.argmax(1)) == now.order
            assert (matrix.sum(0) == 1).all() and (matrix.sum(1) == 1).all()


@SOME
@given(flags, seeds)
def test_the_scan_history_remembers_the_latest(config: dict[str, Any], seed: int) -> None:
    config = {**config, "scan_history": "WINNER"}
    shown = [host for host in HOSTS if "Op_Host" not in host]
    expected = [0] * 10
    for moment in random_episode(config, seed):
        activity = dict(zip(HOSTS, moment.now.activity, strict=True))
        for i, host in enumerate(shown):
            if activity[host] == "scan":
                expected = [min(value, 1) for value in expected]
                expected[i] = 2
                break
        assert moment.state.observe(0)[52:62].tolist() == expected


@SOME
@given(flags, seeds)
def test_sleep_and_monitor_are_the_same(config: dict[str, Any], seed: int) -> None:
    config = {**config, "actions": "ALL", "mask": 0}
    rng = np.random.default_rng(seed)
    one = sparring.new_state("cage2", seed=seed, config=config)
    two = one.clone()
    while not one.over:
        action = int(rng.choice([0, 0, 0, *range(145)]))
        one.apply(action)
        two.apply(1 if action == 0 else action)
        assert (one.observe_bytes(0) == two.observe_bytes(0)).all()
        assert one.rewards[0] == two.rewards[0]
        assert read(one).levels == read(two).levels


@SOME
@given(flags, seeds, st.integers(0, 59))
def test_what_is_not_offered_is_refused(config: dict[str, Any], seed: int, at: int) -> None:
    for number, moment in enumerate(random_episode({**config, "mask": 1}, seed)):
        state = moment.state
        if number < at or state.over:
            continue
        legal = set(state.legal())
        for action in range(state.rules.actions):
            if action not in legal:
                with pytest.raises(sparring.IllegalActionError):
                    state.clone().apply(action)
        break


def test_one_restore_of_the_server_disarms_the_impact() -> None:
    totals = []
    for relink in (0, 1):
        config = {"red": "B_LINE", "max_steps": 60, "relink_on_restore": relink}
        state = sparring.new_state("cage2", seed=1, config=config)
        state.apply(action_id("Restore Op_Server0"))
        stopped = False
        while not state.over:
            state.apply(0)
            stopped |= not read(state).service_up
        assert stopped == bool(relink)
        totals.append(state.scores[0])
    assert totals[0] > totals[1] + 100


def test_an_undisturbed_attack_costs_what_the_specification_says() -> None:
    """B_line against sleep, section 12.1: an attack in which no exploit fails."""
    wanted = [0, 0, *[-0.1] * 4, *[-1.1] * 4, *[-2.1] * 3, -3.1, *[-13.1] * 16]
    for seed in range(200):
        state = sparring.new_state("cage2", seed=seed, config={"red": "B_LINE", "max_steps": 30})
        rewards = []
        while not state.over:
            state.apply(0)
            rewards.append(round(float(state.rewards[0]), 1))
        if rewards == wanted:
            assert state.scores[0] == pytest.approx(-223.8)
            return
    pytest.fail("no attack of 200 went as planned")


def test_names_are_those_of_the_rules() -> None:
    rules = sparring.Rules("cage2")
    assert rules.actions == 145
    assert tuple(rules.action_name(action) for action in range(145)) == ACTIONS
    bits = ("active", "exploit", "unknown or privileged", "user or privileged")
    assert [feature.name for feature in rules.features[:4]] == [f"Defender.{bit}" for bit in bits]
    assert len(rules.features) == 52
    winner = sparring.Rules("cage2", cage2.WINNER)
    assert winner.actions == 36 and len(winner.features) == 62
    assert winner.action_name(0) == "Restore Enterprise0"
    assert winner.action_name(27) == "Decoy Enterprise0"


def test_what_blue_cannot_know_is_drawn_anew() -> None:
    state = sparring.new_state("cage2", seed=3, config={"red": "MEANDER"})
    asleep = sparring.new_state("cage2", seed=3, config={"red": "SLEEP"})
    start = state.clone()
    for _ in range(12):
        state.apply(0)
        asleep.apply(0)
    moves, subnets = set(), set()
    for seed in range(200):
        for one in (start, state, asleep):
            one.resample_hidden(0, seed=seed)
        moves.add(read(state).red_move)
        subnets.add(int(state.fields()["subnets"][0]))
        assert read(start).red_move.action == read(asleep).red_move.action == "sleep"
    assert {move.action for move in moves} == {"sweep", "scan", "exploit", "escalate", "impact"}
    assert {move.succeeded for move in moves} == {True, False}
    assert {move.target for move in moves} == {*HOSTS, *cage2.SUBNETS}
    assert {move.target for move in moves if move.action == "impact"} == {"Op_Server0"}
    assert {move.noticed for move in moves if move.exploit} == {True, False}
    assert len(subnets) > 3 and all(not swept >> 3 & ~swept & 7 for swept in subnets)


def test_a_pool_shows_its_true_states() -> None:
    pool = sparring.Pool("cage2", 8, seed=5, threads=1)
    state = sparring.new_state("cage2", seed=5)
    pool.reset()
    for _ in range(20):
        actions = pool.sample_actions().copy()
        pool.step(actions)
        state.apply(int(actions[0]))
    record = cage2.true_states(pool.tables)[0]
    for name, values in state.fields().items():
        assert np.array_equal(np.atleast_1d(record[name]), values), name


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"red": "MIX", "mix": [0, 0, 0]}, "leaves no red"),
        ({"orders": "FIXED", "order": [0, 1, 2, 3, 3]}, "each unit"),
        ({"red": "BLINE"}, "B_LINE"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_flags_that_make_no_sense_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(sparring.ConfigError, match=message):
        sparring.Rules("cage2", config)


def test_a_misspelled_action_is_corrected() -> None:
    assert action_id("restore user1") == 141
    with pytest.raises(sparring.ConfigError, match="Restore User1"):
        action_id("Restor User1")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "config",
    [
        {},
        {"preset": "CHALLENGE", "obs_rule": "CARDIFF", "green": 1},
        {**cage2.WINNER, "mask": 1},
        {"mask": 1, "scan_history": "ALL", "decoys_left": 1, "orders": "DRAWN", "order_bonus": 1},
    ],
)
def test_the_game_conforms(config: dict[str, Any]) -> None:
    report = sparring.check("cage2", config=config, games=6)
    assert report.passed, report
