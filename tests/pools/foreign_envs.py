"""Small environments of other libraries, and what a learner sees of a pool."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from sparring.learn.transitions import NOT_A_SAMPLE, Transitions

Choose = Callable[[np.ndarray, np.ndarray], int]


class Decision(NamedTuple):
    """A sample as the learner gets it."""

    obs: bytes
    mask: bytes
    action: int
    paid: float
    link: int


class Episode(NamedTuple):
    """One seat's samples of a finished episode, and its end."""

    decisions: list[Decision]
    terminated: bool
    last_obs: bytes
    score: float


def by_hash(numbers: np.ndarray, mask: np.ndarray) -> int:
    """The same policy wherever it is asked."""
    legal = np.flatnonzero(mask)
    return int(legal[zlib.crc32(numbers.astype(np.float32).tobytes()) % len(legal)])


def episodes(
    pool: Any, steps: int, *, choose: Choose = by_hash, cut_value: float = 5.0
) -> dict[tuple[int, int], list[Episode]]:
    """Play and let the Transitions link; returns finished episodes by (game, place at the table).

    A learner that is alone at its table has place 0 wherever it sits.
    """
    rules, games = pool.rules, pool.num_games
    transitions = Transitions(rules, games, steps)
    seat, role, policy, reward = [], [], [], []
    terminated, truncated, final_value, shown, ends = [], [], [], [], []
    batch = pool.reset()
    for step in range(steps):
        numbers, mask = rules.widen(batch.obs), batch.mask.copy()
        action = np.zeros(games * rules.rows, np.int32)
        for row in np.flatnonzero(batch.policy == 0):
            action[row] = choose(numbers[row], mask[row])
        shown.append((numbers, mask, action))
        seat.append(batch.seat.copy())
        role.append(batch.role.copy())
        policy.append(batch.policy.copy())
        batch = pool.step(action)
        reward.append(batch.reward.copy())
        terminated.append(batch.terminated.copy())
        truncated.append(batch.truncated.copy())
        value = np.full((games, rules.seats), np.nan, np.float32)
        last = rules.widen(batch.final_obs)
        for at, game in enumerate(batch.final_game):
            value[game][batch.final_mask[at].any(axis=1)] = cut_value
            for place in np.flatnonzero(batch.final_policy[at] == 0):
                end = (bool(batch.terminated[game]), last[at, place].tobytes())
                ends.append((step, int(game), place, *end, float(batch.final_score[at, place])))
        final_value.append(value)
    transitions.link(
        seat=np.stack(seat),
        role=np.stack(role),
        policy=np.stack(policy),
        reward=np.stack(reward),
        terminated=np.stack(terminated),
        truncated=np.stack(truncated),
        final_value=np.stack(final_value),
        gamma=0.9,
    )
    found: dict[tuple[int, int], list[Episode]] = {}
    began: dict[int, int] = {}
    for step, game, place, *end in ends:
        decisions = []
        for at in range(began.get(game, 0), step + 1):
            for row in range(game * rules.rows, (game + 1) * rules.rows):
                where = transitions.max_pending + at * games * rules.rows + row
                if seat[at][row] == place and transitions.end[where] != NOT_A_SAMPLE:
                    numbers, mask, action = (part[row] for part in shown[at])
                    outcome = (float(transitions.paid[where]), int(transitions.end[where]))
                    one = (numbers.tobytes(), mask.tobytes(), int(action), *outcome)
                    decisions.append(Decision(*one))
        alone = sum(1 for s, g, *_ in ends if (s, g) == (step, game)) == 1
        key = (game, 0 if alone else int(place))
        found.setdefault(key, []).append(Episode(decisions, *end))
        if place == max(p for s, g, p, *_ in ends if (s, g) == (step, game)):
            began[game] = step + 1
    return found


class Countdown(gymnasium.Env[Any, Any]):
    """Sees (episode, time); action 1 ends it with 2 points, time 4 cuts it.

    Action 2 is legal at odd times only. The env calls its actions 5, 6 and 7.
    masks: where legal actions are told: "info", "method", "obs" or "nowhere".
    """

    def __init__(self, masks: str = "nowhere", limit: int = 4) -> None:
        self.masks, self.limit, self.episode, self.time = masks, limit, 0, 0
        self.steps_taken = 0
        self.poison: dict[int, tuple[float, float]] = {}
        box: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        if masks == "obs":
            mask = spaces.Box(0, 1, (3,), np.int8)
            box = spaces.Dict({"action_mask": mask, "observation": box})
        self.observation_space = box
        self.action_space = spaces.Discrete(3, start=5)
        if masks == "method":
            self.action_masks = self.legal

    def legal(self) -> np.ndarray:
        return np.array([1, 1, self.time % 2], np.int8)

    def look(self, extra: float = 0.0) -> Any:
        seen = np.array([self.episode, self.time + extra], np.float32)
        if self.masks == "obs":
            return {"observation": seen, "action_mask": self.legal()}
        return seen

    def info(self) -> dict[str, Any]:
        return {"action_mask": self.legal()} if self.masks == "info" else {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self.look(), self.info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.time += 1
        self.steps_taken += 1
        extra, reward = self.poison.get(self.steps_taken, (0.0, 0.0))
        ended = bool(action == 6)
        reward += 2.0 if ended else 0.25
        return self.look(extra), reward, ended, self.time >= self.limit, self.info()


class Fading(ParallelEnv):  # type: ignore[misc]
    """Agent i is terminated in round i + 1 with 10 * i points; the rest is cut after `limit`."""

    metadata = {"name": "fading_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, agents: int = 3, limit: int = 99) -> None:
        self.possible_agents = [f"player_{i}" for i in range(agents)]
        self.limit = limit
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def look(self) -> dict[str, Any]:
        return {a: np.array([self.round, int(a[-1])], np.float32) for a in self.agents}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.round = list(self.possible_agents), 0
        return self.look(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        assert set(actions) == set(self.agents)
        self.round += 1
        number = {agent: int(agent[-1]) for agent in self.agents}
        over = {agent: self.round == i + 1 for agent, i in number.items()}
        cut = dict.fromkeys(self.agents, self.round >= self.limit)
        paid = {agent: 10.0 * i if over[agent] else 0.5 for agent, i in number.items()}
        obs, infos = self.look(), {agent: {} for agent in self.agents}
        self.agents = [a for a in self.agents if not (over[a] or cut[a])]
        return obs, paid, over, cut, infos


class MatchingPennies(ParallelEnv):  # type: ignore[misc]
    """Ten rounds; the first wins if the pennies match, the second if not."""

    metadata = {"name": "matching_pennies_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["matcher", "mismatcher"]
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        return spaces.Tuple((spaces.Discrete(11), spaces.MultiBinary(2)))

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def look(self) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, (self.round, self.shown))

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.round = list(self.possible_agents), 0
        self.shown = np.zeros(2, np.int8)
        return self.look(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        self.round += 1
        self.shown = np.array([actions[agent] for agent in self.possible_agents], np.int8)
        won = 1.0 if self.shown[0] == self.shown[1] else -1.0
        paid = {"matcher": won, "mismatcher": -won}
        over = dict.fromkeys(self.possible_agents, self.round == 10)
        if self.round == 10:
            self.agents = []
        never = dict.fromkeys(self.possible_agents, False)
        return self.look(), paid, over, never, {agent: {} for agent in self.possible_agents}
