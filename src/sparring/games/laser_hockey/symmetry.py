"""Laser hockey in a mirror: top and bottom of the rink are exchanged.

Positions and velocities across the rink, angles and spins of both rackets and the puck change their
signs; so do the sideways push and the torque. The symmetry holds with all flags: modes, serves and
spawns are symmetric about the long axis. The rules compute around a center at (5, 4), so images
agree up to rounding. The scripted players brake slightly differently to the left and right.
"""

from __future__ import annotations

from sparring.games.laser_hockey import MIRRORED_ACTIONS, MIRRORED_FEATURES, mirrored_discrete
from sparring.games.mirror import Mirror
from sparring.games.rules import Rules


def mirror(rules: Rules) -> Mirror:
    """Return the mirror for continuous or discrete actions."""
    count = len(rules.features)
    signs = tuple(-1 if i in MIRRORED_FEATURES else 1 for i in range(count))
    if rules.box:
        pushes = tuple(-1 if i in MIRRORED_ACTIONS else 1 for i in range(rules.box))
        return Mirror(tuple(range(count)), signs, tuple(range(rules.box)), pushes)
    fineness = rules.config["fineness"]
    actions = tuple(mirrored_discrete(action, fineness) for action in range(rules.actions))
    return Mirror(tuple(range(count)), signs, actions)
