"""Initialization of a run from trained weights, and reinitialization during a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.learn.learner import Learner
from sparring.learn.plan import Plan
from sparring.nets.axis_labels import feature_names
from sparring.nets.heads import configured_heads
from sparring.nets.hierarchy import is_hierarchy
from sparring.nets.make import make_net
from sparring.nets.net import set_wdl_blend
from sparring.nets.policy import BY_VALUE, Policy
from sparring.nets.transfer import Transfer, transfer_weights
from sparring.pools.custom.cache import is_custom
from sparring.store.lookup import find_policy, is_sb3_model
from sparring.store.policies import load_playable, load_policy

MIN_ALIKE = 0.5
"""Share of a game's features that a policy of another game must have by name to be used as init."""
KEPT = ("carried", "replay")
"""Tensor groups that survive reinitialization: pending transitions and the replay buffer."""


def resolve_init(text: str) -> str:
    """Return the absolute path of the checkpoint that `init` names."""
    if not text:
        return ""
    try:
        place = find_policy(text)
    except ConfigError as error:
        raise ConfigError(f"init: {error}") from None
    folder = place if is_sb3_model(place) else load_playable(place)[0]
    return str(folder.absolute())


def start_from(learner: Learner, path: str, member: int = 0) -> Transfer:
    """Load the trained weights that fit into a new learner; the others stay as initialized."""
    policy = load_policy(path, game=learner.rules)
    check_game(path, policy, learner.rules)
    fresh = learner.snapshot(member)
    check_same_heads(path, policy, by_value=bool(fresh.meta.get(BY_VALUE)))
    mine = fresh.tensors.get("net", {})
    given = is_hierarchy(policy.net.state_dict())
    check_same_roles(path, wanted=is_hierarchy(mine), given=given)
    own = learner.policy(member).net
    found = transfer_weights(f"init: {path}", own, policy.net, mine)
    try:
        learner.restore(replace(fresh, tensors={**fresh.tensors, "net": found.tensors}), member)
    except SparringError as error:
        raise ConfigError(f"init: {error}") from error
    return found


def check_game(path: str, policy: Policy, rules: Rules) -> None:
    """Raise an error for a policy of another game, unless most features have the same names."""
    theirs = policy.rules
    if theirs.name == rules.name:
        return
    here, there = (set(feature_names(one)) for one in (rules, theirs))
    alike = len(here & there)
    if is_custom(theirs) or is_custom(rules) or alike < MIN_ALIKE * len(here):
        raise ConfigError(
            f"init: {path} plays {theirs.name}, not {rules.name}, and knows {alike} of its "
            f"{len(here)} features by name; start from a run of {rules.name}, or without init"
        )


def check_same_heads(path: str, policy: Policy, *, by_value: bool) -> None:
    """Raise an error if one network has action values and the other action probabilities."""
    if policy.is_value_based == by_value:
        return
    holds, wanted, algos = "probabilities", "values", "ppo, gumbel or sac"
    if policy.is_value_based:
        holds, wanted, algos = "values", "probabilities", "dqn or qrdqn"
    raise ConfigError(
        f"init: {path} has learned action {holds}, and this algorithm learns {wanted}; start "
        f"from a run of the same kind, or with --algo {algos}"
    )


def check_same_roles(path: str, *, wanted: bool, given: bool) -> None:
    if wanted == given:
        return
    kinds = {True: "a network for every role", False: "one network for all roles"}
    raise ConfigError(
        f"init: {path} has {kinds[given]}, and this run has {kinds[wanted]}; "
        f"{'leave --hierarchy.on out' if wanted else 'add --hierarchy.on'}, or start without init"
    )


def reinitialize(
    learner: Learner,
    plan: Plan,
    number: int,
    member: int,
    weights: Mapping[str, torch.Tensor] | None = None,
) -> None:
    """Give a learner new weights and a new optimizer; its games and replay buffer stay.

    weights: left out, random ones of this number.
    """
    now, seed = learner.snapshot(member), plan.seeds[member] + 1_000_003 * number
    tensors = {name: now.tensors[name] for name in KEPT if name in now.tensors}
    memory = now.meta.get("memory", 0)
    tensors["net"] = dict(weights or random_weights(learner.rules, plan, seed, memory))
    tensors["optimizer"] = {}
    learner.restore(
        replace(now, tensors=tensors, meta={**now.meta, "has_value_scale": False}), member
    )


def random_weights(rules: Rules, plan: Plan, seed: int, memory: int) -> dict[str, torch.Tensor]:
    """Return initial weights of the network of a run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        heads = configured_heads(rules, plan.heads, plan.quantiles)
        net = make_net(rules, plan.net, heads=heads, memory=memory, roles=plan.role_nets)
    set_wdl_blend(net, plan.heads)
    return dict(net.state_dict())
