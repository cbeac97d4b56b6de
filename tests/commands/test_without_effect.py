"""What is typed and would have no effect is refused in one line, before a run is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring.cli import main, read_options
from sparring.commands.shared.table import COMMANDS
from sparring.config import TrainConfig

PAST = "there are no past selves to meet; add `past` to the opponents"
RESTART = "league.restart main: nobody restarts; exploiters do: add --league.shared"
FRAMES = "net.frames 4 needs a memory of stacked observations, and net.memory, which is off, is not"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("leduc_poker --league.restart main", RESTART),
        ("leduc_poker --opponents self=1 past=1 --league.restart main", RESTART),
        ("leduc_poker --league.sampling pfsp", f"league.sampling pfsp: {PAST}"),
        ("leduc_poker --league.gate 0.5 --opponents random=1", f"league.gate 0.5: {PAST}"),
        ("tic_tac_toe --net.frames 4", FRAMES),
        ("tic_tac_toe --net.memory gru --net.frames 4", "net.frames 4 needs a memory of stacked"),
        ("tic_tac_toe --net.bptt-steps=16", "add --net.memory gru, or leave net.bptt_steps out"),
        ("tic_tac_toe --hierarchy.turn 5", "hierarchy.turn 5: of a network per role; add --hier"),
        ("tic_tac_toe --algo td3", "needs a learner of discrete actions, and algo td3 is not one"),
        ("tic_tac_toe --algo dqn --qrdqn.quantiles 200", "of QRDQN; the algorithm is dqn"),
    ],
)
def test_it_is_refused_in_a_line(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = f"--runs {tmp_path / 'runs'} --minutes 0.01 --device cpu"
    assert main(f"train {words} {small}".split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        "tic_tac_toe --net.memory stack --net.frames 4",
        "tic_tac_toe --net.memory gru --net.bptt-steps 16",
    ],
)
def test_what_has_an_effect_is_taken(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    config: TrainConfig = read_options(COMMANDS[0], words.split())
    assert config.net.frames == 4 and config.net.bptt_steps == 16
