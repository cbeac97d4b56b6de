"""Games of a match come back as they were: scores, ends, lengths, openings, sampled moves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparring import Replay, Rules
from sparring.cli import main
from sparring.league.arena import play_match
from sparring.league.match_batch import ReplayRecorder


def any_player(obs, mask, rng):
    """A player whose moves nobody could draw again."""
    if not mask.any():  # continuous actions
        return rng.uniform(-1, 1, (len(obs), 4)).astype(np.float32)
    return np.array([rng.choice(np.flatnonzero(row)) for row in mask], np.int32)


@pytest.mark.parametrize(
    ("game", "flags", "plies"),
    [
        ("tic_tac_toe", {}, 3),
        ("leduc_poker", {"skip_forced": 1}, 0),
        ("kuhhandel", {"skip_forced": 1}, 0),
        ("laser_hockey", {}, 0),
        ("cage2", {}, 0),
    ],
)
def test_games_of_a_match_are_kept_as_they_were(game, flags, plies):
    rules = Rules(game, flags)
    recorder = ReplayRecorder(5)
    seats = [any_player] + [rules.bots[-1]] * (rules.seats - 1)
    result = play_match(rules, seats, games=12, seed=7, opening_plies=plies, recorder=recorder)
    assert (len(recorder.replays), recorder.failed) == (5, 0)
    deals = result.deals
    for at, (replay, seat) in enumerate(zip(recorder.replays, recorder.seats, strict=True)):
        line = seat * deals + at // rules.seats
        again = Replay.from_json(replay.to_json())
        assert again.differences() == []
        assert again.scores == tuple(result.record.score[line].tolist())
        assert len(again.actions) == result.record.length[line]
        assert again.players[seat] == "any_player"


def test_keeping_changes_no_result():
    rules = Rules("kuhn_poker")
    seats = [any_player, "solver" if "solver" in rules.bots else rules.bots[-1]]
    plain = play_match(rules, seats, games=64, seed=1)
    kept = play_match(rules, seats, games=64, seed=1, recorder=ReplayRecorder(64))
    assert (plain.record.score == kept.record.score).all()


def test_only_first_games_of_tables_can_be_kept():
    recorder = ReplayRecorder(100)
    rules = Rules("kuhn_poker")
    play_match(rules, ["random", "random"], games=40, parallel=8, recorder=recorder)
    assert len(recorder.replays) == 8
    assert {replay.index for replay in recorder.replays} == {0, 1, 2, 3}


def test_eval_and_arena_keep_games_in_folders(tmp_path, capsys):
    words = ["eval", "random", "--game", "tic_tac_toe", "--games", "8", "--save-max", "3"]
    assert main([*words, "--save-games", str(tmp_path / "e"), "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)["saved"]
    assert [name.removeprefix(str(tmp_path)) for name in saved] == [
        "/e/careful/tic_tac_toe-0-0-seat0.json",
        "/e/careful/tic_tac_toe-0-0-seat1.json",
        "/e/careful/tic_tac_toe-0-1-seat0.json",
    ]
    assert main([*words, "--save-games", str(tmp_path / "e")]) == 2
    assert "holds games already" in capsys.readouterr().err
    words = ["arena", "random", "careful", "--game", "tic_tac_toe", "--games", "8"]
    assert main([*words, "--save-games", str(tmp_path / "a")]) == 0
    assert "8 games saved" in capsys.readouterr().out
    files = sorted((tmp_path / "a" / "random-against-careful").iterdir())
    assert len(files) == 8
    assert all(Replay.read(file).differences() == [] for file in files)
