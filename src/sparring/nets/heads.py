"""Which heads a network has beside policy and value, as the settings of a run ask for them."""

from __future__ import annotations

from sparring.config import HeadsConfig
from sparring.errors import ConfigError
from sparring.games.hidden import Hidden, hidden_of
from sparring.games.rules import Rules
from sparring.nets.net import HIDDEN, SCORE, WDL, usual_heads

RESULTS = 3
"""Win, draw and loss."""


def heads_of(rules: Rules, config: HeadsConfig | None) -> dict[str, int]:
    """Widths of all heads by name; a weight that is 0 from first to last leaves its head out."""
    found = usual_heads(rules)
    if config is None:
        return found
    if any(config.wdl.values):
        found[WDL] = RESULTS
    if any(config.score.values):
        found[SCORE] = 1
    if any(config.hidden.values):
        found[HIDDEN] = demand_hidden(rules).width
    return found


def demand_hidden(rules: Rules) -> Hidden:
    """What the seats of a game do not see; refuses games that do not say."""
    hidden = hidden_of(rules)
    if hidden is None:
        raise ConfigError(
            f"heads.hidden: {rules.name} does not say what its seats do not see; leave it out, or "
            "write games/hidden.py for it as Skull King has it"
        )
    return hidden
