"""PettingZoo environments as pools: every agent is a seat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.pools.foreign.base import (
    TERMINATED,
    TRUNCATED,
    ForeignPool,
    check_finite,
)
from sparring.pools.foreign.encoding import Encoding, encoding_of
from sparring.pools.foreign.flags import demand_of_envs, set_on_envs
from sparring.pools.foreign.rules import rules_for
from sparring.pools.foreign.tables import ParallelTable, Table, TurnTable, env_name


class TablesPool(ForeignPool):
    """PettingZoo envs of one kind, each a game."""

    table: type[Table]
    turns: bool

    def __init__(self, envs: Any, *, seed: int = 0, memory: int = 0) -> None:
        """Take over one env or a list of them; `reset` starts them.

        seed: env i starts with seed + i.
        """
        envs = list(envs) if isinstance(envs, list | tuple) else [envs]
        if len({id(env) for env in envs}) < len(envs):
            raise ConfigError("the same env object is in the list twice; make one per game")
        agents, encodings = self.read(envs[0])
        for env in envs[1:]:
            if self.read(env) != (agents, encodings):
                name = self.name_of(env)
                raise ConfigError(f"{name} has other agents or spaces than the first env")
        self._tables = [self.table(env, index, agents, encodings) for index, env in enumerate(envs)]
        rows = 1 if self.turns else len(agents)
        rules = rules_for(self.name_of(envs[0]), encodings[0], seats=len(agents), rows=rows)
        super().__init__(rules, len(envs), seed, agents, memory)

    @staticmethod
    def read(env: Any) -> tuple[list[Any], list[Encoding]]:
        """Return the agents and their encodings."""
        return read_agents(env)

    @staticmethod
    def name_of(env: Any) -> str:
        """Return what the env is called."""
        return env_name(env)

    def _reset(self, seed: int | None) -> None:
        for game, table in enumerate(self._tables):
            table.steps = 0
            self._start(game, None if seed is None else seed + self.first_game + game)
        self._show()

    def close(self) -> None:
        """Close the envs; nothing can be played afterwards."""
        for table in self._tables:
            table.env.close()

    def demand_flags(self, flags: Iterable[str]) -> None:
        """Refuse flags that the envs have no place for; nothing changes."""
        demand_of_envs(self.rules.name, [table.env for table in self._tables], flags)

    def _set_config(self, flags: Mapping[str, Any]) -> None:
        set_on_envs(self.rules.name, [table.env for table in self._tables], flags)

    def _step(self, action: npt.NDArray[Any]) -> None:
        batch, rows = self._batch, self.rules.rows
        own = self.rules.env_actions(action)
        for game, table in enumerate(self._tables):
            table.reward.fill(0)
            table.play(own[game * rows : (game + 1) * rows])
            check_finite(table.where, np.zeros(0), table.reward)
            batch.reward[game, :, 0] = table.reward
            self._score[game] += table.reward
            batch.truncated[game] = table.over and table.truncated.any()
            batch.terminated[game] = table.over and not batch.truncated[game]
        self._end(np.flatnonzero([table.over for table in self._tables]))
        self._show()

    def _end(self, games: npt.NDArray[np.intp]) -> None:
        """Write down the episodes that are over and start the next ones."""
        batch = self._batch
        batch.clear_ends(len(games))
        batch.final_game[:] = games
        batch.final_score[:] = self._score[games]
        batch.final_length[:] = self._length[games]
        batch.final_reason[:] = np.where(batch.truncated[games], TRUNCATED, TERMINATED)
        self._score[games], self._length[games] = 0, 0
        for place, game in enumerate(games):
            table = self._tables[game]
            batch.final_numbers[place] = table.numbers
            batch.final_mask[place] = table.mask * table.truncated[:, None]
            batch.final_over[place] = ~table.truncated
            self._start(int(game), None)

    def _start(self, game: int, seed: int | None) -> None:
        table = self._tables[game]
        table.start(seed)
        if table.over:
            raise SparringError(f"{table.where}: there are no agents after a reset")

    def _show(self) -> None:
        """Ask whoever is to decide."""
        rows, batch = self.rules.rows, self._batch
        for game, table in enumerate(self._tables):
            for row, seat in enumerate(table.deciding(), start=game * rows):
                if seat < 0:
                    batch.ask_nobody(row)
                else:
                    batch.ask(row, seat, table.numbers[seat], table.mask[seat])


class AECPool(TablesPool):
    """AECEnvs: one row per game, the agent whose turn it is."""

    table, turns = TurnTable, True


class ParallelPool(TablesPool):
    """ParallelEnvs: one row per seat; a seat that is out is asked nothing."""

    table, turns = ParallelTable, False


def read_agents(env: Any) -> tuple[list[Any], list[Encoding]]:
    """Return the agents and their encodings; one network has to serve all of them."""
    agents = list(getattr(env, "possible_agents", ()))
    if not agents:
        raise ConfigError(f"{env_name(env)} has no possible_agents; every agent needs a seat")
    encodings = [
        encoding_of(env.observation_space(a), env.action_space(a), f"{env_name(env)}, {a}")
        for a in agents
    ]
    for agent, other in zip(agents, encodings, strict=True):
        for what in ("numbers", "actions", "first_action"):
            mine, first = getattr(other, what), getattr(encodings[0], what)
            if mine != first:
                raise ConfigError(
                    f"{env_name(env)}: {agent} has {what} {mine}, {agents[0]} has {first}; one "
                    "network plays all seats, so pad the spaces to one size"
                )
        if other.bounds != encodings[0].bounds:
            raise ConfigError(
                f"{env_name(env)}: actions of {agent} are {env.action_space(agent)}, those of "
                f"{agents[0]} are {env.action_space(agents[0])}; one network plays all seats, so "
                "give them one action space"
            )
    return agents, encodings
