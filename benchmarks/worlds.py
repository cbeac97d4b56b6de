"""Exact exploitability of agents that search over worlds, by budget and step size.

    python benchmarks/worlds.py latest --search 64,1000 --eta 0.1,0.3,1,3,10
    python benchmarks/worlds.py runs/leduc1 runs/leduc2 --search 1000 --json

For games whose tree is small enough (Kuhn, Leduc). The agent draws its actions from the improved
policy. The opponent knows that policy, the mean over --seeds searches of every information state.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparring import State, new_state
from sparring.commands.shared.printing import make_table, print_json, print_table
from sparring.errors import ConfigError, SparringError
from sparring.machine import machine_info
from sparring.nets.policy import Policy
from sparring.nets.searching import config_of
from sparring.proof.exploitability import Tree, exploitability
from sparring.search.budget import Budget
from sparring.store.policies import load_policy


def states_of(tree: Tree) -> list[State]:
    """Return a position of every information state, in their order."""
    at = {
        (seat, row.tobytes()): i
        for i, (seat, row) in enumerate(zip(tree.seat, tree.obs, strict=True))
    }
    found: dict[int, State] = {}

    def walk(state: State) -> None:
        if state.over:
            return
        found.setdefault(at[state.seat, state.observe_bytes(state.seat).tobytes()], state)
        for action in state.legal():
            after = state.clone()
            after.apply(action)
            walk(after)

    for seed in itertools.count():
        walk(new_state(tree.rules, seed=seed))
        if len(found) == len(at):
            return [found[i] for i in range(len(at))]
    raise AssertionError


def searched(
    policy: Policy, states: Sequence[State], budget: Budget, eta: float | None, seeds: int
) -> Any:
    """Return the mean of the improved policies [information states, actions]."""
    config = config_of(policy)
    config = replace(config, worlds=replace(config.worlds, eta=eta))
    total = np.zeros((len(states), policy.rules.actions))
    for seed in range(seeds):
        search = policy.search(budget=budget, seed=seed, config=config)
        total += [search.from_state(state).policy[0] for state in states]
    return total / total.sum(axis=1, keepdims=True)


def measure(
    policy: Policy, budgets: Sequence[str], etas: Sequence[float | None], seeds: int
) -> dict[str, float]:
    """Return exploitability by way of playing."""
    if policy.rules.rows > 1:
        raise ConfigError(f"{policy.rules.name} has simultaneous moves; give a game without")
    tree = Tree(policy.rules)
    states = states_of(tree)
    found = {"network": exploitability(tree, policy.probabilities).exploitability}
    for budget, eta in itertools.product(budgets, etas):
        mean = searched(policy, states, Budget.parse(budget), eta, seeds)
        name = budget if eta is None else f"{budget}, eta {eta:g}"
        found[name] = exploitability(tree, lambda *_, mean=mean: mean).exploitability
    return {name: round(value, 4) for name, value in found.items()}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("agents", nargs="+", help="runs or checkpoints of one game")
    parser.add_argument("--search", default="1000", help="budgets, as 64,1000")
    parser.add_argument("--eta", default="", help="step sizes; left out, that of the game")
    parser.add_argument("--seeds", type=int, default=4, help="searches of an information state")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    etas = [float(eta) for eta in options.eta.split(",") if eta] or [None]
    report: dict[str, Any] = {"seeds": options.seeds, "machine": machine_info(), "agents": {}}
    try:
        for name in options.agents:
            policy = load_policy(name)
            report["agents"][name] = measure(policy, options.search.split(","), etas, options.seeds)
    except SparringError as wrong:
        print(f"worlds: {wrong}", file=sys.stderr)
        return 2
    if options.json:
        print_json(report)
        return 0
    names = list(next(iter(report["agents"].values())))
    table = make_table(("plays", *report["agents"]), numbers=tuple(report["agents"]))
    for name in names:
        table.add_row(name, *(f"{one[name]:.3f}" for one in report["agents"].values()))
    print_table(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
