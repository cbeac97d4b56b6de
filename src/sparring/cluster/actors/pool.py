"""The games of all actors as a learner sees them: told things and counted, never stepped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.cluster import seats
from sparring.cluster.actors.crew import Crew
from sparring.errors import ConfigError, SparringError, StateError
from sparring.games.rules import SKIP_FORCED, Rewards, Rules
from sparring.messages import Message
from sparring.pools.custom.rules import CustomRules
from sparring.pools.lineups import LEARNER, FilledMixes, Lineup, Mixes, numbered
from sparring.pools.protocol import EXACT, BatchLike
from sparring.pools.starts import Start


class DistributedPool:
    """A pool whose games are in other processes, each of which has an equal share of them."""

    slots = 1

    def __init__(
        self,
        crew: Crew,
        rules: Rules,
        games: int,
        *,
        lineups: Sequence[Lineup],
        mixes: Sequence[str] = (),
        policies: int = 1,
        memory: int = 0,
        lockstep: bool = False,
        exact: bool = False,
    ) -> None:
        """Speak for the actors of a crew, who know all of this already.

        policies: ids that may sit at tables: the learner's and those of slots.
        lockstep: actors play only while the learner waits for them.
        exact: games are saved with a checkpoint.
        """
        self.crew, self.rules, self.num_games, self.memory_bytes = crew, rules, games, memory
        self.row_bytes = rules.obs_bytes + memory
        self.memory = np.zeros((0, rules.seats, memory), np.uint8)
        """Nothing: it is where the games are."""
        self.can = frozenset({EXACT} if exact else ())
        self._lockstep = lockstep
        self._flags: dict[str, Any] = {}
        self._mixes = FilledMixes(())
        self._lineups: Sequence[Lineup] = ()
        self._counts = np.zeros(len(rules.counters), np.int64)
        self._seated: list[npt.NDArray[np.int64] | None] = [None] * crew.size
        """By actor, as its last rollout left them; None: it has to be asked."""
        self._heard = [0] * crew.size
        self._policies, self._told = policies, 0
        self._out_since = np.zeros(policies, np.int64)
        """By policy, the message since which it is drawn no more; of those that are, the next."""
        self._seats: frozenset[int] = frozenset()
        self._sit(lineups or [Lineup((LEARNER,) * rules.seats)], mixes)
        self._note_drawn()

    # Said to every actor

    def _tell(self, message: Message) -> None:
        """Say it with a number, so that a rollout can tell what was known when it was played."""
        self._told += 1
        facts = {**message.facts, "number": self._told}
        self.crew.tell(Message(message.name, facts, message.arrays))

    def set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str] = ()) -> None:
        self._sit(lineups, mixes)
        self._tell_tables()

    def _sit(self, lineups: Sequence[Lineup], mixes: Sequence[str]) -> None:
        filled = FilledMixes(lineups, mixes, self._mixes)
        ids = numbered(self.rules, lineups, _native.MAX_LINEUPS, filled)
        self._seats = frozenset(player for lineup in ids for player in lineup if player >= 0)
        self._mixes, self._lineups = filled, tuple(lineups)

    def set_mixes(self, mixes: Mixes) -> None:
        self._mixes.fill(self.rules, mixes)
        self._tell_tables()

    def _tell_tables(self) -> None:
        filled = dict(zip(self._mixes.names, self._mixes.players, strict=True))
        by_name = {
            name: {self._player(player): weight for player, weight in inside.items()}
            for name, inside in filled.items()
        }
        before = self._out_since > self._told
        self._tell(seats.tables(self._lineups, self._mixes.names, by_name))
        self._out_since[before] = self._told
        self._note_drawn()

    def _note_drawn(self) -> None:
        """Remember who may be drawn: no actor can have heard yet that it is not."""
        drawn = [player for player in self.policies if player < len(self._out_since)]
        self._out_since[drawn] = np.iinfo(np.int64).max

    def _player(self, player: int) -> int | str:
        """As `set_mixes` takes it: bots by name."""
        return player if player >= 0 else self.rules.bots[-2 - player]

    def put(self, slot: int, weights: Any, *, greedy: bool) -> None:
        self._tell(seats.put(slot, weights, greedy=greedy))

    def set_config(self, **flags: Any) -> None:
        """Change flags that may change while games run; each game follows at its next reset."""
        if not isinstance(self.rules, CustomRules):  # an env of somebody's own has its own flags
            known = {**self.rules.fields, "skip_forced": SKIP_FORCED}
            fixed = [name for name in flags if name in known and not known[name].live]
            if fixed:
                raise ConfigError(f"{', '.join(fixed)} cannot change in running games")
            self.rules = self.rules.changed(flags)
        self._flags |= flags
        self._tell(Message(seats.FLAGS, {"flags": self._flags}))

    def set_rewards(self, rewards: Rewards) -> None:
        self.rules.weights(rewards)
        self._tell(Message(seats.REWARDS, {"rewards": plain_rewards(rewards)}))

    def set_starts(self, starts: Sequence[Start]) -> None:
        self._tell(seats.starts(self.rules, starts))

    # Known of every actor

    def note(self, actor: int, seated: npt.NDArray[np.int64], heard: int) -> None:
        """Remember who sits in the games of an actor, as a rollout of it ended."""
        self._seated[actor], self._heard[actor] = seated.copy(), heard

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games.

        Where actors do not wait, one that has not heard yet that a policy is drawn no more may
        seat it any moment: it counts as seated.
        """
        found = np.zeros(policies, np.int64)
        for actor in range(self.crew.size):
            known = self._seated[actor]
            if known is None:
                known = self.ask_seated(actor)
            if not self._lockstep:
                known = np.where(self._heard[actor] < self._out_since, np.maximum(known, 1), known)
            found += known[:policies]
        return found

    def ask_seated(self, actor: int) -> npt.NDArray[np.int64]:
        question = Message(seats.SEATED, {"policies": self._policies})
        known = self.crew.ask(question, actor).arrays["seated"].copy()
        self.note(actor, known, self._told)
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
        """The games of all actors, which have no orders; and in which life each of them is."""
        answers = [self.crew.ask(Message(seats.STATE), actor) for actor in range(self.crew.size)]
        games = {str(actor): answer.arrays["games"] for actor, answer in enumerate(answers)}
        return [int(answer.facts["life"]) for answer in answers], Message("games", {}, games).pack()

    def state(self) -> bytes:
        return self.states()[1]

    def load_state(self, raw: bytes) -> BatchLike:
        games = Message.unpack(raw).arrays
        if len(games) != self.crew.size:
            raise StateError(
                f"the checkpoint has the games of {len(games)} actors, there are {self.crew.size}"
            )
        for actor in range(self.crew.size):
            self.crew.ask(Message(seats.LOAD, {}, {"games": games[str(actor)]}), actor)
        self._seated = [None] * self.crew.size
        return self.batch()

    # What actors do

    def reset(self, seed: int | None = None) -> BatchLike:
        """With a seed, have actors begin other games; the first ones they begin themselves."""
        if seed is not None:
            self._tell(Message(seats.BEGIN, {"seed": seed}))
            self._seated = [None] * self.crew.size
        return self.batch()

    def batch(self, slot: int | None = None) -> BatchLike:
        """No rows: they are where the games are."""
        return cast(BatchLike, None)

    def step(self, action: npt.ArrayLike) -> NoReturn:
        raise SparringError("these games are stepped by actors; ask a crew for a rollout")

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        self.step(action)

    def recv(self, slot: int = 0) -> BatchLike:
        return self.step(())

    def sample_actions(self) -> Any:
        self.step(())

    def audit(self) -> str:
        """Nothing is known here."""
        return ""


def plain_rewards(rewards: Rewards) -> dict[str, Any]:
    return {part: np.asarray(weight, np.float64).tolist() for part, weight in rewards.items()}
