"""Records of Shogi: what is written is read back, and what others write is understood."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sparring.errors import ConfigError, SparringError
from sparring.games import shogi
from sparring.games.shogi.csa import read_csa, write_csa
from sparring.games.shogi.kif import HANDICAPS, kanji_number, write_kif
from sparring.games.shogi.kif_reader import read_kif, read_number
from sparring.games.shogi.records import (
    BROKEN_BY,
    ENDS,
    GameRecord,
    load_record,
    read_record,
    read_usi,
    record_game,
    replay_record,
    save_record,
    write_usi,
)

STARTS = (
    shogi.START,
    HANDICAPS["六枚落ち"],
    "4k4/9/4P4/9/9/9/9/9/4K4 b G2P 1",
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
)

KIF = """\
# ---- a comment ----
開始日時：2020/01/01 10:00:00
手合割：平手
先手：先生
後手：生徒
手数----指手---------消費時間--
   1 ７六歩(77)   ( 0:16/00:00:16)
*a remark
   2 ３四歩(33)   ( 0:00/00:00:00)
   3 ２二角成(88) ( 0:05/00:00:21)
   4 同　銀(31)   ( 0:01/00:00:01)
   5 ４五角打     ( 0:01/00:00:22)
   6 投了
まで5手で先手の勝ち

変化：2手
   2 ８四歩(83)
"""

CSA = """\
'CSA encoding=UTF-8
V2.2
N+sensei
N-seito, jr.
$EVENT:a, b
PI
+
+7776FU,T16
-3334FU
T1
+8822UM
-3122GI
+0045KA
%TORYO
/
PI
"""

DRAWN = """\
手合割：その他
後手の持駒：なし
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
| ・ ・ ・ ・v玉 ・ ・ ・ ・|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
| ・ ・ ・ ・ 歩 ・ ・ ・ ・|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| ・ ・ ・ ・ ・ ・ ・ ・ ・|七
| ・ ・ ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ 玉 ・ ・ ・ ・|九
+---------------------------+
先手の持駒：金　歩十二
手数＝32  △５一玉  まで
   1 ５二金打
   2 詰み
