"""`sparring usi` as a Shogi program meets it."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from sparring import Rules, new_state
from sparring.games import shogi
from sparring.league.usi.server import UsiServer

ENTERED = "+R+B+B+RK4/GGGG5/SSSS5/9/9/9/9/9/4k4 b 9P 1"
"""Black's king has entered with twelve pieces that count 28 points."""


def server(bot: str = "greedy", **flags: object) -> UsiServer:
    return UsiServer(bot, Rules("shogi", flags))


def talk(to: UsiServer, *lines: str) -> list[str]:
    return [told for line in lines for told in to.answer(line)]


def best(told: list[str]) -> str:
    assert told[-1].startswith("bestmove ")
    return told[-1].split()[1]


def test_it_introduces_itself_with_its_options() -> None:
    told = server().answer("usi")
    assert told[0] == "id name sparring greedy"
    assert told[-1] == "usiok"
    options = [line.split()[2] for line in told if line.startswith("option")]
    assert options == ["Sampled", "Seed", "Declaration"]
    assert server().answer("isready") == ["readyok"]


@pytest.mark.parametrize(
    "go",
    [
        *("", "btime 60000 wtime 60000 byoyomi 1000", "btime 0 wtime 0 binc 5 winc 5"),
        *("movetime 10", "nodes 5", "depth 3"),
    ],
)
def test_every_limit_is_answered_at_once_with_a_legal_move(go: str) -> None:
    one = server("ab2")
    told = talk(one, "usinewgame", "position startpos moves 7g7f 3c3d", f"go {go}")
    state = shogi.load_sfen()
    shogi.play(state, "7g7f", "3c3d", best(told))


def test_a_whole_game_of_two_engines_is_legal() -> None:
    sides = (server("greedy"), server("random"))
    moves: list[str] = []
    state = shogi.load_sfen()
    while not state.over and len(moves) < 80:
        line = " ".join(["position startpos", *(["moves", *moves] if moves else [])])
        move = best(talk(sides[state.seat], line, "go"))
        shogi.play(state, move)
        moves.append(move)
    assert len(moves) > 10


@pytest.mark.parametrize(("go", "due"), [("go infinite", "stop"), ("go ponder", "ponderhit")])
def test_a_move_is_held_back_until_it_is_due(go: str, due: str) -> None:
    one = server()
    assert talk(one, "position startpos", go) == []
    assert "still waiting" in one.answer("go")[0]
    assert best(one.answer(due))
    assert one.answer("stop") == []


def test_the_end_of_a_game_drops_a_held_move() -> None:
    one = server()
    assert talk(one, "position startpos", "go infinite", "gameover draw", "stop") == []


def test_the_mated_side_resigns() -> None:
    mate = "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves G*5b"
    assert talk(server(), mate, "go") == ["bestmove resign"]


@pytest.mark.parametrize(("rule", "answer"), [("POINTS27", True), ("OFF", False)])
def test_an_entered_king_declares_where_the_option_allows(rule: str, answer: bool) -> None:
    setting = f"setoption name Declaration value {rule}"
    assert shogi.camp(ENTERED).claim == "win"
    told = talk(server(), setting, f"position sfen {ENTERED}", "go")
    assert (told == ["bestmove win"]) is answer


def test_repetitions_are_left_to_the_referee() -> None:
    shuffle = ["2h3h", "8b7b", "3h2h", "7b8b"] * 5
    told = talk(server(), f"position startpos moves {' '.join(shuffle)}", "go")
    assert best(told) != "resign"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("positio startpos", "no command 'positio'; did you mean 'position'?"),
        ("position", "a position is `startpos`"),
        ("position sfen 9/9 b", "a position is `startpos`"),
        ("position sfen 9/9/9/9/9/9/9/9/9 b - 1", "shogi: "),
        ("position startpos moves 7g7f 7g7f", "7g7f is not legal here"),
        ("setoption Seed 3", "setoption name NAME value VALUE"),
        ("setoption name Seed value -3", "must be a number from 0"),
        (f"setoption name Seed value {'9' * 5000}", "must be a number from 0"),
        ("setoption name Seed value ٣", "must be a number from 0"),
        (f"position sfen {shogi.START[:-1]}{'9' * 5000}", "is above 65535"),
        ("position sfen 名人 b - 1", "ASCII"),
        ("setoption name Sampled value 1", "must be true or false"),
        ("setoption name Declaration value 30", "Declaration '30' is unknown"),
    ],
)
def test_a_bad_line_is_named_and_changes_nothing(line: str, complaint: str) -> None:
    one = server()
    talk(one, "position startpos moves 7g7f")
    before = shogi.read_sfen(one.state)
    (told,) = one.answer(line)
    assert told.startswith("info string ")
    assert complaint in told
    assert shogi.read_sfen(one.state) == before


