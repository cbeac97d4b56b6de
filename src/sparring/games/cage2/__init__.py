"""CAGE-2: names of hosts and actions, the true position, and the network as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, suggestion
from sparring.games.rules import Rules
from sparring.games.state import State

SHARES = ("order_kept",)
"""Statistics that are shares, from 0 to 1."""
HOSTS = (
    *("Defender", "Enterprise0", "Enterprise1", "Enterprise2"),
    *("Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0"),
    *("User0", "User1", "User2", "User3", "User4"),
)
"""Host names by number."""
SUBNETS = {"User": range(8, 13), "Enterprise": range(4), "Operational": range(4, 8)}
"""Hosts of each subnet, in the order of red's numbers for them."""
FAMILIES = (
    *("Analyse", "Remove", "DecoyApache", "DecoyFemitter", "DecoyHarakaSMPT", "DecoySmss"),
    *("DecoySSHD", "DecoySvchost", "DecoyTomcat", "DecoyVsftpd", "Restore"),
)
ACTIONS = ("Sleep", "Monitor", *(f"{family} {host}" for family in FAMILIES for host in HOSTS))
"""The 145 actions by number."""
PORTS = (21, 25, 3390, 443, 80, 139, 3389, 22)
"""Ports that red can exploit, in its order of preference."""
EXPLOITS = (
    *("FTP traversal", "Haraka RCE", "SQL injection", "HTTPS RFI"),
    *("HTTP RFI", "EternalBlue", "BlueKeep", "SSH brute force"),
)
"""Red's exploit of each of these ports."""
REDS = ("B_line", "Meander", "sleep")
RED_ACTIONS = ("sleep", "sweep", "scan", "exploit", "escalate", "impact")
ACTIVITIES = ("none", "scan", "?", "exploit")
LABELS = ("no", "unknown", "user", "privileged")
"""Blue's beliefs about a host."""
LEVELS = ("none", "user", "privileged")
"""Red's access to a host."""
UNITS = ("defender", "enterprise", "op_server", "op_host", "user")
"""Groups of hosts whose order of repair can be prescribed."""
WINNER: dict[str, Any] = {"actions": "WINNER", "scan_history": "WINNER", "obs_rule": "CARDIFF"}
"""Flags for the 62 inputs and 36 actions of the challenge's winner."""


def action_id(name: str) -> int:
    """Return the number of an action such as "Restore User1", of the 145."""
    for number, known in enumerate(ACTIONS):
        if known.lower() == name.lower():
            return number
    raise ConfigError(f"no action called {name!r}{suggestion(name, ACTIONS)}")


def game_length(rules: Rules) -> int:
    """Return the number of decisions per episode."""
    return int(rules.config["max_steps"])


STATE = np.dtype(
    [
        *(("seen", "u8"), ("total_tenths", "i4"), ("lists_used", "u4")),
        *(("privileged", "u2"), ("removable", "u2"), ("stuck", "u2")),
        *(("malware", "u2"), ("touched", "u2"), ("was_scan", "u2")),
        *(("known_ip", "u2"), ("known_host", "u2"), ("scanned", "u2")),
        *(("exploited", "u2"), ("escalated", "u2"), ("mapped", "u2"), ("steps", "u2")),
        *(("decoy_ports", "u1", 16), ("known_ports", "u1", 13)),
        *(("red", "u1"), ("stage", "u1"), ("prey", "u1"), ("flags", "u1"), ("subnets", "u1")),
        *(("last_ip", "u1"), ("last_host", "u1"), ("restored", "u1")),
        *(("latest_scan", "u1"), ("last_action", "u1")),
        *(("red_action", "u1"), ("red_target", "u1"), ("red_port", "u1"), ("red_noticed", "u1")),
        *(("order", "u1", 5), ("repairs", "u1", 5), ("in_order", "u1", 5)),
    ]
)
"""Layout of a state, as csrc/games/cage2.hpp declares it."""


