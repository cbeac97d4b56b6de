"""How decisions are linked and discounted where roles have networks of their own, and cut games.

A role's decisions are a chain: what a seat is paid between two of them, by the role's own weights,
belongs to the first. So a manager's step reaches over all that its worker does meanwhile, and is
discounted once, and once more for every forced move of its seat that was played without asking; a
worker's last decision before the manager's next one may be the end of what it is responsible for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.learn.collect import Collector
from sparring.learn.knobs import Knobs
from sparring.learn.plan import RolePlan, Turns
from sparring.learn.playing import Playing

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Discounts:
    """How decisions of all roles are linked, a number for each role."""

    gamma_into: tuple[float, ...]
    """Of a step into its next decision."""
    gamma_of: tuple[float, ...]
    """Of its forced and last steps."""
    lambda_of: tuple[float, ...]
    ended_by: tuple[int, ...]
    """Bits of the roles whose decision ends what it did before."""


def discounts_of(
    roles: Sequence[RolePlan], knobs: Mapping[str, Knobs], member: int = 0
) -> Discounts:
    """Read them off the roles' own settings; knobs: as they are in one update."""
    names = [plan.role for plan in roles]
    own = [knobs[name] for name in names]
    into = [plan.settings[member].gamma_into for plan in roles]
    # What a role discounts by is its own affair; a step into it that counts nothing is everybody's.
    last = {name for at, name in enumerate(names) if into[at] and into[at][at] == 0}
    return Discounts(
        tuple(
            given[at] if given else knob.gamma
            for at, (given, knob) in enumerate(zip(into, own, strict=True))
        ),
        tuple(knob.gamma for knob in own),
        tuple(knob.gae_lambda for knob in own),
        tuple(sum(1 << names.index(by) for by in last | set(plan.ended_by)) for plan in roles),
    )


def linking_by_role(
    roles: Sequence[RolePlan], knobs: Mapping[str, Knobs], role: npt.NDArray[np.int8]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How decisions are linked and advantages estimated. role: of the rollout's rows."""
    own = discounts_of(roles, knobs)
    linking = {"gamma": 1.0, "gamma_into": own.gamma_into, "gamma_of": own.gamma_of}
    linking |= {"ended_by": own.ended_by, "by_final_role": True}
    return linking, {"gae_lambda": 1.0, "lambda_of": own.lambda_of, "role": role}


def place_roles(collector: Collector) -> npt.NDArray[np.int8]:
    """The role of every place: decisions that were carried over, then the rollout's rows."""
    roles, rollout = collector.transitions.chains, collector.rollout
    chains = collector.transitions.carried // roles
    carried = np.tile(np.arange(roles, dtype=np.int8), chains)
    return np.concatenate([carried, rollout.role.reshape(-1)])


def samples_by_role(
    collector: Collector, samples: Places, turns: Turns, update: int
) -> dict[str, Places]:
    """The samples of every role that has some and whose turn it is."""
    roles, of_sample = collector.pool.rules.roles, place_roles(collector)[samples]
    shares = {role: samples[of_sample == number] for number, role in enumerate(roles)}
    return {
        role: mine
        for role, mine in shares.items()
        if len(mine) and turns.learns(role, roles, update)
    }


@torch.no_grad()
def bootstrap_truncated(playing: Playing, *, by_role: bool) -> None:
    """Value the last observations of truncated games, which their last decisions are paid.

    by_role: the rollout keeps in which role each was to move.
    """
    rollout = playing.collector.rollout
    obs = np.concatenate(rollout.cuts.obs)
    heads = playing.forward(torch.from_numpy(obs))
    value = playing.net.true_values(heads).cpu().numpy()
    rollout.cuts.settle(rollout, value, playing.rules.role_of(obs) if by_role else None)
