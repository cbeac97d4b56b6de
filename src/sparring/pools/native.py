"""Games stepped together on CPU threads by the native core."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError, IllegalActionError, StateError
from sparring.games.arguments import check_in_range, check_int, check_type
from sparring.games.belief import check_belief, worlds_array
from sparring.games.goals import check_goals
from sparring.games.rules import (
    SKIP_FORCED,
    Rewards,
    Rules,
    describe_illegal_action,
    rules_for,
)
from sparring.games.saved import add_header, split_header
from sparring.games.seeds import seed_bits
from sparring.games.state import State
from sparring.machine import MAX_THREADS, check_memory_budget, check_threads, format_bytes
from sparring.phases import phase
from sparring.pools.batch import Batch
from sparring.pools.limits import (
    MAX_INDEX,
    bytes_per_game,
    check_memory,
    check_plies,
    memory_entry,
)
from sparring.pools.lineups import (
    LEARNER,
    MAX_POLICIES,
    FilledMixes,
    Lineup,
    Mixes,
    PlayerId,
    lineup_ids,
    player_id,
    player_name,
)
from sparring.pools.starts import PackedStarts, Start, pack


class Pool:
    """N games of one kind. The seed determines them, for any number of threads or pools."""

    can = frozenset({"clone", "exact state", "refuse a step", "repeatable order"})
    """Optional capabilities of this pool."""

    def __init__(
        self,
        game: str | Rules,
        num_games: int,
        *,
        seed: int = 0,
        threads: int | None = None,
        config: Mapping[str, Any] | None = None,
        lineups: Sequence[Lineup] | None = None,
        mixes: Sequence[str] = (),
        rewards: Rewards | None = None,
        slots: int = 1,
        first_game: int = 0,
        observe: bool = True,
        memory: int = 0,
        every_game: bool = False,
        opening_plies: int = 0,
        records: bool = False,
        starts: Sequence[Start] = (),
        device: str = "cpu",
    ) -> None:
        """Make the games; `reset` starts them.

        threads: up to 1024; None takes one per core.
        mixes: see `set_lineups`.
        slots: groups of games that `send` and `recv` step separately.
        first_game: global index of the first game; a pool that holds games 512..1023 of a
            larger one plays exactly those.
        observe: False leaves observations and masks out, for measuring.
        memory: bytes per (game, seat) outside the game, a multiple of 16.
        every_game: a new game waits for a step whoever moves first. Otherwise bots move at once,
            and games in which no policy decides are replaced by others.
        opening_plies: random decisions at the start of every game, independent of the line-up. An
            opening that ends the game is drawn again; refused if every game would end.
        records: batches contain results of goals, in games that have them: `rules.goals`.
        starts: start positions, see `set_starts`.
        """
        if device != "cpu":
            raise ConfigError(
                f"device={device!r}: this pool runs on 'cpu'; sparring.pools.cuda.CudaPool is the "
                "one for GPUs"
            )
        self.rules = rules_for(game, config)
        threads = threads if threads is not None else min(os.cpu_count() or 1, MAX_THREADS)
        self.num_games = check_int("num_games", num_games, 1)
        self.threads = check_threads(check_int("threads", threads))
        self.slots = check_int("slots", slots, 1)
        self.first_game = check_int("first_game", first_game, 0)
        opening_plies = check_plies(self.rules, check_int("opening_plies", opening_plies, 0))
        if self.slots > self.num_games:
            raise ConfigError(f"slots={slots} is more than num_games={num_games}")
        check_memory(memory)
        observe, every_game, records = bool(observe), bool(every_game), bool(records)
        self.records = records and check_goals(self.rules)
        """Whether batches have `record`."""
        start = seed_bits(seed)
        each = bytes_per_game(self.rules, observe=observe, memory=memory)
        check_memory_budget("num_games", self.num_games, each, f"these games of {self.rules.name}")
        if self.first_game + self.num_games > MAX_INDEX:
            raise ConfigError(
                f"first_game={first_game} and num_games={num_games}: games are numbered up to "
                f"{MAX_INDEX - 1}"
            )
        try:
            self._native = _native.make_pool(
                self.rules.native,
                self.num_games,
                start,
                self.first_game,
                self.threads,
                self.slots,
                self.rules.skip_forced,
                observe,
                memory,
                every_game,
                opening_plies,
                records,
            )
        except MemoryError:  # a limit that free memory does not show
            raise ConfigError(
                f"num_games={num_games}: the system refuses "
                f"{format_bytes(each * self.num_games)} of memory; give fewer games"
            ) from None
        self.memory: npt.NDArray[np.uint8] = self._native.memory
        """[N, seats, memory_bytes], appended to a seat's next row. Cleared at its game's reset."""
        self.left_out: npt.NDArray[np.uint8] = self._native.left_out
        """[N], not 0: the game's counters are not counted. May be changed between two steps."""
        self._native.set_weights(self.rules.weights(rewards))
        self._observe = observe
        self._started = False
        self._in_flight = [False] * self.slots
        rows = self.rules.rows
        self._batches = [Batch(self._native, [slot], rows) for slot in range(self.slots)]
        self._whole = Batch(self._native, range(self.slots), rows)
        shape: tuple[int, ...] = (self.num_games * rows,)
        if self.rules.box:
            self._sampled: npt.NDArray[Any] = np.zeros((*shape, self.rules.box), np.float32)
        else:
            self._sampled = np.zeros(shape, np.int32)
        self._row_bounds = [
            slice(self._native.group_begin(s) * rows, self._native.group_end(s) * rows)
            for s in range(self.slots)
        ]
        self._sampled_in = [self._sampled[rows] for rows in self._row_bounds]
        self._seats: frozenset[int] = frozenset({LEARNER})
        """Policies that line-ups name."""
        self._mixes = FilledMixes(())
        if lineups is not None or mixes:
            self.set_lineups(lineups or [Lineup((LEARNER,) * self.rules.seats)], mixes)
        if starts:
            self.set_starts(starts)

    @property
    def seed(self) -> int:
        """Seed of the games."""
        return self._native.seed

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per (game, seat), appended to the observation in every row."""
        return int(self.memory.shape[2])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: observation and memory."""
        return self.rules.obs_bytes + self.memory_bytes

    def reset(self, seed: int | None = None) -> Batch:
        """Reset every game; with a seed, to the games of that seed."""
        self._check_idle()
        if seed is not None:
            self._native.reseed(seed_bits(seed))
        self._native.reset()
        self._started = True
        return self._whole

    @phase("games")
    def step(self, action: npt.ArrayLike) -> Batch:
        """Step all games with one action per row. An illegal action refuses the whole step."""
        self._check_idle()
        self._check_started()
        actions = as_native_actions(action, len(self._sampled), self.rules.box)
        refused = (self._native.step_box if self.rules.box else self._native.step_discrete)(actions)
        if refused is not None:
            raise IllegalActionError(describe_illegal_action(self.rules, refused))
        return self._whole

    @phase("games")
    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Send a slot's actions to the threads and return at once. `recv` waits for the result."""
        slot = self._slot(slot)
        if self._in_flight[slot]:
            raise IllegalActionError(f"slot {slot} is still stepping; call recv({slot}) first")
        self._check_started()
        self._accept(slot, self._actions(action, self._row_bounds[slot]))
        self._native.send(slot)
        self._in_flight[slot] = True

    @phase("games")
    def recv(self, slot: int = 0) -> Batch:
        """Wait for a slot and return its batch."""
        slot = self._slot(slot)
        self._in_flight[slot] = False
        self._native.recv(slot)
        return self._batches[slot]

    def batch(self, slot: int | None = None) -> Batch:
        """Return the current batch without stepping."""
        return self._whole if slot is None else self._batches[self._slot(slot)]

    def sample_actions(self, slot: int | None = None) -> npt.NDArray[Any]:
        """Draw uniform legal actions natively. The array is reused by the next call."""
        self._check_started()
        sample = self._native.sample_box if self.rules.box else self._native.sample_discrete
        for s in range(self.slots) if slot is None else (self._slot(slot),):
            if self._in_flight[s]:
                raise IllegalActionError(f"slot {s} is still stepping; call recv({s}) first")
            sample(s, self._sampled_in[s])
        return self._sampled if slot is None else self._sampled_in[slot]

    def set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str] = ()) -> None:
        """Set the line-ups; every game draws one at its next reset.

        mixes: names of further mixes that `set_mixes` can fill. Mixes that are named before and
            after keep their players.
        """
        self._check_idle()
        filled = FilledMixes(lineups, mixes, self._mixes)
        ids = lineup_ids(self.rules, lineups, _native.MAX_LINEUPS, filled)
        self._native.set_lineups(
            [float(lineup.weight) for lineup in lineups],
            [player for lineup in ids for player in lineup],
            [int(lineup.shuffle) for lineup in lineups],
        )
        self._seats = frozenset(player for lineup in ids for player in lineup if player >= 0)
        self._mixes = filled
        self._fill_mixes()

    def set_mixes(self, mixes: Mixes) -> None:
        """Set the players of mixes; a game draws from them when it starts."""
        self._check_idle()
        self._mixes.fill(self.rules, mixes)
        self._fill_mixes()

    @property
    def mixes(self) -> tuple[str, ...]:
        """Names of the mixes that `set_mixes` can fill."""
        return tuple(self._mixes.names)

    def _fill_mixes(self) -> None:
        players = self._mixes.players
        self._native.set_mixes(
            [len(mix) for mix in players],
            [weight for mix in players for weight in mix.values()],
            [player for mix in players for player in mix],
        )

    def set_starts(self, starts: Sequence[Start]) -> None:
        """Set the start positions; every game draws one at its next reset. []: the default.

        A start that cannot be loaded refuses them all.
        """
        self._check_idle()
        self.take_starts(self.pack_starts(starts))

    def pack_starts(self, starts: Sequence[Start]) -> PackedStarts:
        """Pack starts for this game."""
        return pack(self.rules, starts, self._native.game_bytes, self._native.extra.shape[1])

    def take_starts(self, packed: PackedStarts) -> None:
        """Set starts that are packed already."""
        check_type("starts", packed, PackedStarts, "PackedStarts")
        wrong = self._native.set_starts(packed.up_to, packed.games, packed.side_of, packed.sides)
        if wrong:
            raise ConfigError(packed.explain(wrong))

    @property
    def policies(self) -> frozenset[int]:
        """Policy ids that may be seated."""
        return self._seats | (self._mixes.policies if self._mixes.drawn else frozenset())

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games."""
        self._check_idle()
        most = check_int("policies", policies, 0, MAX_POLICIES + 1)
        return np.array(self._native.seated(most), np.int64)

    def counts(self) -> npt.NDArray[np.int64]:
        """Return the counters of the rules since `clear_counts`, by `rules.counters`.

        They count at the seats of the learner, or of the player of `set_counting`. They are not
        part of the games: `state` leaves them out.
        """
        self._check_idle()
        return np.array(self._native.counts(), np.int64)

    def clear_counts(self) -> None:
        """Set all counters to 0."""
        self._check_idle()
        self._native.clear_counts()

    def set_counting(self, player: PlayerId | None) -> None:
        """Set the player whose seats are counted; None: none."""
        self._check_idle()
        self._native.set_counting(
            player is not None, 0 if player is None else self.player_id(player)
        )

    def player_id(self, player: PlayerId) -> int:
        """Return a player's number in `policy` arrays."""
        return player_id(self.rules, player)

    def player_name(self, player: int) -> str:
        """Return the bot's name, or "policy K"."""
        return player_name(self.rules, player)

    def set_rewards(self, rewards: Rewards) -> None:
        """Set the weights of reward parts, from the next step on."""
        self._check_idle()
        self._native.set_weights(self.rules.weights(rewards))

    def weights(self) -> list[float]:
        """Return the weights of all parts and roles, flat."""
        return list(self._native.weights())

    def set_config(self, **flags: Any) -> None:
        """Set flags that may change while games run; a game follows at its next reset."""
        self._check_idle()
        known = {**self.rules.fields, "skip_forced": SKIP_FORCED}
        fixed = [name for name in flags if name in known and not known[name].live]
        if fixed:
            raise ConfigError(f"{', '.join(fixed)} cannot change in a running pool; make a new one")
        self.rules = self.rules.changed(flags)
        self._native.set_config(self.rules.native)

    def state(self) -> bytes:
        """Return all games as bytes; `load_state` continues them exactly."""
        self._check_idle()
        self._check_started()
        arrays = (self._native.envs, self._native.extra, self.memory)
        body = b"".join(array.tobytes() for array in arrays)
        more = {
            "games": self.num_games,
            "first_game": self.first_game,
            "seed": self.seed,
            "table": self._native.envs.shape[1],
            **memory_entry(self.memory_bytes),
        }
        return add_header(self.rules, more, body)

    def load_state(self, raw: bytes) -> Batch:
        """Continue from `state()` of a pool of the same game, configuration and size."""
        self._check_idle()
        header, body = split_header(raw)
        header.check_equal(
            {
                "game": self.rules.name,
                "config": self.rules.config,
                "games": self.num_games,
                "first_game": self.first_game,
                "memory": self.memory_bytes,
                "table": self._native.envs.shape[1],
            }
        )
        header.check_version(self.rules)
        sizes = [array.size for array in (self._native.envs, self._native.extra, self.memory)]
        if len(body) != sum(sizes):
            raise StateError("the state was saved by another build of the native core")
        seed = seed_bits(header.seed())
        stretches = np.split(np.frombuffer(body, np.uint8), np.cumsum(sizes)[:-1])
        if wrong := self._native.load(seed, *stretches):
            raise StateError(f"these are not games of {self.rules.name}: {wrong}")
        self._started = True
        return self._whole

    def state_of(self, game: int) -> State:
        """Return a copy of one game, with the pool's bots in its seats."""
        self._check_idle()
        self._check_started()
        game = check_in_range("game", game, self.num_games)
        state = State(self.rules, self.seed, self._native.weights(), game=self.first_game + game)
        if wrong := state.native.load_from_pool(self._native, game):
            raise StateError(f"{self.rules.name} game {game} cannot be played on: {wrong}")
        return state

    @property
    def tables(self) -> npt.NDArray[np.uint8]:
        """The bytes of all games, one row each, starting with the game's own bytes."""
        return self._native.envs

    def draw_worlds(
        self, rows: Any, worlds: int, *, seed: int = 0, belief: Any = None
    ) -> npt.NDArray[np.uint8]:
        """Return positions as the seats to act in rows may imagine them [rows, worlds, bytes].

        What a seat cannot know is drawn anew, the rest is that of `tables`. A world is a function
        of (seed, game, episode, decision, seat, its number). belief: log-weights [rows, numbers],
        such as `Policy.belief`; None: all deals that fit what the seat saw are equally likely.
        """
        self._check_idle()
        rows = np.ascontiguousarray(rows, np.int64)
        out = worlds_array(self.rules, rows.shape, worlds)
        weights = check_belief(self.rules, belief, rows.shape)
        self._native.draw_worlds(rows, seed_bits(seed), out.shape[-2], weights, out)
        return out

    def digest(self) -> int:
        """Return a hash of all rows, rewards and ends; independent of threads."""
        return self._native.digest()

    def audit(self) -> str:
        """Return an error in any of the games, "" if there is none."""
        return self._native.audit()

    def run_random(self, steps: int) -> float:
        """Play random legal actions in C++; return the seconds it took."""
        self._check_idle()
        self._check_started()
        return self._native.run_random(check_int("steps", steps, 0, 2**31 - 1))

    def _actions(self, action: npt.ArrayLike, rows: slice) -> npt.NDArray[Any]:
        return as_native_actions(action, rows.stop - rows.start, self.rules.box)

    def _accept(self, slot: int, actions: npt.NDArray[Any]) -> None:
        self._check_started()
        if self.rules.box:
            refused = self._native.accept_box(slot, actions)
        else:
            refused = self._native.accept_discrete(slot, actions)
        if refused is not None:
            raise IllegalActionError(describe_illegal_action(self.rules, refused))

    def _slot(self, slot: int) -> int:
        return check_in_range("slot", slot, self.slots)

    def _check_started(self) -> None:
        if not self._started:
            raise IllegalActionError("no game has started; call reset() first")

    def _check_idle(self) -> None:
        if any(self._in_flight):
            busy = self._in_flight.index(True)
            raise IllegalActionError(f"slot {busy} is still stepping; call recv first")


def as_native_actions(action: npt.ArrayLike, rows: int, box: int) -> npt.NDArray[Any]:
    """Convert actions to the native core's dtype and check their shape.

    box: components of a continuous action, 0 for discrete ones.
    """
    wanted = (rows, box) if box else (rows,)
    try:
        actions = np.asarray(action)
    except ValueError:  # lists of different lengths
        raise IllegalActionError(f"actions are not an array of shape {wanted}") from None
    if actions.shape != wanted:
        raise IllegalActionError(f"actions have shape {actions.shape}, need {wanted}")
    if box and actions.dtype == np.float32:
        return np.ascontiguousarray(actions)
    if box and actions.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # too large becomes infinite, which is refused
            return np.ascontiguousarray(actions, np.float32)
    if box:
        raise IllegalActionError(f"actions are {actions.dtype}, need numbers")
    if actions.dtype == np.int32:
        return np.ascontiguousarray(actions)
    if actions.dtype.kind not in "iu":
        raise IllegalActionError(f"actions are {actions.dtype}, need integers")
    limit = np.iinfo(np.int32)
    clipped: npt.NDArray[Any] = np.clip(actions, limit.min, limit.max).astype(np.int32)
    return clipped
