"""`sparring bench search`: simulations per second, and what the network alone would allow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

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
from sparring.phases import TREES
from sparring.pools import Pool
from sparring.pools.custom.cache import is_custom
from sparring.search.budget import Budget
from sparring.search.search import Search, bytes_each
from sparring.speed.bench_records import Figure
from sparring.training.planning.placement import choose_device
from sparring.training.planning.settings import with_preset

SIMULATIONS = (16, 64, 200)
GAMES = (256, 16_384)
"""Decisions at once on a CPU and on a GPU, if none are given."""
OPENING_STEPS = 4
"""Random moves before the searched positions."""


class SearchBench(Protocol):
    """One measured number of simulations."""

    simulations: int
    made: int
    """Simulations of one search, in all its trees."""
    batches: list[int]
    """Rows of each evaluation in one search."""
    bytes_per_node: float
    search_s: list[float]
    network_s: list[float]
    """Seconds of the same evaluations without trees."""

    def warm_up(self) -> None:
        """Search once, untimed."""

    def measure(self) -> None:
        """Time a search and its network alone."""

    def stages(self) -> dict[str, float]:
        """Return seconds by stage of a search: select, evaluate, settle."""


class CpuSearchBench:
    """One measured number of simulations on CPU threads."""

    def __init__(self, search: Search, pool: Pool, simulations: int) -> None:
        """Search one row of every game of the pool."""
        self.search, self.pool, self.simulations = search, pool, simulations
        self.rows = np.arange(pool.num_games, dtype=np.intp) * pool.rules.rows
        self.made = pool.num_games * simulations
        bytes_of_root = bytes_each(pool.rules, simulations, pool.num_games, search.config)
        self.bytes_per_node = bytes_of_root / (simulations + 1)
        self.batches: list[int] = []
        self.search_s: list[float] = []
        self.network_s: list[float] = []

    def warm_up(self) -> None:
        """Search once and note the sizes of the evaluated batches."""
        search, evaluate = self.search, self.search.evaluate

        def noting(obs: npt.NDArray[np.uint8]) -> Any:
            self.batches.append(len(obs))
            return evaluate(obs)

        search.evaluate = noting
        self.made = int(search.from_pool(self.pool, self.rows).simulations.sum())
        search.evaluate = evaluate
        search.phases.take()

    def measure(self) -> None:
        started = time.perf_counter()
        self.search.from_pool(self.pool, self.rows)
        searched = time.perf_counter()
        for size in self.batches:
            self.search.evaluate(self.search.native.obs[:size])
        self.search_s.append(searched - started)
        self.network_s.append(time.perf_counter() - searched)

    def stages(self) -> dict[str, float]:
        return self.search.phases.take()


def run(config: BenchSearchConfig) -> int:
    """Measure search and network in turn, report."""
    device, threads = choose_device(config.device), config.threads or cores()
    config = replace(config, games=config.games or GAMES[device != "cpu"])
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
        "options": {k: getattr(config, k) for k in ("games", "rule", "seed", "device")}
        | {"threads": threads},
        "machine": machine_info(),
    }
    settings = {key: report[key] for key in ("game", "flags", "options")}
    recorder = BenchRecorder(config, "bench search", settings, device)
    warn_if_busy(report["machine"]["load_average"])
    make = benches_on_cpu if device == "cpu" else benches_on_gpu
    benches = make(policy, rules, config, threads)
    with ProgressBar(f"bench search {rules.name}", config.rounds + 1) as steps:
        steps.next("warming up")
        for bench in benches:
            bench.warm_up()
        for number in range(config.rounds):
            steps.next(f"round {number + 1} of {config.rounds}")
            for bench in benches:
                bench.measure()
    report["measured"] = [summary(bench) for bench in benches]
    return finish(recorder, report, figures(report["measured"]), show)


def find_network(config: BenchSearchConfig, threads: int) -> tuple[Policy, Rules]:
    """Return the policy, or an untrained one of a game's preset."""
    if config.player not in game_names():
        return load_with_flags(config.player, config.set, threads)
    rules = read_rules(config.player, config.set)
    torch.manual_seed(config.seed)
    usual = with_preset(rules.name, algo="ppo", gpu=config.device != "cpu").net
    return Policy(rules, make_net(rules, usual, threads=threads), name="untrained"), rules


def benches_on_cpu(
    policy: Policy, rules: Rules, config: BenchSearchConfig, threads: int
) -> Sequence[SearchBench]:
    pool = Pool(rules, config.games, seed=config.seed, threads=1)
    play_openings(pool)
    options = {"trees": config.games, "threads": threads}
    return [
        CpuSearchBench(policy.search(rules, budget=Budget(n, rule=config.rule), **options), pool, n)
        for n in config.simulations or SIMULATIONS
    ]


def benches_on_gpu(
    policy: Policy, rules: Rules, config: BenchSearchConfig, threads: int
) -> Sequence[SearchBench]:
    """Return benches whose games, trees and network are on the GPU; threads do nothing there."""
    from sparring.commands.bench import search_gpu

    del threads
    net = search_gpu.make_network(policy, rules)
    pool = search_gpu.make_pool(rules, config.games, config.seed)
    play_openings(pool)
    sizes = config.simulations or SIMULATIONS
    return [search_gpu.GpuSearchBench(net, pool, n, config.rule) for n in sizes]


def play_openings(pool: Any) -> None:
    """Begin all games and make some random moves."""
    pool.reset()
    for _ in range(OPENING_STEPS):
        pool.step(pool.sample_actions())


def summary(bench: SearchBench) -> dict[str, Any]:
    shares = [n / s for n, s in zip(bench.network_s, bench.search_s, strict=True)]
    stages = bench.stages()
    whole = max(sum(stages.values()), 1e-9)
    return {
        "simulations": bench.simulations,
        "simulations_per_s": [round(bench.made / seconds) for seconds in bench.search_s],
        "network_rows_per_s": [round(sum(bench.batches) / s) for s in bench.network_s],
        "share_of_network": [round(share, 4) for share in shares],
        "stages": {name: round(seconds / whole, 4) for name, seconds in stages.items()},
        "batch": round(sum(bench.batches) / len(bench.batches), 1),
        "bytes_per_node": round(bench.bytes_per_node),
        "nodes_per_gb": round(1e9 / bench.bytes_per_node),
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
    where = f"{options['threads']} thread{'s' * (options['threads'] > 1)}"
    if options["device"] != "cpu":
        where = f"bfloat16 on {options['device']}"
    out.print(f"{report['game']}: {options['games']} decisions at once, {options['rule']}, {where}")
    rates = ("simulations", "per second", "network, rows/s", "share")
    columns = (*rates, "select", "settle", "batch", "nodes/GB")
    table = make_table(columns, numbers=columns)
    for one in report["measured"]:
        table.add_row(
            str(one["simulations"]),
            short(median(one["simulations_per_s"])),
            short(median(one["network_rows_per_s"])),
            f"{median(one['share_of_network']):.0%}",
            *(f"{one['stages'][name]:.0%}" for name in TREES),
            f"{one['batch']:,.0f}",
            short(one["nodes_per_gb"]),
        )
    print_table(table)
    out.print("share: time of the network alone, on the same batches, in that of the search")
    out.print(
        "select, settle: share of the search's time in its trees, before and after the network"
    )
    out.print(machine_line(dict(report["machine"])))
