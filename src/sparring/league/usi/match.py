"""Shogi matches against a USI engine: each opening with both colors, by sparring's rules."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparring.config.commands import EvalConfig
from sparring.errors import ConfigError, SparringError
from sparring.games import Rules, State, new_state, shogi
from sparring.games.flags import read_pair
from sparring.games.shogi.protocol import game_seed, position_line, read_position
from sparring.league.arena import DEFAULT_PLIES
from sparring.league.players import Player, name_of
from sparring.league.results import MatchRecord, MatchResult, summarize
from sparring.league.usi.engine import Engine, EngineError
from sparring.nets.stateful_player import StatefulPlayer

GO = {
    "movetime": "go movetime {}",
    "byoyomi": "go btime 0 wtime 0 byoyomi {}",
    "nodes": "go nodes {}",
    "depth": "go depth {}",
}
"""The `go` line for each kind of limit."""
GAMES = 100
"""Default; engines are slow."""
IN_MILLISECONDS = ("movetime", "byoyomi")
MAX_LIMIT = 2**31 - 1
MAX_FAULTS_IN_A_ROW = 3
"""After this many games with faults in a row the match stops: the engine is broken."""


@dataclass(frozen=True)
class Opening:
    """First moves of a game from a start position."""

    start: str
    moves: tuple[str, ...]


@dataclass(frozen=True)
class EngineFault:
    """A fault by which the engine lost a game."""

    game: int
    kind: str
    message: str


@dataclass(frozen=True)
class GameOutcome:
    """Result of a game for the challenger."""

    score: float
    moves: tuple[str, ...]
    """Including the opening."""
    end: str
    start: str

    @property
    def fingerprint(self) -> int:
        """Hash of the start and the moves."""
        text = " ".join((self.start, *self.moves)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


@dataclass(frozen=True)
class EngineMatch:
    """Result of a match against an engine."""

    result: MatchResult
    engine: str
    """Its `id name`."""
    faults: tuple[EngineFault, ...]
    stopped: str = ""
    """Reason why not all games were played."""


def read_limit(config: EvalConfig) -> str:
    """Return the `go` line of a limit."""
    kind, _, number = config.engine_limit.partition("=")
    digits = number.isascii() and number.isdecimal() and len(number) <= len(str(MAX_LIMIT))
    if kind not in GO or not digits or not 0 < int(number) <= MAX_LIMIT:
        kinds = ", ".join(f"{name}=NUMBER" for name in GO)
        raise ConfigError(
            f"--engine-limit {config.engine_limit[:40]!r} is none of {kinds}, "
            f"with numbers from 1 to {MAX_LIMIT}"
        )
    if kind in IN_MILLISECONDS and int(number) >= 1000 * config.engine_timeout_s:
        raise ConfigError(
            f"--engine-limit {config.engine_limit} is not below the engine's timeout; "
            "raise --engine-timeout-s"
        )
    return GO[kind].format(number)


def read_options(pairs: Sequence[str]) -> dict[str, str]:
    options = {}
    for pair in pairs:
        name, value = read_pair(pair, "engine-option")
        if pair.splitlines() != [pair]:
            raise ConfigError(f"engine-option: {pair!r} has to be one line")
        options[name] = value
    return options


def read_openings(path: str, rules: Rules) -> list[Opening]:
    """Read SFENs or USI positions, one per line; # begins a comment."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, ValueError) as wrong:
        raise ConfigError(f"cannot read --openings {path}: {wrong}") from None
    openings = []
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
        openings.append(opening)
    if not openings:
        raise ConfigError(f"{path} holds no positions; write one SFEN per line")
    return openings


def random_opening(rules: Rules, plies: int, seed: int, number: int) -> Opening:
    rng = random.Random(f"{seed} {number}")
    while True:
        state, moves = new_state(rules), list[str]()
        while len(moves) < plies and not state.over:
            moves.append(rng.choice(sorted(shogi.moves(state))))
            shogi.play(state, moves[-1])
        if not state.over:
            return Opening(shogi.START, tuple(moves))


def set_up(rules: Rules, opening: Opening, seed: int) -> State:
    state = new_state(rules, seed=seed, sfen=opening.start)
    shogi.play(state, *opening.moves)
    return state


