"""Every recorded step of the reference simulator, played again by the native game."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sparring
from sparring import _native
from sparring.games.cage2 import levels_of
from vectors import cage2 as vectors
from vectors.cage2 import Step, Trace

pytestmark = pytest.mark.skipif(
    "cage2_replay" not in _native.game_names(), reason="recorded chance is only in test builds"
)
# Where each rare rule happens: trace, episode, step (specification, section 13.1).
RARE = {
    "a scan and the first decoy of a one-port host": ("bline_decoy_60x50", 0, 16),
    "a scan and a decoy, three ports": ("bline_decoy_60x50", 0, 8),
    "a decoy is hit": ("bline_decoy_60x50", 0, 9),
    "a decoy is hit while one is placed": ("bline_decoy_60x50", 15, 16),
    "SSH on a decoy": ("meander_decoy_60x50", 29, 19),
    "SSH on Defender": ("meander_decoy_60x50", 0, 31),
    "a shell goes unnoticed": ("bline_decoy_60x50", 4, 9),
    "a shell goes unnoticed while a decoy is placed": ("meander_random_200x30", 42, 15),
    "EternalBlue on an enterprise host": ("bline_decoy_60x50", 0, 42),
    "BlueKeep on User3": ("bline_decoy_60x50", 18, 2),
    "BlueKeep on Enterprise2": ("bline_decoy_60x50", 2, 9),
    "SQL injection on User4": ("bline_decoy_60x50", 14, 2),
    "a remembered decoy is gone": ("bline_decoy_60x50", 53, 25),
    "an operational exploit without a way in": ("bline_defend_20x100", 0, 37),
    "an empty scan": ("bline_defend_20x100", 0, 77),
    "B_line falls back from 11 to 1": ("bline_defend_20x100", 6, 20),
    "an exploit of an address that was never scanned": ("meander_defend_20x100", 2, 60),
    "Remove kills a noticed shell": ("bline_defend_20x100", 0, 74),
    "Remove leaves an SSH session": ("bline_defend_20x100", 0, 7),
    "Remove leaves a privileged session": ("bline_decoy_60x50", 5, 46),
    "Analyse of a user shell": ("bline_defend_20x100", 0, 41),
    "Analyse of an SSH session": ("bline_defend_20x100", 1, 32),
    "Analyse after Remove": ("bline_defend_20x100", 3, 98),
    "a label drops from privileged to user": ("bline_defend_20x100", 2, 90),
    "Restore and escalation in one step": ("bline_decoy_60x50", 55, 10),
    "Restore and exploit in one step": ("bline_defend_20x100", 1, 47),
    "Restore of Op_Server0 while it is stopped": ("bline_decoy_60x50", 42, 18),
    "Impact after a Restore": ("bline_decoy_60x50", 23, 14),
    "Meander exploits User0": ("meander_decoy_60x50", 0, 30),
    "Meander forgets the enterprise hosts": ("meander_decoy_60x50", 0, 28),
    "Meander attacks an Op_Host": ("meander_defend_20x100", 1, 66),
    "Vsftpd on User3 during a scan": ("bline_random_200x30", 105, 1),
}


def state_of(trace: Trace, **more: Any) -> sparring.State:
    return sparring.new_state("cage2_replay", config={**trace.config, **more})


def is_set(value: int) -> int:
    """A field's value; 255 stands for none."""
    return -1 if value == 0xFF else value


def shown(state: sparring.State) -> dict[str, Any]:
    """Everything that a trace records, read from the state."""
    fields = state.fields()
    one = {name: int(value[0]) for name, value in fields.items() if value.size == 1}
    return {
        "impossible": one["impossible"],
        "red": (one["red_action"], is_set(one["red_target"])),
        "port": is_set(one["red_port"]),
        "noticed": is_set(one["red_noticed"]),
        "success": {0x20: 1, 0x40: 0, 0: 2}[one["flags"] & 0x60],
        "reward": round(10 * float(state.rewards[0])),
        "seen": vectors.hex_of(state.observe(0)),
        "levels": "".join(str(level) for level in levels_of(fields)),
        "stopped": not one["flags"] & 1,
    }


