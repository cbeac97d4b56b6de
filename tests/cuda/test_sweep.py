"""Sweeps whose trials are members of populations on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.sweep.file import read_sweep
from sparring.sweep.settings import check_points, ranges_shared
from sparring.sweep.trials import DONE

FILE = """
game = "tic_tac_toe"
updates = 4
device = "cuda"
opponents = ["self=1", "careful=1"]
collect = { games = 256, steps = 32 }
net = { hidden = [64, 64] }
ppo = { minibatch = 2048, epochs = 1 }
eval = { games = 64, final_games = 64 }

[sweep]
trials = 4
at_once = 2
confirm = 1

[sweep.ranges]
"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }
"ppo.clip" = { low = 0.1, high = 0.3 }
"net.hidden" = [[64, 64], [128, 64]]
"""


def test_trials_are_members_of_populations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tried.toml").write_text(FILE)
    file = read_sweep("tried.toml")
    check_points(file)
    assert ranges_shared(file) == ["net.hidden"]
    assert main(["sweep", "tried.toml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["place"]["kind"] == "populations"
    trials = told["trials"]
    assert [trial["state"] for trial in trials] == [DONE] * 4
    for batch in (trials[:2], trials[2:]):  # one network for those that begin together
        assert len({str(trial["settings"]["net.hidden"]) for trial in batch}) == 1
        assert len({trial["settings"]["ppo.lr"] for trial in batch}) == 2
    assert all(trial["curve"][-1][2] == trial["value"] for trial in trials)
    assert len(told["confirmed"]["best"]) == len(told["confirmed"]["preset"]) == 1
    assert not told["confirmed"]["failed"]
