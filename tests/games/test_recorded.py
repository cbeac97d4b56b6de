"""A recorded game comes back as it was, and a file that cannot be played says why in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sparring
from sparring.errors import ConfigError
from sparring.games.recorded import MAX_BYTES, Replay
from sparring.games.shogi import load_sfen, read_sfen

SFEN = "4k4/9/9/9/9/9/9/3R5/4K4 b G 1"


def played(game, seed=3, *, most=60, **options):
    """A game of bots, the best in seat 0: what `Replay.of` takes."""
    state = sparring.new_state(game, seed=seed, **options)
    rules, actions = state.rules, []
    while not state.over and len(actions) < most:
        rows = []
        for row in range(rules.rows):
            seat = state.native.seat(row)
            bot = rules.bots[-1] if seat == 0 else "random"
            nothing = np.zeros(rules.box, np.float32) if rules.box else 0
            rows.append(nothing if seat < 0 else state.ask(bot, row))
        actions.append(rows[0] if rules.rows == 1 else np.stack(rows))
        state.apply(actions[-1])
    return state, actions, [f"player {seat}" for seat in range(rules.seats)]


@pytest.mark.parametrize("game", sparring.game_names())
def test_any_game_comes_back_bit_for_bit(game, tmp_path):
    last, actions, names = played(game)
    Replay.of(last, actions, names).write(tmp_path / "game.json")
    replay = Replay.read(tmp_path / "game.json")
    states = list(replay.states())
    assert len(states) == len(actions) + 1
    assert replay.differences() == []
    assert replay.players == tuple(names)
    # Chances that bots drew are theirs; what the rules know is all there is to a position.
    found, kept = states[-1].fields(), last.fields()
    assert all((found[name] == kept[name]).all() for name in kept)


def test_flags_a_pools_index_and_a_long_seed_come_back(tmp_path):
    pool = sparring.Pool("skull_king", 3, seed=2**60 + 1, config={"num_players": 3}, threads=1)
    pool.reset()
    state, actions = pool.state_of(2), []
    while not state.over:
        actions.append(state.legal()[0])
        state.apply(actions[-1])
    replay = Replay.of(state, actions, ["a", "b", "c"])
    again = Replay.from_json(replay.to_json())
    assert (again.index, again.seed) == (2, 2**60 + 1)
    assert again.plain()["seed"] == str(2**60 + 1)  # no reader of JSON may round it
    assert again.rules.seats == 3
    assert again.differences() == []


def test_a_game_from_a_position_begins_there():
    state = load_sfen(SFEN)
    state.apply(state.legal()[0])
    replay = Replay.from_json(Replay.of(state, [load_sfen(SFEN).legal()[0]], "bw").to_json())
    first, last = replay.states()
    assert read_sfen(first) == SFEN
    assert read_sfen(last) == read_sfen(state)
    assert sparring.load_state(state.serialize()).setup == state.setup


def good():
    return Replay.of(*played("tic_tac_toe")).plain()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"game": "tic_tac_to"}, "no game called 'tic_tac_to'; did you mean 'tic_tac_toe'"),
        ({"rules_version": 999}, "version 999 of the rules of tic_tac_toe"),
        ({"actions": [4, 4]}, "step 2: .*action 4 .* is not legal"),
        ({"actions": [4, [3, 2]]}, "step 2: .* is no action of tic_tac_toe"),
        ({"actions": [True]}, "step 1: True is no action"),
        ({"actions": [0.5]}, "step 1: 0.5 is no action"),
        ({"actions": "4"}, "'actions' is missing or is no list"),
        ({"players": ["one"]}, "players: tic_tac_toe needs 2 names"),
        ({"players": ["one", "\x1b[2J"]}, "players: tic_tac_toe needs 2 names"),
        ({"scores": [1]}, "scores: tic_tac_toe needs 2 numbers"),
        ({"seed": "zero"}, "seed: 'zero' is no whole number"),
        ({"seed": 2**70}, "does not fit into 64 bits"),
        ({"index": -1}, "index: -1 is no number of a game"),
        ({"flags": {"wings": 1}}, "tic_tac_toe has no flag 'wings'"),
        ({"end": "boredom"}, "tic_tac_toe does not end by 'boredom'"),
        ({"setup": [1]}, "setup: this game has no set-up"),
        ({"setup": 1}, "'setup' is missing or is no list"),
        ({"version": 2}, "version 2; this sparring reads version 1"),
        ({"format": "pgn"}, "this is no replay"),
    ],
)
def test_a_replay_that_cannot_be_played_names_the_file_and_the_reason(tmp_path, changes, told):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**good(), **changes}))
    with pytest.raises(ConfigError, match=f"bad.json.*{told}") as refused:
        Replay.read(path).differences()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "this is no replay"),
        ('{"format": "sparring-replay", "version": 1, "seed": NaN}', "NaN is no number"),
        (" " * (MAX_BYTES + 1), "more than 16 MiB"),
    ],
)
def test_what_is_no_replay_is_refused(tmp_path, text, told):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ConfigError, match=f"bad.json: .*{told}"):
        Replay.read(tmp_path / "bad.json")


def test_rows_and_numbers_of_continuous_games_are_checked():
    plain = Replay.of(*played("laser_hockey", most=2)).plain()
    for wrong, told in (
        ([[0, 0, 0, 0]], "needs a list with 2 actions"),
        ([[0, 0], [0, 0]], "is 4 numbers"),
        ([[0, 0, 0, "x"], [0, 0, 0, 0]], "are not numbers"),
        ([[0, 0, 0, 1e39], [0, 0, 0, 0]], "are not numbers"),
    ):
        text = json.dumps({**plain, "actions": [plain["actions"][0], wrong]})
        with pytest.raises(ConfigError, match=f"step 2: .*{told}"):
            Replay.from_json(text)


def test_other_scores_are_told():
    plain = good()
    replay = Replay.from_json(json.dumps({**plain, "scores": [5, 5], "end": None}))
    scores, end = replay.differences()
    assert "the file says 5, 5" in scores
    assert "not over" in end


def test_a_file_is_not_overwritten_unasked(tmp_path):
    replay = Replay.of(*played("tic_tac_toe"))
    path = replay.write(tmp_path / replay.name)
    assert path.name == "tic_tac_toe-3-0.json"
    with pytest.raises(ConfigError, match="is there already; give another name"):
        replay.write(path)
    replay.write(path, replace=True)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    with pytest.raises(ConfigError, match="cannot be written"):
        replay.write(tmp_path / "nowhere" / "game.json")