def test_options_of_others_and_empty_lines_are_ignored() -> None:
    lines = ("setoption name USI_Hash value 256", "setoption name USI_Ponder value true", "", "  ")
    assert talk(server(), *lines) == []


def test_mate_search_is_declined() -> None:
    assert server().answer("go mate 1000") == ["checkmate notimplemented"]


def test_games_differ_and_repeat_with_the_seed() -> None:
    def openings(seed: int) -> list[str]:
        one = server("random")
        talk(one, f"setoption name Seed value {seed}")
        return [best(talk(one, "usinewgame", "position startpos", "go")) for _ in range(6)]

    assert openings(4) == openings(4)
    assert len(set(openings(4))) > 1
    assert openings(4) != openings(400)


def test_a_policy_tells_its_score() -> None:
    torch = pytest.importorskip("torch")
    from sparring.config import NetConfig
    from sparring.nets.mlp import Perceptron
    from sparring.nets.policy import Policy

    torch.manual_seed(0)
    rules = Rules("shogi", {"observation": "PLANES46", "skip_forced": 1})
    policy = Policy(rules, Perceptron(rules, NetConfig(hidden=(8,))), name="mine")
    one = UsiServer(policy, rules)
    told = talk(one, "position startpos moves 7g7f", "go")
    assert told[0].startswith("info depth 1 score cp ")
    assert told[0].endswith(f" pv {best(told)}")


def test_a_policy_draws_its_moves_if_sampled_is_set() -> None:
    torch = pytest.importorskip("torch")
    from sparring.config import NetConfig
    from sparring.nets.mlp import Perceptron
    from sparring.nets.policy import Policy

    torch.manual_seed(0)
    rules = Rules("shogi")
    policy = Policy(rules, Perceptron(rules, NetConfig(hidden=(8,))), name="mine")

    def openings(sampled: str) -> set[str]:
        one = UsiServer(policy, rules)
        talk(one, f"setoption name Sampled value {sampled}")
        return {best(talk(one, "usinewgame", "position startpos", "go")) for _ in range(12)}

    assert len(openings("false")) == 1
    assert len(openings("true")) > 1
    assert openings("true") <= set(shogi.moves(new_state("shogi")))


@pytest.fixture(scope="module")
def policy() -> Any:
    torch = pytest.importorskip("torch")
    from sparring.config import NetConfig
    from sparring.nets.mlp import Perceptron
    from sparring.nets.policy import Policy

    torch.manual_seed(0)
    rules = Rules("shogi", {"skip_forced": 1})
    return Policy(rules, Perceptron(rules, NetConfig(hidden=(8,))), name="mine")


MATE = "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
"""G*5b mates."""


def test_a_search_finds_a_mate(policy: Any) -> None:
    assert best(talk(UsiServer(policy.searching("400/puct"), policy.rules), MATE, "go")) == "G*5b"


@pytest.mark.parametrize("go", ["nodes 200", "nodes 5000 movetime 60000", "infinite"])
def test_a_policy_searches_within_the_limits_of_go(policy: Any, go: str) -> None:
    one = UsiServer(policy, policy.rules)
    talk(one, "setoption name Simulations value 300")
    told = talk(one, MATE, f"go {go}", *(["stop"] if go == "infinite" else []))
    assert best(told) in shogi.moves(shogi.load_sfen(MATE.removeprefix("position sfen ")))
    words = told[-2].split()
    assert words[0] == "info"
    assert int(words[words.index("nodes") + 1]) == (200 if "nodes 200" in go else 300)
    assert {"depth", "nps", "time"} <= set(words)
    assert words[words.index("pv") + 1] == best(told)
    assert words[words.index("score") + 1] == "cp"


