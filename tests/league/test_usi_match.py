"""`sparring eval --engine`: matches against USI engines, good ones and broken ones."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sparring import Rules
from sparring.cli import main
from sparring.config import NetConfig
from sparring.config.commands import EvalConfig
from sparring.games import shogi
from sparring.games.shogi.protocol import game_seed
from sparring.league.usi import engine as usi_engine
from sparring.league.usi.engine import Engine, EngineError
from sparring.league.usi.match import play_match, random_opening
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy

FAKE = f"{sys.executable} {Path(__file__).with_name('fake_usi_engine.py')}"
OURS = f"{Path(sys.executable).with_name('sparring')} usi"
FAIRY = shutil.which("fairy-stockfish", path=f"{os.environ.get('PATH', '')}:/usr/games")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["eval", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    assert main(["eval", *words]) == code
    return capsys.readouterr().err


def test_a_match_counts_every_game_with_both_colors(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "ab2", "--engine", FAKE, "--games", "8", "--engine-limit", "nodes=1")
    result = found["results"]["fake"]
    assert (result["wins"], result["losses"], result["games"]) == (8, 0, 8)
    assert result["seat_games"] == [4, 4]
    assert (result["deals"], result["distinct_deals"], result["distinct_games"]) == (4, 4, 8)
    assert result["opening_plies"] == found["openings"] == 6
    assert result["low"] > 0.5
    assert found["engine"]["limit"] == "nodes=1"
    assert found["faults"] == []


def test_our_own_engine_plays_and_the_match_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("random", "--engine", f"{OURS} greedy", "--games", "2", "--seed", "3")
    first = told(capsys, *words)
    assert first["results"]["sparring greedy"]["losses"] == 2
    assert told(capsys, *words) == first


def test_the_table_names_engine_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "greedy", "--engine", f"{FAKE} resign", "--games", "2"]) == 0
    shown = capsys.readouterr().out
    assert "fake" in shown
    assert "100.0%" in shown
    assert "ends: resignation 2" in shown


def test_a_policy_meets_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = Rules("shogi", {"observation": "PLANES46", "skip_forced": 1})
    net = Perceptron(rules, NetConfig(hidden=(8,)))
    save_policy(Policy(rules, net), tmp_path / "mine")
    words = (str(tmp_path / "mine"), "--engine", FAKE, "--games", "2", "--set", "max_plies=20")
    for sampled in ((), ("--sampled",)):
        found = told(capsys, *words, *sampled)
        assert found["results"]["fake"]["games"] == 2
        assert found["flags"]["observation"] == "PLANES46"


def test_long_games_are_draws(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("random", "--engine", FAKE, "--games", "2", "--set", "max_plies=10")
    result = told(capsys, *words)["results"]["fake"]
    assert result["ties"] == 2
    assert result["ends"] == {"ply limit": 2}
    assert result["length"] == 10


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("mode", "kind", "what"),
    [
        ("crash", "crash", "fake ended with 7 after 'go movetime 100' (out of luck)"),
        ("illegal", "illegal move", "fake sent 5e5d, which is not legal: "),
        ("win", "illegal move", "fake sent win where the rules give none: "),
    ],
)
def test_a_fault_loses_the_game_and_is_reported(
    mode: str, kind: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, "random", "--engine", f"{FAKE} {mode}", "--games", "2")
    assert found["results"]["fake"]["wins"] == 2
    assert found["results"]["fake"]["ends"] == {kind: 2}
    assert [fault["kind"] for fault in found["faults"]] == [kind, kind]
    assert found["faults"][0]["message"].startswith(what)


def test_silence_loses_the_game_too() -> None:
    config = EvalConfig("random", engine=f"{FAKE} silent", games=2, engine_timeout_s=0.2)
    match = play_match("random", Rules("shogi"), config, lambda _: None, start_s=30.0)
    assert match.result.ends == {"timeout": 2}
    assert match.faults[0].message == "fake did not answer 'go movetime 100' in time"


def test_the_limit_holds_for_the_start_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    patience = ("--engine-timeout-s", "0.3")
    wrong = refusal(capsys, "random", "--engine", "cat", *patience, code=3)
    assert "cat did not answer 'usi' in time; it had 0.3 s to start" in wrong


def test_an_engine_goes_on_after_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--games", "2", "--opening-plies", "0", "--set", "max_plies=4")
    found = told(capsys, "random", "--engine", f"{FAKE} once", *words)
    assert found["results"]["fake"]["ends"] == {"ply limit": 1, "illegal move": 1}


@pytest.mark.parametrize("engine", ["", " "])
def test_an_engine_that_an_empty_variable_names_is_refused(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise another match is played and reported than the one that was asked for."""
    told = refusal(capsys, "random", "--engine", engine, "--games", "2")
    assert "--engine is empty; give a command such as" in told


