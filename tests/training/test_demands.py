"""What a machine or an account cannot give is one line before a run, and nothing is left."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.cli import main
from sparring.config import NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.training.planning import checks
from sparring.training.planning.checks import check_networks, check_targets
from sparring.training.planning.plan import resolve
from sparring.training.planning.requests import combination
from sparring.training.planning.roles import nets_by_role, read_roles
from sparring.training.planning.settings import merged

QUICK = "train tic_tac_toe --updates 1 --threads 1 --net.hidden 8 --eval.off --eval.final-games 8"
QUICK += " --collect.games 8 --collect.steps 8 --no-tensorboard"


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--collect.games 1000000000000", "at most"),
        ("--collect.games 8 --collect.steps 100000000000", "are free; at most"),
        ("--net.hidden " + "8192 " * 63, "the network (net.hidden 8 8192 8192"),
        ("--net.kind residual --net.channels 1024 --net.blocks 128", "net.channels 1024"),
        ("--collect.groups 9", "collect.groups 9 must be at most collect.games, which is 8"),
        ("--collect.steps 1", "raise collect.steps"),
        ("--ppo.gamma-into 1 1", "needs one for each role: player"),
        ("--opponents self=0", "must be above 0"),
        ("--opponents self=1 random=-1", "the weight of 'random=-1' must be above 0"),
        ("--opponents self=nan", "must be above 0"),
        ("--opponents self=inf", "must be above 0"),
        ("--vary ppo.clip=-1,1 --population 2", "vary: ppo.clip -1 must be at least 0"),
        ("--runs {tmp}/file/runs", "file is no folder; choose another place"),
        ("--runs {tmp}/file", "file is no folder; choose another place"),
        ("--runs " + "x" * 300, "runs"),
        ("--wandb", "wandb"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: str,
    hint: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").write_text("a file\n")
    assert main([*QUICK.split(), *words.format(tmp=tmp_path).split()]) == 2
    shown = capfd.readouterr()
    (line,) = shown.err.splitlines()
    assert hint in line
    assert [path.name for path in tmp_path.rglob("*") if path.name != "file"] == []


def test_wandb_without_a_login_is_refused_before_a_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that fails as wandb does without an account, found instead of the real one."""
    (tmp_path / "wandb.py").write_text("def init(**_):\n    raise ValueError('no network')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    runs = tmp_path / "runs"
    words = [*QUICK.split(), "--runs", str(runs), "--wandb"]
    assert main(words) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "run `wandb login` first" in line
    assert not runs.exists()
    login = tmp_path / ".netrc"
    login.write_text("machine api.wandb.ai\n  login user\n  password x\n")
    login.chmod(0o600)
    assert main(words) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "wandb cannot begin: no network" in line
    assert not runs.exists()


def test_a_foreign_folder_in_place_of_runs_is_one_error_in_python(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(sparring.ConfigError, match="is no folder"):
        sparring.train("tic_tac_toe", updates=1, quiet=True, runs=str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("words", "shown"), [("train tic_tac_toe --help", b"--net.hidden"), (QUICK, b" +- ")]
)
def test_output_that_knows_only_ascii_gets_similar_characters(
    words: str, shown: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert main(words.split()) == 0
    sys.stdout.flush()
    assert shown in out.getvalue()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"distributed": {"lockstep": True}}, "distributed.lockstep True.*add --actors N"),
        ({"env": {"groups": 3}}, "env.groups 3.*add --workers N"),
    ],
)
def test_settings_of_processes_that_are_not_there_are_refused(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        sparring.train("tic_tac_toe", updates=1, quiet=True, runs=str(tmp_path / "runs"), **given)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"net": {"token_width": 32}}, "net.token_width 32 needs .*add --net.kind attention"),
        ({"net": {"set": ("width=3",)}}, "net.set width=3 needs .*--net.kind module:Class"),
        ({"net": {"frames": 3}}, "net.frames 3 needs .*add --net.memory stack"),
        ({"net": {"bptt_steps": 4}}, "net.bptt_steps 4 needs .*add --net.memory gru"),
        ({"net": {"shared": False, "policy_hidden": (8, 4)}}, "hidden 8 4 needs .*--net.shared"),
        ({"net": {"kind": "residual", "value_hidden": (8,)}}, "hidden 8 needs .*--net.kind mlp"),
        ({"heads": {"blend": 0.5}}, "heads.blend 0.5: .*give its weight with --heads.wdl"),
        ({"algo": "dqn", "heads": {"wdl": 1}}, "heads.wdl 1 needs .*, and algo dqn is not one"),
        ({"algo": "my:make", "heads": {"score": 1}}, "heads.score 1 needs .* custom learner"),
        ({"imitation": {"epochs": 2}}, "imitation.epochs 2: .*add --imitate"),
        ({"imitate_minutes": 2}, "imitate_minutes 2: .*add --imitate"),
    ],
)
def test_settings_of_networks_that_nothing_would_come_of_are_refused(
    given: dict[str, Any], said: str
) -> None:
    config = merged(TrainConfig(game="tic_tac_toe"), given, "train")
    with pytest.raises(ConfigError, match=said):
        check(config)


