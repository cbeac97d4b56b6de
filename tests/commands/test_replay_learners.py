"""QR-DQN, REDQ and TD3 as they are typed: trained, resumed, measured, exported; and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sparring
from sparring.cli import main
from sparring.training.planning.settings import with_preset

TINY = (
    "--updates 2 --threads 1 --eval.off --eval.final-games 32 --net.hidden 16 16 --replay.ratio 1"
)
GAMES = {"QRDQN": "tic_tac_toe", "redq": "laser_hockey_discrete", "Td3": "laser_hockey"}


@pytest.mark.slow
@pytest.mark.parametrize("typed", GAMES)
def test_from_training_to_a_file_that_plays(
    typed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game, run = GAMES[typed], tmp_path / "runs" / "one"
    words = f"{TINY} --replay.warmup 64 --runs {run.parent} --name one"
    assert main(f"train {game} --algo {typed} {words}".split()) == 0
    assert f"\n{typed.lower()}, perceptron " in f"\n{capsys.readouterr().err}"
    assert main(f"resume {run} --updates 3".split()) == 0
    assert main(f"eval {run} --against random --games 32 --json".split()) == 0
    capsys.readouterr()
    assert main(f"eval {run}@sampled --against random --games 32".split()) == (
        0 if typed == "redq" else 2
    )
    error = capsys.readouterr().err
    assert typed == "redq" or "there are no probabilities to sample from" in error
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    file = tmp_path / "agent.onnx"
    assert main(f"export {run} --onnx {file} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["max_abs_difference"] < 1e-5
    pool = sparring.Pool(game, 8, seed=1, threads=1)
    batch = pool.reset()
    obs, mask = batch.obs[:8], batch.mask[:8]
    policy = sparring.load_policy(str(run))
    logits = runtime.InferenceSession(str(file)).run(["logits"], {"obs": obs})[0]
    best = np.where(mask > 0, logits, -np.inf).argmax(1) if mask.size else np.tanh(logits[:, :4])
    np.testing.assert_allclose(policy.act(obs, mask, greedy=True), best, atol=1e-5)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("tic_tac_toe --algo td3", "tic_tac_toe needs a learner of discrete actions, and algo td3"),
        ("laser_hockey --algo qrdqn", "laser_hockey needs a learner of continuous actions, and"),
        ("laser_hockey --algo td3 --net.no-squash", "algo td3 needs squashed actions, and net.sq"),
        ("tic_tac_toe --algo qrdqn --net.kind residual", "algo qrdqn needs a network with a head"),
        (
            "tic_tac_toe --algo qrdqn --qrdqn.quantiles 0",
            "qrdqn.quantiles 0 must be from 1 to 1024",
        ),
        (
            "tic_tac_toe --algo qrdqn --dqn.lr 1",
            "dqn.lr: of DQN; the algorithm is qrdqn, which has",
        ),
        ("laser_hockey --algo redq --redq.critics 1", "redq.critics 1 must be from 2 to 64"),
        (
            "laser_hockey --algo redq --redq.critics 3 --redq.target-critics 4",
            "redq.target_critics",
        ),
        ("laser_hockey --algo td3 --heads.wdl 1", "heads.wdl 1 needs a learner whose loss takes"),
        ("laser_hockey --algo td3 --td3.policy-delay 3", "no option --td3.policy-delay; did you"),
        ("tic_tac_toe --algo qrdqm", "algo 'qrdqm' is unknown; use a module:factory, ppo, dqn, q"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    words: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"train {words} --runs {tmp_path / 'runs'}".split()) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("sparring: ") and says in error and "\n" not in error
    assert not list(tmp_path.iterdir())


def test_presets_are_those_of_the_algorithm_that_they_are_like() -> None:
    dqn, qrdqn = (with_preset("tic_tac_toe", algo=algo) for algo in ("dqn", "qrdqn"))
    assert qrdqn.qrdqn.gamma == dqn.dqn.gamma and qrdqn.qrdqn.epsilon == dqn.dqn.epsilon
    assert qrdqn.collect == dqn.collect and qrdqn.replay == dqn.replay
    sac, redq, td3 = (with_preset("laser_hockey", algo=algo) for algo in ("sac", "redq", "td3"))
    assert (redq.net, redq.redq.gamma) == (sac.net, sac.sac.gamma)
    assert redq.redq.initial_temperature == sac.sac.initial_temperature
    assert td3.net.squash and td3.net.std == "shared" and td3.td3.gamma == sac.sac.gamma