def test_an_engine_that_always_fails_stops_the_match(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = refusal(capsys, "random", "--engine", f"{FAKE} crash", "--games", "8", code=3)
    assert "stopped after 3 games of 8: the engine failed in 3 games in a row" in wrong
    assert "fake ended with 7" in wrong


def test_what_was_played_is_kept_when_a_match_is_interrupted() -> None:
    def interrupt(games: int) -> None:
        if games == 3:
            raise KeyboardInterrupt

    config = EvalConfig("random", engine=FAKE, opening_plies=0)
    match = play_match("random", Rules("shogi", {"max_plies": 4}), config, interrupt)
    assert (match.result.games, match.stopped) == (3, "interrupted")


def test_what_was_played_is_kept_when_an_engine_does_not_start_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = f"{FAKE} mortal {tmp_path / 'lived'}"
    assert main(["eval", "random", "--engine", engine, "--games", "4", "--json"]) == 3
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    result = found["results"]["fake"]
    assert (result["games"], result["wins"], result["score_low"]) == (1, 1, None)
    assert [fault["kind"] for fault in found["faults"]] == ["crash"]
    assert "could not be restarted" in found["stopped"]
    assert "no second life" in found["stopped"]
    assert "stopped after 1 games of 4: the engine could not be restarted" in shown.err
    (tmp_path / "lived").unlink()
    assert main(["eval", "random", "--engine", engine, "--games", "4"]) == 3
    assert "1.00 ± ?" in capsys.readouterr().out


def is_running(pid: int) -> bool:
    """Whether a process is there and no corpse that waits to be counted."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.parametrize("mode", ["plain", "stubborn"])
def test_no_process_is_left(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usi_engine, "QUIT_S", 0.2)
    with Engine(f"{FAKE} {mode}") as engine:
        assert engine.process is not None
        process = engine.process
        assert process.poll() is None
    assert process.poll() is not None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_what_an_engine_started_ends_with_it(tmp_path: Path) -> None:
    with Engine(f"{FAKE} parent {tmp_path / 'pid'}"):
        child = int((tmp_path / "pid").read_text())
        assert is_running(child)
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        os.sched_yield()
    assert not is_running(child)


def test_an_engine_is_told_how_each_game_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mate_in_one = tmp_path / "book.txt"
    mate_in_one.write_text("4k4/9/4P4/9/9/9/9/9/4K4 b G 1\n")
    log = tmp_path / "log"
    words = ("--games", "2", "--openings", str(mate_in_one), "--set", "max_plies=2")
    told(capsys, "greedy", "--engine", f"{FAKE} log {log}", *words)
    said = [line for line in log.read_text().splitlines() if line.startswith(("usin", "gameo"))]
    # The challenger mates with Black; the engine plays by the alphabet until the limit.
    assert said == ["usinewgame", "gameover lose", "usinewgame", "gameover draw"]


def test_an_engine_hears_all_three_ends(tmp_path: Path) -> None:
    with Engine(f"{FAKE} log {tmp_path / 'log'}") as engine:
        for score in (1.0, -1.0, 0.0):
            engine.game_over(score)
    said = (tmp_path / "log").read_text().splitlines()
    assert said[-4:-1] == ["gameover win", "gameover lose", "gameover draw"]


def test_an_engine_that_talks_past_its_time_is_late() -> None:
    with Engine(f"{FAKE} chatty") as engine, pytest.raises(EngineError) as fault:
        engine.move("position startpos", "go", 0.1)
    assert fault.value.kind == "timeout"


def test_an_answer_counts_by_when_it_came() -> None:
    engine, now = Engine(FAKE), time.monotonic()
    engine.lines.put((now - 9, "bestmove 1a1b"))  # said before it was asked
    engine.lines.put((now - 4, "bestmove 7g7f"))
    engine.lines.put((now - 2, "bestmove 2g2f"))
    assert engine.read_line(now - 3, "go", since=now - 5) == ["bestmove", "7g7f"]
    with pytest.raises(EngineError, match="did not answer 'go' in time"):
        engine.read_line(now - 3, "go", since=now - 5)


def test_games_of_neighboring_seeds_have_no_seed_in_common() -> None:
    seeds = [{game_seed(seed, number) for number in range(500)} for seed in range(4)]
    assert len(set.union(*seeds)) == 4 * 500
    assert game_seed(3, 4) == game_seed(3, 4)


def test_an_engine_that_never_gets_ready_is_an_error() -> None:
    engine = Engine(f"{FAKE} deaf", start_s=1.5)
    with pytest.raises(EngineError, match="did not answer"), engine:
        pass
    assert engine.process is None


def test_openings_differ_repeat_and_are_not_over() -> None:
    rules = Rules("shogi")
    found = [random_opening(rules, 6, 1, number) for number in range(8)]
    assert found == [random_opening(rules, 6, 1, number) for number in range(8)]
    assert len(set(found)) == 8
    assert {len(opening.moves) for opening in found} == {6}


def test_openings_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mate_in_one = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    book = tmp_path / "book.txt"
    book.write_text(f"# one\n{mate_in_one}\n\nposition startpos moves 7g7f  # two\n")
    words = ("--games", "4", "--openings", str(book), "--set", "max_plies=2")
    found = told(capsys, "greedy", "--engine", f"{FAKE}", *words)
    assert found["openings"] == str(book)
    assert found["results"]["fake"]["ends"]["checkmate"] >= 1
    book.write_text(f"{shogi.START}\n4k4/9 b - 1\n")
    assert "book.txt, line 2: shogi: " in refusal(capsys, "greedy", "--engine", FAKE, *words)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--engine", "no-such-engine"], "cannot start no-such-engine"),
        (["--engine", "' '"], "cannot start"),
        (["--engine", "'"], "cannot be read"),
        (["--engine", FAKE, "--games", "3"], "must be even"),
        (["--engine", FAKE, "--against", "ab2"], "exclude each other"),
        (["--engine", FAKE, "--game", "skull_king"], "not skull_king"),
        (["--engine", FAKE, "--engine-limit", "fast"], "is none of movetime=NUMBER"),
        (["--engine", FAKE, "--engine-limit", "movetime=30000"], "raise --engine-timeout-s"),
        (["--engine", FAKE, "--engine-limit", f"nodes={'9' * 5000}"], "from 1 to 2147483647"),
        (["--engine", FAKE, "--engine-limit", "nodes=-5"], "from 1 to 2147483647"),
        (["--engine", FAKE, "--engine-limit", "nodes=٣"], "from 1 to 2147483647"),
        (
            ["--engine", FAKE, "--engine-timeout-s", "nan"],
            "must be a finite number above 0",
        ),
        (
            ["--engine", FAKE, "--engine-timeout-s", "inf"],
            "must be a finite number above 0",
        ),
        (["--engine", FAKE, "--engine-timeout-s", "-1"], "must be above 0"),
        (["--engine", FAKE, "--engine-option", "Full Name=1\nquit"], "has to be one line"),
        (["--engine", FAKE, "--set", f"max_plies={'9' * 400}"], "max_plies"),
        (["--engine", "fake\0"], "cannot start"),
        (["--engine", FAKE, "--openings", "a\0b"], "cannot read --openings"),
        (["--engine", FAKE, "--engine-option", "Hash"], "is not key=value"),
        (["--engine", FAKE, "--engine-option", "FullName=1"], "did you mean 'Full Name'?"),
        (["--engine", FAKE, "--opening-plies", "-1"], "must be from 0 to 100"),
        (["--engine", FAKE, "--set", "max_plies=6"], "leaves no move to play with max_plies=6"),
        (["--engine", FAKE, "--openings", "none.txt"], "cannot read --openings none.txt"),
        (["--openings", "x", "--game", "shogi"], "--openings is for matches with --engine"),
    ],
)
def test_wrong_options_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refusal(capsys, "greedy", *words)


@pytest.mark.skipif(FAIRY is None, reason="fairy-stockfish is not installed")
def test_fairy_stockfish_accepts_our_games(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--engine-limit", "depth=1", "--engine-option", "Skill Level=-20", "--games", "4")
    found = told(capsys, "greedy", "--engine", str(FAIRY), *words)
    (result,) = found["results"].values()
    assert result["games"] == 4
    assert found["faults"] == []
