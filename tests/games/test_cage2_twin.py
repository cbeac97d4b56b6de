"""The native CAGE-2 against the slow twin: same draws, same everything, step by step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import sparring
from reference.cage2 import bots
from reference.cage2.draws import Generator
from reference.cage2.game import PRIVILEGED, USER
from reference.cage2.network import HOSTS, PREFERENCE, SUBNETS
from reference.cage2.options import REDS, UNITS, Episode, units_of
from reference.philox import CHANCE, Philox

CHOICES: dict[str, list[Any]] = {
    "preset": ["FINAL", "CHALLENGE"],
    "sticky_ports": ["PRESET", "PRESET", "OFF", "ON"],
    "haraka_restore_bug": ["PRESET", "PRESET", "OFF", "ON"],
    "relink_on_restore": [0, 0, 1],
    "red": ["B_LINE", "MEANDER", "MIX", "MIX", "SLEEP"],
    "mix": [[1, 1, 0], [1, 2, 3], [0, 1, 0], [0.25, 0, 0.5]],
    "green": [0, 0, 1],
    "max_steps": [1, 30, 50, 100, 100],
    "actions": ["ALL", "ALL", "WINNER"],
    "mask": [0, 1],
    "obs_rule": ["OFFICIAL", "CARDIFF"],
    "scan_history": ["NONE", "WINNER", "ALL"],
    "decoys_left": [0, 1],
    "orders": ["NONE", "DRAWN", "FIXED"],
    "order": [[0, 1, 2, 3, 4], [4, 3, 1, 0, 2]],
}


def random_config(rng: random.Random) -> dict[str, Any]:
    return {flag: rng.choice(values) for flag, values in CHOICES.items()}


def hosts_in(mask: int) -> set[str]:
    return {host for h, host in enumerate(HOSTS) if mask >> h & 1}


def ports_in(mask: int) -> set[int]:
    return {port for x, port in enumerate(PREFERENCE) if mask >> x & 1}


def name_of(number: int) -> str | None:
    return None if number == 0xFF else HOSTS[number]


def native_state(state: sparring.State) -> dict[str, Any]:
    """The native position in the twin's words."""
    fields = state.fields()
    one = {name: int(values[0]) for name, values in fields.items() if len(values) == 1}
    decoys = {h: ports_in(int(fields["decoy_ports"][i])) for i, h in enumerate(HOSTS)}
    memory = {h: ports_in(int(fields["known_ports"][i])) for i, h in enumerate(HOSTS)}
    meander = ("known_ip", "known_host", "scanned", "exploited", "escalated", "mapped")
    return {
        "red": REDS[one["red"]],
        "privileged": hosts_in(one["privileged"]),
        "removable": hosts_in(one["removable"]),
        "stuck": hosts_in(one["stuck"]),
        "malware": hosts_in(one["malware"]),
        "decoys": decoys,
        "memory": {host: ports for host, ports in memory.items() if ports},
        "suspicious": hosts_in(one["touched"]),
        "service": (bool(one["flags"] & 1), bool(one["flags"] & 2), bool(one["flags"] & 4)),
        "empty scan": bool(one["flags"] & 8),
        "success": {0x20: True, 0x40: False, 0: None}[one["flags"] & 0x60],
        "stage": one["stage"],
        "target": name_of(one["prey"]),
        **{name: hosts_in(one[name]) for name in meander},
        "subnets": {s for i, s in enumerate(SUBNETS) if one["subnets"] >> i & 1},
        "swept": {s for i, s in enumerate(SUBNETS) if one["subnets"] >> (3 + i) & 1},
        "last": (name_of(one["last_ip"]), name_of(one["last_host"])),
        "total": one["total_tenths"],
        "steps": one["steps"],
        "action": None if one["last_action"] == 0xFF else one["last_action"],
        "repairs": fields["repairs"].tolist(),
        "in order": fields["in_order"].tolist(),
    }


def user_hosts(episode: Episode, alerted: bool) -> set[str]:
    """Hosts at user level whose session is, or is not, one that Remove can kill."""
    game = episode.game
    found = set()
    for host in HOSTS:
        levels = [session.level for session in game.sessions[host]]
        if levels == [USER] and game.sessions[host][0].alerted == alerted:
            found.add(host)
        assert PRIVILEGED in levels or len(levels) <= 1, "section 5.6"
    return found


