"""Heads of networks: names, widths, and what their outputs mean. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparring.config import HeadsConfig, NetConfig
from sparring.errors import ConfigError
from sparring.games.hidden import Hidden, hidden_of
from sparring.games.rules import Rules
from sparring.nets.sampling import log_softmax
from sparring.pools.custom.cache import is_custom

Floats = npt.NDArray[np.float32]

POLICY, VALUE = "policy", "value"
MEMORY = "memory"
"""Not a head: the next memory of a recurrent network [rows, memory / 4], float32. It follows the
seat's next observation in the row."""
WDL, SCORE, HIDDEN, OPPONENTS = "wdl", "score", "hidden", "opponents"
"""Auxiliary heads: logits of win, draw and loss; the final score in units of `score_scale`; logits
of hidden information, such as the opponents' cards; logits of the next action of every other seat,
from the left one on."""

QUANTILES = "quantiles"
"""Head of QR-DQN: quantiles of the return of every action [rows, quantiles * actions]. It reads
what the policy head reads, which is their mean."""

AUXILIARY_HEADS = (WDL, SCORE, HIDDEN, OPPONENTS)


ROLES = "roles"
"""Prefix of the tensors of a network per role, and key of their configurations in `describe`."""


class Evaluation(NamedTuple):
    """What a network says about rows, as arrays."""

    heads: dict[str, Floats]
    """Outputs by head [rows, width], values [rows]."""
    values: Floats | None
    """Values in units of the rewards [rows]; None: there is no value head."""
    memory: Floats | None
    """Memory for each row's next observation [rows, memory / 4]; None: there is none."""


def is_unused_by_policy(name: str) -> bool:
    """Whether the tensor of this name belongs to other heads than the policy."""
    others = (f"{head}_head" for head in (HIDDEN, OPPONENTS, QUANTILES))
    return name.startswith((VALUE, WDL, SCORE, *others))


def default_heads(rules: Rules) -> dict[str, int]:
    """Return the widths of an actor-critic's heads: policy and value."""
    return {POLICY: head_width(rules), VALUE: 1}


def head_width(rules: Rules) -> int:
    """Return the width of the policy head: a logit, or mean and log std, per action."""
    return 2 * rules.box or rules.actions


RESULTS = 3
"""Win, draw and loss."""


def head_widths(rules: Rules, config: HeadsConfig | None, quantiles: int = 0) -> dict[str, int]:
    """Return the widths of all heads by name; a head whose loss weight stays 0 is left out.

    quantiles: of the return of every action; 0: none.
    """
    widths = default_heads(rules)
    if quantiles:
        widths[QUANTILES] = quantiles * rules.actions
    if config is None:
        return widths
    if any(config.wdl.values):
        widths[WDL] = RESULTS
    if any(config.score.values):
        widths[SCORE] = 1
    if any(config.hidden.values):
        widths[HIDDEN] = check_hidden(rules).width
    if any(config.opponents.values):
        widths[OPPONENTS] = (rules.seats - 1) * rules.actions
    return widths


def configured_heads(
    rules: Rules, config: HeadsConfig | None, quantiles: int = 0
) -> dict[str, int] | None:
    """Return `head_widths` if there are others than policy and value, else None."""
    if quantiles or (config is not None and config.asked):
        return head_widths(rules, config, quantiles)
    return None


def log_belief(rules: Rules, logits: Floats) -> Floats:
    """Return log-probabilities of what is hidden [B, items * classes]. logits: of the head."""
    by_item = logits.reshape(len(logits), len(check_hidden(rules).items), -1)
    return log_softmax(by_item).reshape(len(logits), -1)


def takes_belief(rules: Rules, net: Any) -> bool:
    """Whether worlds of a game can be drawn by what a network believes is hidden."""
    size = 0 if is_custom(rules) else rules.native.belief_size
    return size > 0 and net.heads.get(HIDDEN) == size


def check_hidden(rules: Rules) -> Hidden:
    """Return the hidden information of a game; raise if the game declares none."""
    hidden = hidden_of(rules)
    if hidden is None:
        raise ConfigError(
            f"heads.hidden: {rules.name} declares no hidden information; leave it out, or "
            f"declare it in games/{rules.name}/hidden.py, as Skull King does"
        )
    return hidden


def towers_of_heads(heads: Mapping[str, int], config: NetConfig) -> dict[str, int]:
    """Return the tower of each head: one for all, or one each.

    Auxiliary heads read the value's, quantiles the policy's.
    """
    if config.shared:
        return dict.fromkeys(heads, 0)
    main = [name for name in heads if name not in (*AUXILIARY_HEADS, QUANTILES)]
    auxiliary = main.index(VALUE) if VALUE in main else max(len(main) - 1, 0)
    towers = {name: main.index(name) if name in main else auxiliary for name in heads}
    return towers | ({QUANTILES: main.index(POLICY)} if QUANTILES in heads else {})


def role_tensors(state: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the tensors of one role's network by their names in that network."""
    prefix = f"{ROLES}.{role}."
    return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
