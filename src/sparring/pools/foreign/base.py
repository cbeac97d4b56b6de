"""What all foreign environments have in common: rules without a game, arrays, and checks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, IllegalActionError, SparringError
from sparring.games.rules import Block, Bots, Feature, Field, Rewards, Rules
from sparring.games.seeds import checked_seed
from sparring.pools.foreign.bounds import Bounds, read_bounds
from sparring.pools.foreign.encoding import Encoding
from sparring.pools.lineups import LEARNER, NOBODY, Draw, Lineup, Pots

ROW_ALIGNMENT = 16
"""Observation rows take a multiple of this many bytes, like those of native games."""

TERMINATED, TRUNCATED = 0, 1
"""`final_reason`, indices into `ForeignRules.ends`."""


class ForeignRules(Rules):
    """Sizes and names of an environment that somebody else wrote. There is no native game."""

    def __init__(
        self,
        name: str,
        *,
        seats: int,
        rows: int,
        actions: int,
        numbers: int,
        first_action: int = 0,
        bounds: Bounds | Mapping[str, Any] | None = None,
    ) -> None:
        """Describe an env; `plain` gives the same arguments back.

        numbers: length of a flattened observation.
        first_action: what the env itself calls action 0.
        bounds: of an env whose actions are numbers, see `Bounds`; it has 0 actions to choose from.
        """
        self.name = re.sub(r"[^\w.-]+", "_", name)  # a run folder carries it
        self.title = name
        self.rules_version = 0
        self.bounds = read_bounds(bounds) if isinstance(bounds, Mapping) else bounds
        self.seats, self.rows, self.actions = seats, rows, actions
        self.box = len(self.bounds.low) if self.bounds else 0
        self.numbers, self.first_action = numbers, first_action
        self.obs_bytes = -(-4 * numbers // ROW_ALIGNMENT) * ROW_ALIGNMENT
        self.roles = ("player",)
        self.board = ()
        self.parts = ("reward",)
        self.bots = Bots()
        self.ends = ("terminated", "truncated")
        self.hides = True
        self.zero_sum = False
        self.chance = True
        self.skip_forced = False

    def plain(self) -> dict[str, Any]:
        """Return what `ForeignRules(**...)` needs, for a checkpoint."""
        names = ("seats", "rows", "actions", "numbers", "first_action")
        plain = {"name": self.title, **{name: getattr(self, name) for name in names}}
        return plain | ({"bounds": self.bounds.plain()} if self.bounds else {})

    @cached_property
    def fields(self) -> dict[str, Field]:
        """There are no flags."""
        return {}

    @property
    def config(self) -> dict[str, Any]:
        """There are no flags."""
        return {}

    def changed(self, changes: Mapping[str, Any]) -> Rules:
        """Refuse: the env object was configured by whoever made it."""
        if changes:
            raise ConfigError(f"{self.name} has no flags; change the env object: {dict(changes)}")
        return self

    def action_name(self, action: int) -> str:
        """Return the env's own number of an action."""
        if not 0 <= action < self.actions:
            raise ConfigError(f"{self.name} has actions 0..{self.actions - 1}, not {action}")
        return str(action + self.first_action)

    def env_actions(self, action: npt.ArrayLike) -> npt.NDArray[Any]:
        """Turn a policy's actions into those that the env itself takes.

        A choice [...] is counted from what the env calls its first; numbers within -1..1
        [..., box] are scaled to the env's bounds [..., *shape].
        """
        given = np.asarray(action)
        if not self.bounds:
            return np.asarray(given + self.first_action)
        if given.shape[-1:] != (self.box,):
            raise ConfigError(f"actions have shape {given.shape}, need (..., {self.box})")
        return self.bounds.applied(given)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """One block with everything in it."""
        return (Block("obs", 0, self.numbers, ("value",)),)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The numbers of a flattened observation, as they are."""
        return tuple(Feature(f"obs[{i}]", "float32", 4 * i, 1.0) for i in range(self.numbers))

    @cached_property
    def mirror(self) -> None:
        """Nobody says that there is one, whatever the env is called."""
        return None

    def pack(self, numbers: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Turn flattened observations [..., numbers] into bytes [..., obs_bytes]."""
        given = np.asarray(numbers, np.float32)
        if given.shape[-1:] != (self.numbers,):
            raise ConfigError(f"observations have shape {given.shape}, need (..., {self.numbers})")
        rows = np.zeros((*given.shape[:-1], self.obs_bytes // 4), np.float32)
        rows[..., : self.numbers] = given
        return rows.view(np.uint8)

    def weights(self, rewards: Rewards | None) -> list[float]:
        """Return the weight of the one part, 1 unless it is given."""
        return [1.0] if rewards is None else super().weights(rewards)


class ForeignBatch:
    """The arrays of a foreign pool; the next step overwrites them."""

    def __init__(self, rules: ForeignRules, games: int, memory: int = 0) -> None:
        rows, self._rules, self._row_bytes = games * rules.rows, rules, rules.obs_bytes + memory
        self.obs = np.zeros((rows, self._row_bytes), np.uint8)
        self.numbers = self.obs.view(np.float32)[:, : rules.numbers]
        """[R, numbers], the same memory as `obs`."""
        self.mask = np.zeros((rows, rules.actions), np.uint8)
        self.seat = np.full(rows, -1, np.int8)
        self.role = np.zeros(rows, np.int8)
        self.policy = np.full(rows, NOBODY, np.int16)
        self.reward = np.zeros((games, rules.seats, 1), np.float32)
        self.skipped = np.zeros((games, rules.seats), np.uint16)
        self.terminated = np.zeros(games, np.bool_)
        self.truncated = np.zeros(games, np.bool_)
        self.make_ends(0)
        self._no_ends = {key: value for key, value in vars(self).items() if key.startswith("final")}

    def clear_ends(self, count: int = 0) -> None:
        """Make room for games that end."""
        if count:
            self.make_ends(count)
        else:  # as in most steps: nothing has to be made for them
            vars(self).update(self._no_ends)

    def make_ends(self, count: int) -> None:
        """Make the arrays of games that end."""
        seats, rules = self._rules.seats, self._rules
        self.final_game = np.zeros(count, np.int32)
        self.final_obs = np.zeros((count, seats, self._row_bytes), np.uint8)
        self.final_numbers = self.final_obs.view(np.float32)[..., : rules.numbers]
        """[E, seats, numbers], the same memory as `final_obs`."""
        self.final_mask = np.zeros((count, seats, rules.actions), np.uint8)
        self.final_score = np.zeros((count, seats), np.float32)
        self.final_policy = np.full((count, seats), LEARNER, np.int16)
        self.final_length = np.zeros(count, np.int32)
        self.final_reason = np.zeros(count, np.uint8)
        self.final_over = np.zeros((count, seats), np.bool_)
        """[E, seats], seats whose own part the rules had ended, also if the game was then cut."""

    def ask(self, row: int, seat: int, numbers: Any, mask: Any) -> None:
        """Ask a seat for a decision in this row."""
        self.numbers[row], self.mask[row] = numbers, mask
        self.seat[row], self.policy[row] = seat, LEARNER

    def ask_nobody(self, rows: Any) -> None:
        """Ignore the actions of these rows in the next step."""
        self.mask[rows], self.seat[rows], self.policy[rows] = 0, -1, NOBODY


class ForeignPool(ABC):
    """Environments written in Python, stepped one after the other in this process."""

    can: frozenset[str] = frozenset()
    """No clone, no exact state, no order that could be repeated."""
    slots = 1

    def __init__(
        self,
        rules: ForeignRules,
        num_games: int,
        seed: int,
        agents: Sequence[Any],
        memory: int = 0,
    ):
        if memory < 0 or memory % ROW_ALIGNMENT:
            raise ConfigError(f"memory={memory} must be a multiple of {ROW_ALIGNMENT} bytes")
        self.rules, self.num_games, self.agents = rules, num_games, tuple(agents)
        self.memory = np.zeros((num_games, rules.seats, memory), np.uint8)
        """Bytes per (game, seat), cleared at the game's reset, shown behind its observation."""
        self.steps = 0
        """Steps since the reset."""
        self._seed: int | None = checked_seed(seed)
        self._running = False
        self._batch = ForeignBatch(rules, num_games, memory)
        self._weight = 1.0
        self._draw = Draw(rules, [Lineup((LEARNER,) * rules.seats)], seed)
        self._players = np.full((num_games, rules.seats), LEARNER, np.int16)
        """Who sits where, by game."""
        self._episode = np.zeros(num_games, np.int64)
        self._score = np.zeros((num_games, rules.seats))
        self._length = np.zeros(num_games, np.int32)

    def reset(self, seed: int | None = None) -> ForeignBatch:
        """Start every env anew; the first time with the pool's own seed, unless one is given."""
        seed, self._seed = self._seed if seed is None else seed, None
        batch, self._running, self.steps = self._batch, False, 0
        batch.clear_ends()
        batch.ask_nobody(slice(None))
        for array in (batch.reward, batch.terminated, batch.truncated, self._score, self._length):
            array.fill(0)
        self._reset(seed)
        self._seat(np.arange(self.num_games))
        self._check_masks()
        self._running = True
        return batch

    def step(self, action: npt.ArrayLike) -> ForeignBatch:
        """Answer all rows at once. An illegal action refuses the whole step."""
        if not self._running:
            raise IllegalActionError("no game is running; call reset() first")
        given, batch = self._checked(action), self._batch
        # An env that raises, or whose answer is refused below, leaves games half stepped.
        self._running = False
        self.steps += 1
        deciding = (batch.policy != NOBODY).reshape(self.num_games, self.rules.rows)
        self._length += deciding.sum(axis=1, dtype=np.int32)
        self._step(given)
        if self._weight != 1:
            batch.reward *= self._weight
        ended = batch.final_game
        if len(ended):
            batch.final_policy[:] = self._players[ended]
            if self.memory_bytes:
                batch.final_obs[..., self.rules.obs_bytes :] = self.memory[ended]
        self._seat(ended)
        self._check_masks()
        self._running = True
        return batch

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per (game, seat)."""
        return self.memory.shape[2]

    @property
    def row_bytes(self) -> int:
        """Length of a row of observations, memory included."""
        return self.rules.obs_bytes + self.memory_bytes

    def batch(self, slot: int | None = None) -> ForeignBatch:
        """Return the current rows."""
        return self._batch

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Step at once; there is nobody who could do it meanwhile."""
        self.step(action)

    def recv(self, slot: int = 0) -> ForeignBatch:
        """Return what `send` brought."""
        return self._batch

    @property
    def policies(self) -> frozenset[int]:
        """The ids that sit at tables; somebody has to answer their rows."""
        return self._draw.policies

    def set_lineups(self, lineups: Sequence[Lineup]) -> None:
        """Choose which policies play; every game draws at its next reset. There are no bots."""
        self._draw = Draw(self.rules, lineups, self._draw.seed)

    def set_pots(self, pots: Pots) -> None:
        """Choose who is drawn from the pots that line-ups name, when games begin."""
        self._draw.pots.fill(self.rules, pots)

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games."""
        mine = self._players[(self._players >= 0) & (self._players < policies)]
        return np.bincount(mine, minlength=policies)

    def set_rewards(self, rewards: Rewards) -> None:
        """Change the weight of the env's reward, from the next step on."""
        (self._weight,) = self.rules.weights(rewards)

    def set_config(self, **flags: Any) -> None:
        """Refuse: the env object was configured by whoever made it."""
        self.rules.changed(flags)

    def sample_actions(self) -> npt.NDArray[Any]:
        """Draw uniform legal actions for all rows."""
        mask, rng = self._batch.mask, np.random.default_rng([self._draw.seed, self.steps])
        if self.rules.box:
            return rng.uniform(-1, 1, (len(mask), self.rules.box)).astype(np.float32)
        keys = rng.random(mask.shape)
        actions: npt.NDArray[np.int64] = np.where(mask != 0, keys, -1.0).argmax(axis=1)
        return actions

    def audit(self) -> str:
        """Nothing is known about the inside of an env."""
        return ""

    def state(self) -> bytes:
        """Refuse: there is no way to save somebody else's environment."""
        raise SparringError(
            f"{self.rules.name} is a foreign env and cannot be saved exactly; save the network and "
            "the optimiser without the games. A resumed run loses the episodes in flight, their "
            "open decisions and the env's random numbers, so it does not repeat bit for bit"
        )

    def load_state(self, raw: bytes) -> ForeignBatch:
        """Refuse, as `state` does."""
        raise SparringError(
            f"{self.rules.name} is a foreign env and cannot be continued from {len(raw)} saved "
            "bytes; call reset(): a resumed run starts with new episodes"
        )

    def _seat(self, games: npt.NDArray[Any]) -> None:
        """Draw who sits in games that begin, and show in every row who is asked."""
        for game in games:
            self.memory[game] = 0
            self._episode[game] += 1
            self._players[game] = self._draw.seats(int(game), int(self._episode[game]))
        if not self._players.any() and not self.memory_bytes:
            return  # the learner is everybody, as rows say already
        batch, rows = self._batch, self.rules.rows
        asked = np.flatnonzero(batch.policy != NOBODY)
        game, seat = asked // rows, batch.seat[asked]
        batch.policy[asked] = self._players[game, seat]
        if self.memory_bytes:
            batch.obs[:, self.rules.obs_bytes :] = 0
            batch.obs[asked, self.rules.obs_bytes :] = self.memory[game, seat]

    @abstractmethod
    def _reset(self, seed: int | None) -> None:
        """Reset all envs and fill the batch."""

    @abstractmethod
    def _step(self, action: npt.NDArray[Any]) -> None:
        """Step all envs and fill the batch; actions of rows without a decision mean nothing."""

    def _where(self, game: int) -> str:
        return f"{self.rules.name} env {game}, step {self.steps}"

    def _checked(self, action: npt.ArrayLike) -> npt.NDArray[Any]:
        given, batch, rules = np.asarray(action), self._batch, self.rules
        wanted = (*batch.policy.shape, rules.box) if rules.box else batch.policy.shape
        if given.shape != wanted:
            raise IllegalActionError(f"actions have shape {given.shape}, need {wanted}")
        if rules.box:
            return self._checked_numbers(given)
        if given.dtype.kind not in "iu":
            raise IllegalActionError(f"actions are {given.dtype}, need integers")
        asked = batch.policy != NOBODY
        known = (given >= 0) & (given < rules.actions)
        answer = np.where(known & asked, given, 0).astype(np.int64)
        legal = known & (batch.mask[np.arange(len(given)), answer] != 0)
        for row in np.flatnonzero(asked & ~legal)[:1]:
            options = ", ".join(str(a) for a in np.flatnonzero(batch.mask[row]))
            raise IllegalActionError(
                f"{self._who(row)}: action {given[row]} is not legal; legal: {options}"
            )
        return answer

    def _checked_numbers(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Refuse what is not finite; what lies beyond -1..1 is cut off later."""
        if given.dtype.kind not in "iuf":
            raise IllegalActionError(f"actions are {given.dtype}, need numbers within -1..1")
        fine = np.isfinite(given)
        if fine.all():
            return given
        asked = (self._batch.policy != NOBODY)[:, None]
        for row, number in np.argwhere(asked & ~fine)[:1]:
            raise IllegalActionError(
                f"{self._who(row)}: action component {number} is {given[row, number]}; give finite "
                "numbers"
            )
        return np.where(asked, given, 0.0)

    def _who(self, row: int) -> str:
        """Say whose row it is."""
        seat = int(self._batch.seat[row])
        named = f" ({self.agents[seat]})" if self.agents else ""
        return f"{self.rules.name} env {row // self.rules.rows}, seat {seat}{named}"

    def _check_masks(self) -> None:
        """Refuse a decision without a choice; no policy could answer it."""
        batch = self._batch
        if self.rules.box:
            return
        stuck = (batch.policy != NOBODY) & ~batch.mask.any(axis=1)
        for row in np.flatnonzero(stuck)[:1]:
            raise SparringError(
                f"{self._where(row // self.rules.rows)}: seat {batch.seat[row]} is to act and its "
                "action mask allows nothing; end the episode instead"
            )


def check_finite(where: str, numbers: npt.NDArray[Any], reward: npt.NDArray[Any]) -> None:
    """Refuse what would poison the network: NaN or infinity in one env's answer."""
    for what, values in (("observation", numbers), ("reward", reward)):
        for place in np.argwhere(~np.isfinite(values))[:1]:
            at = "".join(f"[{i}]" for i in place)
            raise SparringError(
                f"{where}: {what}{at} is {values[tuple(place)]}; give finite numbers (clip or "
                "scale them in the env, or with a wrapper)"
            )


def rules_for(name: str, encoding: Encoding, *, seats: int, rows: int) -> ForeignRules:
    """Describe an env whose seats all have this encoding."""
    return ForeignRules(
        name,
        seats=seats,
        rows=rows,
        actions=encoding.actions,
        numbers=encoding.numbers,
        first_action=encoding.first_action,
        bounds=encoding.bounds,
    )
