"""The slow CAGE-2 against the recordings of the reference simulator."""

from __future__ import annotations

import pytest

from reference.cage2.draws import Recording
from reference.cage2.game import Cage2
from reference.cage2.network import HOSTS, PREFERENCE, SUBNETS
from vectors import cage2 as vectors
from vectors.cage2 import Step, Trace

KINDS = {"bline": "B_line", "meander": "Meander", "sleep": "Sleep"}
RED_ACTIONS = ("Sleep", "DRS", "DNS", "EXP", "PE", "IMP")


def game_of(trace: Trace) -> Cage2:
    challenge = trace.preset == "challenge"
    flags = {"sticky_ports": challenge, "haraka_restore_bug": challenge, "green": trace.green}
    return Cage2(KINDS[trace.red], {**flags, "obs_rule": trace.obs_rule.upper()})


def red_of(step: Step) -> tuple[str, str]:
    action = RED_ACTIONS[step.red_action]
    if action == "Sleep":
        return action, ""
    return action, (tuple(SUBNETS) if action == "DRS" else HOSTS)[step.red_target]


@pytest.mark.few(5)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", vectors.NAMES)
def test_a_recorded_episode_comes_out_the_same(name: str, every: int) -> None:
    trace = vectors.trace(name)
    for number, episode in list(enumerate(trace.episodes))[::every]:
        game = game_of(trace)
        for at, step in enumerate(episode):
            where = f"{name}, episode {number}, step {at}"
            recording = Recording(step.red_target, step.port, step.noticed, step.green)
            report = game.step(step.action, recording)
            assert report.red == red_of(step), where
            assert report.port == (None if step.port < 0 else PREFERENCE[step.port]), where
            assert report.noticed == {-1: None, 0: False, 1: True}[step.noticed], where
            assert game.red.success == {0: False, 1: True, 2: None}[step.success], where
            assert report.reward_tenths == step.reward_tenths, where
            assert vectors.hex_of(game.bits()) == step.seen, where
            assert "".join(str(game.level(host)) for host in HOSTS) == step.levels, where
            assert game.service_up == (not step.stopped), where
