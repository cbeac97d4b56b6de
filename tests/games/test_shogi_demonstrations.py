"""Records of Shogi as games to learn from: who won, where they began, what is wrong with them."""

from pathlib import Path

import numpy as np
import pytest

from sparring.errors import ConfigError
from sparring.games import shogi
from sparring.games.demonstrations import Demonstration, read_demonstrations
from sparring.games.rules import Rules
from sparring.games.shogi.demonstrations import demonstration_of, result_of
from sparring.games.shogi.kif import HANDICAPS
from sparring.games.shogi.records import BROKEN_BY, GameRecord, save_record, write_csa, write_usi
from sparring.learn.demonstrations import unpacked
from sparring.training.imitation.positions import Pay, decisions_of

MOVES = ("7g7f", "3c3d", "8h2b+", "3a2b", "B*4e")
RULES = Rules("shogi")
PAY = Pay(tuple(RULES.weights(None)), 0.5)


def lessons_of(path: Path) -> list[Demonstration]:
    return list(read_demonstrations(RULES, path))


@pytest.mark.parametrize("kind", [".kif", ".kifu", ".csa", ".usi"])
def test_every_kind_of_file_holds_the_same_game(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"game{kind}"
    save_record(GameRecord(MOVES, black="先生", white="生徒", end="resignation"), path)
    (demonstration,) = lessons_of(path)
    state = demonstration.replay.start()
    for move, (action,) in zip(MOVES, demonstration.replay.actions, strict=True):
        assert shogi.action_of(state, move) == action
        state.apply(action)
    found = decisions_of(RULES, demonstration, PAY)
    assert found.action.tolist() == [action for (action,) in demonstration.replay.actions]
    masks = unpacked(found.legal, RULES.actions)
    assert masks[0].sum() == 30
    assert (masks[np.arange(5), found.action] == 1).all()
    if kind == ".usi":  # which does not say how a game ended
        assert demonstration.paid is None
        assert np.isnan(found.returns).all()
    else:  # White was to move and gave up
        assert demonstration.paid == {"result": (1.0, -1.0)}
        assert found.returns == pytest.approx([0.25, -0.5, 0.5, -1.0, 1.0])


@pytest.mark.parametrize(
    ("end", "paid"),
    [
        ("resignation", (1, -1)),
        ("time", (1, -1)),
        ("declaration", (-1, 1)),
        ("repetition", (0, 0)),
        ("draw", (0, 0)),
        (BROKEN_BY[0], (-1, 1)),
        (BROKEN_BY[1], (1, -1)),
        ("interrupted", None),
        ("", None),
    ],
)
def test_who_won(end: str, paid: tuple[float, float] | None) -> None:
    assert result_of(GameRecord(MOVES, end=end)) == paid


def test_a_handicap_begins_where_it_says_with_white_to_move(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    save_record(GameRecord(("3c3d",), HANDICAPS["二枚落ち"], end="resignation"), path)
    (demonstration,) = lessons_of(path)
    assert shogi.read_sfen(demonstration.replay.start()) == HANDICAPS["二枚落ち"]
    assert demonstration.paid == {"result": (-1.0, 1.0)}
    assert decisions_of(RULES, demonstration, PAY).returns == pytest.approx([1.0])


def test_a_file_may_hold_several_games(tmp_path: Path) -> None:
    one, two = GameRecord(MOVES, end="resignation"), GameRecord(MOVES[:2], end="draw")
    csa, usi = tmp_path / "games.csa", tmp_path / "games.usi"
    csa.write_text(write_csa(one) + "/\n" + write_csa(two))
    usi.write_text(write_usi(one) + "\n" + write_usi(two).removeprefix("position "))
    for path in (csa, usi):
        assert [len(demonstration.replay.actions) for demonstration in lessons_of(path)] == [5, 2]


def test_what_comes_behind_the_end_by_the_rules_is_left_out() -> None:
    there_and_back = ("2h3h", "8b7b", "3h2h", "7b8b") * 4
    record = GameRecord(there_and_back)
    actions = []
    state = shogi.load_sfen(config={"declaration": "OFF"})
    for move in there_and_back:
        if state.over:
            break
        actions.append(shogi.action_of(state, move))
        state.apply(actions[-1])
    demonstration = demonstration_of(
        RULES, GameRecord(record.moves, actions=(*actions, 0, 0)), "game"
    )
    found = decisions_of(RULES, demonstration, PAY)
    assert len(found) == len(actions) == 12
    assert not found.returns.any()  # four times the same position is a draw


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.kif",
            "手合割：平手\n   1 ７六歩(77)\n   2 ３五歩(33)\n",
            r"line 3: .*3c3e.*\(move 2\)",
        ),
        ("a.csa", "PI\n+\n+7776FU\n-3335FU\n", r"line 4: .*3c3e.*\(move 2\)"),
        ("a.csa", "PI\n+\n+7776FU\n/\nPI\n+\n+7775FU\n", r"line 7: .*7g7e.*\(move 1\)"),
        ("a.usi", "startpos moves 7g7f\nstartpos moves 7g7f 3c3e\n", r"line 2, move 2: .*3c3e"),
        ("a.kif", "手合割：平手\n   1 ７六歩(77)\n   2 ３四", r"line 3: '３四' is no move"),
        ("a.csa", "", "this is no record of Shogi"),
    ],
)
def test_what_is_wrong_names_file_line_and_move(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("cp932"))
    with pytest.raises(ConfigError, match=rf"a\.{name[2:]}: {said}"):
        lessons_of(path)


@pytest.mark.parametrize("kind", ["KIF", "CSA"])
def test_python_shogi_reads_the_same_moves(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("shogi")
    from importlib import import_module

    path = tmp_path / f"game.{kind.lower()}"
    save_record(GameRecord(MOVES, end="resignation"), path)
    parser = import_module(f"shogi.{kind}").Parser
    assert tuple(parser.parse_file(str(path))[0]["moves"]) == MOVES
