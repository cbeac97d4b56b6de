"""What learning from records asks of a run; everything else is refused before anything is made."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.pools.foreign.again import is_own


def check_teaching(rules: Rules, config: TrainConfig) -> None:
    """Refuse runs that cannot learn from records."""
    why = why_not(rules, config) if config.teach else ""
    if why:
        raise ConfigError(f"teach: {why}")


def why_not(rules: Rules, config: TrainConfig) -> str:
    """Say what keeps a run from learning from records, "" if nothing does."""
    own = f"{rules.name} is your own environment, whose games nobody can play again"
    algo = f"only ppo learns from records, and algo is {config.algo}; use --algo ppo"
    box = f"{rules.name} has continuous actions, and records are learned by discrete ones"
    memory = f"a record is learned decision by decision; leave --net.memory {config.net.memory} out"
    reasons = (
        (is_own(rules), own),
        (config.algo != "ppo", algo),
        (bool(rules.box), box),
        (config.hierarchy.on, "one network learns from records; leave --hierarchy.on out"),
        (bool(config.net.memory), memory),
        (
            bool(config.actors or config.cluster) or config.replicas > 1,
            "one process learns from records; leave actors, cluster and replicas out",
        ),
    )
    return next((why for found, why in reasons if found), "")