def recorded(step: Step) -> dict[str, Any]:
    return {
        "impossible": 0,
        "red": (step.red_action, step.red_target),
        "port": step.port,
        "noticed": step.noticed,
        "success": step.success,
        "reward": step.reward_tenths,
        "seen": step.seen,
        "levels": step.levels,
        "stopped": step.stopped,
    }


def replay(state: sparring.State, episode: tuple[Step, ...]) -> Iterator[tuple[int, Any, Any]]:
    """Play an episode with its recorded chance; what came out and what was recorded."""
    for number, step in enumerate(episode):
        wrong = state.native.setup([step.red_target, step.port, step.noticed, step.green])
        assert wrong == ""
        state.apply(step.action)
        yield number, shown(state), recorded(step)


@pytest.mark.few(5)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", vectors.NAMES)
def test_a_recorded_episode_comes_out_the_same(name: str, every: int) -> None:
    """What happens in some episodes alone is among the rare rules below."""
    trace = vectors.trace(name)
    start = state_of(trace)
    for number, episode in list(enumerate(trace.episodes))[::every]:
        state = start.clone()
        assert not state.observe(0).any()
        for at, got, wanted in replay(state, episode):
            assert got == wanted, f"{name}, episode {number}, step {at}"
        assert state.truncated and state.audit() == ""
        total = sum(step.reward_tenths for step in episode)
        assert state.scores[0] == pytest.approx(total / 10)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "off"),
    [
        *((name, {"preset": "FINAL"}) for name in vectors.NAMES if "challenge" in name),
        ("bline_decoy_30x50_challenge", {"sticky_ports": "OFF"}),
        ("bline_defend_40x50_challenge", {"haraka_restore_bug": "OFF"}),
        # Meander scans a host once, so that it has nothing to forget.
        ("meander_defend_40x50_challenge", {"haraka_restore_bug": "OFF"}),
    ],
)
def test_the_leaderboards_version_is_another_game(name: str, off: dict[str, str]) -> None:
    trace = vectors.trace(name)
    start = state_of(trace, **off)
    different = sum(
        any(got != wanted for _, got, wanted in replay(start.clone(), episode))
        for episode in trace.episodes
    )
    assert different > 0


def test_the_observation_rules_differ() -> None:
    trace = vectors.trace("meander_decoy_20x50_cardiff")
    start = state_of(trace, obs_rule="OFFICIAL")
    differ = [
        (got, wanted)
        for episode in trace.episodes
        for _, got, wanted in replay(start.clone(), episode)
        if got != wanted
    ]
    assert differ
    assert all(got | {"seen": ""} == wanted | {"seen": ""} for got, wanted in differ)


@pytest.mark.parametrize("rule", RARE)
def test_a_rare_rule_is_where_the_specification_says(rule: str) -> None:
    name, episode, at = RARE[rule]
    trace = vectors.trace(name)
    for number, got, wanted in replay(state_of(trace), trace.episodes[episode][: at + 1]):
        assert got == wanted, f"{rule}: step {number}"


def test_a_shell_that_nobody_notices_leaves_the_observation_of_a_scan() -> None:
    step = vectors.trace("bline_decoy_60x50").episodes[4][9]
    assert step.noticed == 0 and step.seen[step.red_target] in "89ab"


def test_recorded_chance_that_cannot_happen_is_noticed() -> None:
    state = sparring.new_state("cage2_replay", config={"red": "B_LINE"})
    state.native.setup([0, -1, -1, -1])
    state.apply(0)
    state.native.setup([5, -1, -1, -1])  # B_line never begins with Op_Host1
    state.apply(0)
    assert int(state.fields()["impossible"][0]) == 1


def test_all_recordings_are_there() -> None:
    steps = sum(len(vectors.trace(n).episodes) * vectors.trace(n).steps for n in vectors.NAMES)
    assert set(vectors.all_traces()) == set(vectors.NAMES)
    assert steps == 43_500
