"""What is tried, what is written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring.cli import main
from sparring.commands.tune import verdict
from sparring.config import TrainConfig
from sparring.config.tools import TuneConfig
from sparring.errors import ConfigError
from sparring.sweep.grid import make_grid
from sparring.sweep.parameters import (
    CHANGES_LEARNING,
    TuneCandidate,
    TuneContext,
    select_parameters,
    tunable_parameters,
)
from sparring.sweep.settings import MARK, file_for, settings_of, write_settings
from sparring.sweep.speed_search import SpeedResult, SpeedTrial
from sparring.training.planning.settings import merged, with_preset

CPU = TuneContext(cores=4, threads=4)
GPU = TuneContext(cores=16, threads=16, device="cuda", games_on="cuda", gpu=True)
OWN = TuneContext(cores=4, threads=4, is_custom=True)


def names(config: TrainConfig, context: TuneContext, *, free_device: bool = False) -> set[str]:
    return {
        parameter.name for parameter in tunable_parameters(config, context, free_device=free_device)
    }


def test_knobs_follow_the_algorithm_and_the_place() -> None:
    ppo, dqn = with_preset("skull_king"), with_preset("skull_king", algo="dqn")
    sizes = {"collect.games", "collect.steps"}
    assert names(ppo, CPU) == sizes | {"ppo.minibatch", "threads", "collect.groups"}
    assert names(dqn, CPU) == sizes | {"replay.batch", "threads", "collect.groups"}
    on_gpu = with_preset("skull_king", gpu=True)
    assert names(on_gpu, GPU, free_device=True) == sizes | {
        *("ppo.minibatch", "collect.bf16", "pool", "device"),
    }
    assert names(ppo, OWN) == sizes | {"ppo.minibatch", "threads", "workers"}
    fixed = TuneContext(cores=4, threads=4, is_custom=True, fixed_games=True)
    assert "collect.games" not in names(ppo, fixed)


def test_values_are_powers_of_two_around_the_preset() -> None:
    parameters = {
        parameter.name: parameter
        for parameter in tunable_parameters(with_preset("skull_king"), CPU)
    }
    assert parameters["collect.games"].choices == (64, 128, 256, 512, 1024, 2048)
    assert parameters["threads"].choices == (1, 2, 4)
    for parameter in parameters.values():
        assert parameter.start in parameter.choices


def test_only_and_same_learning_choose() -> None:
    parameters = tunable_parameters(with_preset("skull_king"), CPU)
    pure = select_parameters(parameters, (), same_learning=True)
    assert {parameter.name for parameter in pure} == {"threads", "collect.groups"}
    some = select_parameters(parameters, ("collect.games=32,64", "threads"), same_learning=False)
    assert [parameter.name for parameter in some] == ["collect.games", "threads"]
    assert some[0].choices == (32, 64, 256), "the preset's own value is among them"
    for words, told in {
        ("collect.gmes",): "did you mean 'collect.games'",
        ("collect.games=a",): "give whole numbers",
        ("collect.games=",): "give whole numbers",
        ("net.hidden",): "nothing to try called",
    }.items():
        with pytest.raises(ConfigError, match=told):
            select_parameters(parameters, words, same_learning=False)
    with pytest.raises(ConfigError, match="give whole numbers"):
        select_parameters(
            tunable_parameters(with_preset("skull_king"), OWN),
            ("workers=auto,2",),
            same_learning=False,
        )
    with pytest.raises(ConfigError, match="changes what is learned"):
        select_parameters(parameters, ("collect.games",), same_learning=True)


def test_points_that_mean_nothing_are_not_opened() -> None:
    grid = make_grid(TuneConfig("tic_tac_toe", device="cpu"))
    point = grid.preset.replaced({"collect.games": 64, "collect.steps": 8, "ppo.minibatch": 1024})
    assert "512 rows" in grid.unsupported_reason(point)
    assert not grid.unsupported_reason(grid.preset)


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_the_file_gives_train_the_settings_that_were_timed(tmp_path: Path, algo: str) -> None:
    given = tmp_path / "mine.toml"
    given.write_text('minutes = 1.5\nname = "x"\n[net]\nhidden = [32]\n[collect]\nsteps = 16\n')
    asked = TuneConfig("skull_king", device="cpu", algo=algo, config=str(given), set=("ghost=1",))
    grid = make_grid(asked)
    turned = {"collect.games": 512, "threads": 1}
    point = grid.preset.replaced(turned)  # type: ignore[arg-type]
    path = tmp_path / "tuned.toml"
    table = settings_of(grid.base, asked.config, point, asked.set)
    write_settings(path, table, [MARK, "+38% (31..44)", "a machine"])
    assert path.read_text().startswith(f"# {MARK}")
    read = with_preset("skull_king", str(path))
    wanted = merged(grid.config(point), {"config": str(path), "name": ""}, "test")
    assert read == wanted
    assert (read.collect.games, read.collect.steps, read.threads) == (512, 16, 1)
    assert read.net.hidden == (32,) and read.minutes == 1.5 and "ghost=1" in read.set


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    other = tmp_path / "mine.toml"
    other.write_text("minutes = 1\n")
    with pytest.raises(ConfigError, match="not of sparring tune"):
        file_for("tic_tac_toe", str(other))
    earlier = tmp_path / "tuned.toml"
    write_settings(earlier, {"game": "tic_tac_toe"}, [MARK])
    assert file_for("tic_tac_toe", str(earlier)) == earlier
    assert file_for("my/env.py:make", "").name == "tuned-env_make.toml"


def test_what_an_earlier_search_found_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("tuned-tic_tac_toe.toml", "tuned-tic_tac_toe-2.toml", "tuned-tic_tac_toe-3.toml"):
        assert file_for("tic_tac_toe", "").name == name
        write_settings(Path(name), {"game": "tic_tac_toe"}, [MARK])


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_timed() -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        file_for("tic_tac_toe", "/proc/self/tuned.toml")


def test_what_could_not_be_timed_again_is_said() -> None:
    preset, other = (TuneCandidate((("threads", threads),)) for threads in (2, 1))
    tried = SpeedTrial(other, "faster", 1.0, why="memory ran out")
    found = SpeedResult(preset, preset, preset_rate=1000.0, tried_best=tried)
    assert verdict(found).endswith(
        "; threads 1 seemed better but was not confirmed: memory ran out"
    )
    assert found.plain()["unconfirmed"] == {"settings": {"threads": 1}, "why": "memory ran out"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("tic_tac_toe --only collect.gmes", "did you mean 'collect.games'"),
        ("tic_tac_toe --for fame", "use speed or strength"),
        ("tic_tac_toe --minutes 0", "minutes 0.0 must be"),
        ("tic_tac_toe --out tuned.txt", "has to end in .toml"),
        ("tic_tac_toe --out none/tuned.toml", "there is no folder"),
        ("tic_tac_toe --target 0.5", "is for --for strength"),
        ("tic_tac_toe --only collect.groups=1", "that is what it has already"),
        ("tic_tac_toe --only collect.games=0,64", "games 0 must"),
        ("tic_tac_toe --gigabytes 1e-6", "give more"),
        ("tic_tac_toe --config cluster.toml", "tune times one run"),
        ("tic_tac_to", "did you mean"),
        ("tic_tac_toe --device cuda:7", "device"),
    ],
)
def test_what_is_wrong_is_one_line(
    words: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.toml").write_text("actors = 2\n")
    assert main(["tune", *words.split()]) == 2
    shown = capsys.readouterr().err.strip()
    assert told in shown and "\n" not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.toml"]


def test_a_point_says_what_differs() -> None:
    point = TuneCandidate((("collect.games", 512), ("collect.bf16", False), ("threads", 2)))
    other = TuneCandidate((("collect.games", 256), ("collect.bf16", True), ("threads", 2)))
    assert point.describe_changes(other) == "games 512, bf16 off"
    assert point.table == {"collect": {"games": 512, "bf16": False}, "threads": 2}
    assert "ppo.minibatch" in CHANGES_LEARNING and "threads" not in CHANGES_LEARNING
