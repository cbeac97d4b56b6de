"""What holds in every game of shogi, and what the options change."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sparring
from sparring.errors import ConfigError, IllegalActionError
from sparring.games import shogi


def random_states(games: int, plies: int, seed: int = 1) -> list[sparring.State]:
    """Positions from the middle of random games."""
    draw = random.Random(seed)
    states = []
    for _ in range(games):
        state = shogi.load_sfen()
        for _ in range(draw.randrange(plies)):
            if state.over:
                break
            state.apply(draw.choice(state.legal()))
        if not state.over:
            states.append(state)
    return states


def other_side(sfen: str) -> str:
    """The same position with colors exchanged and the board turned."""
    board, side, hands, number = sfen.split()
    cells = [shogi.cells(row) for row in board.split("/")]
    turned = [[cell.swapcase() for cell in reversed(row)] for row in reversed(cells)]
    return f"{join(turned)} {'w' if side == 'b' else 'b'} {hands.swapcase()} {number}"


def mirror(sfen: str) -> str:
    """The same position with left and right exchanged."""
    board, *rest = sfen.split()
    return " ".join([join([row[::-1] for row in map(shogi.cells, board.split("/"))]), *rest])


def join(cells: list[list[str]]) -> str:
    rows = ["".join(row) for row in cells]
    for run in range(9, 0, -1):
        rows = [row.replace("." * run, str(run)) for row in rows]
    return "/".join(rows)


def test_the_start() -> None:
    assert shogi.read_sfen(sparring.new_state("shogi")) == shogi.START


def test_what_is_written_can_be_read() -> None:
    for state in random_states(30, 300):
        sfen = shogi.read_sfen(state)
        again = shogi.load_sfen(sfen)
        assert shogi.read_sfen(again) == sfen
        assert again.legal() == state.legal()
        assert again.fields()["key"] == state.fields()["key"]
        assert state.audit() == ""


def test_both_colors_have_the_same_actions() -> None:
    for state in random_states(30, 300, seed=2):
        other = shogi.legal_moves(other_side(shogi.read_sfen(state)))
        assert sorted(other.values()) == state.legal()


def test_left_and_right_can_be_exchanged() -> None:
    for state in random_states(30, 300, seed=3):
        other = shogi.legal_moves(mirror(shogi.read_sfen(state)))
        assert sorted(other.values()) == sorted(map(shogi.mirrored_action, state.legal()))


def test_usi_names_every_action() -> None:
    for state in random_states(3, 60, seed=4):
        moves = shogi.moves(state)
        assert sorted(moves.values()) == state.legal()
        for move, action in moves.items():
            assert shogi.usi(state, action) == move
            assert shogi.action_of(state, move) == action


def test_the_compact_row_says_what_the_planes_say() -> None:
    for state in random_states(20, 300, seed=5):
        planes = shogi.load_sfen(
            shogi.read_sfen(state), config={"observation": "PLANES46", "declaration": "OFF"}
        )
        fresh = shogi.load_sfen(shogi.read_sfen(state))
        for seat in (0, 1):
            few, many = fresh.observe(seat), planes.observe(seat)
            np.testing.assert_array_equal(few[: 28 * 81], many[: 28 * 81])
            np.testing.assert_array_equal(
                few[28 * 81 : 28 * 81 + 18], many[28 * 81 :].reshape(18, 81)[:, 40]
            )
            assert few[-1] == (seat == fresh.seat)


def test_the_waiting_seat_sees_the_board_turned() -> None:
    (state, *_) = random_states(3, 60, seed=6)
    own, other = (state.observe(seat)[: 28 * 81].reshape(2, 14, 81) for seat in (0, 1))
    np.testing.assert_array_equal(own, other[::-1, :, ::-1])


LOOP = ("4i4h", "6a6b", "4h4i", "6b6a")


def test_the_planes_count_occurrences() -> None:
    state = shogi.load_sfen(config={"observation": "PLANES46"})
    seen = []
    for _ in range(2):
        shogi.play(state, *LOOP)
        seen.append(int(state.observe_bytes(0)[43 * 81]))
    assert seen == [1, 2]


def test_a_short_memory_forgets_repetition() -> None:
    long, short = shogi.load_sfen(), shogi.load_sfen(config={"memory": 11})
    for state in (long, short):
        shogi.play(state, *LOOP, *LOOP, *LOOP)
    assert long.end == "repetition"
    assert not short.over
    exact = shogi.load_sfen(config={"memory": 12})
    shogi.play(exact, *LOOP, *LOOP, *LOOP)
    assert exact.end == "repetition"


def test_a_new_position_has_no_memory() -> None:
    state = shogi.load_sfen()
    shogi.play(state, *LOOP, *LOOP)
    shogi.set_sfen(state, shogi.START)
    shogi.play(state, *LOOP, *LOOP)
    assert not state.over
    shogi.play(state, *LOOP)
    assert state.end == "repetition"


def test_the_limit_cuts_or_ends() -> None:
    cut = shogi.load_sfen(config={"max_plies": 2})
    shogi.play(cut, "7g7f", "3c3d")
    assert (cut.truncated, cut.terminated, cut.end) == (True, False, "ply limit")
    draw = shogi.load_sfen(config={"max_plies": 2, "at_limit": "DRAW"})
    shogi.play(draw, "7g7f", "3c3d")
    assert (draw.truncated, draw.terminated, draw.end) == (False, True, "ply limit")
    assert draw.rewards.tolist() == [0, 0]


def test_mate_on_the_last_ply_is_mate() -> None:
    state = shogi.load_sfen("7nk/9/7G1/9/9/9/9/9/K8 b G 1", config={"max_plies": 1})
    shogi.play(state, "G*1b")
    assert state.end == "checkmate"


ENTERED = "+P+P+P+P+P+P+P+P1/+P2K1+R+B2/9/9/9/9/9/4k4/9 w {hand} 1"


@pytest.mark.parametrize(
    ("rule", "hand", "end", "scores"),
    [
        ("POINTS27", "4G4SN", "declaration", [1, -1]),
        ("POINTS27", "4G4S", None, [0, 0]),
        ("POINTS24", "4G4SN", "declaration", [0, 0]),
        ("POINTS24", "4G4S4N", "declaration", [1, -1]),
        ("POINTS24", "4G", None, [0, 0]),
        ("OFF", "4G4S4N", None, [0, 0]),
    ],
)
def test_an_entered_king_declares_when_its_turn_begins(
    rule: str, hand: str, end: str | None, scores: list[int]
) -> None:
    state = shogi.load_sfen(ENTERED.format(hand=hand), config={"declaration": rule})
    shogi.play(state, "5h5i")
    assert state.end == end
    assert state.scores == scores


@pytest.mark.parametrize(
    ("sfen", "complaint"),
    [
        ("", "fields"),
        ("9/9/9/9/9/9/9/9/9 b - 1", "king"),
        ("4k4/9/9/9/9/9/9/9/4K3 b - 1", "nine"),
        ("4k4/9/9/9/9/9/9/9/4K5 b - 1", "too long"),
        ("4k4/9/9/9/9/9/9/9/4K4/9 b - 1", "too long|nine ranks"),
        ("4k4/9/9/9/9/9/9/9/4K4 x - 1", "side to move"),
        ("4k4/9/9/9/9/9/9/9/4K4 b X 1", "cannot be in hand"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 3R 1", "box"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 2 1", "before no piece"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 0P 1", "begins with 0"),
        ("4k4/9/9/9/9/9/9/9/4K4 b G0P 1", "begins with 0"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - x", "digits"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - 65536", "above 65535"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - 99999999999999999999", "above 65535"),
        ("4k4/9/9/4++P4/9/9/9/9/4K4 b - 1", "before a +"),
        ("4k4/9/9/40P4/9/9/9/9/4K4 b - 1", "no piece '0'"),
        ("4k4/9/9/90/9/9/9/9/4K4 b - 1", "too long|no piece '0'"),
        ("4k4/9/9/4+G4/9/9/9/9/4K4 b - 1", "does not promote"),
        ("P3k4/9/9/9/9/9/9/9/4K4 b - 1", "never move"),
        ("4k4/9/4P4/4P4/9/9/9/9/4K4 b - 1", "two pawns"),
        ("4k4/9/9/9/9/9/9/9/4R2K1 b - 1", "in check"),
        ("4k4/4K4/9/9/9/9/9/9/9 b - 1", "touch"),
        ("8k/8G/8P/9/9/9/9/9/K8 w - 1", "no legal move"),
        (ENTERED.replace(" w ", " b ").format(hand="4G4SN"), "declaration"),
    ],
)
def test_bad_positions_are_refused(sfen: str, complaint: str) -> None:
    state = shogi.load_sfen()
    with pytest.raises(ConfigError, match=complaint):
        shogi.set_sfen(state, sfen)
    assert shogi.read_sfen(state) == shogi.START


@pytest.mark.parametrize("number", [9_998, 12_345, 65_534])
def test_large_move_numbers_are_read_again(number: int) -> None:
    state = shogi.load_sfen(shogi.START[:-1] + str(number))
    shogi.play(state, "7g7f", "3c3d")
    shogi.set_sfen(state, shogi.read_sfen(state))
    assert shogi.read_sfen(state).endswith(f" {min(number + 2, 65_535)}")


def test_two_pawns_on_a_file_forbid_drops_there_alone() -> None:
    found = shogi.legal_moves("8k/9/9/P3P3P/P3P3P/4P4/9/9/4K4 b P 1")
    files = {move[2] for move in found if move.startswith("P*")}
    assert files == set("234678")


def test_a_new_state_begins_where_it_is_told() -> None:
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 w G2P 7"
    state = sparring.new_state("shogi", sfen=sfen, seed=3, config={"max_plies": 9})
    assert shogi.read_sfen(state) == sfen
    assert (state.seed, state.rules.config["max_plies"]) == (3, 9)
    rules = sparring.Rules("shogi", {"max_plies": 9})
    assert shogi.read_sfen(sparring.new_state(rules, sfen=sfen)) == sfen


@pytest.mark.parametrize(
    ("game", "start", "complaint"),
    [
        ("shogi", {"sfen": "9/9 b - 1"}, "shogi: a board has nine ranks"),
        ("shogi", {"sfen": None}, "an SFEN is text, not None"),
        ("shogi", {"fen": shogi.START}, "shogi takes no fen=; .* seed, config, rewards, sfen"),
        ("tic_tac_toe", {"sfen": shogi.START}, "takes no sfen=; .* seed, config, rewards$"),
        ("skull_king", {"sfen": shogi.START}, "skull_king takes no sfen=; a new state takes seed"),
    ],
)
def test_a_start_that_the_game_does_not_know_is_refused(
    game: str, start: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        sparring.new_state(game, **start)


def test_bad_moves_are_refused() -> None:
    state = shogi.load_sfen()
    with pytest.raises(IllegalActionError, match="7g7e is not legal"):
        shogi.play(state, "7g7e")
    with pytest.raises(IllegalActionError, match="action 0 is not legal"):
        shogi.usi(state, 0)
    with pytest.raises(ConfigError, match="depth"):
        shogi.perft(shogi.START, -1)
    with pytest.raises(ConfigError, match=r"max_plies is outside 1\.\.10000"):
        sparring.Rules("shogi", {"max_plies": 10**400})
    with pytest.raises(ConfigError, match=r"outside 0\.\.64"):
        shogi.perft(shogi.START, 2**70)


def test_the_board_as_text() -> None:
    state = shogi.load_sfen()
    shogi.play(state, "7g7f", "3c3d", "8h2b+")
    assert "  P  .  P  P" in state.text()
    assert "Black holds B" in state.text()
    assert "+B" in state.text()
    assert "White to move" in state.text()
