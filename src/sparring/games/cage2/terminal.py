"""Terminal view of CAGE-2: actions by name, the network as blue sees it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from sparring.games import State
from sparring.games.cage2 import FAMILIES, HOSTS, move_text, read
from sparring.games.terminal import HELP, ActionChoice, Terminal, match_choices

RULES = """\
You defend 13 hosts. Red starts on User0, which it always keeps, and works its way to Op_Server0.
Every host on which red is privileged costs 0.1 per step, enterprise hosts and Op_Server0 cost 1;
while red has stopped the service on Op_Server0 you pay 10.
  Sleep           do nothing (Monitor is the same)
  Analyse HOST    shows malware: the host is then believed privileged
  Remove HOST     ends shells at user level that were noticed
  Restore HOST    makes the host new, decoys are gone too; costs 1
  Decoy... HOST   opens a port that catches red's exploits
Monitoring reports activity and beliefs; it misses SSH break-ins and one shell in twenty.
Type an action like restore user1, or decoytomcat enterprise0; mask=1 offers only what can help."""
MAX_LISTED = 12


class Cage2Terminal(Terminal):
    """The view of the defender, blue."""

    styles = (
        (r"\bprivileged\b", "bold red"),
        (r"\bexploit\b", "red"),
        (r"\bscan\b", "cyan"),
        (r"\b(user|unknown)\b", "yellow"),
        (r"(?m)^  host .*$", "dim"),
    )

    def ask(self, state: State) -> str:
        return f"your action, step {read(state).step + 1}"

    def question(self, state: State) -> Hashable:
        return "your action"

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the legal actions, in lower case."""
        names = [(action, state.action_name(action)) for action in state.legal()]
        return [ActionChoice(action, name.lower(), name) for action, name in names]

    def list_choices(self, choices: Sequence[ActionChoice]) -> str:
        """Return the actions by family; families with the same hosts share a line."""
        names = [choice.name for choice in choices]
        if len(names) <= MAX_LISTED:
            return "  ".join(names)
        plain = [name for name in names if " " not in name]
        families = [f for f in (*FAMILIES, "Decoy") if any(n.split()[0] == f for n in names)]
        by_hosts: dict[str, list[str]] = {}
        for family in families:
            hosts = [name.split()[1] for name in names if name.split()[0] == family]
            shown = "HOST" if len(hosts) == len(HOSTS) else "|".join(hosts)
            by_hosts.setdefault(shown, []).append(family)
        lines = [f"{'|'.join(known)} {hosts}" for hosts, known in by_hosts.items()]
        return "\n        ".join([" ".join(plain), *lines])

    def match(
        self, state: State, typed: str, choices: Sequence[ActionChoice]
    ) -> list[ActionChoice]:
        """Match "restore user1"; prefixes of both words are enough."""
        words = typed.lower().split()
        if len(words) == 2:
            fitting = [
                choice
                for choice in choices
                if all(
                    part.startswith(word)
                    for part, word in zip(choice.short.split(), words, strict=False)
                )
                and len(choice.short.split()) == 2
            ]
            exact = [choice for choice in fitting if choice.short.split() == words]
            return exact or fitting
        return match_choices(typed, choices)

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Return the cost of the step; only spectators see the actions of red."""
        at = read(after)
        cost = float(after.rewards[0])
        lines = [f"{before.action_name(action)}: {cost:.1f}"]
        if self.person < 0:
            lines.append(f"red: {move_text(at.red_move)}")
        return lines

    def help(self) -> str:
        return f"{RULES}\n{HELP}"

    def result(self, state: State) -> str:
        """Return the final network, hidden parts included, and the total."""
        at = read(state)
        return f"{state.text()}\n{state.end}: total {at.total:.1f} against {at.red}"


TERMINAL = Cage2Terminal
