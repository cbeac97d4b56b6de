"""The file of a sweep: what it may say, and that a mistake is one line before anything starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.sweep.file import read_sweep
from sparring.sweep.settings import check_points, config_at, preset_of
from sparring.sweep.space import CHOICE, FLOAT, INT, PERMUTATION
from sparring.training.planning.settings import with_preset
from sweep.sweep_helpers import HEAD, write_sweep

LR = '"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }'
RANGES = f"""
{LR}
"ppo.clip" = {{ low = 0.1, high = 0.3 }}
"ppo.epochs" = {{ low = 1, high = 4 }}
"collect.games" = {{ low = 16, high = 50, step = 16 }}
"ppo.entropy" = [0.01, "0%:0.02,100%:0.001"]
"net.hidden" = [[16], [32, 16]]
"net.shared" = [true, false]
"set.skip_forced" = [false, true]
opponents = [["self=1"], ["self=0.5", "careful=0.5"]]
"""


def test_any_setting_may_have_a_range(tmp_path: Path) -> None:
    file = read_sweep(str(write_sweep(tmp_path, RANGES)))
    kinds = {name: one.kind for name, one in file.ranges.items()}
    assert kinds["ppo.lr"] == kinds["ppo.clip"] == FLOAT
    assert kinds["ppo.epochs"] == kinds["collect.games"] == INT
    assert kinds["net.hidden"] == kinds["opponents"] == CHOICE
    assert file.ranges["collect.games"].high == 48  # whole steps from the low end
    check_points(file)
    point = {
        "ppo.lr": 1e-3,
        "net.hidden": [32, 16],
        "set.skip_forced": True,
        "opponents": ["self=0.5", "careful=0.5"],
        "ppo.entropy": "0%:0.02,100%:0.001",
    }
    config = config_at(file, point, seed=7, name="trial", folder="here")
    assert config.ppo.lr.values == (1e-3,)
    assert config.ppo.entropy.values == (0.02, 0.001)
    assert config.net.hidden == (32, 16)
    assert config.set == ("skip_forced=1",)
    assert config.opponents == ("self=0.5", "careful=0.5")
    assert (config.seed, config.name, config.runs) == (7, "trial", "here/runs")


def test_ranges_may_stand_in_tables(tmp_path: Path) -> None:
    text = "[sweep.ranges.ppo]\nlr = { low = 1e-4, high = 1e-2, log = true }\nepochs = [1, 2]"
    file = read_sweep(str(write_sweep(tmp_path, text)))
    assert list(file.ranges) == ["ppo.lr", "ppo.epochs"]


def test_orders_are_ranges_of_lists(tmp_path: Path) -> None:
    head = 'game = "cage2"\nupdates = 1\ndevice = "cpu"\n'
    ranges = '"set.order" = { permutation = [0, 1, 2, 3] }'
    file = read_sweep(str(write_sweep(tmp_path, ranges, head=head)))
    config = config_at(file, {"set.order": [3, 1, 0, 2]})
    assert file.ranges["set.order"].kind == PERMUTATION
    assert "order=3,1,0,2" in config.set


def test_the_best_setting_is_a_file_that_train_takes(tmp_path: Path) -> None:
    import tomlkit

    file = read_sweep(str(write_sweep(tmp_path, RANGES)))
    point = {"ppo.lr": 2e-3, "set.skip_forced": True, "net.hidden": [32, 16]}
    preset = tmp_path / "best.toml"
    preset.write_text(tomlkit.dumps(preset_of(file, point)))
    read, wanted = with_preset("", str(preset)), config_at(file, point)
    assert (read.ppo, read.net, read.set) == (wanted.ppo, wanted.net, wanted.set)
    assert read.updates == wanted.updates == 3


BAD = {
    "no game": ("", LR, 'updates = 3\ndevice = "cpu"\n', r"names no game"),
    "no ranges": ("", "", HEAD, r"\[sweep.ranges\] names no setting"),
    "one value": ("", '"ppo.lr" = 0.1', HEAD, r"'ppo.lr' is '0.1', one value"),
    "unknown setting": ("", '"ppo.lrr" = [1, 2]', HEAD, r"'ppo.lrr'.*did you mean 'ppo.lr'"),
    "inner name": ("", "epochs = [1, 2]", HEAD, r"did you mean 'ppo.epochs'"),
    "unknown key": ("", '"ppo.lr" = { low = 1, hihg = 2 }', HEAD, r"no key 'hihg'.*'high'"),
    "no high": ("", '"ppo.lr" = { low = 1e-4 }', HEAD, r"has no high"),
    "turned": ("", '"ppo.lr" = { low = 2, high = 1 }', HEAD, r"low 2 must be below high 1"),
    "log of 0": ("", '"ppo.lr" = { low = 0, high = 1, log = true }', HEAD, r"must be above 0"),
    "log and step": (
        "",
        '"ppo.lr" = { low = 0.1, high = 1.0, step = 0.1, log = true }',
        HEAD,
        r"log and step exclude",
    ),
    "one choice": ("", '"ppo.epochs" = [1]', HEAD, r"has 1 choices; give 2"),
    "twice": ("", '"ppo.epochs" = [1, 2, 1]', HEAD, r"1 is there twice"),
    "value out of range": ("", '"ppo.epochs" = [2, 0]', HEAD, r"'ppo.epochs': 0 is refused: ppo"),
    "corner out of range": (
        "",
        '"ppo.gamma" = { low = 0.5, high = 1.5 }',
        HEAD,
        r"'ppo.gamma': 1.5 is refused: ppo.gamma",
    ),
    "no such flag": ("", '"set.size" = [3, 4]', HEAD, r"'set.size': 3 is refused"),
    "no such bot": ("", 'opponents = [["self=1"], ["captain=1"]]', HEAD, r"captain"),
    "other algorithm": ("", '"dqn.lr" = [0.1, 0.2]', HEAD, r"'dqn.lr': 0.1 is refused: dqn.lr: of"),
    "seed": ("", "seed = [1, 2]", HEAD, r"range 'seed': every trial has a seed of its own"),
    "budget": ("", "updates = [1, 2]", HEAD, r"range 'updates': trials have one budget"),
    "sampler": ('sampler = "tpi"', LR, HEAD, r"sweep.sampler 'tpi'.*did you mean 'tpe'"),
    "search key": ("trails = 3", LR, HEAD, r"no key 'trails'; did you mean 'trials'"),
    "prune": ("prune = 2", LR, HEAD, r"sweep.prune 2 must be .* at least 3"),
    "confirm": ("confirm = -1", LR, HEAD, r"sweep.confirm -1 must be"),
    "raise": ('raise = "strenth"', LR, HEAD, r"sweep.raise 'strenth'.*did you mean 'strength'"),
    "population": ("", LR, HEAD + "population = 4\n", r"population = 4: trials are what differs"),
    "evaluations off": ("", LR, HEAD + "[eval]\noff = true\n", r"eval.off"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_mistake_is_one_line_and_leaves_nothing(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    search, ranges, head, message = BAD[what]
    path = write_sweep(tmp_path / "file", ranges, search, head)
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    assert main(["sweep", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.search(message, printed.err), printed.err
    assert printed.err.count("\n") == 1
    assert str(path) in printed.err
    assert not any(place.iterdir())


def test_a_dry_run_shows_ranges_and_cost_and_trains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head = HEAD.replace("updates = 3", "minutes = 2")
    path = write_sweep(tmp_path / "file", LR, "trials = 12\nat_once = 4\nconfirm = 0", head)
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    assert main(["sweep", str(path), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "0.0001 .. 0.01, log" in printed
    assert re.search(r"cost +about 6.5 minutes", printed)  # three rounds of 2 minutes and 11 s
    assert not any(place.iterdir())
    assert main(["sweep", str(path), "--dry-run", "--minutes", "1"]) == 2
    assert "too short for one round" in capsys.readouterr().err