def twin_state(episode: Episode) -> dict[str, Any]:
    game, red = episode.game, episode.game.red
    return {
        "red": game.kind,
        "privileged": {host for host in HOSTS if game.level(host) == 2},
        "removable": user_hosts(episode, alerted=True),
        "stuck": user_hosts(episode, alerted=False),
        "malware": game.malware,
        "decoys": game.decoys,
        "memory": red.ports,
        "suspicious": episode.suspicious,
        "service": (game.service_up, game.service_linked, red.knows_ot),
        "empty scan": red.empty_scan,
        "success": red.success,
        "stage": red.stage,
        "target": red.target,
        "known_ip": red.known_ip,
        "known_host": red.known_host,
        "scanned": red.scanned,
        "exploited": red.exploited,
        "escalated": red.escalated,
        "mapped": red.mapped,
        "subnets": red.known_subnets,
        "swept": red.swept,
        "last": (red.last_ip, red.last_host),
        "total": game.total_tenths,
        "steps": game.steps,
        "action": episode.last_action,
        "repairs": units_of(episode.repairs),
        "in order": units_of(episode.in_order),
    }


def compare(state: sparring.State, episode: Episode, where: str) -> None:
    assert native_state(state) == twin_state(episode), where
    assert state.observe(0).tolist() == pytest.approx(episode.row()), where
    if not state.over:
        assert state.legal() == episode.legal(), where
    if episode.order:
        order = [tuple(UNITS)[unit] for unit in state.fields()["order"]]
        assert order == episode.order, where


def start(config: dict[str, Any], seed: int) -> tuple[sparring.State, Episode]:
    episode = Episode(config, Generator(Philox(seed, 0, 1, CHANCE)))
    return sparring.new_state("cage2", seed=seed, config=config), episode


def play_both(seed: int) -> None:
    """One episode with random flags and random actions."""
    rng = random.Random(seed)
    config = random_config(rng)
    state, episode = start(config, seed)
    compare(state, episode, f"seed {seed}: {config}")
    while not episode.over:
        # Idle half of the time, so that red gets somewhere.
        idle = 0 if config["actions"] == "ALL" else 21
        action = idle if rng.random() < 0.5 else rng.choice(state.legal())
        report, _ = episode.step(action)
        state.apply(action)
        where = f"seed {seed}, step {episode.game.steps}: {config}"
        compare(state, episode, where)
        assert round(10 * float(state.rewards[0])) == report.reward_tenths, where
    assert state.truncated


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (20, 40, 60, 80))]
)
def test_random_episodes_are_the_same(first: int) -> None:
    for seed in range(first, first + 20):
        play_both(seed)


@pytest.mark.slow
def test_many_random_episodes_are_the_same() -> None:
    for seed in range(1000, 3500):
        play_both(seed)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["sleep", "cycle", "react_remove", "react_restore", "vreact"])
@pytest.mark.parametrize("red", ["B_LINE", "MEANDER"])
def test_a_bot_that_remembers_does_what_the_native_one_does(name: str, red: str) -> None:
    for seed in range(8):
        base = sparring.Rules("cage2").config
        config = {**base, "red": red, "preset": ("FINAL", "CHALLENGE")[seed % 2]}
        state, episode = start(config, seed)
        bot = bots.make(name)
        while not episode.over:
            action = bot.act(episode.game)
            assert state.ask(name) == action, f"seed {seed}, step {episode.game.steps}"
            episode.step(action)
            state.apply(action)
            assert state.observe(0).tolist() == episode.row()


def test_the_order_is_paid_as_its_own_part() -> None:
    """Every repair of an episode, by the weight of its part."""
    config = {**sparring.Rules("cage2").config, "orders": "DRAWN", "red": "MEANDER"}
    paid: list[int] = []
    for seed in range(20):
        state = sparring.new_state(
            "cage2",
            seed=seed,
            config=config,
            rewards={"compromise": 0, "impact": 0, "restore": 0, "order": 0.5},
        )
        episode = Episode(config, Generator(Philox(seed, 0, 1, CHANCE)))
        while not episode.over:
            action = state.ask("vreact")
            _, order = episode.step(action)
            state.apply(action)
            assert float(state.rewards[0]) == 0.5 * order
            paid.append(order)
    assert {-1, 0, 1} <= set(np.unique(paid).tolist())
