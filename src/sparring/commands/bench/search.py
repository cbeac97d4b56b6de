"""`sparring bench search`: simulations per second, and what the network alone would allow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring import _native
from sparring.commands.bench.shared import BenchRecorder, finish, machine_line, short
from sparring.commands.shared.players import load_with_flags
from sparring.commands.shared.printing import ProgressBar, make_console, make_table, print_table
from sparring.config.commands import BenchSearchConfig
from sparring.errors import ConfigError
from sparring.games import Rules
from sparring.games.flags import changed_flags, read_rules
from sparring.games.rules import game_names
from sparring.machine import cores, machine_info, warn_if_busy
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools import Pool
from sparring.pools.custom.cache import is_custom
from sparring.search.budget import Budget
from sparring.search.search import Search
from sparring.speed.bench_records import Figure
from sparring.training.planning.settings import with_preset

SIMULATIONS = (16, 64, 200)
OPENING_STEPS = 4
"""Random moves before the searched positions."""


@dataclass
class SearchVariant:
    """One measured number of simulations."""

    simulations: int
    search: Search
    batches: list[int] = field(default_factory=list)
    """Rows of each evaluation in one search."""
    search_s: list[float] = field(default_factory=list)
    network_s: list[float] = field(default_factory=list)
    """Seconds of the same evaluations without trees."""


def run(config: BenchSearchConfig) -> int:
    """Measure search and network in turn, report."""
    threads = config.threads or cores()
    torch.set_num_threads(threads)
    policy, rules = find_network(config, threads)
    if is_custom(rules):
        raise ConfigError(
            f"bench search measures native games; {rules.name} is a custom environment, whose own "
            "steps and copies take the time"
        )
    policy.check_searchable()
    report: dict[str, Any] = {
        "command": "bench search",
        "game": rules.name,
        "flags": changed_flags(rules),
        "network": policy.net.describe(),
        "options": {k: getattr(config, k) for k in ("games", "rule", "seed")}
        | {"threads": threads},
        "machine": machine_info(),
    }
    settings = {key: report[key] for key in ("game", "flags", "options")}
    recorder = BenchRecorder(config, "bench search", settings, "cpu")
    warn_if_busy(report["machine"]["load_average"])
    pool, rows = make_roots(rules, config)
    variants = [
        make_variant(policy, rules, config, n, threads) for n in config.simulations or SIMULATIONS
    ]
    with ProgressBar(f"bench search {rules.name}", config.rounds + 1) as steps:
        steps.next("warming up")
        for variant in variants:
            record_batches(variant, pool, rows)
        for number in range(config.rounds):
            steps.next(f"round {number + 1} of {config.rounds}")
            for variant in variants:
                variant.search_s.append(timed_search(variant, pool, rows))
                variant.network_s.append(timed_network(variant))
    report["measured"] = [summary(rules, variant, len(rows)) for variant in variants]
    return finish(recorder, report, figures(report["measured"]), show)


def find_network(config: BenchSearchConfig, threads: int) -> tuple[Policy, Rules]:
    """Return the policy, or an untrained one of a game's preset."""
    if config.player not in game_names():
        return load_with_flags(config.player, config.set, threads)
    rules = read_rules(config.player, config.set)
    torch.manual_seed(config.seed)
    net = make_net(rules, with_preset(rules.name, algo="ppo", gpu=False).net, threads=threads)
    return Policy(rules, net, name="untrained"), rules


def make_roots(rules: Rules, config: BenchSearchConfig) -> tuple[Pool, npt.NDArray[np.intp]]:
    """Return games after some random moves, and one row of each."""
    pool = Pool(rules, config.games, seed=config.seed, threads=1)
    pool.reset()
    for _ in range(OPENING_STEPS):
        pool.step(pool.sample_actions())
    return pool, np.arange(config.games, dtype=np.intp) * rules.rows


def make_variant(
    policy: Policy, rules: Rules, config: BenchSearchConfig, simulations: int, threads: int
) -> SearchVariant:
    budget = Budget(simulations, rule=config.rule)
    return SearchVariant(
        simulations, policy.search(rules, budget=budget, trees=config.games, threads=threads)
    )


def record_batches(variant: SearchVariant, pool: Pool, rows: npt.NDArray[np.intp]) -> None:
    """Search once and note the sizes of the evaluated batches."""
    search, evaluate = variant.search, variant.search.evaluate

    def noting(obs: npt.NDArray[np.uint8]) -> Any:
        variant.batches.append(len(obs))
        return evaluate(obs)

    search.evaluate = noting
    search.from_pool(pool, rows)
    search.evaluate = evaluate


def timed_search(variant: SearchVariant, pool: Pool, rows: npt.NDArray[np.intp]) -> float:
    started = time.perf_counter()
    variant.search.from_pool(pool, rows)
    return time.perf_counter() - started


def timed_network(variant: SearchVariant) -> float:
    obs, evaluate = variant.search.native.obs, variant.search.evaluate
    started = time.perf_counter()
    for size in variant.batches:
        evaluate(obs[:size])
    return time.perf_counter() - started


def summary(rules: Rules, variant: SearchVariant, roots: int) -> dict[str, Any]:
    made = roots * variant.simulations
    config, nodes = variant.search.config, variant.simulations + 1
    each = _native.search_bytes(rules.native, nodes, config.width, config.samples) / nodes
    shares = [n / s for n, s in zip(variant.network_s, variant.search_s, strict=True)]
    return {
        "simulations": variant.simulations,
        "simulations_per_s": [round(made / seconds) for seconds in variant.search_s],
        "network_rows_per_s": [round(sum(variant.batches) / s) for s in variant.network_s],
        "share_of_network": [round(share, 4) for share in shares],
        "batch": round(sum(variant.batches) / len(variant.batches), 1),
        "bytes_per_node": round(each),
        "nodes_per_gb": round(1e9 / each),
    }


def figures(measured: list[dict[str, Any]]) -> dict[str, Figure]:
    return {
        f"{one['simulations']} simulations": Figure(
            tuple(one["simulations_per_s"]), "simulations/s"
        )
        for one in measured
    }


def show(report: Mapping[str, Any]) -> None:
    options = report["options"]
    out = make_console()
    out.print(
        f"{report['game']}: {options['games']} decisions at once, {options['rule']}, "
        f"{options['threads']} thread{'s' * (options['threads'] > 1)}"
    )
    columns = ("simulations", "per second", "network alone, rows/s", "share", "batch", "nodes/GB")
    table = make_table(columns, numbers=columns)
    for one in report["measured"]:
        table.add_row(
            str(one["simulations"]),
            short(median(one["simulations_per_s"])),
            short(median(one["network_rows_per_s"])),
            f"{median(one['share_of_network']):.0%}",
            f"{one['batch']:,.0f}",
            short(one["nodes_per_gb"]),
        )
    print_table(table)
    out.print("share: time of the network alone, on the same batches, in that of the search")
    out.print(machine_line(dict(report["machine"])))
