"""The league of a run: which past selves are kept, who is in which slot, who is met how often."""

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
"""What results weigh at the next snapshot: the learner is another one by then."""
MATCHES = 2
"""Past selves that an evaluation beside training meets."""
UNWRITTEN = "the league was not written, training goes on"


class League:
    """One run's past selves, and the slots of its learner. All it does follows from its state."""

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
        """Take over the slots of a learner. member: which of a population's."""
        self.settings, self.plan, self.learner, self.archive = settings, plan, learner, archive
        self.name, self.member, self.seed = name, member, plan.seeds[member]
        self.participants, self.slots = plan.participants, Slots(plan.participants.slots)
        self.results: dict[str, WinDrawLoss] = {}
        """Of the learner against everybody in the archive, old ones decayed."""
        self.best_shares: dict[str, float] = {}
        """The highest share that it ever had."""
        self.counted: dict[str, list[int]] = {}
        """Games won, drawn and lost since the last snapshot, by hash or bot."""
        self.since_last = WinDrawLoss()
        """Against the past, since the last snapshot."""
        self.drawn: dict[str, dict[int, float]] = {}
        """Who is in the mixes."""
        self.due = 0
        """At so many decisions (or updates) a snapshot is due."""
        self.best: str | None = None
        self.lost: set[str] = set()
        """Snapshots that are missing or damaged."""
        self.attempt = roles.Attempt()
        self.kept = 0
        """Past selves that there are."""
        self._index: list[SnapshotEntry] = []
        """The archive as it was read last."""
        self.saved_at: tuple[int, ...] = ()
        """Checkpoints that the run may be resumed from."""
        self.sharing: list[League] = [self]
        """The leagues of all members that use this archive."""

    # The course of a run

    def begin(self) -> None:
        """Seat the policies that line-ups name; the past is the learner itself for now."""
        for fixed in self.participants.fixed:
            content = self._keep(fixed.weights, roles.FIXED, update=0, decisions=0, seconds=0.0)
            self.slots.fix(fixed.slot, content or fixed.name, greedy=fixed.greedy)
            self._put(fixed.slot, fixed.weights, greedy=fixed.greedy)
        self.due = self._next_due(0, 0)
        self._draw_anew()

    @phase("league")
    def after(self, report: Report, *, update: int, seconds: float) -> dict[str, float]:
        """Count what an update brought, keep a snapshot when it is time; return curves."""
        self._count(report.met)
        if self._clock(update, report.decisions) >= self.due:
            self.due = self._next_due(update, report.decisions)
            self._record(update, report.decisions)
            if self.participants.past_slots:
                self._advance(update, report.decisions, seconds)
                self._rotate(update, exchange=True)
                self._prune(update)
        elif any(slot.draining for slot in self.slots.slots):
            self._rotate(update, exchange=False)
        return self._curves()

    def _clock(self, update: int, decisions: int) -> int:
        return decisions if self.settings.every_decisions else update

    def _next_due(self, update: int, decisions: int) -> int:
        return self._clock(update, decisions) + (self.settings.every_decisions or UPDATES_BETWEEN)

    def _count(self, met: npt.NDArray[np.int64] | None) -> None:
        if met is None:
            return
        policies = len(met) - len(self.learner.rules.bots)
        for player in np.flatnonzero(met.any(axis=1)):
            found = met[player]
            name = self._name_of(int(player), policies)
            counted = self.counted.setdefault(name, [0, 0, 0])
            self.counted[name] = [a + int(b) for a, b in zip(counted, found, strict=True)]
            if 1 <= player <= len(self.slots):
                more = WinDrawLoss(*map(float, found))
                self.results[name] = self.results.get(name, WinDrawLoss()) + more
                if not self.slots[int(player)].fixed:
                    self.since_last += more

    def _name_of(self, player: int, policies: int) -> str:
        """What results are kept under: a hash, a name, or a bot."""
        if player >= policies:
            return self.learner.rules.bots[player - policies]
        if player <= len(self.slots):
            return str(self.slots[player].hash)
        return self.participants.others[player - len(self.slots) - 1]

    def _record(self, update: int, decisions: int) -> None:
        counts = {name: (c[0], c[1], c[2]) for name, c in self.counted.items()}
        with going_on(UNWRITTEN):
            self.archive.record(update, decisions, counts, TRAINING, member=self.name)
        self.counted = {}

    def _advance(self, update: int, decisions: int, seconds: float) -> None:
        """Keep a snapshot if it is time, and let an exploiter begin anew."""
        for one in self._known():
            if one.results.games >= 1:
                best = self.best_shares.get(one.hash, 0.0)
                self.best_shares[one.hash] = max(best, one.share)
        when: dict[str, Any] = {"update": update, "decisions": decisions, "seconds": seconds}
        if self.settings.role == roles.EXPLOITER:
            self._exploit(when)
        elif passes_gate(self.since_last, self.settings.gate, archived=len(self._known())):
            self._keep(self._weights(), roles.MAIN, **when)
            self.since_last = WinDrawLoss()
        self.results = decayed(self.results, DECAY)

    def _exploit(self, when: Mapping[str, Any]) -> None:
        """Judge an exploiter; who has won or stalled is kept and starts from fresh weights."""
        usual = UPDATES_BETWEEN * when["decisions"] // when["update"]
        every, newest = self.settings.every_decisions or usual, self._against_newest()
        verdict, self.attempt = roles.judge(
            self.attempt, newest, when["decisions"], roles.default_limits(every)
        )
        if verdict == "go on":
            return
        if roles.worth_keeping(verdict, self.attempt):
            self._keep(self._weights(), roles.EXPLOITER, **dict(when))
        self.attempt = self.attempt.restarted(when["decisions"])
        self.results, self.best_shares, self.since_last = {}, {}, WinDrawLoss()
        reinitialize(self.learner, self.plan, self.attempt.number, self.member)

    def _against_newest(self) -> WinDrawLoss:
        known = self._known()
        return known[-1].results if known else WinDrawLoss()

    # Who is met

    def _known(self) -> list[ArchivedPolicy]:
        everyone = [
            ArchivedPolicy(
                age,
                entry.hash,
                entry.role,
                self.results.get(entry.hash, WinDrawLoss()),
                self.best_shares.get(entry.hash, 0.5),
                estimate_rating(self.results.get(entry.hash)),
            )
            for age, entry in enumerate(self._entries())
        ]
        return roles.allowed_opponents(self.settings.role, everyone)

    def _entries(self) -> list[SnapshotEntry]:
        """The archive without what is fixed or lost, by when it was the learner.

        A checkpoint is known to be the best, and kept, when snapshots of later ones are there.
        """
        with going_on("the league cannot be read, those that are known are met"):
            self._index = self.archive.entries()
        return sorted(filter(self._is_past, self._index), key=lambda e: (e.update, e.number))

    def _is_past(self, entry: SnapshotEntry) -> bool:
        return entry.role != roles.FIXED and entry.hash not in self.lost

    def _last(self) -> int:
        try:
            entries = self.archive.entries(removed=True)
        except ArchiveError:
            entries = self._index
        return max((entry.number for entry in entries), default=-1)

    def _rotate(self, update: int, *, exchange: bool) -> None:
        """Bring others into slots that are free, and say how often everybody is drawn."""
        known = self._known()
        self.kept = len(known)
        wanted = self._wanted(known)
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
        for slot, content in filled.items():
            found = self._load(content)
            if found is None:
                self.slots.slots[slot - 1].draining = True
                found = self._weights()
            self._put(slot, found, greedy=self.participants.greedy)
        self._draw_anew(known, wanted)

    def _wanted(self, known: Sequence[ArchivedPolicy]) -> npt.NDArray[np.float64]:
        choose = roles.sampling_for(
            self.settings.role, self.settings.sampling, self._against_newest()
        )
        return weights(choose, known, learner_rating=0.0)

    def _draw_anew(
        self, known: Sequence[ArchivedPolicy] = (), wanted: npt.NDArray[np.float64] | None = None
    ) -> None:
        shares = np.zeros(0) if wanted is None else wanted
        made = mixes(self.slots, known, shares, recent=self.participants.recent, best=self.best)
        self.drawn = {name: made[name] for name in self.participants.mixes}
        self.learner.set_mixes(self.drawn, self.member)

    # What evaluations beside training find

    def rivals(self, number: int) -> list[str]:
        """Files of past selves that an evaluation is to meet: the newest, and others by lot.

        Those of its time: one that is asked for again after a resume meets the same.
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
    def take_match(self, number: int, decisions: int, who: str, found: Mapping[str, Any]) -> str:
        """Learn how a match against a past self or a bot went; return its name in curves."""
        content = Path(who).stem if who.endswith(SNAPSHOT) else who
        wins, draws, losses = (int(count) for count in found[PAIRS])
        counts = wins, draws, losses
        with going_on(UNWRITTEN):
            self.archive.record(number, decisions, {content: counts}, MATCH, member=self.name)
        if content == who:
            return who
        if self.settings.sampling == "forgotten":  # training meets only some
            more = WinDrawLoss(*map(float, counts))
            self.results[content] = self.results.get(content, WinDrawLoss()) + more
            share = self.results[content].share
            self.best_shares[content] = max(self.best_shares.get(content, 0.0), share)
        entry = self.archive.by_hash(content)
        return f"past {entry.number}" if entry else "past"

    @phase("league")
    def new_best(self, tensors: Mapping[str, Tensor], **when: Any) -> None:
        """Note that a checkpoint is the best so far; from the next snapshot on it can be met."""
        if "best" in self.participants.mixes:
            self.best = self._keep(tensors, roles.MAIN, **when) or self.best

    # What lies on the disk

    def _weights(self) -> dict[str, Tensor]:
        net = self.learner.policy(self.member).net
        return {name: value.detach().cpu() for name, value in net.state_dict().items()}

    def _keep(self, tensors: Mapping[str, Tensor], role: str, **when: Any) -> str | None:
        """Put a network into the archive; a full disk does not stop training.

        when: update, decisions and seconds.
        """
        with going_on("a snapshot was not kept, training goes on"):
            return self.archive.add(tensors, role=role, member=self.name, **when).hash
        return None

    def _load(self, content: str) -> dict[str, Tensor] | None:
        """A snapshot's weights; one that is missing or damaged is reported once and left out."""
        with going_on("a past self is left out"):
            return self.archive.weights(content)
        self.lost.add(content)
        return None

    def _put(self, slot: int, tensors: Mapping[str, Tensor], *, greedy: bool) -> None:
        self.learner.put(slot, tensors, greedy=greedy, member=self.member)

    def _prune(self, update: int) -> None:
        """Remove what is too much, but nothing that a slot or a checkpoint needs."""
        ratings = {one.hash: one.rating for one in self._known() if one.rating is not None}
        oldest = min((at for league in self.sharing for at in league.saved_at), default=update)
        needed = {entry.hash for entry in self._index if entry.role == roles.FIXED}
        for league in self.sharing:
            needed |= league.slots.policies | ({league.best} if league.best else set())
        with going_on(UNWRITTEN):
            self.archive.prune(needed, self.best, ratings, update=update, oldest=oldest)

    def noticed(self, checkpoints: Path) -> None:
        """Look which checkpoints there are; what they need stays."""
        self.saved_at = tuple(checkpoint_numbers(checkpoints))

    def close(self, update: int, decisions: int) -> None:
        """Rate everybody once more, and finish writing."""
        with going_on(UNWRITTEN):
            write_ratings(self.archive, self.learner.rules.bots, update, decisions)
        self.archive.close()

    # Checkpoints

    def state(self) -> dict[str, Any]:
        """All that the next update depends on, as plain values."""
        slots = self.slots.state()["slots"]
        return {
            "slots": {str(number): slot for number, slot in enumerate(slots, start=1)},
            "results": {name: list(vars(one).values()) for name, one in self.results.items()},
            "best_shares": dict(self.best_shares),
            "counted": {name: list(counts) for name, counts in self.counted.items()},
            "since_last": list(vars(self.since_last).values()),
            "mixes": {name: [[k, w] for k, w in mix.items()] for name, mix in self.drawn.items()},
            "due": self.due,
            "home": self.archive.folder.name,
            "last": self._last(),
            "best": self.best,
            "lost": sorted(self.lost),
            "attempt": asdict(self.attempt),
        }

    def restore(self, state: Mapping[str, Any], spare: Mapping[str, Tensor]) -> None:
        """Seat everybody before the games are there. spare: plays for a snapshot that is gone."""
        saved = state["slots"]
        self.slots.load({"slots": [saved[str(number + 1)] for number in range(len(saved))]})
        self.results = {name: WinDrawLoss(*values) for name, values in state["results"].items()}
        self.best_shares = dict(state["best_shares"])
        self.counted = {name: list(counts) for name, counts in state["counted"].items()}
        self.since_last = WinDrawLoss(*state["since_last"])
        self.due, self.best, self.lost = state["due"], state["best"], set(state["lost"])
        self.attempt = roles.Attempt.load(state["attempt"])
        fixed = {one.slot: one.weights for one in self.participants.fixed}
        for number, slot in enumerate(self.slots.slots, start=1):
            if slot.hash is None:
                continue
            found = self._load(slot.hash) if slot.hash not in self.lost else None
            if found is None and slot.fixed:
                found = dict(fixed[number])
            if found is None:
                slot.draining, found = True, dict(spare)
            self._put(number, found, greedy=slot.greedy)
        gone = {number for number, slot in enumerate(self.slots.slots, 1) if slot.draining}
        self.drawn = {
            name: {int(slot): weight for slot, weight in mix if slot not in gone}
            for name, mix in state["mixes"].items()
        }
        self.learner.set_mixes(self.drawn, self.member)
        self.kept = len(self._entries())

    def told(self) -> str:
        if not self.participants.past_slots:
            return ""
        share = "" if self.share is None else f", {self.share:.0%} of the points"
        return f"past selves: {self.kept}{share}"

    @property
    def share(self) -> float | None:
        """Of the points against the past, since the last snapshot."""
        return self.since_last.points / self.since_last.games if self.since_last.games else None

    def _curves(self) -> dict[str, float]:
        if not self.participants.past_slots:
            return {}
        values = {"league/snapshots": float(self.kept)}
        if self.share is not None:
            values["league/past"] = self.share
        return values


@contextmanager
def going_on(what: str) -> Iterator[None]:
    """Say what goes on without an archive that cannot be read or written."""
    try:
        yield
    except ArchiveError as wrong:
        warn(f"{what}: {wrong}")
