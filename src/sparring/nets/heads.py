"""Which heads a network has beside policy and value, as the settings of a run ask for them."""

from __future__ import annotations

from sparring.config import HeadsConfig
from sparring.errors import ConfigError
from sparring.games.hidden import Hidden, hidden_of
from sparring.games.rules import Rules
from sparring.nets.net import HIDDEN, SCORE, WDL, Net, usual_heads

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


def asked_heads(rules: Rules, config: HeadsConfig | None) -> dict[str, int] | None:
    """The heads of a network of which more is asked than policy and value; None: it is not."""
    return heads_of(rules, config) if config is not None and config.asked else None


def blend_in(net: Net, config: HeadsConfig | None) -> Net:
    """Give win, draw and loss their share in what a network's positions are worth."""
    if config is not None and WDL in net.heads:
        net.wdl_blend.fill_(config.blend)
    return net


def demand_hidden(rules: Rules) -> Hidden:
    """What the seats of a game do not see; refuses games that do not say."""
    hidden = hidden_of(rules)
    if hidden is None:
        raise ConfigError(
            f"heads.hidden: {rules.name} does not say what its seats do not see; leave it out, or "
            f"declare it in games/{rules.name}/hidden.py, as Skull King does"
        )
    return hidden
