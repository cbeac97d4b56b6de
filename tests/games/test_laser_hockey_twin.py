"""The native laser hockey against the slow twin: every number of every step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import sparring
from reference.laser_hockey.bodies import F
from reference.laser_hockey.match import Flags, Match, scripted
from reference.philox import CHANCE, Philox
from sparring.games import laser_hockey
from vectors.laser_hockey import data, traces

PARTS = ("goal", "closeness", "touch", "direction")


def random_flags(rng: random.Random) -> dict[str, Any]:
    return {
        "mode": rng.choice(["NORMAL", "NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE", "MIXTURE"]),
        "mixture": (1.0, rng.choice([0.0, 2.0]), 0.5),
        "keep_mode": int(rng.random() < 0.7),
        "profile": rng.choice(["EXACT", "FAST"]),
        "serve": rng.choice(["DRAWN", "ALTERNATING", "LEFT", "RIGHT"]),
        "safe_spawn": rng.randint(0, 1),
        "timeout_as_terminated": rng.randint(0, 1),
    }


def copy_into(match: Match, state: sparring.State) -> None:
    """Put the twin where the native game stands, to the last bit."""
    raw = state.fields()
    for body, numbers in zip(
        (match.left, match.right, match.puck), raw["body"].reshape(3, 6), strict=True
    ):
        body.center, body.angle = numbers[:2].copy(), numbers[2]
        body.velocity, body.spin = numbers[3:5].copy(), numbers[5]
    names = ("left", "right", "left goal", "right goal")
    match.touching = {name for bit, name in enumerate(names) if raw["touching"][0] >> bit & 1}
    match.keep = [int(count) for count in raw["keep"]]
    match.phase = [F(p) for p in raw["phase"]]


def make_pair(seed: int, flags: dict[str, Any]) -> tuple[sparring.State, Match]:
    state = sparring.new_state("laser_hockey", seed=seed, config=flags)
    return state, Match(Flags(**flags), Philox(seed, 0, 1, CHANCE))


def choose(rng: random.Random, state: sparring.State, held: np.ndarray) -> np.ndarray:
    """Scripted, random and stubborn players in turn, so that all kinds of contacts happen."""
    if rng.random() < 0.1:
        held[:] = np.array([[rng.choice([-1, 0, 1]) for _ in range(4)] for _ in range(2)])
    actions = held.copy()
    for seat in (0, 1):
        if rng.random() < 0.7:
            actions[seat] = state.ask(rng.choice(["strong", "weak", "random"]), seat)
    return actions


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 12))]
)
def test_every_step_is_the_same(seed: int) -> None:
    """Each step starts where the native game stands, because rounding grows with every hit."""
    rng = random.Random(seed)
    flags = random_flags(rng)
    state, match = make_pair(seed, flags)
    states = {part: state_paying(part, seed, flags) for part in PARTS}
    for seat in (0, 1):
        np.testing.assert_array_equal(state.observe(seat), match.observe(seat), str(flags))
    held = np.zeros((2, 4), np.float32)
    errors = []
    while not state.over and len(errors) < 120:
        actions = choose(rng, state, held)
        for one in (state, *states.values()):
            one.apply(actions)
        outcome = match.step(actions)
        where = f"{flags} step {len(errors)}"
        assert (state.terminated, state.truncated) == (outcome.terminated, outcome.truncated), where
        for seat in (0, 1):
            seen, wanted = state.observe(seat), match.observe(seat)
            errors.append(float(np.abs(seen - wanted)[:16].max()))
            np.testing.assert_allclose(seen, wanted, rtol=0, atol=1e-3, err_msg=where)
        for part in PARTS:
            np.testing.assert_allclose(
                states[part].rewards, outcome.parts[part], rtol=0, atol=1e-4, err_msg=where
            )
        assert state.fields()["phase"].tolist() == [float(p) for p in match.phase]
        assert (int(state.fields()["winner"][0]), match.time) == (match.winner, len(errors) // 2)
        copy_into(match, state)
    assert np.quantile(errors, 0.95) <= 2e-5, flags
    assert np.median(errors) <= 1e-6, flags


def state_paying(part: str, seed: int, flags: dict[str, Any]) -> sparring.State:
    return sparring.new_state("laser_hockey", seed=seed, config=flags, rewards={part: 1.0})


def test_many_resets_are_the_same() -> None:
    for seed in range(300):
        flags = random_flags(random.Random(seed))
        state, match = make_pair(seed, flags)
        for seat in (0, 1):
            np.testing.assert_array_equal(state.observe(seat), match.observe(seat), str(flags))
        at = laser_hockey.read(state)
        assert (at.mode, at.server) == (match.mode, match.server)
        np.testing.assert_allclose(at.kick, match.kick, rtol=1e-6)


@pytest.mark.slow
def test_the_twin_repeats_recorded_steps() -> None:
    """A sample of the recorded steps that the native game is held against one by one."""
    errors = []
    for trace in traces():
        match = Match(Flags(mode=trace.mode, keep_mode=int(trace.keep)), Philox(0, 0, 1, CHANCE))
        for step in range(0, trace.steps, 36):
            position = trace.position_before(step)
            bodies = (match.left, match.right, match.puck)
            for body, at in zip(
                bodies, (position.left, position.right, position.puck), strict=True
            ):
                origin = np.array([5 + at.x, 4 + at.y], F)
                body.place(origin, at.angle)
                body.velocity, body.spin = np.array([at.vx, at.vy], F), F(at.spin)
            match.keep, match.kick = list(position.keep), np.array(position.kick, F)
            match.touching, match.winner = set(), 0
            match.step(trace.actions[step])
            errors.append(np.abs(match.observe(0)[:16] - trace.obs[step, :16]).max())
    assert len(errors) > 80
    assert np.max(errors) <= 1e-3
    assert np.quantile(errors, 0.98) <= 5e-5


def test_the_twins_scripted_players_answer_as_recorded() -> None:
    for vector in data()["policy"]:
        action = scripted(np.array(vector["obs"]), vector["phase"], weak=vector["weak"])
        np.testing.assert_allclose(action, vector["action"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("bot", ["weak", "strong"])
def test_the_scripted_players_are_the_twins(bot: str) -> None:
    state = sparring.new_state("laser_hockey", seed=4)
    for _ in range(150):
        actions = []
        for seat in (0, 1):
            phase = float(state.fields()["phase"][seat])
            wanted = scripted(state.observe(seat), phase, weak=bot == "weak")
            actions.append(state.ask(bot, seat))
            np.testing.assert_allclose(actions[seat], wanted, rtol=0, atol=2e-6)
        state.apply(np.array(actions))
        if state.over:
            break
