"""CAGE-2 written from the specification: slow, obvious, with names instead of bit masks.

Hosts hold lists of red sessions and every step has a list of network events, as in the simulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reference.cage2.draws import Draws
from reference.cage2.network import (
    DECOYS,
    ENTERPRISE_HOSTS,
    EXPLOITS,
    HOSTS,
    LISTENING,
    OUTCOMES,
    PREFERENCE,
    PRIVILEGED,
    REVEALS,
    STAGES,
    SUBNET_OF,
    SUBNETS,
    USER,
    VALUE_TENTHS,
    action_of,
    os_of,
)

NO, UNKNOWN = "No", "Unknown"
USER_LABEL, PRIVILEGED_LABEL = "User", "Privileged"
NOTHING, SCAN, EXPLOIT = "None", "Scan", "Exploit"
EPHEMERAL = "ephemeral"
REMOTE = 4444


@dataclass
class Session:
    """One of red's footholds on a host."""

    level: str
    alerted: bool
    """Blue knows its process, so that Remove can kill it."""
    first: bool = False
    """The one that red starts with; nothing removes it."""


@dataclass
class Event:
    """A connection that monitoring records on a host."""

    local: int | str | None
    remote: int | None = None


@dataclass
class Red:
    """What red remembers: services that it scanned, and what its policy keeps."""

    ports: dict[str, set[int]] = field(default_factory=dict)
    knows_ot: bool = False
    success: bool | None = None
    empty_scan: bool = False
    # B_line
    stage: int = 0
    target: str | None = None
    played_12: bool = False
    # Meander
    known_ip: set[str] = field(default_factory=lambda: {"User0"})
    known_host: set[str] = field(default_factory=lambda: {"User0"})
    scanned: set[str] = field(default_factory=set)
    exploited: set[str] = field(default_factory=set)
    escalated: set[str] = field(default_factory=set)
    mapped: set[str] = field(default_factory=set)
    known_subnets: set[str] = field(default_factory=lambda: {"User"})
    swept: set[str] = field(default_factory=set)
    last_ip: str | None = None
    last_host: str | None = None


@dataclass
class Report:
    """What one step did."""

    reward_tenths: int = 0
    red: tuple[str, str] = ("Sleep", "")
    port: int | None = None
    noticed: bool | None = None
    found: str | None = None
    """Host on which Analyse found malware."""
    placed: str | None = None
    """Host that got a decoy."""
    restored: str | None = None
    repaired: str | None = None
    """Host whose level fell by blue's action."""
    compromised: set[str] = field(default_factory=set)
    """Hosts other than User0 with a session, before blue acted."""


