"""The league of a run: its snapshots, the opponents in the slots, and how often each is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.config import LeagueConfig
from sparring.errors import warn
from sparring.league import roles
from sparring.league.matchmaking import (
    ArchivedPolicy,
    WinDrawLoss,
    decayed,
    estimate_rating,
    passes_gate,
    weights,
)
from sparring.league.players import make_rng
from sparring.league.slots import SLOTS_STREAM, Slots, mixes
from sparring.learn.acting import TakesOpponents
from sparring.learn.learner import Report
from sparring.learn.plan import Plan
from sparring.phases import phase
from sparring.store.archive import MATCH, TRAINING, Archive, ArchiveError, SnapshotEntry
from sparring.store.folders import SNAPSHOT
from sparring.store.manifest import checkpoint_numbers
from sparring.training.evaluate import PAIRS, write_ratings
from sparring.training.starting import reinitialize

UPDATES_BETWEEN = 20
"""Updates from one snapshot to the next, where `league.every_decisions` is 0."""
DECAY = 0.7
"""Factor of old results at every snapshot, because the learner has changed."""
MATCHES = 2
"""Past selves in an evaluation during training."""
UNWRITTEN = "the league was not written, training continues"


class League:
    """A run's past selves and the opponent slots of its learner; deterministic given its state."""

    def __init__(
        self,
        settings: LeagueConfig,
        plan: Plan,
        learner: TakesOpponents,
        archive: Archive,
        *,
        name: str,
        member: int = 0,
    ) -> None:
        """Manage the slots of a learner. member: index in a population."""
        self.settings, self.plan, self.learner, self.archive = settings, plan, learner, archive
        self.name, self.member, self.seed = name, member, plan.seeds[member]
        self.participants, self.slots = plan.participants, Slots(plan.participants.slots)
        self.results: dict[str, WinDrawLoss] = {}
        """Results of the learner against snapshots, by hash; old ones are decayed."""
        self.best_shares: dict[str, float] = {}
        """Highest win share of the learner against each snapshot."""
        self.counts: dict[str, list[int]] = {}
        """Wins, draws and losses since the last snapshot, by hash or bot."""
        self.since_last = WinDrawLoss()
        """Results against past selves since the last snapshot."""
        self.mixes: dict[str, dict[int, float]] = {}
        """Weights of slots by mix."""
        self.due = 0
        """Decisions (or updates) at which the next snapshot is due."""
        self.best: str | None = None
        self.newest: str | None = None
        """The newest opponent when slots were filled last; what came later was not met yet."""
        self.missing: set[str] = set()
        """Snapshots that are missing or damaged."""
        self.attempt = roles.Attempt()
        self.num_snapshots = 0
        """Number of past selves."""
        self._index: list[SnapshotEntry] = []
        """Entries of the archive when it was read last."""
        self.saved_at: tuple[int, ...] = ()
        """Checkpoints from which the run may be resumed."""
        self.sharing: list[League] = [self]
        """The leagues of all members that use this archive."""

    # The course of a run

    def begin(self) -> None:
        """Put the named policies into their slots; past selves are the learner itself for now."""
        for fixed in self.participants.fixed:
            hash = self._archive(fixed.weights, roles.FIXED, update=0, decisions=0, seconds=0.0)
            self.slots.fix(fixed.slot, hash or fixed.name, greedy=fixed.greedy)
            self._fill_slot(fixed.slot, fixed.weights, greedy=fixed.greedy)
        self.due = self._next_due(0, 0)
        self._update_mixes()

    @phase("league")
    def after_update(self, report: Report, *, update: int, seconds: float) -> dict[str, float]:
        """Count the results of an update, take a snapshot if one is due; return metrics."""
        self._count_results(report.met)
        if self._clock(update, report.decisions) >= self.due:
            self.due = self._next_due(update, report.decisions)
            self._record(update, report.decisions)
            if self.participants.past_slots:
                self._advance(update, report.decisions, seconds)
                self._rotate(update, exchange=True)
                self._prune(update)
        elif any(slot.draining for slot in self.slots.slots):
            self._rotate(update, exchange=False)
        return self._metrics()

    def _clock(self, update: int, decisions: int) -> int:
        return decisions if self.settings.every_decisions else update

    def _next_due(self, update: int, decisions: int) -> int:
        return self._clock(update, decisions) + (self.settings.every_decisions or UPDATES_BETWEEN)

    def _count_results(self, met: npt.NDArray[np.int64] | None) -> None:
        if met is None:
            return
        policies = len(met) - len(self.learner.rules.bots)
        for player in np.flatnonzero(met.any(axis=1)):
            result = met[player]
            name = self._name_of(int(player), policies)
            counted = self.counts.setdefault(name, [0, 0, 0])
            self.counts[name] = [a + int(b) for a, b in zip(counted, result, strict=True)]
            if 1 <= player <= len(self.slots):
                added = WinDrawLoss(*map(float, result))
                self.results[name] = self.results.get(name, WinDrawLoss()) + added
                if not self.slots[int(player)].fixed:
                    self.since_last += added

    def _name_of(self, player: int, policies: int) -> str:
        """Return the key of a player's results: a hash, a name, or a bot."""
        if player >= policies:
            return self.learner.rules.bots[player - policies]
        if player <= len(self.slots):
            return str(self.slots[player].hash)
        return self.participants.others[player - len(self.slots) - 1]

    def _record(self, update: int, decisions: int) -> None:
        counts = {name: (c[0], c[1], c[2]) for name, c in self.counts.items()}
        with warn_and_continue(UNWRITTEN):
            self.archive.record(update, decisions, counts, TRAINING, member=self.name)
        self.counts = {}

    def _advance(self, update: int, decisions: int, seconds: float) -> None:
        """Take a snapshot if the gate is passed, and restart an exploiter that is done."""
        for one in self._opponents():
            if one.results.games >= 1:
                best = self.best_shares.get(one.hash, 0.0)
                self.best_shares[one.hash] = max(best, one.share)
        when: dict[str, Any] = {"update": update, "decisions": decisions, "seconds": seconds}
        if self.settings.role in roles.EXPLOITERS:
            self._exploit(when)
        elif passes_gate(self.since_last, self.settings.gate, archived=len(self._opponents())):
            self._archive(self._weights(), roles.MAIN, **when)
            self.since_last = WinDrawLoss()
        self.results = decayed(self.results, DECAY)

    def _exploit(self, when: Mapping[str, Any]) -> None:
        """Check an exploiter: if it has won or stalled, archive it and restart it."""
        usual = UPDATES_BETWEEN * when["decisions"] // when["update"]
        every = self.settings.every_decisions or usual
        verdict, self.attempt = roles.judge(
            self.attempt, self._judged(), when["decisions"], roles.default_limits(every)
        )
        if verdict == "go on":
            return
        if roles.worth_keeping(verdict, self.attempt):
            self._archive(self._weights(), self.settings.role, **dict(when))
        self.attempt = self.attempt.restarted(when["decisions"])
        self.results, self.best_shares, self.since_last = {}, {}, WinDrawLoss()
        reinitialize(
            self.learner, self.plan, self.attempt.number, self.member, self._restart_weights()
        )

    def _restart_weights(self) -> dict[str, Tensor] | None:
        """Return the weights of the newest main agent, None for random ones."""
        mains = [entry for entry in self._past_entries() if entry.role == roles.MAIN]
        if self.settings.restart == "random" or not mains:
            return None
        return self._load_weights(mains[-1].hash)

    def _judged(self) -> WinDrawLoss:
        """Return the results that decide whether an exploiter has won."""
        if self.settings.role == roles.EXPLOITER:
            return self._against_newest()
        return sum((one.results for one in self._opponents()), WinDrawLoss())

    def _against_newest(self) -> WinDrawLoss:
        return self.results.get(self.newest or "", WinDrawLoss())

    # Who is met

    def _opponents(self) -> list[ArchivedPolicy]:
        everyone = [
            ArchivedPolicy(
                age,
                entry.hash,
                entry.role,
                self.results.get(entry.hash, WinDrawLoss()),
                self.best_shares.get(entry.hash, 0.5),
                estimate_rating(self.results.get(entry.hash)),
            )
            for age, entry in enumerate(self._past_entries())
        ]
        return roles.allowed_opponents(self.settings.role, everyone)

    def _past_entries(self) -> list[SnapshotEntry]:
        """Return past selves by update, without fixed opponents and missing snapshots.

        Sorted, because the best checkpoint is archived after snapshots of later updates.
        """
        with warn_and_continue("the league cannot be read, those that are known are met"):
            self._index = self.archive.entries()
        return sorted(filter(self._is_past, self._index), key=lambda e: (e.update, e.number))

    def _is_past(self, entry: SnapshotEntry) -> bool:
        return entry.role != roles.FIXED and entry.hash not in self.missing

    def _last(self) -> int:
        try:
            entries = self.archive.entries(removed=True)
        except ArchiveError:
            entries = self._index
        return max((entry.number for entry in entries), default=-1)

    def _rotate(self, update: int, *, exchange: bool) -> None:
        """Fill free slots with other opponents, and set how often each is met."""
        known = self._opponents()
        self.num_snapshots = len(known)
        wanted = self._wanted(known)
        if exchange:
            self.newest = known[-1].hash if known else None
        filled = self.slots.assign(
            known,
            wanted,
            self.learner.seated(self.member),
            seed=self.seed,
            update=update,
            always=[self.best] if self.best else [],
            **({} if exchange else {"exchanged": 0.0}),
            greedy=self.participants.greedy,
        )
        for slot, hash in filled.items():
            result = self._load_weights(hash)
            if result is None:
                self.slots.slots[slot - 1].draining = True
                result = self._weights()
            self._fill_slot(slot, result, greedy=self.participants.greedy)
        self._update_mixes(known, wanted)

    def _wanted(self, known: Sequence[ArchivedPolicy]) -> npt.NDArray[np.float64]:
        choose = roles.sampling_for(
            self.settings.role, self.settings.sampling, self._against_newest()
        )
        return weights(choose, known, learner_rating=0.0)

    def _update_mixes(
        self, known: Sequence[ArchivedPolicy] = (), wanted: npt.NDArray[np.float64] | None = None
    ) -> None:
        shares = np.zeros(0) if wanted is None else wanted
        made = mixes(self.slots, known, shares, recent=self.participants.recent, best=self.best)
        self.mixes = {name: made[name] for name in self.participants.mixes}
        self.learner.set_mixes(self.mixes, self.member)

    # What evaluations beside training find

    def rivals(self, number: int) -> list[str]:
        """Return files of past selves for an evaluation: the newest, and random others.

        They depend on the checkpoint only, so an evaluation repeated after a resume is the same.
        """
        met = filter(self._is_past, self.archive.entries_at(number))
        entries = [entry for entry in met if self.archive.file(entry.hash).exists()]
        entries.sort(key=lambda entry: entry.update)
        if not entries or not self.participants.past_slots:
            return []
        lots = make_rng(self.seed, SLOTS_STREAM, number)
        picked = lots.permutation(len(entries) - 1)[: MATCHES - 1]
        chosen = [entries[-1], *(entries[at] for at in picked)]
        return [str(self.archive.file(entry.hash)) for entry in chosen]

    @phase("league")
    def add_match(self, number: int, decisions: int, who: str, result: Mapping[str, Any]) -> str:
        """Add the result of a match against a past self or a bot; return its name in metrics."""
        hash = Path(who).stem if who.endswith(SNAPSHOT) else who
        wins, draws, losses = (int(count) for count in result[PAIRS])
        counts = wins, draws, losses
        with warn_and_continue(UNWRITTEN):
            self.archive.record(number, decisions, {hash: counts}, MATCH, member=self.name)
        if hash == who:
            return who
        if self.settings.sampling == "forgotten":  # training meets only some
            added = WinDrawLoss(*map(float, counts))
            self.results[hash] = self.results.get(hash, WinDrawLoss()) + added
            share = self.results[hash].share
            self.best_shares[hash] = max(self.best_shares.get(hash, 0.0), share)
        entry = self.archive.by_hash(hash)
        return f"past {entry.number}" if entry else "past"

    @phase("league")
    def new_best(self, tensors: Mapping[str, Tensor], **when: Any) -> None:
        """Archive a new best checkpoint; it can be met from the next snapshot on."""
        if "best" in self.participants.mixes:
            self.best = self._archive(tensors, roles.MAIN, **when) or self.best

    # What lies on the disk

    def _weights(self) -> dict[str, Tensor]:
        net = self.learner.policy(self.member).net
        return {name: value.detach().cpu() for name, value in net.state_dict().items()}

    def _archive(self, tensors: Mapping[str, Tensor], role: str, **when: Any) -> str | None:
        """Archive a network; a full disk does not stop training.

        when: update, decisions and seconds.
        """
        with warn_and_continue("a snapshot was not kept, training continues"):
            return self.archive.add(tensors, role=role, member=self.name, **when).hash
        return None

    def _load_weights(self, hash: str) -> dict[str, Tensor] | None:
        """Return a snapshot's weights; warn once about a missing or damaged one."""
        with warn_and_continue("a past self is left out"):
            return self.archive.weights(hash)
        self.missing.add(hash)
        return None

    def _fill_slot(self, slot: int, tensors: Mapping[str, Tensor], *, greedy: bool) -> None:
        self.learner.put(slot, tensors, greedy=greedy, member=self.member)

    def _prune(self, update: int) -> None:
        """Remove snapshots beyond the limit that neither slots nor checkpoints need."""
        ratings = {one.hash: one.rating for one in self._opponents() if one.rating is not None}
        oldest = min((at for league in self.sharing for at in league.saved_at), default=update)
        needed = {entry.hash for entry in self._index if entry.role == roles.FIXED}
        for league in self.sharing:
            needed |= league.slots.policies | ({league.best} if league.best else set())
        with warn_and_continue(UNWRITTEN):
            self.archive.prune(needed, self.best, ratings, update=update, oldest=oldest)

    def set_saved_checkpoints(self, checkpoints: Path) -> None:
        """Read which checkpoints exist; the snapshots that they need are not removed."""
        self.saved_at = tuple(checkpoint_numbers(checkpoints))

    def close(self, update: int, decisions: int) -> None:
        """Write final ratings and close the archive."""
        with warn_and_continue(UNWRITTEN):
            write_ratings(self.archive, self.learner.rules.bots, update, decisions)
        self.archive.close()

    # Checkpoints

    def state(self) -> dict[str, Any]:
        """Return everything that the next update depends on, as JSON values."""
        slots = self.slots.state()["slots"]
        return {
            "slots": {str(number): slot for number, slot in enumerate(slots, start=1)},
            "results": {name: list(vars(one).values()) for name, one in self.results.items()},
            "best_shares": dict(self.best_shares),
            "counted": {name: list(counts) for name, counts in self.counts.items()},
            "since_last": list(vars(self.since_last).values()),
            "mixes": {name: [[k, w] for k, w in mix.items()] for name, mix in self.mixes.items()},
            "due": self.due,
            "home": self.archive.folder.name,
            "last": self._last(),
            "best": self.best,
            "lost": sorted(self.missing),
            "attempt": asdict(self.attempt),
            "newest": self.newest,
        }

    def restore(self, state: Mapping[str, Any], spare: Mapping[str, Tensor]) -> None:
        """Fill the slots before the games are restored. spare: replaces missing snapshots."""
        saved = state["slots"]
        self.slots.load({"slots": [saved[str(number + 1)] for number in range(len(saved))]})
        self.results = {name: WinDrawLoss(*values) for name, values in state["results"].items()}
        self.best_shares = dict(state["best_shares"])
        self.counts = {name: list(counts) for name, counts in state["counted"].items()}
        self.since_last = WinDrawLoss(*state["since_last"])
        self.due, self.best, self.missing = state["due"], state["best"], set(state["lost"])
        self.attempt = roles.Attempt.load(state["attempt"])
        self.newest = state.get("newest")
        fixed = {one.slot: one.weights for one in self.participants.fixed}
        for number, slot in enumerate(self.slots.slots, start=1):
            if slot.hash is None:
                continue
            result = self._load_weights(slot.hash) if slot.hash not in self.missing else None
            if result is None and slot.fixed:
                result = dict(fixed[number])
            if result is None:
                slot.draining, result = True, dict(spare)
            self._fill_slot(number, result, greedy=slot.greedy)
        gone = {number for number, slot in enumerate(self.slots.slots, 1) if slot.draining}
        self.mixes = {
            name: {int(slot): weight for slot, weight in mix if slot not in gone}
            for name, mix in state["mixes"].items()
        }
        self.learner.set_mixes(self.mixes, self.member)
        self.num_snapshots = len(self._past_entries())

    def summary(self) -> str:
        if not self.participants.past_slots:
            return ""
        share = "" if self.share is None else f", {self.share:.0%} of the points"
        return f"past selves: {self.num_snapshots}{share}"

    @property
    def share(self) -> float | None:
        """Share of the points against past selves since the last snapshot."""
        return self.since_last.points / self.since_last.games if self.since_last.games else None

    def _metrics(self) -> dict[str, float]:
        if not self.participants.past_slots:
            return {}
        values = {"league/snapshots": float(self.num_snapshots)}
        if self.share is not None:
            values["league/past"] = self.share
        return values


@contextmanager
def warn_and_continue(what: str) -> Iterator[None]:
    """Warn about an archive that cannot be read or written, and continue."""
    try:
        yield
    except ArchiveError as error:
        warn(f"{what}: {error}")
