"""CAGE-2 plays with the right chances: single draws, and whole episodes against known means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparring
from sparring import Lineup
from sparring.games.cage2 import HOSTS, STATE, true_states
from vectors import cage2 as vectors

SCAN, EXPLOIT = 2, 3
USERS = [9, 10, 11, 12]
QUICK, SLOW = 8_000, 400_000
ENTRIES = vectors.golden()


def entry_name(entry: dict[str, Any]) -> str:
    green = " with green" if entry["green"] else ""
    return f"{entry['preset']} {entry['red']} against {entry['blue']}{green}"


def played(config: dict[str, Any], bot: str, games: int, seed: int) -> Iterator[npt.NDArray[Any]]:
    """The true states of many games after every step, with a bot for blue."""
    pool = sparring.Pool(
        "cage2", games, seed=seed, config=config, threads=1, lineups=[Lineup((bot,))], observe=False
    )
    pool.reset()
    states = true_states(pool.tables)
    nothing = np.zeros(games, np.int32)
    for _ in range(pool.rules.config["max_steps"] - 1):  # the last step starts another episode
        pool.step(nothing)
        yield states


def assert_shares(
    values: npt.NDArray[Any], shares: dict[int, float], least: int = 2000, sds: float = 4.5
) -> None:
    """The values occur as often as they should: every share within 4.5 standard errors."""
    assert set(np.unique(values).tolist()) <= set(shares)
    count = len(values)
    assert count >= least
    for value, share in shares.items():
        error = np.sqrt(share * (1 - share) / count)
        assert abs(np.mean(values == value) - share) <= sds * error, (value, share)


def favorite(ports: list[int]) -> dict[int, float]:
    """Three times out of four the first, otherwise one of the others."""
    if len(ports) == 1:
        return {ports[0]: 1.0}
    rest = dict.fromkeys(ports[1:], 0.25 / (len(ports) - 1))
    return {ports[0]: 0.75, **rest}


def bits(mask: int) -> list[int]:
    return [x for x in range(8) if mask >> x & 1]


GENUINE = dict(
    zip(
        HOSTS,
        [128, 128, 248, 248, 128, 128, 128, 128, 129, 129, 96, 90, 158],
        strict=True,
    )
)


def test_b_line_begins_anywhere_among_the_users() -> None:
    (*_, states) = played({"red": "B_LINE", "max_steps": 4}, "sleep", 20_000, 1)
    assert_shares(states["prey"], dict.fromkeys(USERS, 0.25))


@pytest.mark.parametrize("red", ["B_LINE", "MEANDER"])
def test_red_prefers_one_port(red: str) -> None:
    chosen: dict[int, list[npt.NDArray[Any]]] = {}
    for states in played({"red": red, "max_steps": 25}, "sleep", 30_000, 2):
        attacks = (states["red_action"] == EXPLOIT) & (states["red_port"] != 0xFF)
        for host in range(len(HOSTS)):
            at = attacks & (states["red_target"] == host)
            chosen.setdefault(host, []).append(states["red_port"][at].copy())
    for host, name in enumerate(HOSTS):
        ports = np.concatenate(chosen[host])
        if len(ports) >= 2000:
            assert_shares(ports, favorite(bits(GENUINE[name])))
    attacked = {host for host in chosen if sum(map(len, chosen[host])) >= 2000}
    wanted = {1, 2, 3, 7, 9, 10, 11, 12} if red == "B_LINE" else {0, 1, 2, 8, 9, 10, 11, 12}
    assert wanted <= attacked


@pytest.mark.slow
def test_red_prefers_one_port_among_decoys_too() -> None:
    """Random blue places decoys; whatever red remembers, its first port has three quarters."""
    first: dict[int, list[float]] = {}
    config = {"red": "B_LINE", "max_steps": 60}
    before = np.zeros(40_000, STATE)
    for states in played(config, "random", 40_000, 3):
        now = states.copy()
        attacks = (now["red_action"] == EXPLOIT) & (now["red_port"] != 0xFF)
        for game in np.flatnonzero(attacks)[:1500]:
            ports = bits(int(before[game]["known_ports"][now[game]["red_target"]]))
            first.setdefault(len(ports), []).append(now[game]["red_port"] == ports[0])
        before = now
    assert all(first.pop(1))
    counted = {count: hits for count, hits in first.items() if len(hits) >= 1000}
    assert len(counted) >= 4
    for count, hits in counted.items():
        error = np.sqrt(0.75 * 0.25 / len(hits))
        assert abs(np.mean(hits) - 0.75) < 4.5 * error, count


def test_one_shell_in_twenty_goes_unnoticed() -> None:
    noticed = [
        states["red_noticed"][states["red_noticed"] != 0xFF].copy()
        for states in played({"max_steps": 30}, "sleep", 10_000, 4)
    ]
    assert_shares(np.concatenate(noticed), {1: 0.95, 0: 0.05})


def test_meander_chooses_evenly() -> None:
    config = {"red": "MEANDER", "max_steps": 12}
    steps = [states.copy() for states in played(config, "sleep", 20_000, 5)]
    users = dict.fromkeys([8, *USERS], 0.2)
    assert (steps[1]["red_action"] == SCAN).all()
    assert_shares(steps[1]["red_target"], users)
    assert (steps[7]["red_action"] == EXPLOIT).all()
    assert_shares(steps[7]["red_target"], users)


def test_green_scans_every_other_step() -> None:
    config = {"red": "SLEEP", "green": 1, "max_steps": 3}
    (*_, states) = played(config, "sleep", 40_000, 6)
    active = states["seen"][:, None] >> np.arange(0, 52, 4, dtype=np.uint64) & np.uint64(1)
    assert (active.sum(1) <= 1).all()
    scanned = np.where(active.any(1), active.argmax(1), -1)
    hosts = [1, 2, 3, 8, *USERS]
    assert_shares(scanned, {-1: 0.5, **dict.fromkeys(hosts, 1 / 16)})


def test_reds_are_mixed_by_weight() -> None:
    config = {"red": "MIX", "mix": [2, 1, 1], "max_steps": 2}
    (states,) = played(config, "sleep", 20_000, 7)
    assert_shares(states["red"], {0: 0.5, 1: 0.25, 2: 0.25})
    config["mix"] = [0, 3, 0]
    (states,) = played(config, "sleep", 1000, 7)
    assert (states["red"] == 1).all()


def test_every_order_of_repair_is_drawn() -> None:
    (states,) = played({"orders": "DRAWN", "max_steps": 2}, "sleep", 24_000, 8)
    orders = states["order"] @ 10 ** np.arange(5)
    assert_shares(orders, dict.fromkeys(np.unique(orders).tolist(), 1 / 120))
    assert len(np.unique(orders)) == 120


def compare(entry: dict[str, Any], episodes: int) -> None:
    """Totals within 4 and steps within 5 standard errors of the stored means."""
    config = {
        "preset": entry["preset"].upper(),
        "red": vectors.RED_FLAGS[entry["red"]],
        "green": int(entry["green"]),
        "max_steps": 101,
    }
    pair = 1 / episodes + 1 / entry["episodes"]
    hosts = np.array([bin(mask).count("1") for mask in range(1 << 13)])
    totals = np.zeros(episodes)
    user0 = 1 << 8
    for step, states in enumerate(played(config, entry["blue"], episodes, 99), 1):
        totals = states["total_tenths"] / 10
        if str(step) in entry["total"]:
            mean, sd = entry["total"][str(step)]
            rounding = 0.001 if sd else 1e-9
            allowed = 4 * max(sd, totals.std()) * np.sqrt(pair) + rounding
            assert abs(totals.mean() - mean) <= allowed, f"{entry_name(entry)}, {step} steps"
        user = (states["removable"] | states["stuck"]) & ~np.uint16(user0)
        for name, values in {
            "priv": hosts[states["privileged"] & ~np.uint16(user0)],
            "user": hosts[user],
            "impact": (states["flags"] & 1) == 0,
        }.items():
            # What never happens in the sample may still happen once in many thousand episodes.
            sd = max(float(values.std()), np.sqrt(5 / episodes))
            off = abs(values.mean() - entry["per_step"][name][step - 1])
            assert off <= 5 * sd * np.sqrt(pair) + 1e-4, f"{entry_name(entry)}: {name}, step {step}"


@pytest.mark.parametrize("entry", ENTRIES[::3], ids=entry_name)
def test_episodes_cost_what_they_should(entry: dict[str, Any]) -> None:
    compare(entry, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=entry_name)
def test_many_episodes_cost_what_they_should(entry: dict[str, Any]) -> None:
    compare(entry, SLOW)


@pytest.mark.parametrize(("steps", "cost"), [(30, -27), (50, -46), (100, -92)])
def test_the_cycle_costs_its_restores(steps: int, cost: int) -> None:
    (*_, states) = played({"red": "SLEEP", "max_steps": steps + 1}, "cycle", 4, 0)
    assert (states["total_tenths"] == 10 * cost).all()
