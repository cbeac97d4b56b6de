"""Shogi matches against a USI engine: openings played with both colours, our rules the referee."""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparring.config import EvalConfig
from sparring.errors import ConfigError, SparringError
from sparring.games import Rules, State, new_state, shogi
from sparring.games.shogi.protocol import game_seed, position_line, read_position
from sparring.league.arena import Player, name_of
from sparring.league.results import MatchResult, Record, summarise
from sparring.tools.usi.engine import Engine, EngineError

GAMES = 100
"""Against an engine, unless --games says otherwise: it takes its time."""
GO = {
    "movetime": "go movetime {}",
    "byoyomi": "go btime 0 wtime 0 byoyomi {}",
    "nodes": "go nodes {}",
    "depth": "go depth {}",
}
IN_MILLISECONDS = ("movetime", "byoyomi")
MOST_OPENING_PLIES = 100
MOST_LIMIT, MOST_TIMEOUT_S = 2**31 - 1, 86_400.0
FAULTS_RUNNING = 3
"""After so many games in a row an engine is broken, not weak."""


@dataclass(frozen=True)
class Opening:
    """Where a game begins, and how it came there."""

    start: str
    moves: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """How the engine lost a game without being beaten."""

    game: int
    kind: str
    what: str


@dataclass(frozen=True)
class Outcome:
    """How a game ended, seen by the challenger."""

    score: float
    plies: int
    end: str


@dataclass(frozen=True)
class Match:
    """What was found."""

    result: MatchResult
    engine: str
    """The name it gave itself."""
    faults: tuple[Fault, ...]
    stopped: str = ""
    """Why not all games were played."""


def check_options(config: EvalConfig) -> None:
    """Refuse what does not go together, before anything is loaded."""
    if not config.engine:
        usual = EvalConfig(config.challenger)
        names = ("engine_limit", "engine_option", "engine_timeout_s", "opening_plies", "openings")
        given = [name for name in names if getattr(config, name) != getattr(usual, name)]
        if given:
            raise ConfigError(f"--{given[0].replace('_', '-')} is for matches with --engine")
        return
    for other in ("against", "protocol"):
        if getattr(config, other):
            raise ConfigError(f"--engine and --{other} exclude each other; leave one out")
    if config.game not in ("", "shogi"):
        raise ConfigError(f"--engine speaks USI, which is for shogi, not {config.game}")
    if config.games % 2:
        raise ConfigError(
            f"--games {config.games} must be even: openings are played with both colours"
        )
    if not 0 <= config.opening_plies <= MOST_OPENING_PLIES:
        raise ConfigError(
            f"--opening-plies {config.opening_plies} is outside 0..{MOST_OPENING_PLIES}"
        )
    if not 0 < config.engine_timeout_s <= MOST_TIMEOUT_S:
        raise ConfigError(
            f"--engine-timeout-s {config.engine_timeout_s:g} must be above 0 and at most "
            f"{MOST_TIMEOUT_S:g}"
        )
    read_limit(config)
    read_options(config.engine_option)


def read_limit(config: EvalConfig) -> str:
    """Return the `go` line of a limit."""
    kind, _, number = config.engine_limit.partition("=")
    digits = number.isascii() and number.isdecimal() and len(number) <= len(str(MOST_LIMIT))
    if kind not in GO or not digits or not 0 < int(number) <= MOST_LIMIT:
        known = ", ".join(f"{name}=NUMBER" for name in GO)
        raise ConfigError(
            f"--engine-limit {config.engine_limit[:40]!r} is none of {known}, "
            f"with numbers from 1 to {MOST_LIMIT}"
        )
    if kind in IN_MILLISECONDS and int(number) >= 1000 * config.engine_timeout_s:
        raise ConfigError(
            f"--engine-limit {config.engine_limit} leaves no time before the engine has lost; "
            "raise --engine-timeout-s"
        )
    return GO[kind].format(number)


def read_options(pairs: Sequence[str]) -> dict[str, str]:
    """Return the options that the engine is given."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ConfigError(f"--engine-option {pair!r} is not NAME=VALUE")
        if pair.splitlines() != [pair]:
            raise ConfigError(f"--engine-option {pair!r} has to be one line")
        options[name] = value
    return options


def read_openings(path: str, rules: Rules) -> list[Opening]:
    """Read SFENs or USI positions, one per line; # begins a remark."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, ValueError) as wrong:
        raise ConfigError(f"cannot read --openings {path}: {wrong}") from None
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        words = words[words[0] == "position" :]
        if words[:1] not in (["startpos"], ["sfen"]):
            words = ["sfen", *words]
        try:
            start, moves = read_position(words)
            opening = Opening(start, tuple(moves))
            over = set_up(rules, opening, 0).over
        except SparringError as wrong:
            raise ConfigError(f"{path}, line {number}: {wrong}") from None
        if over:
            raise ConfigError(f"{path}, line {number}: the game is over there; take the line out")
        found.append(opening)
    if not found:
        raise ConfigError(f"{path} holds no positions; write one SFEN per line")
    return found


def random_opening(rules: Rules, plies: int, seed: int, number: int) -> Opening:
    """Play a few moves by lot."""
    draw = random.Random(f"{seed} {number}")
    while True:
        state, moves = new_state(rules), list[str]()
        while len(moves) < plies and not state.over:
            moves.append(draw.choice(sorted(shogi.moves(state))))
            shogi.play(state, moves[-1])
        if not state.over:
            return Opening(shogi.START, tuple(moves))


