"""Laser hockey in a mirror: top and bottom of the rink are exchanged.

Places and speeds across the rink, angles and spins change their signs, those of the own racket, of
the other and of the puck; so do the push aside and the torque. No flag breaks this: modes, serves
and spawns are drawn evenly around the long axis, and divisors do not care for signs. The rules
compute around a center at (5, 4), so that images agree up to rounding, not to the bit. The scripted
players brake a little differently to the left and to the right.
"""

from __future__ import annotations

from sparring.games.laser_hockey import MIRRORED_ACTIONS, MIRRORED_FEATURES, mirrored_discrete
from sparring.games.mirror import Mirror
from sparring.games.rules import Rules


def mirror(rules: Rules) -> Mirror:
    """For either kind of action."""
    count = len(rules.features)
    signs = tuple(-1 if i in MIRRORED_FEATURES else 1 for i in range(count))
    if rules.box:
        pushes = tuple(-1 if i in MIRRORED_ACTIONS else 1 for i in range(rules.box))
        return Mirror(tuple(range(count)), signs, tuple(range(rules.box)), pushes)
    fineness = rules.config["fineness"]
    actions = tuple(mirrored_discrete(action, fineness) for action in range(rules.actions))
    return Mirror(tuple(range(count)), signs, actions)
