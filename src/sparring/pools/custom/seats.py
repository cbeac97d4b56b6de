"""Pools of environments that play one game each: every agent is a seat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.seeds import ENV_SEED_LIMIT
from sparring.pools.custom.base import CustomPool
from sparring.pools.custom.buffers import SharedBuffers
from sparring.pools.custom.encoding import Encoding, encoding_of
from sparring.pools.custom.flags import check_of_envs, set_on_envs
from sparring.pools.custom.layout import plain_layout
from sparring.pools.custom.rules import rules_for
from sparring.pools.custom.stepper import TableStepper
from sparring.pools.custom.tables import EnvTable, ParallelTable, TurnTable, env_name


class TablePool(CustomPool):
    """Environments of one kind, each a game."""

    table: type[EnvTable]
    turns: bool

    def __init__(self, envs: Any, *, seed: int = 0, memory: int = 0) -> None:
        """Wrap one env or a list of them; `reset` starts them.

        seed: env i is reset with seed + i.
        """
        envs = list(envs) if isinstance(envs, list | tuple) else [envs]
        if len({id(env) for env in envs}) < len(envs):
            raise ConfigError("the same env object is in the list twice; make one per game")
        agents, encodings = self.read(envs[0])
        for env in envs[1:]:
            if self.read(env) != (agents, encodings):
                name = self.name_of(env)
                raise ConfigError(f"{name} has other agents or spaces than the first env")
        self.tables = [self.table(env, index, agents, encodings) for index, env in enumerate(envs)]
        rows = 1 if self.turns else len(agents)
        name, seats = self.name_of(envs[0]), len(agents)
        rules = rules_for(name, encodings[0], seats=seats, rows=rows, env=envs[0])
        buffers = SharedBuffers.make(rules, len(envs), memory)
        super().__init__(rules, len(envs), seed, agents, memory, buffers=buffers)
        self._stepper = self.stepper(0, len(envs), buffers)

    @staticmethod
    def read(env: Any) -> tuple[list[Any], list[Encoding]]:
        return read_agents(env)

    @staticmethod
    def name_of(env: Any) -> str:
        return env_name(env)

    def stepper(
        self,
        first: int,
        games: int,
        buffers: SharedBuffers,
        beat: Callable[[], None] | None = None,
        *,
        again: bool = True,
    ) -> TableStepper:
        """A stepper of a range of the games, with its buffers."""
        tables = self.tables[first : first + games]
        return TableStepper(tables, self.rules, buffers, beat, again=again)

    def _reset(self, seed: int | None) -> None:
        self._stepper.start(seeds_of(seed, self.first_game, self.num_games))
        self._batch.take(self._stepper.buffers)

    def _close(self) -> None:
        with ExitStack() as closing:
            for table in reversed(self.tables):
                closing.callback(table.env.close)

    def check_flags(self, flags: Iterable[str]) -> None:
        check_of_envs(self.rules.name, [table.env for table in self.tables], flags)

    def _set_config(self, flags: Mapping[str, Any]) -> None:
        set_on_envs(self.rules.name, [table.env for table in self.tables], flags)

    def _step(self, action: npt.NDArray[Any]) -> None:
        self._stepper.step(action)
        self._batch.take(self._stepper.buffers)


class AECPool(TablePool):
    """AECEnvs: one row per game, the agent whose turn it is."""

    table, turns = TurnTable, True


class ParallelPool(TablePool):
    """ParallelEnvs: one row per seat; the row of a seat that is out has no policy."""

    table, turns = ParallelTable, False


def read_agents(env: Any) -> tuple[list[Any], list[Encoding]]:
    """Return the agents and their encodings, which one network must fit."""
    agents = list(getattr(env, "possible_agents", ()))
    if not agents:
        raise ConfigError(f"{env_name(env)} has no possible_agents; every agent needs a seat")
    encodings = [
        encoding_of(env.observation_space(a), env.action_space(a), f"{env_name(env)}, {a}", env)
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
        if (other.bounds, other.choices) != (encodings[0].bounds, encodings[0].choices):
            raise ConfigError(
                f"{env_name(env)}: actions of {agent} are {env.action_space(agent)}, those of "
                f"{agents[0]} are {env.action_space(agents[0])}; one network plays all seats, so "
                "give them one action space"
            )
    if any(other.layout != encodings[0].layout for other in encodings):
        # Names and dtypes differ by agent; one network takes them as unnamed floats.
        layout = plain_layout(encodings[0].numbers)
        encodings = [replace(other, layout=layout) for other in encodings]
    return agents, encodings


def seeds_of(seed: int | None, first_game: int, games: int) -> list[int | None]:
    """Seeds of the games at a reset, by their index in the run."""
    first = None if seed is None else seed + first_game
    return [None if first is None else (first + game) % ENV_SEED_LIMIT for game in range(games)]