class Cage2:
    """An episode. `kind` is the red: B_line, Meander or Sleep."""

    def __init__(self, kind: str, config: Mapping[str, Any]) -> None:
        self.kind = kind
        self.sticky = bool(config.get("sticky_ports", 0))
        self.haraka_bug = bool(config.get("haraka_restore_bug", 0))
        self.cardiff = config.get("obs_rule", "OFFICIAL") == "CARDIFF"
        self.with_green = bool(config.get("green", 0))
        self.relink = bool(config.get("relink_on_restore", 0))
        self.sessions: dict[str, list[Session]] = {host: [] for host in HOSTS}
        self.sessions["User0"].append(Session(PRIVILEGED, alerted=False, first=True))
        self.malware: set[str] = set()
        self.decoys: dict[str, set[int]] = {host: set() for host in HOSTS}
        self.restored: set[str] = set()
        self.service_up = self.service_linked = True
        self.red = Red()
        self.labels = dict.fromkeys(HOSTS, NO)
        self.activity = dict.fromkeys(HOSTS, NOTHING)
        self.events: dict[str, list[Event]] = {}
        self.steps = self.total_tenths = 0

    # Section 9: blue, green, red, then reward and observation.
    def step(self, action: int, draws: Draws) -> Report:
        report = Report()
        self.events = {}
        self.play_blue(*action_of(action), report)
        if self.with_green:
            host = draws.green()
            if host is not None:
                self.record_scan(host)
        self.play_red(draws, report)
        report.reward_tenths = self.reward_tenths(report)
        self.total_tenths += report.reward_tenths
        self.look(report)
        self.steps += 1
        return report

    def level(self, host: str) -> int:
        """0 none, 1 user, 2 privileged."""
        levels = [session.level for session in self.sessions[host]]
        return 2 if PRIVILEGED in levels else 1 if levels else 0

    # Section 4.
    def play_blue(self, family: str, host: str, report: Report) -> None:
        report.compromised = {h for h in HOSTS if h != "User0" and self.level(h) > 0}
        before = self.level(host) if host else 0
        if family == "Analyse" and host in self.malware:
            report.found = host
        if family == "Remove":
            self.sessions[host] = [
                s for s in self.sessions[host] if not (s.level == USER and s.alerted)
            ]
            if self.labels[host] != NO:
                self.labels[host] = UNKNOWN
        if family in DECOYS:
            self.place_decoy(family, host, report)
        if family == "Restore":
            self.restore(host, report)
        if host in report.compromised and self.level(host) < before:
            report.repaired = host

    def place_decoy(self, decoy: str, host: str, report: Report) -> None:
        if not self.can_place(decoy, host):
            return
        report.placed = host
        port = DECOYS[decoy][0]
        if port not in LISTENING[host]:
            self.decoys[host].add(port)

    def can_place(self, decoy: str, host: str) -> bool:
        _, looked_at, system = DECOYS[decoy]
        is_free = looked_at not in LISTENING[host] and looked_at not in self.decoys[host]
        return system in ("any", os_of(host)) and is_free

    def restore(self, host: str, report: Report) -> None:
        report.restored = host
        self.sessions[host] = [session for session in self.sessions[host] if session.first]
        self.malware.discard(host)
        self.decoys[host] = set()
        self.labels[host] = NO
        self.restored.add(host)
        if host == "Op_Server0":
            self.service_up = True
            self.service_linked = self.relink

    # Section 5.
    def play_red(self, draws: Draws, report: Report) -> None:
        if self.kind == "Sleep":
            return
        choose = self.b_line if self.kind == "B_line" else self.meander
        action, target = choose(draws)
        report.red = (action, target)
        red = self.red
        red.empty_scan = False
        if action == "DRS":
            red.success = self.sweep(target)
        elif action == "DNS":
            red.success = self.scan(target)
        elif action == "EXP":
            red.success = self.exploit(target, draws, report)
        elif action == "PE":
            red.success = self.escalate(target)
        else:
            red.success = self.impact()

    def has_route(self, subnet: str) -> bool:
        return subnet != "Operational" or any(self.sessions[host] for host in ENTERPRISE_HOSTS)

    def sweep(self, subnet: str) -> bool:
        if not self.has_route(subnet):
            return False
        self.red.known_ip |= set(SUBNETS[subnet])
        return True

    def scan(self, host: str) -> bool:
        if not self.has_route(SUBNET_OF[host]):
            self.red.empty_scan = True
            return True
        found = (set(LISTENING[host]) | self.decoys[host]) & set(EXPLOITS)
        remembered = self.red.ports.get(host, set()) if self.sticky else set()
        self.red.ports[host] = found | remembered
        self.record_scan(host)
        return True

    def record_scan(self, host: str) -> None:
        for port in (*LISTENING[host], *self.decoys[host]):
            self.record(host, Event(port))

    def record(self, host: str, event: Event) -> None:
        self.events.setdefault(host, []).append(event)

    def exploit(self, host: str, draws: Draws, report: Report) -> bool:
        remembered = self.red.ports.get(host, set())
        if not remembered:
            return False
        port = draws.port([port for port in PREFERENCE if port in remembered])
        report.port = port
        if not self.has_route(SUBNET_OF[host]):
            return False
        succeeded = (
            self.try_passwords(host) if port == 22 else self.open_shell(host, port, draws, report)
        )
        if succeeded:
            self.red.known_host.add(host)
        return succeeded

    def try_passwords(self, host: str) -> bool:
        if 22 not in LISTENING[host] and 22 not in self.decoys[host]:
            return False
        for _ in range(10):
            self.record(host, Event(22))
        if 22 not in OUTCOMES[host]:
            return False
        self.record(host, Event(22))
        self.sessions[host].append(Session(USER, alerted=False))
        return True

    def open_shell(self, host: str, port: int, draws: Draws, report: Report) -> bool:
        if port not in OUTCOMES[host]:
            if port in self.decoys[host]:
                self.record(host, Event(port))
                self.record(host, Event(port))
            return False
        if self.haraka_bug and port == 25 and host in self.restored:
            self.record(host, Event(port))
            return False
        report.noticed = draws.noticed()
        self.record(host, Event(port))
        if report.noticed:
            self.record(host, Event(EPHEMERAL, REMOTE))
        self.malware.add(host)
        self.sessions[host].append(Session(OUTCOMES[host][port], alerted=report.noticed))
        return True

    def escalate(self, host: str) -> bool:
        if not self.sessions[host]:
            return False
        if self.level(host) < 2:
            (session,) = self.sessions[host]  # the scripted reds never have more (section 5.6)
            session.level = PRIVILEGED
            self.malware.add(host)
        red = self.red
        red.known_subnets.add(SUBNET_OF[host])
        red.known_ip.add(host)
        if host in REVEALS:
            red.known_ip.add(REVEALS[host])
        if host == "Op_Server0":
            red.knows_ot = True
        return True

    def impact(self) -> bool:
        if not self.sessions["Op_Server0"] or not self.red.knows_ot:
            return False
        if self.service_linked:
            self.service_up = False
        return True

    # Section 6.1.
    def b_line(self, draws: Draws) -> tuple[str, str]:
        red = self.red
        if red.success is not None:
            red.stage = min(red.stage + 1, 14) if red.success else STAGES[red.stage][2]
        if red.stage == 12 and not red.played_12 and red.empty_scan:
            red.stage = 0
            red.stage += 1
        if red.stage == 12:
            red.played_12 = True
        if red.stage == 1 and red.target is None:
            red.target = draws.host(["User1", "User2", "User3", "User4"])
        action, target, _ = STAGES[red.stage]
        if target in "TG":
            assert red.target is not None
            target = red.target if target == "T" else REVEALS[red.target]
        return action, target

    # Section 6.2.
    def meander(self, draws: Draws) -> tuple[str, str]:
        red = self.red
        self.learn_from_exploit()
        self.learn_from_escalation()
        if "Op_Server0" in red.escalated:
            red.last_host = "Op_Server0"
            return "IMP", "Op_Server0"
        if red.known_subnets - red.swept:
            (subnet,) = red.known_subnets - red.swept
            red.swept.add(subnet)
            return "DRS", subnet
        if red.known_ip - red.scanned:
            host = draws.host(in_order(red.known_ip - red.scanned))
            red.scanned.add(host)
            return "DNS", host
        ready = red.known_host - red.escalated - (red.mapped - red.exploited)
        if ready:
            host = draws.host(in_order(ready))
            red.escalated.add(host)
            red.last_host = host
            return "PE", host
        host = draws.host(in_order(red.known_ip - red.exploited))
        red.exploited.add(host)
        red.last_ip = host
        return "EXP", host

    def learn_from_exploit(self) -> None:
        red = self.red
        if red.last_ip is None:
            return
        if red.success:
            red.mapped.add(red.last_ip)
        else:
            red.exploited.discard(red.last_ip)
            forgotten = red.escalated & set(SUBNETS["Operational"])
            if not forgotten:
                forgotten = red.escalated & set(ENTERPRISE_HOSTS)
            red.escalated -= forgotten
            red.exploited -= forgotten
        red.last_ip = None

    def learn_from_escalation(self) -> None:
        red = self.red
        if red.last_host is None:
            return
        if not red.success:
            red.escalated.discard(red.last_host)
            if red.last_host in red.mapped:
                red.exploited.discard(red.last_host)
        red.last_host = None

    # Section 9.
    def reward_tenths(self, report: Report) -> int:
        cost = sum(VALUE_TENTHS[host] for host in HOSTS if self.level(host) == 2)
        cost += 0 if self.service_up else 100
        return -(cost + (10 if report.restored else 0))

    # Section 8.
    def look(self, report: Report) -> None:
        for host in HOSTS:
            self.activity[host] = self.classify(host, host == report.placed)
            if self.activity[host] == EXPLOIT:
                self.labels[host] = USER_LABEL
        if report.found is not None:
            self.labels[report.found] = PRIVILEGED_LABEL

    def classify(self, host: str, placed: bool) -> str:
        events = self.events.get(host, [])
        if not events:
            return NOTHING
        entries = len(events) + placed
        ports = Counter(event.local for event in events)
        if entries >= 3 and len(ports) >= 3:
            return SCAN
        if any(event.remote == REMOTE for event in events):
            return EXPLOIT
        if entries >= 3 and len(ports) == 1:
            return EXPLOIT
        if placed and not self.cardiff:
            return NOTHING
        return SCAN

    def bits(self) -> list[int]:
        """The 52 numbers."""
        activity = {NOTHING: [0, 0], SCAN: [1, 0], EXPLOIT: [1, 1]}
        label = {NO: [0, 0], UNKNOWN: [1, 0], USER_LABEL: [0, 1], PRIVILEGED_LABEL: [1, 1]}
        return [bit for h in HOSTS for bit in activity[self.activity[h]] + label[self.labels[h]]]


def in_order(hosts: set[str]) -> list[str]:
    return [host for host in HOSTS if host in hosts]
