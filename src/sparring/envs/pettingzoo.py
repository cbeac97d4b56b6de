"""A game as a PettingZoo environment: all seats are agents, or those without opponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.envs.extras import not_installed
from sparring.envs.opponents import Opponents
from sparring.envs.state_opponents import StateOpponents
from sparring.errors import ConfigError, IllegalActionError
from sparring.games import Rules, State, new_state
from sparring.games.rules import Rewards

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ModuleNotFoundError as missing:
    raise not_installed("pettingzoo", missing) from missing

from sparring.envs.spaces import action_space, observation_space


def aec_env(
    game: str | Rules,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    rewards: Rewards | None = None,
    render_mode: str | None = None,
    opponents: Opponents = None,
) -> AECEnv:
    """Return a game in which seats take turns, as an AECEnv.

    Agents are "seat_0", "seat_1", ...; observations are {"observation", "action_mask"}. An
    illegal action raises IllegalActionError and changes nothing. render_mode: None or "ansi".
    opponents: who sits in seats that are not yours, as in Gymnasium; `self` is you, as often as you
        like. Seats are drawn at every reset, and `agents` are those that are yours then.
    """
    table = Table(game, config, seed, rewards, render_mode, opponents=opponents)
    if table.rules.rows > 1:
        raise ConfigError(f"in {table.rules.name} seats move at once; use parallel_env")
    return OrderEnforcingWrapper(SparringAECEnv(table))


def parallel_env(
    game: str | Rules,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    rewards: Rewards | None = None,
    render_mode: str | None = None,
    opponents: Opponents = None,
) -> ParallelEnv:
    """Return a game in which seats move at once, as a ParallelEnv. Otherwise as `aec_env`."""
    table = Table(game, config, seed, rewards, render_mode, opponents=opponents)
    if table.rules.rows == 1:
        raise ConfigError(f"in {table.rules.name} seats take turns; use aec_env")
    return SparringParallelEnv(table)


class Table:
    """A game and its seats under the names that PettingZoo uses."""

    def __init__(
        self,
        game: str | Rules,
        config: Mapping[str, Any] | None,
        seed: int,
        rewards: Rewards | None,
        render_mode: str | None,
        *,
        opponents: Opponents,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode={render_mode!r} is unknown; there are: None, 'ansi'")
        self.rules = game if isinstance(game, Rules) else Rules(game, config)
        self.rules.weights(rewards)  # refuses unknown parts now, not at the first reset
        self.agents = [f"seat_{seat}" for seat in range(self.rules.seats)]
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["ansi"],
            "name": f"{self.rules.name}_v{self.rules.rules_version}",
            "is_parallelizable": self.rules.rows > 1,
        }
        self._rewards = rewards
        self._seed: int | None = seed
        self.state: State | None = None
        self.opponents = StateOpponents(self.rules, opponents)
        self.mine = list(self.agents)
        """The agents; opponents play the other seats."""

    def start(self, seed: int | None) -> State:
        """Start the game of a seed, or the next one."""
        seed = self._seed if seed is None else seed
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
            self._seed = None
        else:
            seed = int(self._seeds.integers(2**63))
        while True:  # a game in which nobody of ours is ever asked is followed by another
            self.state = new_state(self.rules, seed=seed, rewards=self._rewards)
            seats = self.opponents.assign_seats(self.state)
            self.mine = [self.agents[seat] for seat in seats]
            self._pending = self.opponents.play(self.state)
            if not self.state.over:
                return self.state
            seed = int(self._seeds.integers(2**63))

    def apply(self, rows: npt.NDArray[Any] | Any) -> State:
        """Play the agents' actions, and then the opponents."""
        state = self.running()
        state.apply(self.opponents.fill_actions(state, rows))
        before, self._pending = self._pending, np.zeros(self.rules.seats, np.float32)
        self._last_rewards = before + state.rewards + self.opponents.play(state)
        return state

    def observation_space(self) -> spaces.Space[Any]:
        """Return a new observation space; each agent seeds its own."""
        if self.rules.box:
            return observation_space(self.rules)
        mask = spaces.Box(0, 1, (self.rules.actions,), np.int8)
        return spaces.Dict({"observation": observation_space(self.rules), "action_mask": mask})

    def observe(self, seat: int) -> Any:
        """Return the observation of a seat, with its legal actions: none unless it is to act."""
        state = self.running()
        if self.rules.box:
            return state.observe(seat)
        mask = np.zeros(self.rules.actions, np.int8)
        for row in range(self.rules.rows):
            if state.native.seat(row) == seat:
                mask[state.legal(row)] = 1
        return {"observation": state.observe(seat), "action_mask": mask}

    def running(self) -> State:
        """Return the state; raise before the first reset."""
        if self.state is None:
            raise IllegalActionError("no game has started; call reset() first")
        return self.state

    def paid(self) -> dict[str, float]:
        """Return the rewards of the last action by agent, in its first role."""
        return {agent: float(self._last_rewards[self.agents.index(agent)]) for agent in self.mine}

    def infos(self) -> dict[str, dict[str, Any]]:
        """Return the infos of all agents: empty until the end, then score, scores and reason."""
        state = self.running()
        if not state.over:
            return {agent: {} for agent in self.mine}
        scores = dict(zip(self.agents, state.scores, strict=True))
        shared = {"scores": list(state.scores), "end": state.end}
        return {agent: {"score": scores[agent], **shared} for agent in self.mine}

    def text(self) -> str | None:
        """Return the state as text with render_mode="ansi"."""
        return self.running().text() if self.render_mode == "ansi" else None