class Referee:
    """Plays the games of a match one after the other."""

    def __init__(
        self,
        challenger: Player,
        engine: Engine,
        rules: Rules,
        config: EvalConfig,
        *,
        skip_forced: bool,
    ) -> None:
        """Prepare a match. skip_forced: whether the rules make forced moves."""
        self.engine, self.rules, self.config = engine, rules, config
        self.go = read_limit(config)
        self.challenger = (
            challenger
            if isinstance(challenger, str)
            else StatefulPlayer(challenger, skip_forced=skip_forced)
        )
        self.moves: list[str] = []
        """Of the current or last game."""

    def play(self, opening: Opening, seat: int, number: int) -> GameOutcome:
        """Play one game; raise EngineError for a fault of the engine."""
        moves = self.moves = list(opening.moves)
        self.engine.new_game()
        if not isinstance(self.challenger, str):
            self.challenger.reset()
        state = set_up(self.rules, opening, game_seed(self.config.seed, number))
        while not state.over:
            if state.seat == seat:
                move = self.challenger_move(state, len(moves))
            else:
                position = position_line(opening.start, moves)
                move = self.engine.move(position, self.go, self.config.engine_timeout_s)
                if move == "resign":
                    return GameOutcome(1.0, tuple(moves), "resignation", opening.start)
            if move not in shogi.moves(state):
                raise EngineError(
                    "illegal move", f"{self.engine.name} sent {describe_illegal(state, move)}"
                )
            shogi.play(state, move)
            moves.append(move)
        return GameOutcome(state.scores[seat], tuple(moves), state.end or "", opening.start)

    def challenger_move(self, state: State, ply: int) -> str:
        if isinstance(self.challenger, str):
            return shogi.usi(state, state.ask(self.challenger))
        greedy = not self.config.sampled
        action = self.challenger.action(state, greedy=greedy, seed=state.seed, step=ply)
        return shogi.usi(state, action)


def describe_illegal(state: State, move: str) -> str:
    sfen = shogi.read_sfen(state)
    if move == "win":  # a win by declaration has ended the game already
        return f"win where the rules give none: {sfen}"
    return f"{move}, which is not legal: {sfen}"


def play_match(
    challenger: Player,
    rules: Rules,
    config: EvalConfig,
    progress: Callable[[int], None],
    *,
    start_s: float = 0.0,
) -> EngineMatch:
    """Play all games. start_s: timeout of the engine's start; 0: that of a move."""
    skip_forced = rules.skip_forced
    rules = rules.changed({"skip_forced": 0})  # the engine needs every move
    limit, plies = int(rules.config["max_plies"]), config.opening_plies
    plies = DEFAULT_PLIES if plies is None else plies
    if not config.openings and plies >= limit:
        raise ConfigError(f"--opening-plies {plies} leaves no move to play with max_plies={limit}")
    book = read_openings(config.openings, rules) if config.openings else []
    outcomes: list[GameOutcome] = []
    faults: list[EngineFault] = []
    stopped = ""
    options, start_s = read_options(config.engine_option), start_s or config.engine_timeout_s
    with Engine(config.engine or "", options, start_s=start_s) as engine:
        referee = Referee(challenger, engine, rules, config, skip_forced=skip_forced)
        try:
            for number in range(config.games or GAMES):
                pair, seat = divmod(number, 2)
                opening = (
                    book[pair % len(book)]
                    if book
                    else random_opening(rules, plies, config.seed, pair)
                )
                try:
                    outcomes.append(referee.play(opening, seat, number))
                    engine.game_over(-outcomes[-1].score)
                except EngineError as fault:
                    outcomes.append(
                        GameOutcome(1.0, tuple(referee.moves), fault.kind, opening.start)
                    )
                    faults.append(EngineFault(number, fault.kind, str(fault)))
                    engine.game_over(-1.0)
                    stopped = repeated_failure(faults) or restart(engine)
                progress(number + 1)
                if stopped:
                    break
        except KeyboardInterrupt:
            if not outcomes:
                raise
            stopped = "interrupted"  # the games so far count
        names = (name_of(challenger), engine.name)
    result = summarize_outcomes(rules, names, outcomes, 0 if book else plies)
    return EngineMatch(result, engine.name, tuple(faults), stopped)


def repeated_failure(faults: Sequence[EngineFault]) -> str:
    """Return a message if the engine fails game after game, else ""."""
    last = faults[-MAX_FAULTS_IN_A_ROW:]
    if len(last) < MAX_FAULTS_IN_A_ROW or last[-1].game - last[0].game != MAX_FAULTS_IN_A_ROW - 1:
        return ""
    return f"the engine failed in {MAX_FAULTS_IN_A_ROW} games in a row: {last[-1].message}"


def restart(engine: Engine) -> str:
    """Restart an engine; return the error message, "" if there is none."""
    try:
        engine.restart()
    except SparringError as wrong:
        return f"the engine could not be restarted: {wrong}"
    return ""


def summarize_outcomes(
    rules: Rules, names: Sequence[str], outcomes: Sequence[GameOutcome], opening_plies: int
) -> MatchResult:
    """Return the result of a match; the challenger is Black in even games."""
    games = len(outcomes)
    number = np.arange(games)
    seat_of = np.stack([number % 2, 1 - number % 2], axis=1)
    won = np.array([outcome.score for outcome in outcomes], np.float32)
    score = np.zeros((games, 2), np.float32)
    np.put_along_axis(score, seat_of, np.stack([won, -won], axis=1), axis=1)
    record = MatchRecord(
        seat_of=seat_of,
        score=score,
        length=np.array([len(outcome.moves) for outcome in outcomes], np.int32),
        end=np.zeros(games, np.uint8),
        deal=number // 2,
        action_hash=np.array([outcome.fingerprint for outcome in outcomes], np.uint64),
    )
    ends: Mapping[str, int] = collections.Counter(outcome.end for outcome in outcomes)
    result = summarize(rules, names, record, opening_plies=opening_plies)
    return dataclasses.replace(result, ends=dict(ends))