def true_states(tables: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Return `pool.tables` of CAGE-2 as records with a field for every part of the state.

    The records are views and change with the pool. For analysis only: most of it is hidden.
    """
    return tables[:, : STATE.itemsize].view(STATE)[:, 0]


@dataclass(frozen=True)
class RedMove:
    """Red's last move."""

    action: str
    target: str
    """A host, or a subnet for a sweep; "" if there is none."""
    exploit: str
    """Name of the exploit; "" if the move is no exploit or has no port."""
    noticed: bool | None
    """Whether monitoring noticed the shell; None if none was opened."""
    succeeded: bool | None
    """None if red sleeps."""


@dataclass(frozen=True)
class Cage2Position:
    """The true position, hidden parts included. For analysis, never for agents."""

    step: int
    red: str
    levels: tuple[str, ...]
    """Red's access by host."""
    removable: tuple[bool, ...]
    """Hosts whose session Remove would end."""
    malware: tuple[bool, ...]
    decoys: tuple[tuple[int, ...], ...]
    """Ports open because of decoys alone, by host."""
    remembered: tuple[tuple[int, ...], ...]
    """Ports that red remembers from its last scan, by host."""
    activity: tuple[str, ...]
    labels: tuple[str, ...]
    """Blue's belief by host."""
    service_up: bool
    service_linked: bool
    """Whether an impact would stop the service."""
    total: float
    """Sum of rewards so far."""
    blue_action: str
    """Blue's last action; "" at the start."""
    red_move: RedMove
    order: tuple[str, ...]
    """Units in the order in which they are to be repaired, if the game prescribes one."""
    repairs: dict[str, tuple[int, int]]
    """By unit: repairs in this episode, and those of them that followed the order."""


def levels_of(fields: dict[str, Any]) -> list[int]:
    """Return 0 (none), 1 (user) or 2 (privileged) for every host."""
    user = int(fields["removable"][0]) | int(fields["stuck"][0])
    privileged = int(fields["privileged"][0])
    return [2 if privileged >> h & 1 else user >> h & 1 for h in range(len(HOSTS))]


def read(state: State) -> Cage2Position:
    raw = state.fields()
    one = {name: int(value[0]) for name, value in raw.items() if value.size == 1}
    everywhere = range(len(HOSTS))
    has_order = state.rules.config["orders"] != "NONE"
    return Cage2Position(
        step=one["steps"],
        red=REDS[one["red"]],
        levels=tuple(LEVELS[level] for level in levels_of(raw)),
        removable=bits(one["removable"]),
        malware=bits(one["malware"]),
        decoys=tuple(ports_in(raw["decoy_ports"][h]) for h in everywhere),
        remembered=tuple(ports_in(raw["known_ports"][h]) for h in everywhere),
        activity=tuple(ACTIVITIES[one["seen"] >> 4 * h & 3] for h in everywhere),
        labels=tuple(LABELS[one["seen"] >> (4 * h + 2) & 3] for h in everywhere),
        service_up=bool(one["flags"] & 1),
        service_linked=bool(one["flags"] & 2),
        total=one["total_tenths"] / 10,
        blue_action="" if one["last_action"] == 0xFF else ACTIONS[one["last_action"]],
        red_move=red_move(one),
        order=tuple(UNITS[unit] for unit in raw["order"]) if has_order else (),
        repairs={
            unit: (int(raw["repairs"][i]), int(raw["in_order"][i])) for i, unit in enumerate(UNITS)
        },
    )


def red_move(one: dict[str, int]) -> RedMove:
    """Return red's last move from the fields with a single value."""
    action = RED_ACTIONS[one["red_action"]]
    at = one["red_target"]
    places: tuple[str, ...] = tuple(SUBNETS) if action == "sweep" else HOSTS
    return RedMove(
        action=action,
        target="" if at == 0xFF else places[at],
        exploit="" if one["red_port"] == 0xFF else EXPLOITS[one["red_port"]],
        noticed=None if one["red_noticed"] == 0xFF else bool(one["red_noticed"]),
        succeeded={0x20: True, 0x40: False}.get(one["flags"] & 0x60),
    )


def bits(mask: int) -> tuple[bool, ...]:
    """Return a set of hosts as one truth value per host."""
    return tuple(bool(mask >> h & 1) for h in range(len(HOSTS)))


def ports_in(mask: np.uint8 | int) -> tuple[int, ...]:
    """Return the port numbers of a set, ascending."""
    return tuple(sorted(port for x, port in enumerate(PORTS) if int(mask) >> x & 1))


def text_view(state: State, viewer: int | None = None) -> str:
    """Return the network as text: one line per host, and the last moves.

    viewer: None shows everything, a seat only what blue knows.
    """
    at = read(state)
    everything = viewer is None
    lines = [headline(state, at, everything)]
    heads = ("host", "activity", "believed", *(("true",) if everything else ()), "decoys")
    rows = [heads]
    subnets: list[str] = []
    for subnet, hosts in SUBNETS.items():
        for h in hosts:
            subnets.append(subnet)
            rows.append(host_cells(at, h, everything))
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    shown = ["  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)) for row in rows]
    lines.append(f"  {shown[0].rstrip()}")
    previous = ""
    for subnet, line in zip(subnets, shown[1:], strict=True):
        if subnet != previous:
            lines.append(subnet)
            previous = subnet
        lines.append(f"  {line.rstrip()}")
    return "\n".join([*lines, *last_moves(at, everything)])


def headline(state: State, at: Cage2Position, everything: bool) -> str:
    """Return step and total as one line."""
    red = f", red {at.red}" if everything else ""
    return f"step {at.step} of {state.rules.config['max_steps']}{red}, total {at.total:.1f}"


def host_cells(at: Cage2Position, h: int, everything: bool) -> tuple[str, ...]:
    """Return a host's line of the table."""
    activity = "-" if at.activity[h] == "none" else at.activity[h]
    label = "-" if at.labels[h] == "no" else at.labels[h]
    decoys = " ".join(map(str, at.decoys[h])) or "-"
    truth = (access_text(at, h),) if everything else ()
    return (HOSTS[h], activity, label, *truth, decoys)


def access_text(at: Cage2Position, h: int) -> str:
    """Return red's access to a host, and its malware there."""
    words = [at.levels[h]] if at.levels[h] != "none" else []
    if at.levels[h] == "user" and at.removable[h]:
        words.append("(removable)")
    if at.malware[h]:
        words.append("malware")
    return " ".join(words) or "-"


def last_moves(at: Cage2Position, everything: bool) -> list[str]:
    """Return the last moves of both sides, the service, and the order of repair if any."""
    lines = []
    if at.order:
        lines.append(f"order: {', '.join(at.order)}")
    if everything:
        running = "running" if at.service_linked else "running, can no longer be stopped"
        lines.append(f"OTService: {running if at.service_up else 'stopped'}")
    if at.step:
        lines.append(f"blue: {at.blue_action}")
        if everything:
            lines.append(f"red: {move_text(at.red_move)}")
    return lines


def move_text(move: RedMove) -> str:
    if move.action == "sleep":
        return "sleeps"
    text = f"{move.action} {move.target}"
    if move.exploit:
        text += f" with {move.exploit}"
    if move.noticed is False:
        text += ", unnoticed"
    return f"{text}: {'succeeded' if move.succeeded else 'failed'}"