class SparringAECEnv(AECEnv):  # type: ignore[misc]
    """One agent acts at a time. Made by `aec_env`."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table
        self.metadata, self.render_mode = table.metadata, table.render_mode
        self.possible_agents = list(table.agents)
        self.agents = list(table.agents)
        self.observation_spaces = {agent: table.observation_space() for agent in table.agents}
        self.action_spaces = {agent: action_space(table.rules) for agent in table.agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return what an agent may see."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return what an agent may do."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start the next game; with a seed, that of `sparring.new_state(seed=seed)`."""
        state = self._table.start(seed)
        self.agents = list(self._table.mine)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = self._table.infos()
        self.agent_selection = self.possible_agents[state.seat]

    def observe(self, agent: str) -> Any:
        """Return what an agent sees now."""
        return self._table.observe(self.possible_agents.index(agent))

    def step(self, action: Any) -> None:
        """Play an action for the agent whose turn it is; None for one whose game is over."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        state = self._table.apply(action)
        self._cumulative_rewards[agent] = 0.0
        self.rewards = self._table.paid()
        self._accumulate_rewards()
        self.infos = self._table.infos()
        if state.over:
            self.terminations = dict.fromkeys(self.agents, state.terminated)
            self.truncations = dict.fromkeys(self.agents, state.truncated)
            self._deads_step_first()
        else:
            self.agent_selection = self.possible_agents[state.seat]

    def render(self) -> str | None:
        """Return the whole position as text with render_mode="ansi"."""
        return self._table.text()

    def close(self) -> None:
        """Do nothing; the game goes with the object."""


class SparringParallelEnv(ParallelEnv):  # type: ignore[misc]
    """All agents act at once. Made by `parallel_env`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.metadata, self.render_mode = table.metadata, table.render_mode
        self.possible_agents = list(table.agents)
        self.agents: list[str] = []
        self.observation_spaces = {agent: table.observation_space() for agent in table.agents}
        self.action_spaces = {agent: action_space(table.rules) for agent in table.agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return what an agent may see."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return what an agent may do."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start the next game; with a seed, that of `sparring.new_state(seed=seed)`."""
        self._table.start(seed)
        self.agents = list(self._table.mine)
        return self._observations(), self._table.infos()

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play one action per agent. An illegal one changes nothing."""
        state = self._table.apply(self._in_rows(actions))
        if state.over:
            self.agents = []
        return (
            self._observations(),
            self._table.paid(),
            dict.fromkeys(self._table.mine, state.terminated),
            dict.fromkeys(self._table.mine, state.truncated),
            self._table.infos(),
        )

    def render(self) -> str | None:
        """Return the whole position as text with render_mode="ansi"."""
        return self._table.text()

    def close(self) -> None:
        """Do nothing; the game goes with the object."""

    def _observations(self) -> dict[str, Any]:
        seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        return {agent: self._table.observe(seats[agent]) for agent in self._table.mine}

    def _in_rows(self, actions: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Put the actions of the seats that are to act into the order of the rows."""
        rules, state = self._table.rules, self._table.running()
        rows: list[Any] = []
        for row in range(rules.rows):
            seat = state.native.seat(row)
            agent = self.possible_agents[seat] if seat >= 0 else ""
            mine = agent in self._table.mine
            if mine and agent not in actions:
                raise IllegalActionError(f"no action for {agent}")
            nothing = np.zeros(rules.box, np.float32) if rules.box else 0
            rows.append(actions[agent] if mine else nothing)
        return np.asarray(rows)
