"""Words that name where games begin: what they mean, and how a wrong one is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparring.errors import ConfigError
from sparring.games.cage2 import HOSTS
from sparring.games.laser_hockey import load_position, read
from sparring.games.laser_hockey.starts import SITUATIONS, situation
from sparring.games.rules import Rules
from sparring.games.shogi import read_sfen
from sparring.games.skull_king.starts import round_start
from sparring.games.starts import DEFAULT_START, read_starts, write_starts
from sparring.games.state import new_state
from sparring.pools import Pool, Start

MATE = "4k4/9/9/9/9/9/9/9/R3K4 b 2G 1"


def begun(rules: Rules, words: list[str], games: int = 40) -> Pool:
    pool = Pool(rules, games, seed=1, threads=1, starts=read_starts(rules, words))
    pool.reset()
    return pool


def test_a_words_weight_is_shared_out() -> None:
    starts = read_starts(Rules("skull_king"), ["usual=2", "rounds:7-10=3", "round:2"])
    assert [start.weight for start in starts] == [2, 0.75, 0.75, 0.75, 0.75, 1]
    assert starts[0] == Start(None, 2, DEFAULT_START)


def test_shogi_reads_positions(tmp_path: Path) -> None:
    book = tmp_path / "book.sfen"
    book.write_text(f"# openings\n\n{MATE}\nsfen 4k4/9/9/9/9/9/9/9/4K4 w R 5\n", "utf-8")
    rules = Rules("shogi")
    pool = begun(rules, [f"{book}=2", f"sfen:{MATE}"])
    found = {read_sfen(pool.state_of(game)) for game in range(40)}
    assert found == {MATE, "4k4/9/9/9/9/9/9/9/4K4 w R 5"}


@pytest.mark.slow
def test_shogi_reads_a_hundred_thousand_positions(tmp_path: Path) -> None:
    book = tmp_path / "book.sfen"
    lines = [f"4k4/9/9/9/9/9/9/9/R3K4 b {n % 18 + 1}P {n % 60_000 + 1}" for n in range(100_000)]
    book.write_text("\n".join(lines), "utf-8")
    pool = begun(Rules("shogi"), [str(book)], games=2000)
    found = {read_sfen(pool.state_of(game)) for game in range(2000)}
    assert 1950 < len(found) <= 2000
    assert pool.audit() == ""


def test_skull_kings_rounds_have_scores_and_a_leader() -> None:
    rules = Rules("skull_king", {"num_players": 2})
    pool = begun(rules, ["rounds:3-4@-30,40"])
    at = [pool.state_of(game).fields() for game in range(40)]
    assert {int(s["round"][0]) for s in at} == {3, 4}
    assert {tuple(s["total"][:2]) for s in at} == {(-30, 40)}
    pool.set_starts([Start(round_start(rules, 5, leader=1))])
    pool.reset()
    at = [pool.state_of(game).fields() for game in range(40)]
    assert {int(s["leader"][0]) for s in at} == {1}
    assert len({s["hand"].tobytes() for s in at}) == 40


@pytest.mark.parametrize("name", SITUATIONS)
def test_hockeys_situations_are_the_same_for_both(name: str) -> None:
    """What the left player meets in one position, the right one meets in the next."""
    positions = situation(name)
    for left, right in zip(positions[::2], positions[1::2], strict=True):
        seen = load_position(left).observe(0)
        np.testing.assert_allclose(seen, load_position(right).observe(1), atol=2e-6)
    pool = begun(Rules("laser_hockey"), [name])
    idle = np.zeros((80, 4), np.float32)
    for _ in range(3):
        batch = pool.step(idle)
    assert not batch.terminated.any()
    assert pool.audit() == ""


def test_hockey_reads_positions_in_meters(tmp_path: Path) -> None:
    file = tmp_path / "positions.json"
    file.write_text(json.dumps([{"puck": {"x": 1.5, "vx": -3}, "keep": [0, 5], "time": 9}]))
    at = read(begun(Rules("laser_hockey_discrete"), [str(file)], 1).state_of(0))
    assert (at.puck.x, at.puck.vx, at.keep, at.time) == (1.5, -3, (0, 5), 9)
    assert at.left.x == pytest.approx(-3, abs=1e-6)


def test_cage2_begins_with_hosts_taken() -> None:
    """Blue knows of them, and both reds go on from there instead of starting over."""
    word = "hosts:User3=user,Enterprise0=root,Enterprise2=root"
    for red, goes_on in (("B_LINE", "Op_Server0"), ("MEANDER", None)):
        rules = Rules("cage2", {"red": red, "actions": "ALL"})
        pool = begun(rules, [word], 1)
        start = pool.state_of(0)
        taken = int(start.fields()["privileged"][0])
        assert {h for h, name in enumerate(HOSTS) if taken >> h & 1} == {1, 3, 8}
        assert start.audit() == ""
        for _ in range(100):
            batch = pool.step(np.zeros(1, np.int32))
            assert pool.audit() == ""
            if goes_on and not batch.truncated[0]:
                target = int(pool.state_of(0).fields()["red_target"][0])
                assert HOSTS[target] == goes_on
        assert batch.truncated[0]


def test_red_and_orders_are_drawn_for_starts_too() -> None:
    rules = Rules("cage2", {"red": "MIX", "orders": "DRAWN"})
    pool = begun(rules, ["hosts:User1=user"], 60)
    at = [pool.state_of(game).fields() for game in range(60)]
    assert {int(s["red"][0]) for s in at} == {0, 1}
    assert len({s["order"].tobytes() for s in at}) > 20


def test_our_own_file_has_states_and_moves(tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    states = [new_state(rules) for _ in range(2)]
    for state, cells in zip(states, ((4,), (0, 8)), strict=True):
        for cell in cells:
            state.apply(cell)
    file = tmp_path / "starts.jsonl"
    write_starts(file, states)
    file.write_text(f'{file.read_text()}{{"seed": 1, "moves": [2, 4, 6], "weight": 2}}\n')
    pool = begun(rules, [f"{file}=1"], 200)
    begun_with = [9 - len(pool.state_of(game).legal()) for game in range(200)]
    assert {begun_with.count(n) > 20 for n in (1, 2, 3)} == {True}
    assert begun_with.count(3) > begun_with.count(1)
    starts = read_starts(rules, [str(file)])
    assert [start.weight for start in starts] == [0.25, 0.25, 0.5]


@pytest.mark.few(1)
@pytest.mark.parametrize("game", ["tic_tac_toe", "laser_hockey_discrete", "skull_king"])
def test_random_openings_are_positions_after_up_to_so_many_moves(game: str) -> None:
    rules = Rules(game)
    starts = read_starts(rules, ["usual=1", "random:3=3"])
    assert starts == read_starts(rules, ["usual=1", "random:3=3"])
    assert sum(start.weight for start in starts) == pytest.approx(4)
    pool = begun(rules, ["random:3"], 200)
    assert pool.audit() == ""
    if game == "tic_tac_toe":
        moves = [9 - len(pool.state_of(at).legal()) for at in range(200)]
        assert {moves.count(n) > 40 for n in (1, 2, 3)} == {True}


BAD: dict[str, tuple[str, list[str], str]] = {
    "nothing like it": ("tic_tac_toe", ["middle"], "knows no 'middle'; give usual, random:6, a"),
    "no moves": ("tic_tac_toe", ["random:0"], "give a number of moves from 1 to 100"),
    "all moves": ("tic_tac_toe", ["random:9"], "are over after 9 moves; give fewer"),
    "numbers": ("laser_hockey", ["random:3"], "laser_hockey has continuous actions; leave it out"),
    "no file": ("shogi", ["none.jsonl=1"], "no file 'none.jsonl'"),
    "no weight": ("skull_king", ["round:7=0"], "must be above 0"),
    "no name": ("skull_king", ["=1"], "names no start"),
    "no such round": ("skull_king", ["round:11"], "round 11 is outside 1..10"),
    "backwards": ("skull_king", ["rounds:9-7"], "round 9 comes after round 7"),
    "scores": ("skull_king", ["round:2@1,2"], "4 players need 4 scores, got 2"),
    "not a round": ("skull_king", ["round:seven"], "cannot be read; give round:7"),
    "sfen": ("shogi", ["sfen:nonsense"], "shogi: "),
    "host": ("cage2", ["hosts:User9=root"], "no host 'User9'"),
    "level": ("cage2", ["hosts:User1=admin"], "is not HOST=user or HOST=root"),
    "defender": ("cage2", ["hosts:Defender=root"], "red cannot be on Defender"),
    "situation": ("laser_hockey", ["shoting"], "knows no 'shoting'; give usual"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_word_is_explained(case: str) -> None:
    game, words, why = BAD[case]
    with pytest.raises(ConfigError, match="starts: ") as wrong:
        read_starts(Rules(game), words)
    assert why in str(wrong.value)


@pytest.mark.parametrize(
    ("game", "name", "text", "why"),
    [
        ("shogi", "b.sfen", f"{MATE}\n# fine\nlnsg b - 1\n", "b.sfen:3: "),
        ("shogi", "b.sfen", "# nothing\n", "has no position"),
        ("tic_tac_toe", "s.jsonl", "[1]\n", "s.jsonl:1: an object is needed"),
        ("tic_tac_toe", "s.jsonl", "{}\n", "s.jsonl:1: this line cannot be read; give"),
        ("tic_tac_toe", "s.jsonl", '{"state": "zz"}\n', "s.jsonl:1: this line cannot"),
        ("tic_tac_toe", "s.jsonl", '{"moves": [4, 4]}\n', "s.jsonl:1: tic_tac_toe game 0"),
        ("tic_tac_toe", "s.jsonl", '{"moves": [0, 3, 1, 4, 2]}\n', "s.jsonl:1: the game is over"),
        ("laser_hockey", "p.json", '[{"puk": {}}]', "p.json[0]: no field 'puk'"),
        ("laser_hockey", "p.json", '[{"puck": {"x": "1"}}]', "p.json[0].puck.x: '1' is not"),
        ("laser_hockey", "p.json", '[{"time": 999}]', "p.json[0]: laser_hockey: time is past"),
        ("laser_hockey", "p.json", "{", "cannot be read"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(
    tmp_path: Path, game: str, name: str, text: str, why: str
) -> None:
    file = tmp_path / name
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="starts: ") as wrong:
        read_starts(Rules(game), [str(file)])
    assert why in str(wrong.value)


@pytest.mark.parametrize(("game", "name"), [("tic_tac_toe", "a.jsonl"), ("laser_hockey", "a.json")])
def test_deep_lists_in_a_file_are_refused(game: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(ConfigError, match=f"starts: .*{name}.* cannot be read"):
        read_starts(Rules(game), [str(tmp_path / name)])


def test_words_of_every_game_say_what_there_is() -> None:
    known: dict[str, Any] = {"skull_king": "round:7", "cage2": "hosts:", "laser_hockey": "face_off"}
    for game, word in known.items():
        with pytest.raises(ConfigError, match=f"give usual, random:6, a .jsonl file, .*{word}"):
            read_starts(Rules(game), ["?"])
