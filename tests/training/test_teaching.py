"""What a run learns from records: decisions as a learner sees them, and weights to begin with."""

from pathlib import Path

import numpy as np
import pytest

import sparring
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.lessons import Lesson
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.state import new_state
from sparring.learn.taught import Decisions, joined, split, unpacked
from sparring.training.teaching.bots import bot_game
from sparring.training.teaching.making import make_decisions, tasks_of
from sparring.training.teaching.positions import Pay, decisions_of
from sparring.training.teaching.sources import read_sources


def pay_of(rules: Rules, gamma: float = 0.9) -> Pay:
    return Pay(tuple(rules.weights(None)), gamma)


def slow_decisions(rules: Rules, lesson: Lesson, gamma: float) -> list[tuple[bytes, list, int, float]]:
    """What a seat saw, could do and did, and what it was paid from there on, step by step."""
    state = lesson.replay.start()
    asked, paid = [], []
    for moves in lesson.replay.actions:
        seat = state.seat
        asked.append((seat, state.observe_bytes(seat).tobytes(), state.legal(), moves[0]))
        state.apply(moves[0])
        paid.append(state.rewards.copy())
    told = []
    for at, (seat, obs, legal, action) in enumerate(asked):
        total, discount = 0.0, 1.0
        for later in range(at, len(asked)):
            if later > at and asked[later][0] == seat:
                discount *= gamma
            total += discount * float(paid[later][seat])
        told.append((obs, legal, action, total))
    return told[lesson.by_lot :]


@pytest.mark.parametrize(
    ("game", "bot"), [("tic_tac_toe", "careful"), ("leduc_poker", "solid"), ("skull_king", "captain")]
)
def test_decisions_are_those_of_the_game_played_step_by_step(game: str, bot: str) -> None:
    rules = Rules(game)
    lesson = bot_game(rules, bot, 3, 7)
    found = decisions_of(rules, lesson, pay_of(rules))
    slow = slow_decisions(rules, lesson, 0.9)
    masks = unpacked(found.legal, rules.actions)
    assert len(found) == len(slow) > 0
    for at, (obs, legal, action, paid) in enumerate(slow):
        assert found.obs[at].tobytes() == obs
        assert np.flatnonzero(masks[at]).tolist() == legal
        assert found.action[at] == action
        assert found.returns[at] == pytest.approx(paid, rel=1e-5, abs=1e-6)
