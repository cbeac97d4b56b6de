"""Settings of networks, of their heads and of learning from records that need another setting."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.capabilities.refusals import shown
from sparring.config import CloningConfig, NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.inputs import memory_of
from sparring.pools.limits import MOST_MEMORY
from sparring.schedule import Schedule
from sparring.training.planning.asked import changed


def check_networks(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
    """Refuse settings of networks that nothing would come of."""
    for role, net in nets.items():
        check_room(rules, net, f"roles {role}.net" if role else "net")
    check_heads(config)
    check_teaching(config)


def check_room(rules: Rules, net: NetConfig, where: str) -> None:
    """Refuse a memory that no row has room for."""
    if memory_of(rules, net) > MOST_MEMORY:
        most = MOST_MEMORY // (4 * len(rules.features)) + 1
        raise ConfigError(
            f"{where}.frames {net.frames}: {rules.name} has {len(rules.features)} features, of "
            f"which at most {most} frames are remembered"
        )


def check_heads(config: TrainConfig) -> None:
    """Refuse a share of a head that there is not."""
    heads = config.heads
    if heads.blend and heads.wdl == Schedule.constant(0.0):
        raise ConfigError(
            f"heads.blend {heads.blend:g}: there is no head of win, draw and loss to blend in; "
            "give its weight with --heads.wdl, or leave it out"
        )


def check_teaching(config: TrainConfig) -> None:
    """Refuse settings of learning from records where there are none."""
    name = changed(config.cloning, CloningConfig())
    given = f"cloning.{name} {shown(getattr(config.cloning, name))}" if name else ""
    if config.teach_minutes != TrainConfig.teach_minutes:
        given = f"teach_minutes {config.teach_minutes:g}"
    if given and not config.teach:
        raise ConfigError(
            f"{given}: nothing is learned from records; add --teach with records or bots, or leave "
            "it out"
        )
