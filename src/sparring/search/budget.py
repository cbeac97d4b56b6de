"""How long a policy may search before it acts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sparring.errors import ConfigError

GUMBEL, PUCT = "gumbel", "puct"
RULES = (GUMBEL, PUCT)
MAX_SIMULATIONS = 2**20 - 1
"""Nodes of a tree are numbered by 20 bits."""
PATTERN = re.compile(r"(?P<number>[0-9]*\.?[0-9]+)(?P<unit>ms|s|)(/(?P<rule>[a-z]+))?")
UNITS = {"s": 1.0, "ms": 1e-3}
HINT = "write a number of simulations such as 64, or a time such as 2s or 500ms"


@dataclass(frozen=True)
class Budget:
    """A number of simulations, or a time, per decision."""

    simulations: int = 0
    """0: as many as fit into the time."""
    seconds: float = 0.0
    """0: no limit of time."""
    rule: str = GUMBEL
    """gumbel: sequential halving, good from 2 simulations on; their number is planned beforehand,
    within a time by the speed of a short search. puct: grows best first; for many simulations, or a
    time."""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigError(f"search: the rule is {self.rule!r}, not gumbel or puct")
        if self.simulations < 0 or self.seconds < 0 or not (self.simulations or self.seconds):
            raise ConfigError(f"search: the budget must be above 0; {HINT}, or leave search out")
        if self.simulations > MAX_SIMULATIONS:
            raise ConfigError(
                f"search: {self.simulations} simulations are more than a search makes, "
                f"{MAX_SIMULATIONS}"
            )
        if not math.isfinite(self.seconds):
            raise ConfigError(f"search: {self.seconds} seconds; {HINT}")

    @property
    def names_rule(self) -> bool:
        """Whether the rule is another than the one that a budget has by itself."""
        return self.rule != default_rule(self.seconds)

    def __str__(self) -> str:
        rule = f"/{self.rule}" if self.names_rule else ""
        amount = f"{self.seconds:g}s" if self.seconds else str(self.simulations)
        return amount + rule

    @staticmethod
    def parse(text: str) -> Budget:
        """Read 64, 2s, 500ms, 800/puct."""
        match = PATTERN.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"search: {text!r} is no budget; {HINT}")
        number, unit = float(match["number"]), match["unit"]
        seconds = number * UNITS[unit] if unit else 0.0
        rule = match["rule"] or default_rule(seconds)
        if unit:
            return Budget(seconds=seconds, rule=rule)
        if number != int(number):
            raise ConfigError(f"search: {text!r} is no whole number of simulations; {HINT}")
        return Budget(simulations=int(number), rule=rule)


def default_rule(seconds: float) -> str:
    """Return the rule of a budget that names none."""
    return PUCT if seconds else GUMBEL
