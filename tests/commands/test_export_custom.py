"""`sparring export` of networks of your own: one file with what the module says, or why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparring import Rules
from sparring.cli import main
from sparring.commands.shared import onnx_file
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy


def saved(folder: Path, game: str, kind: str) -> Path:
    net = make_net(Rules(game), NetConfig(kind=f"own_nets:{kind}"))
    net.rescale_value_head(7.0)
    return save_policy(Policy(Rules(game), net), folder / kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "kind"), [("cage2", "Plain"), ("skull_king", "Blocks"), ("tic_tac_toe", "Bytes")]
)
def test_the_file_says_what_the_module_says(game: str, kind: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path, file = saved(tmp_path, game, kind), tmp_path / "net.onnx"
    assert main(["export", str(path), "--onnx", str(file)]) == 0
    policy = load_policy(path)
    obs = onnx_file.real_observations(policy.rules, 40)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    logits, value = session.run(None, {"obs": obs})
    assert np.allclose(logits, policy.heads(obs)["policy"], atol=1e-4)
    assert np.allclose(value, policy.value(obs), atol=1e-3)


@pytest.mark.slow
def test_what_cannot_be_written_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    path, file = saved(tmp_path, "tic_tac_toe", "Choosing"), tmp_path / "net.onnx"
    assert main(["export", str(path), "--onnx", str(file)]) == 3
    said = capsys.readouterr().err
    assert "own_nets:Choosing cannot be written as ONNX" in said and "Traceback" not in said
    assert not file.exists()
