"""A player that speaks the USI protocol: takes a line, returns lines; no input or output here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparring.errors import ConfigError, SparringError, suggestion
from sparring.games import Rules, State, new_state, shogi
from sparring.games.shogi.protocol import (
    centipawns,
    game_seed,
    play_on,
    read_position,
    replay,
    without_referee_ends,
)
from sparring.league.players import Player, name_of
from sparring.league.usi.clock import GoLimits, read_go
from sparring.league.usi.thinking import Thinking, budget_for
from sparring.nets.stateful_player import BatchPlayer, Bytes, StatefulPlayer
from sparring.search.budget import MAX_SIMULATIONS, Budget
from sparring.search.search import SearchConfig

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

NAME, AUTHOR = "sparring", "the sparring maintainers"
MAX_SEED = 2**31 - 1
MAX_LINES = 500
MULTIPV = f"option name MultiPV type spin default 1 min 1 max {MAX_LINES}"
DURING_SEARCH = ("usi", "isready", "stop", "ponderhit", "gameover", "quit")
"""Commands that are heard while a search runs."""


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
    """A player as a USI engine.

    A policy searches within the limits of `go`, or within its own budget; without any, or if it
    cannot search, it answers at once, as bots do.
    """

    def __init__(
        self,
        player: Player,
        rules: Rules,
        *,
        seed: int = 0,
        sampled: bool = False,
        send: Callable[[str], None] | None = None,
    ) -> None:
        """Set up the start position.

        send: takes lines of a search, which then runs in a thread of its own, so that `stop` is
            heard; left out, `answer` returns when it is done.
        """
        self.player = player if isinstance(player, str) else player.without_search()
        self.seed, self.sampled, self.send = seed, sampled, send
        self.policy, self.why_not = searchable(player)
        """The policy if it can search, else None and the reason."""
        own = self.policy.budget if self.policy else None
        self.simulations = own.simulations if own else 0
        """Most simulations of a search; 0: no limit."""
        self.lines = 1
        """Moves that a search reports (MultiPV)."""
        self.thinking: Thinking | None = None
        self.thread: threading.Thread | None = None
        self.last: Thinking | None = None
        """The last search, which has ended before another begins."""
        self.evaluation_s = 0.0
        """Time of one evaluation, by which a search may be late."""
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
            "isready": self.get_ready,
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
            if self.is_thinking and words[0] not in DURING_SEARCH:
                raise ConfigError(f"{words[0]}: the last `go` is still running; send `stop` first")
            return self.commands[words[0]](words[1:])
        except SparringError as wrong:
            return [f"info string {' '.join(str(wrong).split())}"]

    def introduce(self, _: Sequence[str]) -> list[str]:
        kinds = " ".join(f"var {kind}" for kind in shogi.DECLARATIONS)
        most = f"option name Simulations type spin default {self.simulations} min 0 max"
        return [
            f"id name {NAME} {name_of(self.player)}",
            f"id author {AUTHOR}",
            f"option name Sampled type check default {str(self.sampled).lower()}",
            f"option name Seed type spin default {self.seed} min 0 max {MAX_SEED}",
            f"option name Declaration type combo default {self.declaration} {kinds}",
            *([f"{most} {MAX_SIMULATIONS}", MULTIPV] if self.policy else []),
            "usiok",
        ]

    @property
    def is_thinking(self) -> bool:
        """Whether a search runs in its thread."""
        return self.thinking is not None and not self.thinking.done

    def get_ready(self, _: Sequence[str]) -> list[str]:
        """Evaluate a position twice: the first call of a network is slow, the second is timed."""
        if self.policy and not self.is_thinking and not self.evaluation_s:
            obs = np.repeat(new_state(self.rules).decision()[0], SearchConfig().considered, axis=0)
            self.policy.heads(obs)
            started = time.monotonic()
            self.policy.heads(obs)
            self.evaluation_s = time.monotonic() - started
        return [*([f"info string no search: {self.why_not}"] if self.why_not else []), "readyok"]

    def set_option(self, words: Sequence[str]) -> list[str]:
        """Set an option; options that are not declared (USI_Hash, USI_Ponder) are ignored."""
        split = words.index("value") if "value" in words else len(words)
        if words[:1] != ["name"] or split < 2:
            raise ConfigError("an option is set with `setoption name NAME value VALUE`")
        name, value = " ".join(words[1:split]).lower(), " ".join(words[split + 1 :])
        if name == "sampled":
            self.sampled = read_check(value)
        elif name == "seed":
            self.seed = read_number("Seed", value, MAX_SEED)
            self.state = self.set_up()
        elif name == "simulations":
            self.simulations = read_number("Simulations", value, MAX_SIMULATIONS)
        elif name == "multipv":
            self.lines = max(read_number("MultiPV", value, MAX_LINES), 1)
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
        limits = read_go(words, max(self.state.seat, 0))
        info: list[str] = []
        if self.state.over or self.declares():
            best = f"bestmove {'resign' if self.state.over else 'win'}"
        elif (budget := self.budget_for(limits)) is None:
            info, best = self.choose()
        elif self.send is not None:
            self.think(self.start_search(budget, limits), limits)
            return []
        else:
            thinking = self.start_search(budget, replace(limits, until_stop=False))
            info = list(thinking.run())
            best = f"bestmove {shogi.usi(self.state, thinking.action)}"
        if limits.until_stop:
            self.waiting = best
            return info
        return [*info, best]

    def declares(self) -> bool:
        """Whether the side to move wins by entering the other camp."""
        return shogi.camp(shogi.read_sfen(self.state), self.declaration).claim == "win"

    def budget_for(self, limits: GoLimits) -> Budget | None:
        """Return how long to search; None: not at all."""
        if self.policy is None:
            return None
        late = min(self.evaluation_s, limits.seconds / 2)
        limits = replace(limits, seconds=limits.seconds - late)
        return budget_for(self.policy.budget, self.simulations, limits)

    def start_search(self, budget: Budget, limits: GoLimits) -> Thinking:
        assert self.policy
        noise = self.sampled if self.policy.greedy is None else not self.policy.greedy
        self.last = Thinking(
            self.policy,
            self.state.clone(),
            budget,
            seed=self.game_seed,
            noise=noise,
            rounds=limits.until_stop,
            lines=self.lines,
            last=self.last,
        )
        return self.last

    def think(self, thinking: Thinking, limits: GoLimits) -> None:
        """Search in a thread, which sends what it finds."""
        assert self.send
        send, state = self.send, self.state.clone()

        def run() -> None:
            for info in thinking.run():
                send(info)
            if limits.until_stop:
                thinking.stopped.wait()
            thinking.done = True  # the program may answer the move before this thread ends
            if not thinking.dropped:
                send(f"bestmove {shogi.usi(state, thinking.action)}")

        self.thinking = thinking
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def wait(self) -> None:
        """Wait for the search that is running; one without an end is stopped."""
        if self.thread and self.thinking:
            if self.thinking.rounds:
                self.thinking.stop()
            self.thread.join()

    def end_search(self, *, drop: bool = False) -> None:
        """Stop the search that is running; it sends its move, unless that is dropped."""
        if self.thread and self.thinking:
            self.thinking.dropped = drop
            self.thinking.stop()
            self.thread.join()
        self.thread = self.thinking = None

    def choose(self) -> tuple[list[str], str]:
        """Return info lines and the best move of a bot, or of a network alone."""
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
        """Return the waiting move, if any; a search ends and sends its own."""
        self.end_search()
        move, self.waiting = self.waiting, None
        return [] if move is None else [move]

    def end_game(self, _: Sequence[str]) -> list[str]:
        self.end_search(drop=True)
        self.waiting = None
        return []

    def quit(self, _: Sequence[str]) -> list[str]:
        self.end_search(drop=True)
        self.finished = True
        return []


def read_check(value: str) -> bool:
    if value not in ("true", "false"):
        raise ConfigError(f"Sampled {value!r} must be true or false")
    return value == "true"


def read_number(name: str, value: str, most: int) -> int:
    digits = value.isascii() and value.isdecimal() and len(value) <= len(str(most))
    if not digits or int(value) > most:
        raise ConfigError(f"{name} {value[:20]!r} must be a number from 0 to {most}")
    return int(value)


def searchable(player: Player) -> tuple[Policy | None, str]:
    """Return the policy if it can search, else None and the reason; bots have none."""
    if isinstance(player, str):
        return None, ""
    try:
        player.check_searchable()
    except ConfigError as wrong:
        return None, str(wrong)
    return player, ""
