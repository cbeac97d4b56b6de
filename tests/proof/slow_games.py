"""Games as people write them in plain Python, and copies of them with a mistake each."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class Turns(AECEnv):  # type: ignore[misc]
    """Two agents who take turns; a game says what is seen, what is legal and what a move does."""

    numbers, actions = 0, 0

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["x", "o"]

    def observation_space(self, agent: Any) -> Any:
        seen = spaces.Box(0, 1, (self.numbers,), np.float32)
        return spaces.Dict({"action_mask": spaces.MultiBinary(self.actions), "seen": seen})

    def action_space(self, agent: Any) -> Any:
        return spaces.Discrete(self.actions)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = "x"
        self.over = False
        self.begin(np.random.default_rng(seed))

    def begin(self, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        """Play; return whether the game is over and what the first agent wins."""
        raise NotImplementedError

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self.over, won = self.move(self.possible_agents.index(agent), int(action))
        self.rewards = {"x": won, "o": -won}
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(self.agents, self.over)
        self.agent_selection = "o" if agent == "x" else "x"


class TicTacToe(Turns):
    """Three in a row."""

    metadata = {"name": "slow_tic_tac_toe_v0"}  # noqa: RUF012
    numbers, actions = 19, 9
    lines = LINES

    def begin(self, rng: np.random.Generator) -> None:
        self.board = [0] * 9

    def legal(self) -> Any:
        return np.array([not self.over and cell == 0 for cell in self.board], np.int8)

    def observe(self, agent: Any) -> Any:
        mine = 1 if agent == "x" else 2
        cells = [*(c == mine for c in self.board), *(c not in (0, mine) for c in self.board)]
        turn = not self.over and self.agent_selection == agent
        return {"action_mask": self.legal(), "seen": np.array([*cells, turn], np.float32)}

    def won(self, seat: int) -> float:
        return 1.0 if seat == 0 else -1.0

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        self.board[action] = seat + 1
        if any(all(self.board[cell] == seat + 1 for cell in line) for line in self.lines):
            return True, self.won(seat)
        return 0 not in self.board, 0.0

    def state_text(self) -> str:
        rows = ("".join(".xo"[cell] for cell in self.board[i : i + 3]) for i in (0, 3, 6))
        return "\n".join(rows)


class MissingLine(TicTacToe):
    """Knows seven lines."""

    lines = LINES[:-1]


class MaskAfterTheEnd(TicTacToe):
    """Goes on offering cells."""

    def legal(self) -> Any:
        return np.array([cell == 0 for cell in self.board], np.int8)


class WrongSign(TicTacToe):
    """Pays the loser where the second one wins."""

    def won(self, seat: int) -> float:
        return 1.0


class ForgetsTheCorner(TicTacToe):
    """Never shows the last cell."""

    def observe(self, agent: Any) -> Any:
        obs = super().observe(agent)
        obs["seen"][8] = 0
        return obs


class TakenCell(TicTacToe):
    """Offers the middle although it is taken."""

    def legal(self) -> Any:
        mask = super().legal()
        mask[4] = not self.over
        return mask


class Mirrored(TicTacToe):
    """Counts its cells from the other end, and says so."""

    def action_of(self, number: int) -> int:
        return 8 - number

    def native_obs(self, seat: int) -> Any:
        seen = self.observe(self.possible_agents[seat])["seen"]
        return [*seen[8::-1], *seen[17:8:-1], seen[18]]


class OtherSeats(TicTacToe):
    """Lists the second player first, and says so."""

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["o", "x"]

    def seat_of(self, agent: str) -> int:
        return "xo".index(agent)

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        return super().move(1 - seat, action)


class Slow(TicTacToe):
    """Takes its time."""

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        time.sleep(0.02)
        return super().move(seat, action)


class Falls(TicTacToe):
    """Cannot finish a full board."""

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        if self.board.count(0) == 1:
            raise IndexError("no cell left")
        return super().move(seat, action)


class Alone(gymnasium.Env[Any, Any]):
    """Tic-tac-toe as a gymnasium.Env that is asked for both players; pays who moved."""

    observation_space = spaces.MultiDiscrete([3] * 9)
    action_space = spaces.Discrete(9)

    def __init__(self) -> None:
        self.table = TicTacToe()

    def look(self) -> Any:
        return np.array(self.table.board), {"action_mask": self.table.legal()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.table.reset(seed)
        return self.look()

    def step(self, action: Any) -> Any:
        mover = self.table.agent_selection
        self.table.step(action)
        obs, info = self.look()
        return obs, self.table.rewards[mover], self.table.over, False, info


class Kuhn(Turns):
    """Kuhn poker; chips are points."""

    metadata = {"name": "slow_kuhn_v0"}  # noqa: RUF012
    numbers, actions = 4, 2

    def begin(self, rng: np.random.Generator) -> None:
        self.cards = [int(card) for card in rng.permutation(3)[:2]]
        self.moves: list[int] = []
        self.points = [0.0, 0.0]

    def load(self, state: Any) -> None:
        fields = state.fields()
        self.cards = fields["cards"].tolist()
        self.moves = fields["moves"][: fields["length"][0]].tolist()
        self.agent_selection = self.possible_agents[len(self.moves) % 2]

    def observe(self, agent: Any) -> Any:
        card = self.cards[self.possible_agents.index(agent)]
        seen = np.array([*(card == rank for rank in range(3)), len(self.moves) > 1], np.float32)
        mask = np.full(2, 0 if self.over else 1, np.int8)
        return {"action_mask": mask, "seen": seen}

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        self.moves.append(action)
        moves, better = tuple(self.moves), 1.0 if self.cards[0] > self.cards[1] else -1.0
        ends = {(0, 0): better, (1, 1): 2 * better, (0, 1, 1): 2 * better, (1, 0): 1.0}
        won = {**ends, (0, 1, 0): -1.0}.get(moves)
        self.points = [won or 0.0, -(won or 0.0)]
        return won is not None, won or 0.0

    def scores(self) -> list[float]:
        return self.points

    def __str__(self) -> str:
        return f"cards {self.cards}, moves {self.moves}"


class CheapCall(Kuhn):
    """A call after a pass costs nothing."""

    def move(self, seat: int, action: int) -> tuple[bool, float]:
        over, won = super().move(seat, action)
        return over, won / 2 if self.moves == [0, 1, 1] else won


class NoLoad(Kuhn):
    """Cannot be put into a position."""

    load = None  # type: ignore[assignment]
