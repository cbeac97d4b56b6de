"""CAGE-2's network as the specification tables it (sections 1 to 4), by name and port number."""

from __future__ import annotations

HOSTS = (
    *("Defender", "Enterprise0", "Enterprise1", "Enterprise2"),
    *("Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0"),
    *("User0", "User1", "User2", "User3", "User4"),
)
SUBNETS = {
    "User": ("User0", "User1", "User2", "User3", "User4"),
    "Enterprise": ("Defender", "Enterprise0", "Enterprise1", "Enterprise2"),
    "Operational": ("Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0"),
}
ENTERPRISE_HOSTS = ("Enterprise0", "Enterprise1", "Enterprise2")
SUBNET_OF = {host: subnet for subnet, hosts in SUBNETS.items() for host in hosts}
WINDOWS = {"Enterprise1", "Enterprise2", "User0", "User1", "User2"}

# One entry per listening connection; Defender listens on 53 with TCP and UDP.
LISTENING = {
    "Defender": (22, 53, 53, 68),
    "Enterprise0": (22,),
    "Enterprise1": (22, 80, 135, 139, 443, 445, 3389),
    "Enterprise2": (22, 80, 135, 139, 443, 445, 3389),
    "Op_Host0": (22,),
    "Op_Host1": (22,),
    "Op_Host2": (22,),
    "Op_Server0": (22,),
    "User0": (21, 22),
    "User1": (21, 22),
    "User2": (135, 139, 445, 3389),
    "User3": (25, 80, 443, 3389),
    "User4": (22, 25, 80, 443, 3390),
}
VALUE_TENTHS = dict.fromkeys(HOSTS, 1) | {
    **dict.fromkeys(("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0"), 10),
    "User0": 0,
}
REVEALS = {
    "User1": "Enterprise1",
    "User2": "Enterprise1",
    "User3": "Enterprise0",
    "User4": "Enterprise0",
    "Enterprise2": "Op_Server0",
}

# Port: exploit and its weight; red prefers the heaviest.
EXPLOITS = {
    21: ("FTP traversal", 7),
    25: ("Haraka RCE", 6),
    3390: ("SQL injection", 5),
    443: ("HTTPS RFI", 4),
    80: ("HTTP RFI", 3),
    139: ("EternalBlue", 2),
    3389: ("BlueKeep", 1),
    22: ("SSH brute force", 0.1),
}
PREFERENCE = tuple(sorted(EXPLOITS, key=lambda port: -EXPLOITS[port][1]))

USER, PRIVILEGED = "user", "privileged"
# Account level behind each genuine service that an exploit works on; SSH is listed with the rest.
OUTCOMES: dict[str, dict[int, str]] = {
    "Defender": {},
    "Enterprise0": {22: USER},
    "Enterprise1": {443: USER, 80: USER, 3389: PRIVILEGED, 22: USER},
    "Enterprise2": {443: USER, 80: USER, 3389: PRIVILEGED, 22: USER},
    "Op_Host0": {22: USER},
    "Op_Host1": {22: USER},
    "Op_Host2": {22: USER},
    "Op_Server0": {22: USER},
    "User0": {21: PRIVILEGED, 22: USER},
    "User1": {21: PRIVILEGED, 22: USER},
    "User2": {139: PRIVILEGED, 3389: USER},
    "User3": {25: PRIVILEGED, 443: USER, 80: USER},
    "User4": {25: PRIVILEGED, 3390: PRIVILEGED, 443: USER, 80: USER, 22: USER},
}

FAMILIES = (
    *("Analyse", "Remove", "DecoyApache", "DecoyFemitter", "DecoyHarakaSMPT", "DecoySmss"),
    *("DecoySSHD", "DecoySvchost", "DecoyTomcat", "DecoyVsftpd", "Restore"),
)
# Port that the decoy opens, port that it looks at, operating system that it needs.
DECOYS = {
    "DecoyApache": (80, 80, "any"),
    "DecoyFemitter": (21, 21, "Windows"),
    "DecoyHarakaSMPT": (25, 25, "Linux"),
    "DecoySmss": (139, 139, "Windows"),
    "DecoySSHD": (22, 22, "any"),
    "DecoySvchost": (3389, 3389, "Windows"),
    "DecoyTomcat": (443, 443, "any"),
    "DecoyVsftpd": (80, 21, "Linux"),
}
GREEN_HOSTS = ("User0", "User1", "User2", "User3", "User4", *ENTERPRISE_HOSTS)

# B_line's stages: action, target, stage after a failure (section 6.1).
STAGES = (
    ("DRS", "User", 0),
    ("DNS", "T", 1),
    ("EXP", "T", 2),
    ("PE", "T", 2),
    ("DNS", "G", 2),
    ("EXP", "G", 2),
    ("PE", "G", 5),
    ("DRS", "Enterprise", 5),
    ("DNS", "Enterprise2", 5),
    ("EXP", "Enterprise2", 5),
    ("PE", "Enterprise2", 9),
    ("DNS", "Op_Server0", 9),
    ("EXP", "Op_Server0", 9),
    ("PE", "Op_Server0", 12),
    ("IMP", "Op_Server0", 13),
)


def os_of(host: str) -> str:
    return "Windows" if host in WINDOWS else "Linux"


def action_of(number: int) -> tuple[str, str]:
    """Family and host of one of the 145 actions."""
    if number < 2:
        return ("Sleep", "Monitor")[number], ""
    return FAMILIES[(number - 2) // 13], HOSTS[(number - 2) % 13]
