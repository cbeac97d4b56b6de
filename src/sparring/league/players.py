"""Who can sit at a table. Nothing here loads torch: bots are played without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

Player: TypeAlias = "Policy | str"
"""A trained policy, or a bot by name."""


def name_of(player: Player) -> str:
    """Return what a player is called in results."""
    return player if isinstance(player, str) else player.name
