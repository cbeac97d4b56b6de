"""A run says how its networks are computed, and goes on the same way or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring import _native
from sparring.cli import main
from sparring.nets.run.native import AUTO, KERNELS, resolve_cpu
from sparring.store import checkpoint as checkpoints
from sparring.training.train import resume
from training.run_helpers import trained

with_amx = pytest.mark.skipif(not _native.has_amx(), reason="this CPU has no AMX")


def said(run: Path) -> str:
    newest = checkpoints.newest_valid(run / "checkpoints")
    assert newest is not None
    return str(checkpoints.load(newest).meta["config"]["collect"]["cpu"])


def test_a_checkpoint_says_what_auto_was(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=1, device="cpu")
    assert said(agent.run) == resolve_cpu(AUTO) != AUTO
    assert f'cpu = "{resolve_cpu(AUTO)}"' in (agent.run / "config.toml").read_text()


@with_amx
def test_bf16_goes_on_where_there_is_amx_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = trained(tmp_path, updates=1, device="cpu", collect={"cpu": "bf16"})
    again = resume(str(agent.run), updates=2, quiet=True)
    assert said(again.run) == "bf16"
    monkeypatch.setenv(KERNELS, "avx2")
    capsys.readouterr()
    assert main(["resume", str(agent.run), "--updates", "3"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "collect.cpu bf16 needs a CPU with AMX" in line
    assert 'collect.cpu = "float32" in its config.toml' in line
    file = agent.run / "config.toml"
    file.write_text(file.read_text().replace('cpu = "bf16"', 'cpu = "float32"'))
    assert said(resume(str(agent.run), updates=3, quiet=True).run) == "float32"
