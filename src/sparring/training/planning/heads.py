"""What heads beside policy and value need of a game and its network. The rest is refused."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.heads import demand_hidden


def check_asked(rules: Rules, config: TrainConfig) -> None:
    """Refuse heads that a game or a network has no answer for."""
    heads = config.heads
    if any(heads.wdl.values) and rules.seats == 1:
        raise ConfigError(
            f"heads.wdl {heads.wdl}: {rules.name} has one seat, which nobody beats; leave it out, "
            "or use heads.score"
        )
    if not any(heads.hidden.values):
        return
    demand_hidden(rules)
    if config.net.kind == "residual":
        raise ConfigError(
            f"heads.hidden {heads.hidden}: a residual net has no such head; leave it out, or set "
            "net.kind to mlp"
        )
