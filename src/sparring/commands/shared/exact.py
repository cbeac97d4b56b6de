"""Exact exploitability of a policy in a small game, for `sparring exploit --exact`."""

from __future__ import annotations

import time

from sparring.commands.shared.players import loaded_from
from sparring.commands.shared.printing import echo, make_table, print_json, print_table
from sparring.commands.shared.responses import ExploitTarget
from sparring.config.commands import ExploitConfig
from sparring.errors import ConfigError
from sparring.games.flags import changed_flags
from sparring.machine import format_bytes
from sparring.nets.policy import Policy
from sparring.pools.custom.cache import is_custom
from sparring.proof.exploitability import (
    EXACT_GAMES,
    Exploitability,
    Greedy,
    MeasuredPolicy,
    Tree,
    exploitability,
    has_memory,
)
from sparring.training.records.exploited import EXACT, EXPLOITABILITY, Exploited, add_exploited
from sparring.usage import resident_bytes

TRAINED = ("kinds", "seeds", "decisions", "games", "search", "algo", "config", "name")
"""Options of responses that are trained."""


def measure_exactly(config: ExploitConfig, target: ExploitTarget) -> tuple[Exploitability, str]:
    """Return the exploitability, and what it cost in words."""
    policy = measured_policy(config, target)
    before, started = resident_bytes(), time.perf_counter()
    try:
        tree = Tree(target.rules, recall=has_memory(policy))
    except ConfigError as error:
        raise ConfigError(
            f"--exact: {error}; without --exact responses are trained, for a lower bound"
        ) from None
    built = time.perf_counter()
    found = exploitability(tree, policy)
    took = time.perf_counter() - built
    grown = max(resident_bytes() - before, 0)
    cost = (
        f"{tree.native.positions:,} positions, {len(tree.seat):,} information states: tree "
        f"{built - started:.2f} s, best responses {took:.2f} s, {format_bytes(grown)}"
    )
    return found, cost


def measured_policy(config: ExploitConfig, target: ExploitTarget) -> MeasuredPolicy:
    """Return the policy as it plays; refuse what has no probabilities, and other options."""
    usual = ExploitConfig("")
    for name in TRAINED:
        if getattr(config, name) != getattr(usual, name):
            raise ConfigError(f"--exact trains no response; leave --{name} out")
    player, rules = target.player, target.rules
    if not isinstance(player, Policy) or player.budget:
        what = "searches" if isinstance(player, Policy) else "is a bot"
        raise ConfigError(
            f"--exact: {target.label} {what}, so that its probabilities are not known; leave "
            "--exact out: responses are trained, for a lower bound"
        )
    if is_custom(rules):
        raise ConfigError(
            f"--exact: {rules.name} is a custom environment, whose tree is not known; games that "
            f"work: {', '.join(EXACT_GAMES)}; without --exact responses are trained"
        )
    return Greedy(player) if target.plays == "greedy" else player


def keep_exact(target: ExploitTarget, found: Exploitability) -> None:
    """Write the measurement into the run of the policy, if it is a checkpoint of one."""
    if target.checkpoint is None:
        return
    run, checkpoint = target.checkpoint
    value = found.exploitability
    add_exploited(
        run,
        Exploited(
            checkpoint=checkpoint,
            plays=target.plays,
            of=EXPLOITABILITY,
            value=value,
            low=value,
            high=value,
            kind=EXACT,
            exploited=value > 0,
        ),
    )


def run_exact(config: ExploitConfig, target: ExploitTarget) -> int:
    found, cost = measure_exactly(config, target)
    keep_exact(target, found)
    if config.json:
        print_json(
            {
                "policy": config.policy,
                "loaded_from": loaded_from(target.player),
                "game": target.rules.name,
                "flags": changed_flags(target.rules),
                "plays": target.plays,
                "exploitability": found.exploitability,
                "nash_conv": found.nash_conv,
                "values": list(found.values),
                "best_responses": list(found.best),
                "gains": list(found.gains),
            }
        )
        return 0
    numbers = ("seat", "against itself", "best response", "gains")
    table = make_table(numbers, numbers=numbers)
    for seat, row in enumerate(zip(found.values, found.best, found.gains, strict=True)):
        table.add_row(str(seat), *(f"{value:+.4f}" for value in row))
    print_table(table)
    echo(
        f"{target.label}, {target.style}: exploitability {found.exploitability:.4f}, exact: what "
        f"best responses gain in all seats (NashConv {found.nash_conv:.4f}) / {target.rules.seats}"
    )
    echo(cost)
    return 0
