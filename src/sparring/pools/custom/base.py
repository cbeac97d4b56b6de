"""Base class of the pools of custom environments: batches, line-ups, and checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, IllegalActionError, SparringError
from sparring.games.rules import Rewards
from sparring.games.seeds import ENV_SEED_LIMIT, check_seed
from sparring.pools.custom.buffers import GAME_TERMINATED, GAME_TRUNCATED, SharedBuffers
from sparring.pools.custom.faults import empty_mask_error, env_errors
from sparring.pools.custom.layout import ROW_ALIGNMENT
from sparring.pools.custom.rules import CustomRules
from sparring.pools.lineups import LEARNER, NO_POLICY, FilledMixes, Lineup, LineupDraw, Mixes
from sparring.pools.starts import Start

TERMINATED, TRUNCATED = 0, 1
"""Values of `final_reason`, indices into `CustomRules.ends`."""


class CustomBatch:
    """The arrays of a custom pool, or of a range of its games; the next step overwrites them."""

    def __init__(
        self,
        rules: CustomRules,
        games: int,
        memory: int = 0,
        *,
        buffers: SharedBuffers | None = None,
        whole: CustomBatch | None = None,
        first: int = 0,
    ) -> None:
        """Allocate the arrays.

        buffers: where environments write rows; then these arrays are views of it.
        whole: another batch, of which this one is a view from game `first` on.
        """
        rows, self._rules, self._row_bytes = games * rules.rows, rules, rules.obs_bytes + memory
        self.first, self.buffers = first, buffers
        if whole is not None:
            by_row = slice(first * rules.rows, first * rules.rows + rows)
            self.buffers = whole.buffers and whole.buffers.part(rules.rows, first, games)
            for name in ("obs", "mask", "seat", "role", "policy"):
                setattr(self, name, getattr(whole, name)[by_row])
            for name in ("reward", "skipped", "terminated", "truncated"):
                setattr(self, name, getattr(whole, name)[first : first + games])
        else:
            self._make(rows, games)
            if buffers is not None:
                self.obs, self.mask, self.seat = buffers.obs, buffers.mask, buffers.seat
        self.rows = np.arange(rows)
        self.make_ends(0)
        self._no_ends = {key: value for key, value in vars(self).items() if key.startswith("final")}

    def _make(self, rows: int, games: int) -> None:
        rules = self._rules
        self.obs = np.zeros((rows, self._row_bytes), np.uint8)
        self.mask = np.zeros((rows, rules.actions), np.uint8)
        self.seat = np.full(rows, -1, np.int8)
        self.role = np.zeros(rows, np.int8)
        self.policy = np.full(rows, NO_POLICY, np.int16)
        self.reward = np.zeros((games, rules.seats, 1), np.float32)
        self.skipped = np.zeros((games, rules.seats), np.uint16)
        self.terminated = np.zeros(games, np.bool_)
        self.truncated = np.zeros(games, np.bool_)

    def take(self, buffers: SharedBuffers) -> None:
        """Read the results of a step from the buffers; rows are views of them already."""
        np.minimum(buffers.seat, LEARNER, out=self.policy, casting="unsafe")  # -1: no policy
        self.reward[:, :, 0] = buffers.reward
        np.equal(buffers.end, GAME_TERMINATED, out=self.terminated)
        np.equal(buffers.end, GAME_TRUNCATED, out=self.truncated)
        games = buffers.end.nonzero()[0]
        if not len(games):
            if len(self.final_game):
                self.clear_ends()
            return
        self.clear_ends(len(games))
        self.final_game[:] = games
        self.final_obs[:] = buffers.last_obs[games]
        self.final_mask[:] = buffers.last_mask[games]
        self.final_over[:] = buffers.last_over[games]
        self.final_score[:] = buffers.last_score[games]
        self.final_length[:] = buffers.last_length[games]
        self.final_reason[:] = np.where(self.truncated[games], TRUNCATED, TERMINATED)

    @property
    def numbers(self) -> npt.NDArray[np.float32]:
        """[R, numbers], the observations as floats."""
        return self._rules.widen(self.obs[:, : self._rules.obs_bytes])

    def clear_ends(self, count: int = 0) -> None:
        """Make arrays for games that end."""
        if count:
            self.make_ends(count)
        else:  # as in most steps: reuse the empty arrays
            vars(self).update(self._no_ends)

    def make_ends(self, count: int) -> None:
        seats, rules = self._rules.seats, self._rules
        self.final_game = np.zeros(count, np.int32)
        self.final_obs = np.zeros((count, seats, self._row_bytes), np.uint8)
        self.final_mask = np.zeros((count, seats, rules.actions), np.uint8)
        self.final_score = np.zeros((count, seats), np.float32)
        self.final_policy = np.full((count, seats), LEARNER, np.int16)
        self.final_length = np.zeros(count, np.int32)
        self.final_reason = np.zeros(count, np.uint8)
        self.final_over = np.zeros((count, seats), np.bool_)
        """[E, seats], seats that terminated, also if the game was truncated."""

    def clear_rows(self, rows: Any) -> None:
        """Ignore the actions of these rows in the next step."""
        self.mask[rows], self.seat[rows], self.policy[rows] = 0, -1, NO_POLICY


class CustomPool(ABC):
    """Environments written in Python, stepped one by one in this process."""

    can: frozenset[str] = frozenset()
    """Optional capabilities: no clone, no exact state, no repeatable order."""
    slots = 1

    def __init__(
        self,
        rules: CustomRules,
        num_games: int,
        seed: int,
        agents: Sequence[Any],
        memory: int = 0,
        *,
        buffers: SharedBuffers | None = None,
    ):
        if memory < 0 or memory % ROW_ALIGNMENT:
            raise ConfigError(f"memory={memory} must be a multiple of {ROW_ALIGNMENT} bytes")
        self.rules, self.num_games, self.agents = rules, num_games, tuple(agents)
        self.memory = np.zeros((num_games, rules.seats, memory), np.uint8)
        """Bytes per (game, seat), cleared at the game's reset, appended to its observation."""
        self.steps = 0
        """Steps since the reset."""
        self.first_game = 0
        """Games of the same run that other pools play before these; seeds are offset by it."""
        self._seed: int | None = check_seed(seed)
        self._running = False
        self._batch = CustomBatch(rules, num_games, memory, buffers=buffers)
        self._weight = 1.0
        self._draw = LineupDraw(rules, [Lineup((LEARNER,) * rules.seats)], seed)
        self._players = np.full((num_games, rules.seats), LEARNER, np.int16)
        """[N, seats], policy ids."""
        self._episode = np.zeros(num_games, np.int64)

    def reset(self, seed: int | None = None) -> CustomBatch:
        """Reset every env; the first time with the pool's seed, unless one is given.

        A given seed also determines who sits where.
        """
        if seed is not None:
            self._episode[:] = seed % ENV_SEED_LIMIT
        seed, self._seed = self._seed if seed is None else seed, None
        batch, self._running, self.steps = self._batch, False, 0
        batch.clear_ends()
        batch.clear_rows(slice(None))
        for array in (batch.reward, batch.terminated, batch.truncated):
            array.fill(0)
        with env_errors(f"{self.rules.name} failed in its reset"):
            self._reset(seed)
        self._seat(batch, np.arange(self.num_games))
        self._check_masks(batch)
        self._running = True
        return batch

    def step(self, action: npt.ArrayLike) -> CustomBatch:
        """Step all games with one action per row. An illegal action refuses the whole step."""
        if not self._running:
            raise IllegalActionError("no game is running; call reset() first")
        batch = self._batch
        given = self._checked(action, batch)
        # If an env raises, or its result is refused below, games are in different states.
        self._running = False
        self.steps += 1
        with env_errors(
            f"{self.rules.name} failed in step {self.steps}",
            "; worker processes go on after such a fault (--workers)",
        ):
            self._step(given)
        self._settle(batch)
        self._running = True
        return batch

    def _settle(self, batch: CustomBatch, lost: npt.NDArray[Any] | None = None) -> None:
        """Apply reward weights, memory and line-ups after a step of a batch.

        lost: games that restart without having ended.
        """
        if self._weight != 1:
            batch.reward *= self._weight
        ended = batch.final_game
        if len(ended):
            batch.final_policy[:] = self._players[batch.first + ended]
            if self.memory_bytes:
                batch.final_obs[..., self.rules.obs_bytes :] = self.memory[batch.first + ended]
        began = ended if lost is None else np.union1d(ended, lost)
        self._seat(batch, began)
        self._check_masks(batch)

    @property
    def memory_bytes(self) -> int:
        return self.memory.shape[2]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: observation and memory."""
        return self.rules.obs_bytes + self.memory_bytes

    def batch(self, slot: int | None = None) -> CustomBatch:
        return self._batch

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Step at once: no other thread or process could do it."""
        self.step(action)

    def recv(self, slot: int = 0) -> CustomBatch:
        return self._batch

    @property
    def policies(self) -> frozenset[int]:
        """Policy ids in the line-ups."""
        return self._draw.policies

    @property
    def mixes(self) -> tuple[str, ...]:
        """Names of the mixes that `set_mixes` can fill."""
        return tuple(self._draw.mixes.names)

    def set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str] = ()) -> None:
        """Set the line-ups; every game draws one at its next reset. There are no bots.

        mixes: names of further mixes that `set_mixes` can fill.
        """
        filled = FilledMixes(lineups, mixes, self._draw.mixes)
        self._draw = LineupDraw(self.rules, lineups, self._draw.seed, filled)

    def set_mixes(self, mixes: Mixes) -> None:
        """Set the players of mixes; a game draws from them when it starts."""
        self._draw.mixes.fill(self.rules, mixes)

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games."""
        mine = self._players[(self._players >= 0) & (self._players < policies)]
        return np.bincount(mine, minlength=policies)

    def counts(self) -> npt.NDArray[np.int64]:
        """Custom environments have no counters."""
        return np.zeros(0, np.int64)

    def clear_counts(self) -> None:
        return

    def set_rewards(self, rewards: Rewards) -> None:
        """Set the weight of the reward, from the next step on."""
        (self._weight,) = self.rules.weights(rewards)

    def set_config(self, **flags: Any) -> None:
        """Set flags of the environments, which take effect at their next reset; see `flags`."""
        if flags:
            self._set_config(flags)

    def set_starts(self, starts: Sequence[Start]) -> None:
        """Refuse: only the environment decides where its games start."""
        if starts:
            raise ConfigError(
                f"starts: {self.rules.name} begins its games itself; pass options to its reset"
            )

    def sample_actions(self) -> npt.NDArray[Any]:
        """Draw uniform legal actions for all rows."""
        mask, rng = self._batch.mask, np.random.default_rng([self._draw.seed, self.steps])
        if self.rules.box:
            return rng.uniform(-1, 1, (len(mask), self.rules.box)).astype(np.float32)
        keys = rng.random(mask.shape)
        actions: npt.NDArray[np.int64] = np.where(mask != 0, keys, -1.0).argmax(axis=1)
        return actions

    def audit(self) -> str:
        return ""

    def state(self) -> bytes:
        """Refuse: a custom environment has no way to be saved."""
        raise SparringError(
            f"{self.rules.name} is a custom env and cannot be saved exactly; save the network and "
            "the optimizer without the games. A resumed run loses the episodes in flight, their "
            "open decisions and the env's random numbers, so it does not repeat bit for bit"
        )

    def load_state(self, raw: bytes) -> CustomBatch:
        """Refuse, as `state` does."""
        raise SparringError(
            f"{self.rules.name} is a custom env and cannot be continued from {len(raw)} saved "
            "bytes; call reset(): a resumed run starts with new episodes"
        )

    def close(self) -> None:
        """Close the envs."""
        self._running = False
        with env_errors(f"{self.rules.name} failed in close()"):
            self._close()

    @abstractmethod
    def _close(self) -> None:
        """Close all envs, also if one of them raises something."""

    def _seat(self, batch: CustomBatch, games: npt.NDArray[Any]) -> None:
        """Draw line-ups for games of a batch that start, and set the policy of every row."""
        for game in batch.first + games:
            self.memory[game] = 0
            self._episode[game] += 1
            index = self.first_game + int(game)
            self._players[game] = self._draw.seats(index, int(self._episode[game]))
        if not self.memory_bytes and not self._players.any():
            return  # the learner sits everywhere, as rows say already
        asked = np.flatnonzero(batch.policy != NO_POLICY)
        game, seat = batch.first + asked // self.rules.rows, batch.seat[asked]
        batch.policy[asked] = self._players[game, seat]
        if self.memory_bytes:
            batch.obs[:, self.rules.obs_bytes :] = 0
            batch.obs[asked, self.rules.obs_bytes :] = self.memory[game, seat]

    @abstractmethod
    def _reset(self, seed: int | None) -> None:
        """Reset all envs and fill the batch."""

    @abstractmethod
    def check_flags(self, flags: Iterable[str]) -> None:
        """Refuse flags that the envs do not have; changes nothing."""

    @abstractmethod
    def _set_config(self, flags: Mapping[str, Any]) -> None:
        """Set flags in all envs, or refuse them."""

    @abstractmethod
    def _step(self, action: npt.NDArray[Any]) -> None:
        """Step all envs and fill the batch; actions of rows without a policy are ignored."""

    def _where(self, game: int) -> str:
        return f"{self.rules.name} env {game}, step {self.steps}"

    def _checked(self, action: npt.ArrayLike, batch: CustomBatch) -> npt.NDArray[Any]:
        given, rules = np.asarray(action), self.rules
        wanted = (*batch.policy.shape, rules.box) if rules.box else batch.policy.shape
        if given.shape != wanted:
            raise IllegalActionError(f"actions have shape {given.shape}, need {wanted}")
        if rules.box:
            return self._checked_numbers(given, batch)
        if given.dtype.kind not in "iu":
            raise IllegalActionError(f"actions are {given.dtype}, need integers")
        within = given.min() >= 0 and given.max() < rules.actions
        if within and batch.mask[batch.rows, given].all():  # as nearly always
            return given
        asked = batch.policy != NO_POLICY
        known = (given >= 0) & (given < rules.actions)
        answer = np.where(known & asked, given, 0).astype(np.int64)
        legal = known & (batch.mask[np.arange(len(given)), answer] != 0)
        for row in np.flatnonzero(asked & ~legal)[:1]:
            options = ", ".join(rules.numbered(int(a)) for a in np.flatnonzero(batch.mask[row]))
            raise IllegalActionError(
                f"{self._who(row, batch)}: action {given[row]} is not legal; legal: {options}"
            )
        return answer

    def _checked_numbers(self, given: npt.NDArray[Any], batch: CustomBatch) -> npt.NDArray[Any]:
        """Refuse actions that are not finite; those outside -1..1 are clipped later."""
        if given.dtype.kind not in "iuf":
            raise IllegalActionError(f"actions are {given.dtype}, need numbers within -1..1")
        fine = np.isfinite(given)
        if fine.all():
            return given
        asked = (batch.policy != NO_POLICY)[:, None]
        for row, number in np.argwhere(asked & ~fine)[:1]:
            raise IllegalActionError(
                f"{self._who(row, batch)}: action component {number} is {given[row, number]}; give "
                "finite numbers"
            )
        return np.where(asked, given, 0.0)

    def _who(self, row: int, batch: CustomBatch) -> str:
        seat = int(batch.seat[row])
        named = f" ({self.agents[seat]})" if self.agents else ""
        game = batch.first + row // self.rules.rows
        return f"{self.rules.name} env {game}, seat {seat}{named}"

    def _check_masks(self, batch: CustomBatch) -> None:
        """Refuse a decision without a legal action."""
        if self.rules.box or batch.mask.any(axis=1).all():
            return
        stuck = (batch.policy != NO_POLICY) & ~batch.mask.any(axis=1)
        for row in np.flatnonzero(stuck)[:1]:
            where = self._where(batch.first + row // self.rules.rows)
            raise empty_mask_error(where, batch.seat[row])


def check_finite(where: str, numbers: npt.NDArray[Any], reward: npt.NDArray[Any]) -> None:
    """Refuse NaN and infinity in observations and rewards of one env."""
    for what, values in (("observation", numbers), ("reward", reward)):
        if np.isfinite(values).all():  # as nearly always: finding the index costs much more
            continue
        for index in np.argwhere(~np.isfinite(values))[:1]:
            at = "".join(f"[{i}]" for i in index)
            raise SparringError(
                f"{where}: {what}{at} is {values[tuple(index)]}; give finite numbers (clip or "
                "scale them in the env, or with a wrapper)"
            )
