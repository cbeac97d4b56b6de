"""What a search over worlds is worth: exact exploitability, or matches.

    python benchmarks/worlds.py latest --search 64,1000 --eta 0.1,0.3,1,3,10
    python benchmarks/worlds.py runs/leduc1 runs/leduc2 --search 1000 --json
    python benchmarks/worlds.py latest --against captain itself --horizon 2,12 --belief on,off

Exploitability is for games whose tree is small enough (Kuhn, Leduc). The agent draws its actions
from the improved policy. The opponent knows that policy, the mean over --seeds searches of every
information state. With --against the agent plays, alone and with every setting of the search, the
same deals against bots or against its own network.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sparring import State, new_state
from sparring.commands.shared.printing import make_table, print_json, print_table
from sparring.errors import ConfigError, SparringError
from sparring.league.arena import evaluate
from sparring.machine import machine_info
from sparring.nets.policy import Policy
from sparring.nets.searching import SearchCache, config_of
from sparring.proof.exploitability import Tree, exploitability
from sparring.search.budget import Budget
from sparring.search.search import Search, SearchConfig
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


class Step(NamedTuple):
    """Step size and pull toward the uniform policy; None: those of the game."""

    eta: float | None = None
    alpha: float | None = None

    @property
    def words(self) -> list[str]:
        return [f"{name} {value:g}" for name, value in self._asdict().items() if value is not None]


def numbers(text: str) -> list[float | None]:
    return [float(number) for number in text.split(",") if number] or [None]


def searched(
    policy: Policy, states: Sequence[State], budget: Budget, step: Step, seeds: int
) -> Any:
    """Return the mean of the improved policies [information states, actions]."""
    config = config_of(policy)
    config = replace(config, worlds=replace(config.worlds, eta=step.eta, alpha=step.alpha))
    total = np.zeros((len(states), policy.rules.actions))
    for seed in range(seeds):
        search = policy.search(budget=budget, seed=seed, config=config)
        total += [search.from_state(state).policy[0] for state in states]
    return total / total.sum(axis=1, keepdims=True)


def measure(
    policy: Policy, budgets: Sequence[str], steps: Sequence[Step], seeds: int
) -> dict[str, float]:
    """Return exploitability by way of playing."""
    if policy.rules.rows > 1:
        raise ConfigError(f"{policy.rules.name} has simultaneous moves; give a game without")
    tree = Tree(policy.rules)
    states = states_of(tree)
    found = {"network": exploitability(tree, policy.probabilities).exploitability}
    for budget, step in itertools.product(budgets, steps):
        mean = searched(policy, states, Budget.parse(budget), step, seeds)
        name = ", ".join([budget, *step.words])
        found[name] = exploitability(tree, lambda *_, mean=mean: mean).exploitability
    return {name: round(value, 4) for name, value in found.items()}


class SettledPolicy(Policy):
    """A policy that searches with settings of its own."""

    settings: SearchConfig

    def search(self, *given: Any, **options: Any) -> Search:
        return super().search(*given, **{"config": self.settings, **options})


def settled(policy: Policy, budget: Budget, settings: SearchConfig, name: str) -> SettledPolicy:
    """Return the policy with a budget and settings of its searches."""
    found = copy.copy(policy)
    found.__class__ = SettledPolicy
    assert isinstance(found, SettledPolicy)
    found.budget, found.settings, found.name = budget, settings, name
    found.searches = SearchCache()
    return found


def players(policy: Policy, options: argparse.Namespace) -> list[Policy]:
    """Return the policy alone, and with every setting."""
    usual, found = config_of(policy), [policy]
    beliefs = options.belief.split(",")
    parts = options.search.split(","), options.horizon.split(","), options.steps, beliefs
    for budget, horizon, step, belief in itertools.product(*parts):
        eta, alpha = step
        worlds = replace(
            usual.worlds, horizon=int(horizon), eta=eta, alpha=alpha, belief=belief == "on"
        )
        name = ", ".join([budget, f"horizon {horizon}", *step.words, f"belief {belief}"])
        settings = replace(usual, worlds=worlds)
        found.append(settled(policy, Budget.parse(budget), settings, name))
    return found


def play(policy: Policy, options: argparse.Namespace) -> dict[str, Any]:
    """Return the results of all matches, by player and opponent."""
    found: dict[str, Any] = {}
    itself = copy.copy(policy)
    itself.name = "itself"
    against = [itself if name == "itself" else name for name in options.against]
    policy.name = "network"
    for player in players(policy, options):
        for opponent in against:
            if player is policy and opponent is itself:
                continue
            began = time.process_time()
            result = evaluate(player, [opponent], games=options.games, seed=options.seed, threads=1)
            for name, match in result.items():
                one = match.summary()
                one["cpu_s"] = round(time.process_time() - began, 1)
                found[f"{player.name} against {name}"] = one
                print(f"{player.name} against {name}: {in_words(one)}", file=sys.stderr, flush=True)
    return found


def in_words(one: dict[str, Any]) -> str:
    share, low, high = (100 * one[key] for key in ("win", "low", "high"))
    score = f"{one['score']:.1f} ({one['score_low']:.1f} to {one['score_high']:.1f})"
    return (
        f"{one['games']} games, {share:.1f} % ({low:.1f} to {high:.1f}), {score}, {one['cpu_s']} s"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("agents", nargs="+", help="runs or checkpoints of one game")
    parser.add_argument("--search", default="1000", help="budgets, as 64,1000")
    parser.add_argument("--eta", default="", help="step sizes; left out, that of the game")
    parser.add_argument("--alpha", default="", help="pulls toward the uniform policy, likewise")
    parser.add_argument("--seeds", type=int, default=4, help="searches of an information state")
    parser.add_argument("--against", nargs="+", default=[], help="bots, or: itself")
    parser.add_argument("--horizon", default="12", help="of matches, as 2,12")
    parser.add_argument("--belief", default="on", help="of matches: on, off, or on,off")
    parser.add_argument("--games", type=int, default=200, help="of a match")
    parser.add_argument("--seed", type=int, default=0, help="of the deals")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    pairs = itertools.product(numbers(options.eta), numbers(options.alpha))
    options.steps = list(itertools.starmap(Step, pairs))
    report: dict[str, Any] = {"seeds": options.seeds, "machine": machine_info(), "agents": {}}
    try:
        for name in options.agents:
            policy = load_policy(name)
            report["agents"][name] = (
                play(policy, options)
                if options.against
                else measure(policy, options.search.split(","), options.steps, options.seeds)
            )
    except SparringError as wrong:
        print(f"worlds: {wrong}", file=sys.stderr)
        return 2
    if options.json:
        print_json(report)
    if options.json or options.against:
        return 0
    names = list(next(iter(report["agents"].values())))
    table = make_table(("plays", *report["agents"]), numbers=tuple(report["agents"]))
    for name in names:
        table.add_row(name, *(f"{one[name]:.3f}" for one in report["agents"].values()))
    print_table(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
