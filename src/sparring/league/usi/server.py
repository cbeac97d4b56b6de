"""A player that speaks the USI protocol: takes a line, returns lines; no input or output here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sparring.errors import ConfigError, SparringError, suggestion
from sparring.games import Rules, State, shogi
from sparring.games.shogi.protocol import (
    centipawns,
    game_seed,
    play_on,
    read_position,
    replay,
    without_referee_ends,
)
from sparring.league.players import Player, name_of
from sparring.nets.stateful_player import BatchPlayer, Bytes, StatefulPlayer

NAME, AUTHOR = "sparring", "the sparring maintainers"
MAX_SEED = 2**31 - 1
WAITING_GOES = ("infinite", "ponder")
"""Kinds of `go` that are answered at `stop` or `ponderhit`."""


class GameMemory:
    """Recurrent memory of a player for a game given by its moves.

    Programs send the whole game before every move. Positions of earlier requests are not computed
    again, unless moves were taken back.
    """

    def __init__(self, player: BatchPlayer, rules: Rules, *, skip_forced: bool) -> None:
        """Start without memory. skip_forced: whether it was trained without forced moves."""
        self.rules = rules
        self._player = StatefulPlayer(player, skip_forced=skip_forced)
        self._seen: dict[int, tuple[str, list[str]]] = {}
        """By seat: the start and the moves that its memory covers."""

    def memory(self, seat: int, start: str, moves: Sequence[str]) -> Bytes:
        """Return the memory of a seat after these moves [1, memory_bytes]."""
        if self._player.player.memory_bytes:
            self._follow(seat, start, list(moves))
        return self._player.memory_of(seat)

    def _follow(self, seat: int, start: str, moves: list[str]) -> None:
        seen = self._seen.get(seat, (start, []))
        if seen != (start, moves[: len(seen[1])]):
            self._player.memories.pop(seat, None)
            seen = (start, [])
        state = replay(self.rules, start, seen[1])
        for move in moves[len(seen[1]) :]:
            if not state.over and state.seat == seat:
                self._player.observe(state)
            play_on(state, move)
        self._seen[seat] = (start, moves)


class UsiServer:
    """A player as a USI engine. It answers at once and never ponders."""

    def __init__(
        self, player: Player, rules: Rules, *, seed: int = 0, sampled: bool = False
    ) -> None:
        self.player, self.seed, self.sampled = player, seed, sampled
        self.declaration = str(rules.config["declaration"])
        self.rules = without_referee_ends(rules)
        self.memory = (
            None
            if isinstance(player, str)
            else GameMemory(player, self.rules, skip_forced=rules.skip_forced)
        )
        self.games = 0
        self.start, self.moves = shogi.START, list[str]()
        self.state = self.set_up()
        self.waiting: str | None = None
        """The best move to send at `stop`."""
        self.finished = False
        self.commands: dict[str, Callable[[Sequence[str]], list[str]]] = {
            "usi": self.introduce,
            "isready": lambda _: ["readyok"],
            "setoption": self.set_option,
            "usinewgame": self.new_game,
            "position": self.position,
            "go": self.go,
            "stop": self.release,
            "ponderhit": self.release,
            "gameover": self.end_game,
            "quit": self.quit,
        }

    def answer(self, line: str) -> list[str]:
        """Return the answer to a line; an invalid line is reported and changes nothing."""
        words = line.split()
        if not words:
            return []
        try:
            if words[0] not in self.commands:
                raise ConfigError(f"no command {words[0]!r}{suggestion(words[0], self.commands)}")
            return self.commands[words[0]](words[1:])
        except SparringError as wrong:
            return [f"info string {' '.join(str(wrong).split())}"]

    def introduce(self, _: Sequence[str]) -> list[str]:
        kinds = " ".join(f"var {kind}" for kind in shogi.DECLARATIONS)
        return [
            f"id name {NAME} {name_of(self.player)}",
            f"id author {AUTHOR}",
            f"option name Sampled type check default {str(self.sampled).lower()}",
            f"option name Seed type spin default {self.seed} min 0 max {MAX_SEED}",
            f"option name Declaration type combo default {self.declaration} {kinds}",
            "usiok",
        ]

    def set_option(self, words: Sequence[str]) -> list[str]:
        """Set an option; options that are not declared (USI_Hash, USI_Ponder) are ignored."""
        split = words.index("value") if "value" in words else len(words)
        if words[:1] != ["name"] or split < 2:
            raise ConfigError("an option is set with `setoption name NAME value VALUE`")
        name, value = " ".join(words[1:split]).lower(), " ".join(words[split + 1 :])
        if name == "sampled":
            self.sampled = read_check(value)
        elif name == "seed":
            self.seed = read_seed(value)
            self.state = self.set_up()
        elif name == "declaration":
            if value not in shogi.DECLARATIONS:
                hint = suggestion(value, shogi.DECLARATIONS)
                raise ConfigError(f"Declaration {value!r} is unknown{hint}")
            self.declaration = value
        return []

    def new_game(self, _: Sequence[str]) -> list[str]:
        self.games += 1
        self.start, self.moves, self.waiting = shogi.START, [], None
        self.state = self.set_up()
        return []

    @property
    def game_seed(self) -> int:
        return game_seed(self.seed, self.games)

    def set_up(self) -> State:
        return replay(self.rules, self.start, self.moves, seed=self.game_seed)

    def position(self, words: Sequence[str]) -> list[str]:
        start, moves = read_position(words)
        self.state = replay(self.rules, start, moves, seed=self.game_seed)
        self.start, self.moves = start, moves
        return []

    def go(self, words: Sequence[str]) -> list[str]:
        """Answer with a move, or keep it until `stop` or `ponderhit`."""
        if words[:1] == ["mate"]:
            return ["checkmate notimplemented"]
        if self.waiting is not None:
            raise ConfigError("the last `go` is still waiting for `stop` or `ponderhit`")
        info, best = self.choose()
        if any(kind in words for kind in WAITING_GOES):
            self.waiting = best
            return info
        return [*info, best]

    def choose(self) -> tuple[list[str], str]:
        """Return info lines and the best move."""
        if self.state.over:
            return [], "bestmove resign"
        if shogi.camp(shogi.read_sfen(self.state), self.declaration).claim == "win":
            return [], "bestmove win"
        if isinstance(self.player, str) or self.memory is None:
            return [], f"bestmove {shogi.usi(self.state, self.state.ask(str(self.player)))}"
        obs, mask = self.state.decision()
        memory = self.memory.memory(self.state.seat, self.start, self.moves)
        key: dict[str, Any] = {"seed": self.game_seed, "step": len(self.moves)}
        (action,), _ = self.player.decide(obs, mask, memory, greedy=not self.sampled, **key)
        move = shogi.usi(self.state, int(action))
        value = float(self.player.value(obs, mask, memory)[0])
        return [f"info depth 1 score cp {centipawns(value)} pv {move}"], f"bestmove {move}"

    def release(self, _: Sequence[str]) -> list[str]:
        """Return the waiting move, if any."""
        move, self.waiting = self.waiting, None
        return [] if move is None else [move]

    def end_game(self, _: Sequence[str]) -> list[str]:
        self.waiting = None
        return []

    def quit(self, _: Sequence[str]) -> list[str]:
        self.finished = True
        return []


def read_check(value: str) -> bool:
    if value not in ("true", "false"):
        raise ConfigError(f"Sampled {value!r} must be true or false")
    return value == "true"


def read_seed(value: str) -> int:
    digits = value.isascii() and value.isdecimal() and len(value) <= len(str(MAX_SEED))
    if not digits or int(value) > MAX_SEED:
        raise ConfigError(f"Seed {value[:20]!r} must be a number from 0 to {MAX_SEED}")
    return int(value)
