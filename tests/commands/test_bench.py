from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparring import Pool, Rules
from sparring.cli import main
from sparring.commands.bench import pool as bench
from sparring.errors import SparringWarning
from sparring.machine import warn_if_busy

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")

QUICK = "--games 64 --seconds 0.1 --rounds 3"


def report(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> dict:
    assert main([*words.split(), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_bench_proves_then_measures(capsys: pytest.CaptureFixture[str]) -> None:
    shown = report(f"bench pool skull_king {QUICK} --threads 1 --threads 2", capsys)
    proof = shown["proof"]
    assert proof["shortest"] == proof["longest"] == 260
    assert proof["ends"] == {"played out": proof["games"]}
    assert proof["terminated"] == proof["games"]
    assert re.fullmatch(r"[0-9a-f]{16}", proof["signature"])
    cells = {(c["observe"], c["driver"], c["threads"]): c for c in shown["measured"]}
    assert len(cells) == 8
    for cell in cells.values():
        assert 0 < cell["min"] <= cell["decisions_per_s"] <= cell["max"]
        assert len(cell["rounds"]) == 3
    assert {"cpu", "cores", "python", "sparring", "commit", "date"} <= set(shown["machine"])


def test_bots_can_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"bench pool laser_hockey {QUICK} --threads 1"
    shown = report(f"{words} --bots strong --bots weak", capsys)
    assert shown["options"]["bots"] == ["strong", "weak"]
    assert all(cell["decisions_per_s"] > 0 for cell in shown["measured"])
    assert main(f"{words} --bots strong".split()) == 0
    assert "played by strong" in capsys.readouterr().out
    for wrong in ("--bots strongest", "--bots weak --bots weak --bots weak"):
        assert main(f"{words} {wrong}".split()) == 2


def test_memory_is_that_of_the_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    shown = report(f"bench pool skull_king {QUICK} --threads 1", capsys)["memory"]
    rules = Rules("skull_king")
    pool = Pool(rules, 1)
    pool.reset()
    state = pool.state()
    assert shown["state_per_game"] == len(state) - state.index(b"\n") - 1
    assert shown["observation_row"] == rules.obs_bytes
    assert shown["whole_row"] == rules.obs_bytes + rules.actions + 4


def test_the_signature_depends_on_rules_alone(capsys: pytest.CaptureFixture[str]) -> None:
    usual = report(f"bench pool skull_king {QUICK}", capsys)["proof"]["signature"]
    other = report("bench pool skull_king --games 8 --seconds 0.05 --seed 5", capsys)
    assert other["proof"]["signature"] == usual
    changed = report(f"bench pool skull_king {QUICK} --set num_players=3", capsys)
    assert changed["proof"]["signature"] != usual
    assert changed["proof"]["longest"] == 195
    assert changed["flags"] == {"num_players": 3}


def measured_nothing(*_: object) -> None:
    raise AssertionError("a broken game was measured")


def test_lost_cards_stop_the_bench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Pool, "audit", lambda self: "game 7: cards were lost or doubled")
    monkeypatch.setattr(Pool, "run_random", measured_nothing)
    assert main(f"bench pool skull_king {QUICK}".split()) == 3
    shown = capsys.readouterr().out
    assert "cards were lost or doubled" in shown
    assert "decisions/s" not in shown
    failed = report(f"bench pool skull_king {QUICK}", capsys, code=3)
    assert failed["valid"] is False
    assert "measured" not in failed


def test_games_that_differ_between_threads_stop_the_bench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Pool.digest
    monkeypatch.setattr(Pool, "digest", lambda self: honest(self) + (self.threads == 4))
    monkeypatch.setattr(Pool, "run_random", measured_nothing)
    failed = report(f"bench pool tic_tac_toe {QUICK}", capsys, code=3)
    assert any("4 threads" in problem for problem in failed["proof"]["problems"])


def test_the_table_is_readable_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"bench pool tic_tac_toe {QUICK}".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tic_tac_toe: valid, signature ")
    for row in ("with observation, C++", "with observation, Python", "without, C++", "memory:"):
        assert any(line.startswith(row) for line in lines), row
    assert "\x1b" not in "".join(lines)


def test_a_busy_machine_is_told() -> None:
    with pytest.warns(SparringWarning, match="load average 50"):
        warn_if_busy(50.0)


@pytest.mark.parametrize(("cores", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6])])
def test_threads_to_measure(cores: int, counts: list[int]) -> None:
    assert bench.thread_counts(cores) == counts


@pytest.mark.parametrize("line", ["replicas = 2", "actors = 2", 'devices = "0,1"', 'cluster = "x"'])
def test_bench_train_refuses_a_file_for_several_processes(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "several.toml"
    file.write_text(line, "utf-8")
    assert main(["bench", "train", "tic_tac_toe", "--config", str(file)]) == 2
    said = capsys.readouterr().err
    assert (
        f"{line.replace(' =', '').replace(chr(34), '')}: bench train measures one process" in said
    )
