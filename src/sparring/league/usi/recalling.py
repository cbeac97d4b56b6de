"""What a player remembers of a game that is told from its start, move by move, again and again."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.games import Rules
from sparring.games.shogi.protocol import play_on, replay
from sparring.nets.remembering import Bytes, Decides, Remembering


class Recalling:
    """A player who is shown a game by its moves: it would have seen all positions of its side.

    Programs tell the whole game before every move. What was followed before is not followed again,
    unless moves were taken back.
    """

    def __init__(self, player: Decides, rules: Rules, *, skip_forced: bool) -> None:
        """Remember nothing yet. skip_forced: whether it was trained without forced moves."""
        self.rules = rules
        self._mind = Remembering(player, skip_forced=skip_forced)
        self._told: dict[int, tuple[str, list[str]]] = {}
        """By seat: the start and the moves that it remembers."""

    def memory(self, seat: int, start: str, moves: Sequence[str]) -> Bytes:
        """What it remembers of a seat's decisions in these moves [1, memory_bytes]."""
        if self._mind.player.memory_bytes:
            self._follow(seat, start, list(moves))
        return self._mind.before(seat)

    def _follow(self, seat: int, start: str, moves: list[str]) -> None:
        known = self._told.get(seat, (start, []))
        if known != (start, moves[: len(known[1])]):
            self._mind.held.pop(seat, None)
            known = (start, [])
        state = replay(self.rules, start, known[1])
        for move in moves[len(known[1]) :]:
            if not state.over and state.seat == seat:
                self._mind.follow(state)
            play_on(state, move)
        self._told[seat] = (start, moves)
