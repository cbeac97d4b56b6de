"""The games of all actors as one pool of the learner. Actors step them; the pool never does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.cluster import game_messages
from sparring.cluster.actors.supervisor import ActorSupervisor
from sparring.errors import ConfigError, SparringError, StateError
from sparring.games.rules import SKIP_FORCED, Rewards, Rules
from sparring.messages import Message
from sparring.pools.custom.rules import CustomRules
from sparring.pools.lineups import LEARNER, FilledMixes, Lineup, Mixes, lineup_ids
from sparring.pools.protocol import EXACT, BatchLike
from sparring.pools.starts import Start


class DistributedPool:
    """A pool whose games are played by actors, an equal share by each."""

    slots = 1

    def __init__(
        self,
        supervisor: ActorSupervisor,
        rules: Rules,
        games: int,
        *,
        lineups: Sequence[Lineup],
        mixes: Sequence[str] = (),
        policies: int = 1,
        memory: int = 0,
        lockstep: bool = False,
        exact: bool = False,
        records: bool = False,
        rewards: Rewards | None = None,
    ) -> None:
        """Represent the games of a supervisor's actors, which were started with the same settings.

        policies: number of policy ids that may be seated: the learner's and those of slots.
        lockstep: actors play only while the learner waits for them.
        exact: games are saved with a checkpoint. records: rollouts contain results of goals.
        rewards: weights of reward parts; None: those of the game.
        """
        self.supervisor, self.rules = supervisor, rules
        self.num_games, self.memory_bytes = games, memory
        self.row_bytes = rules.obs_bytes + memory
        self.memory = np.zeros((0, rules.seats, memory), np.uint8)
        """Empty: actors hold it."""
        self.records, self._rewards = records, rewards
        self.can = frozenset({EXACT} if exact else ())
        self._lockstep = lockstep
        self._flags: dict[str, Any] = {}
        self._mixes = FilledMixes(())
        self._lineups: Sequence[Lineup] = ()
        self._counts = np.zeros(len(rules.counters), np.int64)
        self._seated: list[npt.NDArray[np.int64] | None] = [None] * supervisor.size
        """By actor, as its last rollout left them; None: it has to be asked."""
        self._heard = [0] * supervisor.size
        self._policies, self._sent = policies, 0
        self._out_since = np.zeros(policies, np.int64)
        """By policy, the message since which it is not drawn; the maximum while it is drawn."""
        self._seats: frozenset[int] = frozenset()
        self._set_lineups(lineups or [Lineup((LEARNER,) * rules.seats)], mixes)
        self._note_drawn()

    # Messages to all actors

    def _broadcast(self, message: Message) -> None:
        """Send a numbered message: a rollout reports the last message its actor had applied."""
        self._sent += 1
        payload = {**message.payload, "number": self._sent}
        self.supervisor.broadcast(Message(message.name, payload, message.arrays))

    def set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str] = ()) -> None:
        self._set_lineups(lineups, mixes)
        self._send_lineups()

    def _set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str]) -> None:
        filled = FilledMixes(lineups, mixes, self._mixes)
        ids = lineup_ids(self.rules, lineups, _native.MAX_LINEUPS, filled)
        self._seats = frozenset(player for lineup in ids for player in lineup if player >= 0)
        self._mixes, self._lineups = filled, tuple(lineups)

    def set_mixes(self, mixes: Mixes) -> None:
        self._mixes.fill(self.rules, mixes)
        self._send_lineups()

    def _send_lineups(self) -> None:
        filled = dict(zip(self._mixes.names, self._mixes.players, strict=True))
        by_name = {
            name: {self._player(player): weight for player, weight in players.items()}
            for name, players in filled.items()
        }
        before = self._out_since > self._sent
        self._broadcast(game_messages.lineups_message(self._lineups, self._mixes.names, by_name))
        self._out_since[before] = self._sent
        self._note_drawn()

    def _note_drawn(self) -> None:
        """Mark policies that may be drawn: no actor can know yet that they are not."""
        drawn = [player for player in self.policies if player < len(self._out_since)]
        self._out_since[drawn] = np.iinfo(np.int64).max

    def _player(self, player: int) -> int | str:
        """As `set_mixes` takes it: bots by name."""
        return player if player >= 0 else self.rules.bots[-2 - player]

    def put(self, slot: int, weights: Any, *, greedy: bool) -> None:
        self._broadcast(game_messages.weights_message(slot, weights, greedy=greedy))

    def set_config(self, **flags: Any) -> None:
        """Change flags that may change while games run; each game follows at its next reset."""
        if not isinstance(self.rules, CustomRules):  # an env of somebody's own has its own flags
            known = {**self.rules.fields, "skip_forced": SKIP_FORCED}
            fixed = [name for name in flags if name in known and not known[name].live]
            if fixed:
                raise ConfigError(f"{', '.join(fixed)} cannot change in running games")
            self.rules = self.rules.changed(flags)
        self._flags |= flags
        self._broadcast(Message(game_messages.FLAGS, {"flags": self._flags}))

    def set_rewards(self, rewards: Rewards) -> None:
        self.rules.weights(rewards)
        self._rewards = rewards
        plain = {part: np.asarray(weight, np.float64).tolist() for part, weight in rewards.items()}
        self._broadcast(Message(game_messages.REWARDS, {"rewards": plain}))

    def set_starts(self, starts: Sequence[Start]) -> None:
        self._broadcast(game_messages.starts_message(self.rules, starts))

    def weights(self) -> list[float]:
        """Return the weights of all reward parts and roles, flat."""
        return list(self.rules.weights(self._rewards))

    # State of the actors

    def note(self, actor: int, seated: npt.NDArray[np.int64], heard: int) -> None:
        """Store the seated policies of an actor's games at the end of its last rollout."""
        self._seated[actor], self._heard[actor] = seated.copy(), heard

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games.

        Actors that do not wait may still draw a policy until they have read that it is out: until
        then it counts as seated.
        """
        found = np.zeros(policies, np.int64)
        for actor in range(self.supervisor.size):
            known = self._seated[actor]
            if known is None:
                known = self.ask_seated(actor)
            if not self._lockstep:
                known = np.where(self._heard[actor] < self._out_since, np.maximum(known, 1), known)
            found += known[:policies]
        return found

    def ask_seated(self, actor: int) -> npt.NDArray[np.int64]:
        question = Message(game_messages.SEATED, {"policies": self._policies})
        known = self.supervisor.call(question, actor).arrays["seated"].copy()
        self.note(actor, known, self._sent)
        return known

    @property
    def policies(self) -> frozenset[int]:
        return self._seats | (self._mixes.policies if self._mixes.drawn else frozenset())

    @property
    def mixes(self) -> tuple[str, ...]:
        return tuple(self._mixes.names)

    def counts(self) -> npt.NDArray[np.int64]:
        return self._counts.copy()

    def add_counts(self, counted: npt.NDArray[np.int64]) -> None:
        self._counts += counted

    def clear_counts(self) -> None:
        self._counts.fill(0)

    # Saving

    def states(self) -> tuple[list[int], bytes]:
        """The incarnation of every actor, and the games of all as bytes; no rollout may be open."""
        actors = range(self.supervisor.size)
        replies = [self.supervisor.call(Message(game_messages.STATE), actor) for actor in actors]
        games = {str(actor): reply.arrays["games"] for actor, reply in enumerate(replies)}
        incarnations = [int(reply.payload["incarnation"]) for reply in replies]
        return incarnations, Message("games", {}, games).pack()

    def state(self) -> bytes:
        return self.states()[1]

    def load_state(self, raw: bytes) -> BatchLike:
        games, size = Message.unpack(raw).arrays, self.supervisor.size
        if len(games) != size:
            raise StateError(
                f"the checkpoint has the games of {len(games)} actors, and there are {size}; set "
                f"actors {len(games)}"
            )
        for actor in range(size):
            message = Message(game_messages.LOAD, {}, {"games": games[str(actor)]})
            self.supervisor.call(message, actor)
        self._seated = [None] * self.supervisor.size
        return self.batch()

    # Stepping, which actors do

    def reset(self, seed: int | None = None) -> BatchLike:
        """With a seed, make actors start new games; they start their first games themselves."""
        if seed is not None:
            self._broadcast(Message(game_messages.RESTART, {"seed": seed}))
            self._seated = [None] * self.supervisor.size
        return self.batch()

    def batch(self, slot: int | None = None) -> BatchLike:
        """No batch: actors hold the rows."""
        return cast(BatchLike, None)

    def step(self, action: npt.ArrayLike) -> NoReturn:
        raise SparringError("actors step these games; submit a RolloutRequest to the supervisor")

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        self.step(action)

    def recv(self, slot: int = 0) -> BatchLike:
        return self.step(())

    def sample_actions(self) -> Any:
        self.step(())

    def audit(self) -> str:
        return ""