まで1手で先手の勝ち
"""

LINE = ("7g7f", "3c3d", "8h2b+", "3a2b", "B*4e")


def random_record(start: str, seed: int, plies: int = 150) -> GameRecord:
    """A game by lot in which captures and promotions are frequent."""
    draw = random.Random(seed)
    state = shogi.load_sfen(start)
    moves: list[str] = []
    while not state.over and len(moves) < plies:
        known = sorted(shogi.moves(state))
        lively = [move for move in known if "+" in move or "*" in move]
        moves.append(draw.choice(lively if lively and draw.random() < 0.5 else known))
        shogi.play(state, moves[-1])
    return record_game(moves, start=start, black="Ayumu", white="歩")


@pytest.mark.few(4)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", range(3))
def test_games_survive_every_format(start: str, seed: int) -> None:
    record = random_record(start, seed)
    assert read_kif(write_kif(record)) == record
    assert read_csa(write_csa(record)) == record
    assert read_usi(write_usi(record)) == replace(record, black="", white="", end="")
    for write in (write_kif, write_csa, write_usi):
        assert read_record(write(record)).moves == record.moves


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("moves", [LINE, LINE[:4]])
def test_ends_survive(end: str, moves: tuple[str, ...]) -> None:
    record = GameRecord(moves, end=end)
    assert read_kif(write_kif(record)) == record
    assert read_csa(write_csa(record)) == record


@pytest.mark.parametrize("start", STARTS)
def test_another_program_reads_our_kif(start: str) -> None:
    others = pytest.importorskip("shogi.KIF", reason="needs python-shogi")
    record = random_record(start, 11)
    (found,) = others.Parser.parse_str(write_kif(record))
    assert found["moves"] == list(record.moves)
    assert found["names"] == ["Ayumu", "歩"]


@pytest.mark.parametrize("start", STARTS[:2])  # it counts no piece in hand twice
def test_another_program_reads_our_csa(start: str) -> None:
    others = pytest.importorskip("shogi.CSA", reason="needs python-shogi")
    record = random_record(start, 11)
    (found,) = others.Parser.parse_str(write_csa(record))
    assert (found["sfen"], found["moves"]) == (start, list(record.moves))


def test_a_kif_of_others_is_read() -> None:
    assert read_kif(KIF) == GameRecord(LINE, shogi.START, "先生", "生徒", "resignation")


def test_a_csa_of_others_is_read() -> None:
    assert read_csa(CSA) == GameRecord(LINE, shogi.START, "sensei", "seito, jr.", "resignation")


@pytest.mark.parametrize("marks", ["▲△", "☗☖", "▲▽"])
def test_moves_in_kif_may_carry_the_mark_of_their_side(marks: str) -> None:
    marked = [
        re.sub(r"^( *(\d+) )(?=[１-９同])", lambda m: m[1] + marks[(int(m[2]) + 1) % 2], line)
        for line in KIF.splitlines()
    ]
    assert sum(marks[0] in line for line in marked) == 3
    assert read_kif("\n".join(marked)) == read_kif(KIF)


def test_a_mark_where_a_variation_begins_is_no_matter() -> None:
    assert read_kif(KIF.replace("00:00:21)", "00:00:21)+")) == read_kif(KIF)


def test_the_same_game_is_written_as_others_do() -> None:
    record = GameRecord(LINE, end="resignation")
    assert write_kif(record).splitlines() == [
        "手合割：平手",
        "手数----指手---------消費時間--",
        "   1 ７六歩(77)",
        "   2 ３四歩(33)",
        "   3 ２二角成(88)",
        "   4 同　銀(31)",
        "   5 ４五角打",
        "   6 投了",
    ]
    moves = ["+7776FU", "-3334FU", "+8822UM", "-3122GI", "+0045KA"]
    assert write_csa(record).splitlines() == ["V2.2", "PI", "+", *moves, "%TORYO"]
    assert write_usi(record) == f"position startpos moves {' '.join(LINE)}\n"


def test_positions_may_be_told_piece_by_piece() -> None:
    record = read_csa("V2.2\nPI82HI22KA\n-\n-5142OU\n")
    assert record.start == HANDICAPS["二枚落ち"]
    record = read_csa("P+59OU53FU00KI00FU\nP-51OU\n+\n+0052KI\n%TSUMI\n")
    assert record.start == "4k4/9/4P4/9/9/9/9/9/4K4 b GP 1"
    assert replay_record(record).end == "checkmate"


def test_a_drawn_board_keeps_its_move_number() -> None:
    record = GameRecord((), "4k4/9/4P4/9/9/9/9/9/4K4 w 2G17p 33")
    assert read_kif(write_kif(record)) == record


def test_a_drawn_board_of_others_is_read() -> None:
    start = "4k4/9/4P4/9/9/9/9/9/4K4 b G12P 33"
    assert read_record(DRAWN) == GameRecord(("G*5b",), start, end="checkmate")
    counted_on = DRAWN.replace("   1 ", "  33 ").replace("   2 ", "  34 ")
    assert read_record(counted_on) == read_record(DRAWN)
    assert read_record(DRAWN.replace("その他", "平手　　")) == read_record(DRAWN)


def test_the_rules_name_the_end() -> None:
    mate = record_game(["G*5b"], start="4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    assert mate.end == "checkmate"
    shuffle = ("2h3h", "8b7b", "3h2h", "7b8b") * 3
    assert record_game(shuffle).end == "repetition"
    assert record_game(LINE).end == ""
    assert record_game(LINE[:2], config={"max_plies": 2}).end == "interrupted"


def test_who_gives_perpetual_check_broke_the_rules() -> None:
    start = "7k1/9/9/9/9/9/9/9/K6R1 w - 1"
    checks = ("2a1a", "2i1i", "1a2a", "1i2i") * 3
    assert record_game(checks, start=start).end == BROKEN_BY[0]


@pytest.mark.parametrize("suffix", [".kif", ".kifu", ".csa", ".usi"])
def test_files(suffix: str, tmp_path: Path) -> None:
    record = random_record(shogi.START, 7, plies=40)
    path = tmp_path / f"game{suffix}"
    save_record(record, path)
    assert load_record(path).moves == record.moves
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("number", range(1, 19))
def test_counts_in_kanji(number: int) -> None:
    assert read_number(kanji_number(number)) == number


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hello", "no record of Shogi"),
        ("手合割：十枚\n", "line 1: the handicap '十枚' is unknown"),
        ("手合割：平手\n   1 ７六歩(78)\n", "line 2: '７六歩(78)': there is no 歩 on 78"),
        ("手合割：平手\n   1 ７五歩(77)\n", "line 2: shogi: 7g7e is not legal here"),
        ("手合割：平手\n   1 同　歩(77)\n", "follows no move"),
        ("手合割：平手\n   1 nonsense\n", "line 2: 'nonsense' is no move"),
        ("|" + " ・" * 9 + "|一\n手数＝0\n", "the board has 1 rows, not 9"),
        ("PI\n+7776FU\n", "line 2: a move before the line"),
        ("PI\n+\n-3334FU\n", "line 3: -3334FU is a move of the side that is not to move"),
        ("PI\n+\n+7776KI\n", "line 3: no KI can come from 77"),
        ("PI\n+\n+7776XX\n", "line 3: 'XX' is no piece"),
        ("PI\n+\n+7070FU\n", "line 3: '+7070FU' is no move"),
        ("PI\n+\n+7076FU\n", "line 3: there is no square 70"),
        ("PI\n+\n%WON\n", "line 3: '%WON' is no end of a game"),
        ("PI\n", "that names the side to begin is missing"),
        ("P+00OU\n", "line 1: OU cannot be in hand"),
        ("P-00AL\n+\n", "line 1: 'AL' is no piece"),
        ("position startpos moves 7g7e", "7g7e is not legal"),
        ("手合割：平手\n先手：a\n先手：b\n", "line 3: 先手 is given twice"),
        ("手合割：平手\n手合割：平手\n", "line 2: 手合割 is given twice"),
        ("手合割：平手\n先手番\n後手番\n", "line 3: whose turn it is is given twice"),
        (
            "手合割：平手\n後手番\n   1 ３四歩(33)\n",
            "line 3: the other side begins with 手合割：平手",
        ),
        ("手合割：その他\n   1 ７六歩(77)\n", "line 2: the board is missing"),
        ("手合割：平手\n先手の持駒：歩\n   1 ７六歩(77)\n", "line 3: the board is missing"),
        ("手合割：平手\n先手の持駒：と\n", "line 2: 'と' is no piece in hand"),
        ("手合割：平手\n手合割の持駒：歩\n", "line 2: there is no header"),
        ("手合割：平手\n   1 ７六歩(77)\n先手：a\n", "line 3: 先手 has to stand before the moves"),
        ("手合割：平手\n   1 ７六銀(77)\n", "line 2: '７六銀(77)': there is no 銀 on 77"),
        ("手合割：平手\n   1 ３四歩(33)\n", "line 2: '３四歩(33)': there is no 歩 on 33"),
        ("手合割：平手\n   1 ７六歩成(77)\n", "line 2: shogi: 7g7f+ is not legal"),
        (
            "手合割：平手\n   1 ７六歩不成(77)\n",
            "line 2: '７六歩不成(77)': this move cannot promote",
        ),
        (
            "手合割：平手\n   1 ５五歩成打\n",
            "line 2: '５五歩成打': a dropped piece is not promoted",
        ),
        ("手合割：平手\n   1 ５五と打\n", "line 2: '５五と打': a dropped piece is not promoted"),
        ("手合割：平手\n   1 ５五歩打\n", "line 2: shogi: P*5e is not legal"),
        (
            "手合割：平手\n   1 △７六歩(77)\n",
            "line 2: '△７六歩(77)' is a move of the side that is not",
        ),
        ("手合割：平手\n   1 ７六歩(77)７\n", "line 2: '７六歩(77)７' is no move"),
        ("手合割：平手\n   2 ７六歩(77)\n", "line 2: move 2 stands where move 1 was due"),
        (
            "手合割：平手\n   1 ７六歩(77)\n   3 ３四歩(33)\n",
            "line 3: move 3 stands where move 2 was due",
        ),
        (
            "手合割：平手\n   1 ７六歩(77)\nl2 ３四歩(33)\n",
            "line 3: 'l2 ３四歩(33)' is no line of a KIF",
        ),
        ("手合割：平手\n   1 投了\n   2 ７六歩(77)\n", "line 3: '７六歩(77)' follows the end"),
        ("手合割：平手\n   1 投了\n   2 中断\n", "line 3: '中断' follows the end"),
        ("手合割：平手\n   1 投了した\n", "line 2: '投了した' is no move"),
        ("手合割：平手\n| ・ ・|一\n", "line 2: '| ・ ・|一' is no line of a KIF"),
        ("手数＝0\n|" + " ・" * 9 + "|二\n", "line 2: row 二 of the board stands where 一 was due"),
        ("手数＝0\n|" + "x歩" + " ・" * 8 + "|一\n", "line 2: 'x歩' on the board is no piece"),
        (DRAWN.replace("その他", "香落ち"), "the board is not that of 手合割：香落ち"),
        (DRAWN.replace("手数＝32", "手数＝99999"), "above 65535"),
        (DRAWN.replace("手数＝32", f"手数＝{'9' * 5000}"), "is no line of a KIF"),
        ("PI\n+\n+7776FU\n%TORYO\n-3334FU\n", "line 5: -3334FU follows the end of the game"),
        ("PI\n+\n%TORYO\n%TSUMI\n", "line 4: %TSUMI follows the end of the game"),
        ("PI\n%TORYO\n", "line 2: an end before the line"),
        ("PI\n+\n+7776FU\n-\n", "line 4: a second line + or - that names the side to begin"),
        ("PI\n+\nP+00FU\n", "line 3: 'P+00FU' must come before"),
        ("PI\n+\nN+a\n", "line 3: 'N+a' must come before"),
        ("N+a\nN+b\nPI\n+\n", "line 2: the name N+ is given twice"),
        ("PI82KA\n+\n", "line 1: there is no KA on 82 to take away"),
        ("PI82HIx\n+\n", "line 1: '82HIx' is no list of pieces"),
        ("PI00HI\n+\n", "line 1: there is no square 00"),
        ("PI\nPI\n+\n", "line 2: rank 1 is given twice"),
        ("PI\nP+77FU\n+\n", "line 2: two pieces stand on 77"),
        ("P1-KY-KE\n+\n", "line 1: rank 1 needs nine squares"),
        ("P1" + " * " * 10 + "\n+\n", "line 1: rank 1 needs nine squares"),
        ("P1" + "***" * 9 + "\n+\n", "line 1: '***' is no square"),
        ("PI\n+\nT5\n", "line 3: the time T5 follows no move"),
        ("PI\n+\n+7776FU,Tx\n", "line 3: 'Tx' is no statement of CSA"),
        ("PI\n+\nT5,+7776FU\n", "line 3: the time T5 follows no move"),
        ("PI\n+\n+７776FU\n", "line 3: '+７776FU' is no move"),
        ("PI\n+\n+7776TO\n", "line 3: shogi: 7g7f+ is not legal"),
        ("PI\n+\n+3334FU\n", "line 3: no FU can come from 33"),
        ("PI\n+\n+0055TO\n", "line 3: no TO can be dropped"),
        ("Version 2\nPI\n+\n", "line 1: 'Version 2' is no statement of CSA"),
        ("P+59OU\n+\n", "line 2: shogi: each side needs exactly one king"),
        ("position startpos moves 7g7f 7g7f", "move 2: shogi: 7g7f is not legal"),
    ],
)
def test_bad_records_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(SparringError) as wrong:
        read_record(text)
    assert complaint in str(wrong.value)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_record(tmp_path / "none.kif")
    with pytest.raises(ConfigError, match="has to end in"):
        save_record(GameRecord(), tmp_path / "game.txt")
    with pytest.raises(ConfigError, match=r"write \.kifu"):
        save_record(GameRecord(black="☗"), tmp_path / "game.kif")
    with pytest.raises(ConfigError, match="is unknown"):
        GameRecord(end="boredom")
    for name in ("a\nb", "a\rb", "a\u2028b", "\udc80"):
        with pytest.raises(ConfigError, match="does not fit on one line"):
            GameRecord(black=name)
    assert GameRecord(white="羽生　善治").white == "羽生　善治"
    for start in ("", "nonsense", "9/9 b - 1", "8k/8G/8P/9/9/9/9/9/K8 w - 1"):
        with pytest.raises(ConfigError, match="shogi: "):
            GameRecord(start=start)
    bad = tmp_path / "bad.csa"
    bad.write_bytes(b"\x81\xff\x00")
    with pytest.raises(ConfigError, match="neither UTF-8 nor Shift JIS"):
        load_record(bad)


def test_starts_are_kept_in_one_form() -> None:
    record = GameRecord(start="4k4/9/4P4/9/9/9/9/9/4K4 b 2PG")
    assert record.start == "4k4/9/4P4/9/9/9/9/9/4K4 b G2P 1"
    assert read_csa(write_csa(record)) == record


@pytest.mark.parametrize("write", [write_kif, write_csa])
@pytest.mark.parametrize("move", ["7g7e", "zz", "", "K*5e"])
def test_a_move_that_is_not_legal_is_not_written(
    write: Callable[[GameRecord], str], move: str
) -> None:
    with pytest.raises(SparringError, match="is not legal here"):
        write(GameRecord((move,)))


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old.csa"
    save_record(GameRecord(black="old"), old)
    with pytest.raises(SparringError, match="is not legal here"):
        save_record(GameRecord(("7g7e",)), old)
    assert load_record(old).black == "old"
    (tmp_path / "folder.csa").mkdir()
    for name in ("folder.csa", "none/game.csa", "a\0b.csa"):
        with pytest.raises(ConfigError, match="cannot write"):
            save_record(GameRecord(), tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csa", "old.csa"]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "module",
    ["csa", "kif", "kif_reader", "records", "line", "protocol", "kanji", "picture", "terminal"],
)
def test_each_module_can_be_imported_first(module: str) -> None:
    words = [sys.executable, "-c", f"import sparring.games.shogi.{module}"]
    subprocess.run(words, check=True, timeout=60)
