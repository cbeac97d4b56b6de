"""Where networks may remember: what cannot be learned together with it is refused first."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.learn.hosted import demand_recurrent
from sparring.learn.plan import Plan
from sparring.training.planning.roles import role_nets


def check_memory(rules: Rules, config: TrainConfig) -> None:
    """Refuse a memory beside settings that do not know it."""
    by_role = {role: net.memory for role, net in role_nets(rules, config).items()}
    memory = config.net.memory or next(filter(None, by_role.values()), "")
    if not memory:
        return
    unfit = {
        "hierarchy.on": (config.hierarchy.on, "a network for every role has no memory"),
        "collect.mirror": (config.collect.mirror, "nobody knows the mirror image of a memory"),
        "hindsight.on": (config.hindsight.on, "memory holds what was seen under another goal"),
    }
    for name, (given, why) in unfit.items():
        if given:
            raise ConfigError(f"net.memory {memory}: {why}; leave it or {name} out")
    if config.net.kind != "mlp":
        raise ConfigError(
            f"net.memory {memory}: only an mlp has memory, and net.kind is {config.net.kind}; "
            "leave net.memory out or set net.kind to mlp"
        )
    if memory == "gru" and config.algo != "ppo" and not is_factory(config.algo):
        demand_recurrent(config.algo, by_role=False)


def demand_one_chain(plan: Plan) -> None:
    """Refuse a state where roles have decisions of their own to link."""
    if plan.net.memory == "gru" and not plan.roles:
        demand_recurrent("", by_role=plan.by_role)