def test_a_budget_of_the_player_holds_without_limits_and_is_an_option(policy: Any) -> None:
    one = UsiServer(policy.searching(24), policy.rules)
    assert "option name Simulations type spin default 24 min 0 max 1048575" in one.answer("usi")
    assert " nodes 24 " in talk(one, "position startpos", "go btime 60000 wtime 60000")[0]
    talk(one, "setoption name Simulations value 0")
    assert one.answer("go")[0].startswith("info depth 1 score cp ")
    assert "from 0 to 1048575" in one.answer("setoption name Simulations value x")[0]


@pytest.mark.parametrize(("budget", "kept"), [("200/puct", True), ("200", False)])
def test_puct_goes_on_with_the_tree_of_its_last_move(policy: Any, budget: str, kept: bool) -> None:
    one = UsiServer(policy.searching(budget), policy.rules)
    kings = "position sfen 4k4/9/9/9/9/9/9/9/4K4 b - 1"
    line = talk(one, kings, "go")[0].split()
    expected = line[line.index("pv") + 1 :][:2]
    told = talk(one, f"{kings} moves {' '.join(expected)}", "go")[0].split()
    assert (int(told[told.index("nodes") + 1]) < 200) == kept


def test_the_line_of_a_search_is_legal(policy: Any) -> None:
    told = talk(UsiServer(policy, policy.rules), "position startpos moves 7g7f", "go nodes 100")
    line = told[0].split()
    line = line[line.index("pv") + 1 :]
    shogi.play(shogi.load_sfen(), "7g7f", *line)
    assert len(line) > 1


def test_a_search_in_a_thread_hears_stop(policy: Any) -> None:
    sent: queue.SimpleQueue[str] = queue.SimpleQueue()
    one = UsiServer(policy, policy.rules, send=sent.put)
    assert talk(one, "isready", "position startpos", "go infinite") == ["readyok"]
    assert sent.get(timeout=60).startswith("info depth ")
    assert "send `stop` first" in one.answer("position startpos")[0]
    assert one.answer("isready") == ["readyok"]
    assert one.answer("stop") == []
    assert drained(sent)[-1].split()[1] in shogi.moves(new_state("shogi"))
    assert one.answer("stop") == []


def drained(sent: queue.SimpleQueue[str]) -> list[str]:
    return [sent.get() for _ in range(sent.qsize())]


@pytest.mark.parametrize("last", ["gameover draw", "quit"])
def test_a_search_that_nobody_waits_for_sends_no_move(policy: Any, last: str) -> None:
    sent: queue.SimpleQueue[str] = queue.SimpleQueue()
    one = UsiServer(policy, policy.rules, send=sent.put)
    talk(one, "position startpos", "go infinite", last)
    assert not [line for line in drained(sent) if line.startswith("bestmove")]


def test_a_policy_that_cannot_search_says_why_and_plays(policy: Any) -> None:
    from sparring.nets.policy import Policy

    blind = Policy(policy.rules, policy.net, name="mine", meta={"values": False})
    one = UsiServer(blind, policy.rules)
    told, ready = one.answer("isready")
    assert told.startswith("info string no search: mine has no values")
    assert ready == "readyok"


def test_several_lines_are_reported_best_first(policy: Any) -> None:
    one = UsiServer(policy, policy.rules)
    alone = talk(one, "go nodes 64")
    talk(one, "setoption name MultiPV value 3")
    lines = talk(one, "usinewgame", "go nodes 64")
    assert [line.split()[3:5] for line in lines[:-1]] == [["multipv", str(n)] for n in (1, 2, 3)]
    firsts = [line.partition(" pv ")[2].split()[0] for line in lines[:-1]]
    assert len(set(firsts)) == 3
    assert lines[-1] == f"bestmove {firsts[0]}"
    assert "multipv" not in alone[0]
    assert "from 0 to 500" in one.answer("setoption name MultiPV value x")[0]
