"""Commands take file.py:Class where they take a game."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparring
from sparring import trusted
from sparring.cli import main
from sparring.games.picture import picture_of
from sparring.games.rules import Rules
from sparring.web.description import unplayable_reason

ENV = '''
import gymnasium
import numpy as np
from gymnasium import spaces


class Guess(gymnasium.Env):
    """Two numbers are guessed; a one pays."""

    observation_space = spaces.Box(0, 3, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.steps += 1
        seen, paid = np.array([self.steps], np.float32), float(action == {right})
        return seen, paid, self.steps == 2, False, {}
'''
GAME = '''
from sparring.pygames import Game, Int


class Guess(Game):
    """Two numbers are guessed; a one pays."""

    seats = 1
    actions = 2
    state = {"steps": Int(0, 2)}
    observation = {"steps": 1}
    chance = False

    def reset(state):
        state.steps = 0

    def legal(state, mask):
        mask[:] = 1

    def observe(state, seat, obs):
        obs.steps[0] = state.steps

    def step(state, action, rewards):
        state.steps += 1
        rewards[0] = action == 1
        return state.steps == 2
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARRING_INTERPRETED", "1")
    return tmp_path


def run(*words: str) -> int:
    return int(main(list(words)) or 0)


def test_new_game_writes_rules_that_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new-game", "river_stones", "--python") == 0
    told = capsys.readouterr().out
    assert "wrote river_stones.py" in told
    assert "sparring check river_stones.py:RiverStones" in told
    assert run("new-game", "river_stones", "--python") != 0
    assert "is not overwritten" in capsys.readouterr().err
    word = "river_stones.py:RiverStones"
    assert run("games", word) == 0
    assert "take one to three" in capsys.readouterr().out
    assert run("eval", f"{word}:perfect", "--against", "random", "--games", "20") == 0
    assert "100.0%" in capsys.readouterr().out


def test_a_game_is_drawn_as_its_text(folder: Path) -> None:
    assert run("new-game", "drawn_stones", "--python") == 0
    trusted.allow("drawn_stones.py:DrawnStones")
    rules = Rules("drawn_stones.py:DrawnStones", {"heap": 3})
    state = sparring.new_state(rules, seed=1)
    picture = picture_of(rules)
    letters = list(picture.letters(state.text()))  # type: ignore[union-attr]
    assert "".join(letter.text for letter in letters) == "3:|||"
    assert unplayable_reason(rules.name).endswith("which a browser cannot run")


@pytest.mark.parametrize(("right", "code"), [(1, 0), (0, 3)])
def test_port_holds_an_environment_against_rules(
    folder: Path, right: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / f"guess_env_{right}.py").write_text(ENV.replace("{right}", str(right)))
    (folder / f"guess_rules_{right}.py").write_text(GAME)
    words = (f"guess_env_{right}.py:Guess", f"guess_rules_{right}.py:Guess", "--games", "5")
    assert run("port", *words) == code
    assert ("agree" if code == 0 else "reward") in capsys.readouterr().out
