"""Styles: how a named policy plays, written behind its name. Imports no torch.

latest@greedy, latest@sampled   its most probable action, or sampling
latest@64, latest@2s            tree search: 64 simulations, or 2 seconds, per decision
latest@800/puct                 search by another rule
latest@sampled@16               search with Gumbel noise at the root, so that moves vary
latest@level3                   a level of play from 1 to 9, see `nets/levels.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparring.errors import ConfigError
from sparring.nets.levels import LEVELS
from sparring.search.budget import Budget

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

GREEDY = {"greedy": True, "sampled": False}
LEVEL_WORDS = {f"level{number}": number for number in LEVELS}
EXAMPLES = (*GREEDY, *LEVEL_WORDS, "64", "2s", "800/puct")


@dataclass(frozen=True)
class Style:
    """How a policy plays."""

    greedy: bool | None = None
    """Always the most probable action (True), always sampling (False), or the default."""
    budget: Budget | None = None
    """Of a tree search at every decision; None: no search."""
    level: int = 0
    """A level of play; 0: none."""

    def __bool__(self) -> bool:
        return self != AS_IS

    def __str__(self) -> str:
        """Return the text behind a name."""
        words = [word for word, greedy in GREEDY.items() if greedy == self.greedy]
        words += [f"level{self.level}"] if self.level else []
        words += [str(self.budget)] if self.budget else []
        return "".join(f"@{word}" for word in words)

    def applied(self, policy: Policy) -> Policy:
        """Return a policy that plays in this style."""
        if self.level:
            policy = policy.at_level(self.level)
        if self.greedy is not None:
            policy = policy.always(greedy=self.greedy)
        return policy.searching(self.budget) if self.budget else policy


AS_IS = Style()
"""Of a name without a style."""


def is_style(word: str) -> bool:
    """Whether a word behind @ is a style. What begins with a digit is a budget, or a wrong one."""
    return word in GREEDY or word in LEVEL_WORDS or word[:1].isdecimal()


def read_styles(text: str, words: Sequence[str]) -> Style:
    """Read the styles of a name; raises if two of them exclude each other. text: as typed."""
    given: dict[str, Any] = {}
    for word in words:
        key, value = read_style(text, word)
        if key in given or (given and "level" in (key, *given)):
            raise ConfigError(f"{text}: give one of @greedy and @sampled, one search, or one level")
        given[key] = value
    return Style(**given)


def read_style(text: str, word: str) -> tuple[str, Any]:
    """Return a field of `Style` and its value."""
    if word in GREEDY:
        return "greedy", GREEDY[word]
    if word in LEVEL_WORDS:
        return "level", LEVEL_WORDS[word]
    try:
        return "budget", Budget.parse(word)
    except ConfigError as wrong:
        raise ConfigError(f"{text}: {str(wrong).removeprefix('search: ')}") from None
