"""The options around CAGE-2 (section 11): the winner's inputs and actions, masks, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference.cage2.draws import Draws, Generator
from reference.cage2.game import NO, NOTHING, SCAN, UNKNOWN, Cage2, Report
from reference.cage2.network import DECOYS, HOSTS, LISTENING, action_of, os_of

REDS = ("B_line", "Meander", "Sleep")
RED_FLAGS = ("B_LINE", "MEANDER", "SLEEP")
UNITS: dict[str, tuple[str, ...]] = {
    "defender": ("Defender",),
    "enterprise": ("Enterprise0", "Enterprise1", "Enterprise2"),
    "op_server": ("Op_Server0",),
    "op_host": ("Op_Host0", "Op_Host1", "Op_Host2"),
    "user": ("User0", "User1", "User2", "User3", "User4"),
}
WINNER_HOSTS = tuple(host for host in HOSTS if not host.startswith("Op_Host"))
PLAIN = (
    *(133, 134, 135, 139, 3, 4, 5, 9, 16, 17, 18, 22),
    *(11, 12, 13, 14, 141, 142, 143, 144, 132, 2, 15, 24, 25, 26, 27),
)
LISTS = {
    "Enterprise0": (55, 107, 120, 29),
    "Enterprise1": (43,),
    "Enterprise2": (44,),
    "User1": (37, 115, 76, 102),
    "User2": (51, 116, 38, 90),
    "User3": (130, 91),
    "User4": (131,),
    "Defender": (54, 106, 28, 119),
    "Op_Server0": (61, 35, 113, 126),
}
IDLE = 21
"""Analyse Defender: nothing ever gets onto it."""


class Episode:
    """A game of CAGE-2 with all options, numbered actions and a row of numbers to look at."""

    def __init__(self, config: Mapping[str, Any], draws: Generator) -> None:
        self.config = config
        challenge = config["preset"] == "CHALLENGE"
        flags = dict(config)
        for flag in ("sticky_ports", "haraka_restore_bug"):
            flags[flag] = challenge if config[flag] == "PRESET" else config[flag] == "ON"
        kind = (
            draws.red(config["mix"]) if config["red"] == "MIX" else RED_FLAGS.index(config["red"])
        )
        self.game = Cage2(REDS[kind], flags)
        self.draws: Draws = draws
        self.order: list[str] = []
        if config["orders"] != "NONE":
            numbers = list(config["order"])
            if config["orders"] == "DRAWN":
                numbers = draws.order(numbers)
            self.order = [tuple(UNITS)[number] for number in numbers]
        self.sent: dict[str, list[int]] = {host: [] for host in LISTS}
        self.history = dict.fromkeys(HOSTS, 0)
        self.suspicious: set[str] = set()
        """Showed activity or got a decoy since the last Restore."""
        self.repairs = dict.fromkeys(UNITS, 0)
        self.in_order = dict.fromkeys(UNITS, 0)
        self.last_action: int | None = None

    @property
    def over(self) -> bool:
        return self.game.steps >= int(self.config["max_steps"])

    def step(self, action: int) -> tuple[Report, int]:
        """What happened, and whether a repair followed the order (1) or broke it (-1)."""
        number = self.translated(action)
        self.last_action = number
        report = self.game.step(number, self.draws)
        if report.restored in self.sent:
            self.sent[report.restored] = []
        self.remember(report)
        return report, self.judged(report)

    def translated(self, action: int) -> int:
        """One of the 145 for one of the 36."""
        if self.config["actions"] == "ALL":
            return action
        if action < len(PLAIN):
            return PLAIN[action]
        host = tuple(LISTS)[action - len(PLAIN)]
        unsent = self.unsent(host)
        if not unsent:
            return LISTS[host][0]
        self.sent[host].append(unsent[0])
        return unsent[0]

    def remember(self, report: Report) -> None:
        if report.restored:
            self.suspicious.discard(report.restored)
        if report.placed:
            self.suspicious.add(report.placed)
        self.suspicious |= {host for host in HOSTS if self.game.activity[host] != NOTHING}
        shown = WINNER_HOSTS if self.config["scan_history"] == "WINNER" else HOSTS
        for host in shown:
            if self.game.activity[host] == SCAN:
                self.history = {h: min(value, 1) for h, value in self.history.items()}
                self.history[host] = 2
                break

    def judged(self, report: Report) -> int:
        if not self.order or report.repaired is None:
            return 0
        unit = next(unit for unit, hosts in UNITS.items() if report.repaired in hosts)
        earlier = self.order[: self.order.index(unit)]
        kept = not any(host in report.compromised for u in earlier for host in UNITS[u])
        self.repairs[unit] += 1
        self.in_order[unit] += kept
        return 1 if kept else -1

    def row(self) -> list[float]:
        """The observation."""
        row: list[float] = list(self.game.bits())
        if self.config["scan_history"] != "NONE":
            shown = WINNER_HOSTS if self.config["scan_history"] == "WINNER" else HOSTS
            row += [self.history[host] for host in shown]
        if self.config["decoys_left"]:
            row += [len(self.openable(host)) / 4 for host in HOSTS]
        for unit in self.order:
            row += [float(unit == other) for other in UNITS]
        return row

    def openable(self, host: str) -> set[int]:
        """Ports that a decoy could still open on a host."""
        ports = {port for port, _, system in DECOYS.values() if system in ("any", os_of(host))}
        return ports - set(LISTENING[host]) - self.game.decoys[host]

    def unsent(self, host: str) -> list[int]:
        return [number for number in LISTS[host] if number not in self.sent[host]]

    def legal(self) -> list[int]:
        if not self.config["mask"]:
            return list(range(145 if self.config["actions"] == "ALL" else 36))
        if self.config["actions"] == "ALL":
            return [action for action in range(145) if self.is_useful(action)]
        plain = [i for i, action in enumerate(PLAIN) if i == IDLE or self.is_useful(action)]
        lists = [
            len(PLAIN) + i
            for i, host in enumerate(LISTS)
            if (unsent := self.unsent(host)) and self.is_useful(unsent[0])
        ]
        return plain + lists

    def is_useful(self, action: int) -> bool:
        """Whether, for all that blue knows, the action may do something that Sleep does not."""
        family, host = action_of(action)
        game = self.game
        if family in ("Sleep", "Monitor"):
            return family == "Sleep"
        if family in DECOYS:
            return game.can_place(family, host)
        if family == "Analyse":
            return host in self.suspicious
        if family == "Remove":
            # Green can cover up a shell; without green every shell that can be removed shows.
            return host in self.suspicious if game.with_green else is_marked(game, host)
        disarms = host == "Op_Server0" and game.service_linked and not game.relink
        secures = game.haraka_bug and host in ("User3", "User4") and host not in game.restored
        return host in self.suspicious or disarms or secures


def is_marked(game: Cage2, host: str) -> bool:
    return game.labels[host] not in (NO, UNKNOWN)


def units_of(counts: Mapping[str, int]) -> Sequence[int]:
    return [counts[unit] for unit in UNITS]