def check(config: TrainConfig) -> None:
    rules = Rules(config.game)
    nets = nets_by_role(read_roles(rules, [config]), config)
    if refused := combination(rules, config, nets).refusal():
        raise ConfigError(refused)
    check_networks(rules, config, nets)


def test_roles_are_asked_for_such_settings_too() -> None:
    words = ("worker.net.token_layers=3",)
    given: dict[str, Any] = {"hierarchy": {"on": True}, "roles": words}
    config = merged(TrainConfig(game="skull_king"), given, "train")
    with pytest.raises(ConfigError, match=r"roles worker\.net\.token_layers 3 needs"):
        check(config)
    given = {"hierarchy": {"on": True}, "heads": {"hidden": 1}}
    with pytest.raises(ConfigError, match=r"heads\.hidden 1 needs .* leave hierarchy\.on out"):
        check(merged(TrainConfig(game="skull_king"), given, "train"))


def test_advice_for_a_network_by_role_can_be_followed() -> None:
    """The preset leaves blocks out for the manager, which nobody typed and nobody can leave out."""
    rules, preset = Rules("skull_king"), game_module("skull_king", "preset").HIERARCHY["roles"]
    words = (f"manager.net.inputs={','.join(preset['manager']['net']['inputs'])}",)
    wanted: dict[str, Any] = {"hierarchy": {"on": True}, "net": {"kind": "attention"}}

    def nets(*more: str) -> dict[str, Any]:
        told = merged(TrainConfig(game="skull_king"), {**wanted, "roles": words + more}, "train")
        check(told)
        return nets_by_role(read_roles(rules, [told]), told)

    def advice_of(wrong: pytest.ExceptionInfo[ConfigError]) -> list[str]:
        return re.findall(r"--roles (\S+?)(?:,|$)", str(wrong.value))

    with pytest.raises(ConfigError, match=r"roles manager\.net\.inputs hand .* needs") as wrong:
        nets()
    assert len(advice_of(wrong)) == 2
    for advice in advice_of(wrong):
        assert make_net(rules, NetConfig(), roles=nets(advice)), advice
    wanted["net"] = {"token_width": 32}
    with pytest.raises(ConfigError, match=r"token_width 32 needs .* net\.kind mlp is") as wrong:
        nets("worker.net.kind=attention")
    assert advice_of(wrong) == ["manager.net.kind=attention", "manager.net.token_width=64"]
    wanted["net"] = {}
    nets("worker.net.kind=attention", "worker.net.token_width=32")


@pytest.mark.parametrize("target", [1.5, 1.0, 0.0, -2.0])
def test_a_win_share_that_means_nothing_is_no_target(target: float) -> None:
    config = merged(TrainConfig(game="tic_tac_toe"), {"eval": {"target": (0.6, target)}}, "train")
    told = rf"eval\.target {target:g}: tic_tac_toe is measured by the win share.*such as 0\.6"
    with pytest.raises(ConfigError, match=told):
        resolve([config], played=False)


def test_a_score_of_one_seat_may_be_any_target() -> None:
    check_targets(Rules("cage2"), (-500.0, 7.5))


def test_presets_may_say_what_suits_another_kind_of_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preset = game_module("skull_king", "preset")
    config = merged(TrainConfig(game="skull_king"), {"net": {"token_width": 32}}, "train")
    with pytest.raises(ConfigError, match="token_width"):
        check(config)
    suits = {"net": {"kind": "attention", "token_width": 32}}
    monkeypatch.setattr(preset, "PRESET", suits)
    check(config)


def test_more_frames_than_rows_have_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_MEMORY", 1024)
    net = {"memory": "stack", "frames": 64}
    config = merged(TrainConfig(game="tic_tac_toe"), {"net": net}, "train")
    with pytest.raises(ConfigError, match=r"net\.frames 64: .*at most .* frames are remembered"):
        check(config)


@pytest.mark.parametrize("word", ["x" * 300, "a\0b", "nowhere"])
def test_a_start_that_no_disk_could_hold_is_one_error(word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="init: no policy"):
        sparring.train("tic_tac_toe", updates=1, init=word, quiet=True, runs=str(tmp_path))