def set_up(rules: Rules, opening: Opening, seed: int) -> State:
    """Return the position that an opening leads to."""
    state = new_state(rules, seed=seed, sfen=opening.start)
    shogi.play(state, *opening.moves)
    return state


class Referee:
    """Plays the games of a match, one after the other."""

    def __init__(
        self, challenger: Player, engine: Engine, rules: Rules, go: str, config: EvalConfig
    ) -> None:
        self.challenger, self.engine, self.rules, self.go = challenger, engine, rules, go
        self.seed, self.sampled = config.seed, config.sampled
        self.timeout_s = config.engine_timeout_s
        self.plies = 0
        """Of the game that is played or was played last."""

    def play(self, opening: Opening, seat: int, number: int) -> Outcome:
        """Play one game. Faults of the engine are raised."""
        self.plies = 0
        self.engine.new_game()
        state = set_up(self.rules, opening, game_seed(self.seed, number))
        moves = list(opening.moves)
        while not state.over:
            self.plies = len(moves)
            if state.seat == seat:
                move = self.own_move(state, len(moves))
            else:
                place = position_line(opening.start, moves)
                move = self.engine.move(place, self.go, self.timeout_s)
                if move == "resign":
                    return Outcome(1.0, len(moves), "resignation")
            if move not in shogi.moves(state):
                raise EngineError("illegal move", f"{self.engine.name} said {illegal(state, move)}")
            shogi.play(state, move)
            moves.append(move)
        return Outcome(state.scores[seat], len(moves), state.end or "")

    def own_move(self, state: State, ply: int) -> str:
        """Return what the challenger plays."""
        if isinstance(self.challenger, str):
            return shogi.usi(state, state.ask(self.challenger))
        greedy = not self.sampled
        action = self.challenger.action(state, greedy=greedy, seed=state.seed, step=ply)
        return shogi.usi(state, action)


def illegal(state: State, move: str) -> str:
    """Say what is wrong with an answer. Wins by declaration end games before they are claimed."""
    where = shogi.read_sfen(state)
    if move == "win":
        return f"win where the rules give none: {where}"
    return f"{move}, which is not legal: {where}"


def play_match(
    challenger: Player, rules: Rules, config: EvalConfig, progress: Callable[[int], None]
) -> Match:
    """Play all games."""
    rules = rules.changed({"skip_forced": 0})  # every move has to be told to the engine
    games = config.games or GAMES
    limit = int(rules.config["max_plies"])
    if not config.openings and config.opening_plies >= limit:
        raise ConfigError(
            f"--opening-plies {config.opening_plies} leaves no move to play with max_plies={limit}"
        )
    book = read_openings(config.openings, rules) if config.openings else []
    options = read_options(config.engine_option)
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    stopped = ""
    with Engine(config.engine, options) as engine:
        referee = Referee(challenger, engine, rules, read_limit(config), config)
        for number in range(games):
            pair, seat = divmod(number, 2)
            opening = (
                book[pair % len(book)]
                if book
                else random_opening(rules, config.opening_plies, config.seed, pair)
            )
            try:
                outcomes.append(referee.play(opening, seat, number))
                engine.game_over(-outcomes[-1].score)
            except EngineError as fault:
                outcomes.append(Outcome(1.0, referee.plies, fault.kind))
                faults.append(Fault(number, fault.kind, str(fault)))
                engine.game_over(-1.0)
                stopped = why_broken(faults) or why_not_restarted(engine)
            progress(number + 1)
            if stopped:
                break
        names = (name_of(challenger), engine.name)
    return Match(summary(rules, names, outcomes), engine.name, tuple(faults), stopped)


def why_broken(faults: Sequence[Fault]) -> str:
    """Say that an engine fails game after game, "" if it does not."""
    last = faults[-FAULTS_RUNNING:]
    if len(last) < FAULTS_RUNNING or last[-1].game - last[0].game != FAULTS_RUNNING - 1:
        return ""
    return f"the engine failed in {FAULTS_RUNNING} games running: {last[-1].what}"


def why_not_restarted(engine: Engine) -> str:
    """Start an engine anew and say why that failed, "" if it did not."""
    try:
        engine.restart()
    except SparringError as wrong:
        return f"the engine could not be started anew: {wrong}"
    return ""


def summary(rules: Rules, names: Sequence[str], outcomes: Sequence[Outcome]) -> MatchResult:
    """Turn outcomes into shares and intervals; the challenger is Black in even games."""
    games = len(outcomes)
    seat_of = np.array([(number % 2, 1 - number % 2) for number in range(games)], np.intp)
    won = np.array([outcome.score for outcome in outcomes], np.float32)
    score = np.zeros((games, 2), np.float32)
    np.put_along_axis(score, seat_of, np.stack([won, -won], axis=1), axis=1)
    record = Record(
        score,
        seat_of.astype(np.int16),
        np.array([outcome.plies for outcome in outcomes], np.int32),
        np.zeros(games, np.uint8),
    )
    ends: Mapping[str, int] = collections.Counter(outcome.end for outcome in outcomes)
    return dataclasses.replace(summarise(rules, names, seat_of, record), ends=dict(ends))
