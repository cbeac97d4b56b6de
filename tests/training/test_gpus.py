"""Which GPUs a run gets: one for a process, chosen before CUDA is asked; others are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.cli import main
from sparring.config import DistributedConfig, TrainConfig
from sparring.training.planning import gpus
from sparring.training.planning.gpus import CHOSEN, VISIBLE, gpus_of, limited_to
from sparring.training.planning.placement import choose_device, device_of
from sparring.training.planning.plan import resolve

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with some GPUs, as torch would see it."""

    def make(count: int, *, visible: str = "", used: bool = False) -> None:
        monkeypatch.setenv(VISIBLE, visible) if visible else monkeypatch.delenv(VISIBLE, False)
        monkeypatch.setenv(CHOSEN, "")  # removed again at the end of the test
        monkeypatch.delenv(CHOSEN)

        def seen() -> int:
            return len(os.environ[VISIBLE].split(",")) if os.environ.get(VISIBLE) else count

        monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
        monkeypatch.setattr("torch.cuda.device_count", seen)
        monkeypatch.setattr(gpus, "gpus_of_cuda", lambda: count if used else seen())

    return make


@pytest.mark.parametrize(
    ("name", "count", "hint"),
    [
        ("cuda:1", 1, "device 'cuda:1' is not there; torch sees one GPU, cuda:0"),
        ("cuda:4", 2, "device 'cuda:4' is not there; torch sees 2 GPUs, cuda:0 to cuda:1"),
        ("cuda:0", 0, "device 'cuda:0': torch sees no GPU here; use --device cpu"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(
    name: str, count: int, hint: str, machine: Machine
) -> None:
    machine(count)
    with pytest.raises(sparring.ConfigError, match=re.escape(hint)):
        choose_device(name)


def test_the_first_gpu_needs_no_choice(machine: Machine) -> None:
    machine(2)
    assert choose_device("cuda:0") == choose_device("cuda") == choose_device("auto") == "cuda"
    assert VISIBLE not in os.environ


@pytest.mark.parametrize(("visible", "name"), [("", "1"), ("4,6", "6"), ("GPU-a,GPU-b", "GPU-b")])
def test_another_gpu_becomes_the_only_one(visible: str, name: str, machine: Machine) -> None:
    machine(2, visible=visible)
    for _ in range(2):
        assert choose_device("cuda:1") == "cuda"
        assert os.environ[VISIBLE] == name
    with pytest.raises(sparring.ConfigError, match="this program has used another GPU already"):
        choose_device("cuda:0")
    before = visible.split(",") if visible else ["0", "1"]
    assert limited_to(0)[VISIBLE] == before[0]
    assert limited_to(-1) == {}


def test_a_program_that_has_used_cuda_cannot_change_its_gpu(machine: Machine) -> None:
    machine(2, used=True)
    hint = "has used another GPU already; start it anew, or with CUDA_VISIBLE_DEVICES=1 and"
    with pytest.raises(sparring.ConfigError, match=hint):
        choose_device("cuda:1")
    assert VISIBLE not in os.environ
    assert CHOSEN not in os.environ


def test_several_gpus_are_one_for_each_process(machine: Machine) -> None:
    machine(4)
    config = TrainConfig(devices="2,3")
    assert gpus_of(config) == (2, 3)
    assert device_of(config) == "cuda"
    assert os.environ[VISIBLE] == "2"
    assert limited_to(3)[VISIBLE] == "3"
    assert gpus_of(config) == (2, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devices": "0,1,1"}, "devices 0,1,1: GPU 1 is named twice"),
        ({"devices": "0,7"}, "devices 0,7: GPU 7 is not there; torch sees 4 GPUs"),
        ({"devices": "7"}, "devices 7 is not there; torch sees 4 GPUs"),
        ({"devices": "0;1"}, "devices 0;1: give the numbers of GPUs, such as 0 or 0,1"),
        ({"devices": "-1"}, "devices -1: give the numbers"),
        ({"devices": "0,1", "device": "cpu"}, "devices 0,1 and device cpu do not combine"),
    ],
)
def test_devices_that_cannot_be_are_refused(
    given: dict[str, Any], message: str, machine: Machine
) -> None:
    machine(4)
    with pytest.raises(sparring.ConfigError, match=re.escape(message)):
        gpus_of(TrainConfig(**given))


def test_one_gpu_may_be_shared_for_a_test(machine: Machine) -> None:
    machine(1)
    shared = DistributedConfig(shared_gpu=True)
    assert gpus_of(TrainConfig(devices="0,0", distributed=shared)) == (0, 0)


@pytest.mark.parametrize(
    ("game", "given", "message"),
    [
        ("connect_four", {"algo": "dqn"}, "devices 0,1 needs .*, and algo dqn is not one"),
        ("connect_four", {"algo": "gumbel"}, "devices 0,1 needs .*, and algo gumbel is not one"),
        ("skull_king", {"replicas": 2}, "devices 0,1 and replicas 2 do not combine: both say"),
        ("skull_king", {"actors": 2}, "devices 0,1 and actors 2 do not combine"),
        ("skull_king", {"cluster": "local"}, "devices 0,1 and cluster local do not combine"),
        ("skull_king", {"population": 2}, "population"),
    ],
)
def test_what_several_gpus_cannot_do_is_refused(
    game: str, given: dict[str, Any], message: str, machine: Machine
) -> None:
    machine(2)
    config = TrainConfig(game=game, devices="0,1", **given)
    configs = [config] * config.population
    with pytest.raises(sparring.ConfigError, match=message):
        resolve(configs)


@pytest.mark.parametrize("word", ["0,a", "0,", "cuda", "\x1b[0m"])
def test_words_that_are_no_devices_are_refused_in_a_line(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tic_tac_toe", "--devices", word, "--runs", str(tmp_path / "r")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "give the numbers of GPUs, such as 0 or 0,1" in last
    assert "\x1b" not in last
    assert list(tmp_path.iterdir()) == []
