"""Healthy files of single games and positions, and what the commands do with them."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from sparring.commands import replay
from sparring.config.tools import ReplayFileConfig
from sparring.games import shogi
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.shogi.csa import write_csa
from sparring.games.shogi.kif import write_kif
from sparring.games.shogi.records import GameRecord, end_of, write_usi
from sparring.games.starts import read_starts
from sparring.games.state import new_state
from sparring.league.usi.match import read_openings
from sparring.league.usi.server import UsiServer
from sparring.training.imitation.making import Task, done
from sparring.training.imitation.positions import Pay

RECORDED: dict[str, dict[str, Any]] = {
    "tic_tac_toe": {},
    "connect_four": {},
    "leduc_poker": {},
    "skull_king": {"rounds": [1, 2]},
    "shogi": {"max_plies": 30},
    "laser_hockey": {},
    "kuhn_poker": {"skip_forced": 1},
}
"""Games by their flags, short ones."""
MAX_STEPS = 40


@cache
def played(game: str, number: int) -> str:
    """A recorded game, as JSON."""
    by = random.Random(number)
    state = new_state(Rules(game, RECORDED[game]), seed=number)
    rules, actions = state.rules, []
    while not state.over and len(actions) < MAX_STEPS:
        if rules.box:
            action: Any = [[by.uniform(-1, 1) for _ in range(rules.box)] for _ in range(rules.rows)]
        else:
            action = by.choice(list(state.legal()))
        state.apply(action)
        actions.append(action)
    return Replay.of(state, actions, [f"player {seat}" for seat in range(rules.seats)]).to_json()


def recorded(by: random.Random) -> Any:
    """What a recorded game's file holds."""
    return json.loads(played(by.choice(sorted(RECORDED)), by.randrange(4)))


def show_replay(path: Path) -> None:
    """`sparring replay FILE --text`: the game is played again and shown."""
    replay.run(ReplayFileConfig(str(path), text=True))


STARTS = (
    shogi.START,
    "4k4/9/4P4/9/9/9/9/9/4K4 b G2P 1",
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
)


@cache
def shogi_game(number: int) -> GameRecord:
    """A game of Shogi by lot."""
    by = random.Random(number)
    start = STARTS[number % len(STARTS)]
    state, moves = shogi.load_sfen(start), list[str]()
    while not state.over and len(moves) < 24:
        moves.append(by.choice(sorted(shogi.moves(state))))
        shogi.play(state, moves[-1])
    end = end_of(state) or by.choice(("resignation", "time", "interrupted", ""))
    return GameRecord(tuple(moves), start, "先手 太郎", "White", end)


def kif(by: random.Random) -> str:
    """A game as KIF."""
    return write_kif(shogi_game(by.randrange(12)))


def csa(by: random.Random) -> str:
    """Two games as CSA."""
    return "/\n".join(write_csa(shogi_game(by.randrange(12))) for _ in range(2))


def usi(by: random.Random) -> str:
    """Two games as USI."""
    return "".join(write_usi(shogi_game(by.randrange(12))) for _ in range(2))


def learn_from(path: Path) -> None:
    """What `--imitate FILE` makes of the games of a file."""
    rules = shogi_rules()
    done(rules, Pay(tuple(rules.weights(None)), 1.0), Task((path,)))


@cache
def shogi_rules() -> Rules:
    """The usual rules."""
    return Rules("shogi")


def engine_lines(by: random.Random) -> str:
    """Six lines that a program tells an engine."""
    position = write_usi(shogi_game(by.randrange(12))).strip()
    options = ("setoption name Seed value 3", "setoption name Sampled value true")
    lines = ["usi", "isready", by.choice(options), "usinewgame", position, "go btime 0 byoyomi 100"]
    return "\n".join(lines) + "\n"


def answer_engine(path: Path) -> None:
    """`sparring usi random`: every line is answered by lines."""
    server = UsiServer("random", shogi_rules())
    for line in path.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)[:200]:
        for told in server.answer(line):
            assert told.isprintable() or "\u3000" in told, f"answered {told!r}"
            assert len(told) < 5000, f"answered {len(told)} letters"


def openings(by: random.Random) -> str:
    """Positions, a line each, in all the ways that there are."""
    game = shogi_game(by.randrange(12))
    return f"# openings\n{STARTS[1]}\nsfen {STARTS[2]}\n{write_usi(game)}startpos\n"


def open_with(path: Path) -> None:
    """`sparring eval --engine ... --openings FILE`."""
    read_openings(str(path), shogi_rules())


def start_shogi(path: Path) -> None:
    """`--starts FILE.sfen`."""
    read_starts(shogi_rules(), [f"{path}=1"])


def sfens(by: random.Random) -> str:
    """Positions of Shogi, a line each."""
    return f"# starts\n{by.choice(STARTS)}\nsfen {STARTS[1]}\n"


def starts(by: random.Random) -> Any:
    """Positions of tic-tac-toe by their moves; states as bytes have a fuzz of their own."""
    rows = [{"seed": 3, "moves": [4, 0], "weight": 2.5}, {"seed": by.randrange(9), "moves": []}]
    return [*rows, {"moves": by.sample(range(9), 3)}]


def start_tic_tac_toe(path: Path) -> None:
    """`--starts FILE.jsonl`."""
    read_starts(Rules("tic_tac_toe"), [f"{path}=0.5", "usual=1"])


def hockey_starts(by: random.Random) -> Any:
    """Positions on the rink, in meters."""
    body = {"x": by.uniform(-2, 2), "y": by.uniform(-1, 1)}
    return [{"puck": body}, {"left": {"x": -2.0}, "puck": {"vx": 1.5}, "keep": [2, 0]}]


def start_hockey(path: Path) -> None:
    """`--starts FILE.json` of laser hockey."""
    read_starts(Rules("laser_hockey"), [str(path)])
