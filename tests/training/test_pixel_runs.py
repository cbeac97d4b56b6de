"""Runs on pixels: from a command to checkpoint, resume, evaluation and file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparring
from sparring.cli import main, read_options
from sparring.commands.shared.table import COMMANDS
from sparring.nets.pixels import ImpalaNet, NatureNet
from sparring.nets.predict import predict
from sparring.store.policies import load_policy
from sparring.training.planning.custom import check_unchanged
from sparring.training.planning.settings import with_preset

SMALL, SCREEN = "own_envs:make_small_screen", "own_envs:make_screen"
QUICK = "--collect.games 2 --collect.steps 8 --threads 1 --no-tensorboard --eval.final-games 2"

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")


def typed(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(words.split()) == code, capsys.readouterr().err
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.err if code else said.out + said.err


def test_the_network_suits_the_pixels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"train {SCREEN} --updates 1 {QUICK} --eval.off --runs {tmp_path} --name a"
    agent = sparring.training.train.train_with(read_options(COMMANDS[0], words.split()[1:]))
    assert "nature net over 36 x 40 x 1 pixels, torch" in capsys.readouterr().err
    assert isinstance(load_policy(agent.run).net, NatureNet)
    for algo, kind in (("ppo", "impala"), ("dqn", "impala"), ("sac", "mlp")):
        assert with_preset(SMALL, algo=algo).net.kind == kind
    assert with_preset(SMALL, algo="dqn", mode="rollouts").net.kind == "mlp"


def test_a_run_with_frames_goes_on_and_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = "--net.memory stack --net.frames 3 --eval.off"
    run = tmp_path / "a"
    words = f"train {SMALL} --updates 2 {QUICK} {frames} --runs {tmp_path} --name a"
    sparring.training.train.train_with(read_options(COMMANDS[0], words.split()[1:]), quiet=True)
    typed(f"resume {run} --updates 3", capsys)
    assert main(f"eval {run} --games 6 --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert "alone" in json.dumps(found)
    policy = sparring.load(run)
    env = sparring.pools.custom.make_pool(SMALL, 1).tables[0].env
    how: Any = {"deterministic": True, "action_masks": None, "step": 0}
    seen, _ = env.reset(seed=1)
    action, state = predict(policy, seen, **how)
    assert env.action_space.contains(action)
    assert np.array_equal(state[0, : seen.size], seen.ravel())
    _, state = predict(policy, env.step(action)[0], state, **how)
    assert np.array_equal(state[0, seen.size : 2 * seen.size], seen.ravel())


@pytest.mark.slow
def test_dqn_learns_from_pixels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = (
        "--algo dqn --replay.warmup 32 --replay.batch 8 --replay.ratio 1 --replay.capacity 512"
    )
    words = f"train {SMALL} --decisions 100 {QUICK} --eval.off --runs {tmp_path} --name a"
    typed(f"{words} {learner} --replay.capacity 512 --net.memory stack", capsys)
    assert isinstance(load_policy(tmp_path / "a").net, ImpalaNet)


@pytest.mark.slow
def test_actors_remember_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"train {SMALL} --updates 2 {QUICK} --eval.off --net.memory stack --runs {tmp_path}"
    typed(f"{words} --actors 2 --name a", capsys)


def test_a_checkpoint_without_a_shape_goes_on() -> None:
    """As written before networks read pixels."""
    rules = sparring.pools.custom.make_pool(SMALL, 1).rules
    before = rules.plain()
    before["parts"] = [before["parts"][0][:4]]
    check_unchanged(rules, {"foreign": before}, "it")


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (f"{SMALL} --net.kind nature", "needs 36 x 36 pixels or more, and Screen has 10 x 12: use"),
        ("own_envs:make_walk --net.kind impala", "a game whose observations are pixels, and Walk"),
        ("skull_king --net.kind nature", "whose observations are pixels, and skull_king is not"),
        (f"{SMALL} --algo sac --net.kind impala", "a learner of convolutions over pixels, and alg"),
        (f"{SMALL} --net.memory gru", "net.memory gru needs a network that may be recurrent, and"),
        (f"{SMALL} --net.memory stack --net.frames 1", "net.frames 1"),
        (f"{SMALL} --net.normalize", "net.normalize needs a network that normalizes, and net.kind"),
        (f"{SMALL} --net.kind natur", "did you mean"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(
    options: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = typed(f"train {options} --runs {tmp_path}", capsys, 2)
    assert said in found and found.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["", "--net.memory stack"])
def test_the_file_says_what_the_network_says(
    memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    words = f"train {SMALL} --updates 1 {QUICK} --eval.off {memory} --runs {tmp_path} --name a"
    typed(words, capsys)
    file = tmp_path / "net.onnx"
    assert main(f"export {tmp_path / 'a'} --onnx {file} --json".split()) == 0
    said = json.loads(capsys.readouterr().out)
    assert file.exists() and said["max_abs_difference"] < 1e-5
    assert ("memory" in said["inputs"]) == bool(memory)
