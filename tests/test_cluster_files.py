"""Job files for clusters: those that come along fit, and a slip in one is refused in a line."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "cluster"
FILES = sorted(
    path for path in FOLDER.iterdir() if path.suffix in (".slurm", ".sub", ".sh", ".yaml")
)


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_jobs", FOLDER / "check.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_files_fit(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("yaml")
    assert len(FILES) == 5
    assert check.main([*map(str, FILES), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "sparring train skull_king --minutes 30 --seed 7 --name skull_king-seed-7" in said
    assert said.count(": fits") == 5 and "ray start --head" in said


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("seeds.slurm", "--cpus-per-task", "--cpu-per-task", "sbatch has no option 'cpu-per-task'"),
        ("seeds.slurm", "--mem=8G", "--mem", "--mem takes a value, as in --mem=VALUE"),
        ("ray.slurm", "--exclusive", "--exclusive=yes", "--exclusive takes no value"),
        ("seeds.slurm", "#SBATCH --nodes", "true\n#SBATCH --nodes", "#SBATCH after a command"),
        ("seeds.slurm", "fi\n", "", "line 2"),
        ("seeds.slurm", "--threads", "--thread", "train has no option --thread; did you mean"),
        ("seeds.sub", "request_cpus = 8", "request_cpu = 8", "HTCondor has no 'request_cpu'; did"),
        ("seeds.sub", "log = sparring-$(Cluster).log\n", "", "log is missing"),
        ("seeds.sub", "queue 8\n", "", "queue is missing"),
        ("seeds.sub", "queue 8\n", "queue 8\ngetenv = true\n", "getenv stands after queue"),
        ("seeds.sub", "--minutes", "--minute", "train has no option --minute"),
        ("rayjob.yaml", "rayClusterSpec", "rayCluster", "has no 'rayCluster'; did you mean"),
        ("rayjob.yaml", "minReplicas: 3", 'minReplicas: "3"', "minReplicas is '3', need int"),
        ("rayjob.yaml", "mode: token", "mode: disabled", "uses clusters with a token alone"),
        ("rayjob.yaml", "kind: RayJob", "kind: Job", "kind RayJob or RayCluster"),
        ("rayjob.yaml", "  name: sparring", "  name: [", "while parsing"),
        ("rayjob.yaml", "--actors", "--actor", "train has no option --actor; did you mean"),
        ("rayjob.yaml", "kind: RayJob", "kind: [RayJob]", "kind RayJob or RayCluster"),
        ("rayjob.yaml", "\nspec:", "\nmetadata:", "spec is missing"),
        ("processes.sh", "sparring train", "sparring trian", "is none of sparring train, resume"),
        ("processes.sh", "--replicas 4 ", "\\\n  --replica 4 ", "train has no option --replica;"),
    ],
)
def test_a_slip_is_refused_in_a_line(
    name: str,
    before: str,
    after: str,
    said: str,
    check: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name.endswith(".yaml"):
        pytest.importorskip("yaml")
    text = (FOLDER / name).read_text()
    assert before in text
    (tmp_path / name).write_text(text.replace(before, after, 1))
    assert check.main([str(tmp_path / name)]) == 2
    found = capsys.readouterr().err
    assert said in found and found.count("\n") == 1


def test_files_of_another_kind_are_refused(
    check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main([str(tmp_path / "job.txt")]) == 2
    assert check.main([str(tmp_path / "none.sub")]) == 2
    (tmp_path / "idle.sh").write_text("echo hello\n")
    assert check.main([str(tmp_path / "idle.sh")]) == 2
    said = capsys.readouterr().err
    assert "give a file that ends in .slurm" in said and "cannot read" in said
    assert "starts no command of sparring" in said
