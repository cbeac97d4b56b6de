"""`sparring replay`, and the games that other commands keep for it."""

from __future__ import annotations

import io
import json

import pytest

from sparring import Replay
from sparring.cli import main
from sparring.games.shogi.records import load_record

PLAY = ("play", "tic_tac_toe", "--against", "careful")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Games of bots, kept by `render --save`, by game."""
    folder = tmp_path_factory.mktemp("kept")
    for game in ("tic_tac_toe", "kuhn_poker"):
        path = folder / f"{game}.json"
        words = ["render", "random", "--game", game, "--out", str(folder / f"{game}.svg")]
        assert main([*words, "--seed", "4", "--save", str(path)]) == 0
    return folder


def test_a_kept_game_comes_out_and_another_result_does_not(kept, tmp_path, capsys):
    path = kept / "tic_tac_toe.json"
    assert main(["replay", str(path), "--check"]) == 0
    assert "the result is reproduced" in capsys.readouterr().out
    changed = json.loads(path.read_text()) | {"scores": [7, 7]}
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    assert main(["replay", str(tmp_path / "changed.json"), "--check"]) == 3
    assert "the file says 7, 7" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "changed.json"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["comes_out"] is False
    assert facts["game"] == "tic_tac_toe"


def test_steps_go_to_and_fro(kept, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n\nb\ng 3\ng 99\ng x\nq\nn\n"))
    assert main(["replay", str(kept / "tic_tac_toe.json")]) == 0
    shown = capsys.readouterr().out
    steps = [line.split()[1] for line in shown.splitlines() if line.startswith("step ")]
    last = str(len(Replay.read(kept / "tic_tac_toe.json").actions))
    assert steps == ["0", "1", "2", "1", "3", last]
    assert shown.count("to step 12") == 2  # at the start, and for the word that means nothing


def test_a_seat_sees_what_it_knew(kept, capsys):
    path = str(kept / "kuhn_poker.json")
    shown = []
    for seat in ("-1", "0", "1"):
        assert main(["replay", path, "--text", "--seat", seat]) == 0
        shown.append(capsys.readouterr().out)
    assert len(set(shown)) == 3
    assert main(["replay", path, "--seat", "2"]) == 2
    assert "outside 0..1" in capsys.readouterr().err


def test_the_film_of_a_replay_is_the_film_of_the_game(kept, tmp_path):
    out = tmp_path / "again.svg"
    assert main(["replay", str(kept / "tic_tac_toe.json"), "--out", str(out)]) == 0
    assert out.read_bytes() == (kept / "tic_tac_toe.svg").read_bytes()


def test_a_game_of_shogi_becomes_a_record_for_other_programs(tmp_path, capsys):
    from sparring.games import new_state

    state, actions = new_state("shogi", seed=1), []
    for _ in range(6):
        actions.append(state.legal()[3])
        state.apply(actions[-1])
    game = Replay.of(state, actions, ["black", "white"]).write(tmp_path / "game.json")
    assert main(["replay", str(game), "--out", str(tmp_path / "game.kif")]) == 0
    record = load_record(tmp_path / "game.kif")
    assert len(record.moves) == 6
    assert (record.black, record.white) == ("black", "white")


def test_a_record_of_another_game_is_refused(kept, tmp_path, capsys):
    out = tmp_path / "game.kif"
    assert main(["replay", str(kept / "kuhn_poker.json"), "--out", str(out)]) == 2
    assert "is for Shogi" in capsys.readouterr().err
    assert not out.exists()


def test_a_person_keeps_a_game_with_moves_taken_back(tmp_path, capsys, monkeypatch):
    path = tmp_path / "mine.json"
    monkeypatch.setattr("sys.stdin", io.StringIO("b2\nu\n1\n2\nq\n"))
    assert main([*PLAY, "--seed", "3", "--save", str(path)]) == 0
    replay = Replay.read(path)
    assert replay.players == ("person", "careful")
    assert replay.end is None
    assert len(replay.actions) == 4
    assert replay.differences() == []
    assert main([*PLAY, "--save", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.json"], "cannot read nothing.json"),
        (["x.json", "--check", "--text"], "exclude each other"),
        (["x.json", "--out", "game.txt"], "has to end in"),
        (["x.json", "--out", "nowhere/game.kif"], "no folder nowhere"),
    ],
)
def test_what_cannot_be_shown_is_one_line(words, told, capsys):
    assert main(["replay", *words]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
