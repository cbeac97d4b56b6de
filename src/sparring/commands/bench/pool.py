"""`sparring bench pool`: check that a pool is valid, then measure decisions per second."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import numpy as np
from rich.text import Text

from sparring.commands.bench.shared import (
    BenchRecorder,
    details,
    finish,
    machine_line,
    proof_line,
    rate_summary,
    short,
)
from sparring.commands.shared.printing import ProgressBar, make_console, make_table, print_table
from sparring.config.commands import BenchPoolConfig
from sparring.errors import ConfigError
from sparring.games import Rules
from sparring.games.flags import changed_flags, read_rules
from sparring.machine import cores, machine_info, thread_counts, warn_if_busy
from sparring.pools import Lineup, Pool
from sparring.proof.validity import Proof, prove
from sparring.speed.bench_records import Figure

WARM_UP_STEPS = 20


@dataclass
class PoolVariant:
    """One measured combination: a pool, and the code that steps it."""

    observe: bool
    driver: str
    threads: int
    pool: Pool
    rates: list[float] = field(default_factory=list)
    """Decisions per second, one per round."""


def run(config: BenchPoolConfig) -> int:
    """Check, measure, report; 3 if the games are not valid."""
    if config.device != "cpu":
        return run_on_gpu(config)
    rules = read_rules(config.game, config.set)
    lineups = bot_lineups(rules, config.bots)
    report: dict[str, Any] = {
        "command": "bench pool",
        "game": rules.name,
        "flags": changed_flags(rules),
        "options": {k: getattr(config, k) for k in ("games", "seconds", "rounds", "seed", "bots")},
        "machine": machine_info(),
    }
    recorder = BenchRecorder(config, "bench pool", measured_settings(report), "")
    warn_if_busy(report["machine"]["load_average"])
    with ProgressBar(f"bench {rules.name}", config.rounds + 2) as steps:
        steps.next("checking the games")
        proof = prove(rules, config.seed)
        cells = measure(rules, config, lineups, proof, steps) if proof.valid else []
    report["valid"], report["proof"] = proof.valid, asdict(proof)
    if proof.valid:
        report["measured"] = [summary(cell) for cell in cells]
        report["ratios"] = ratios(cells)
        report["memory"] = memory(cells[0].pool)
    return finish(recorder, report, figures(report.get("measured", ())), show)


def measured_settings(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that must be equal in a record; the duration may differ."""
    options = {k: v for k, v in report["options"].items() if k not in ("seconds", "rounds")}
    return {"game": report["game"], "flags": report["flags"], **options}


def figures(cells: Sequence[Mapping[str, Any]]) -> dict[str, Figure]:
    found = {}
    for cell in cells:
        seen = "with observation" if cell["observe"] else "without"
        threads = f"{cell['threads']} thread{'s' * (cell['threads'] > 1)}"
        name = f"{seen}, {cell['driver']}, {threads}"
        found[name] = Figure(tuple(cell["rounds"]), "decisions/s")
    return found


def run_on_gpu(config: BenchPoolConfig) -> int:
    if config.bots:
        raise ConfigError("--bots needs --device cpu; a GPU is measured with random actions")
    from sparring.commands.bench import pool_gpu
    from sparring.training.planning.placement import choose_device

    if not choose_device(config.device).startswith("cuda"):
        raise ConfigError(f"--device {config.device}: torch sees no GPU here; use cpu")
    return pool_gpu.run(config)


def bot_lineups(rules: Rules, bots: Sequence[str]) -> list[Lineup] | None:
    """Return the line-up if bots play alone; None if random actions come from outside."""
    if not bots:
        return None
    players = tuple(bots) * rules.seats if len(bots) == 1 else tuple(bots)
    if len(players) != rules.seats:
        raise ConfigError(f"give 1 or {rules.seats} --bots for {rules.name}, not {len(players)}")
    for name in players:
        rules.bot(name)
    return [Lineup(players, shuffle=False)]


def measure(
    rules: Rules,
    config: BenchPoolConfig,
    lineups: Sequence[Lineup] | None,
    proof: Proof,
    steps: ProgressBar,
) -> list[PoolVariant]:
    """Measure all variants in turn, each round in the same order, on the same games."""
    cells = make_cells(rules, config, lineups)
    steps.next("warming up")
    burst = burst_steps(cells, config, proof)
    for number in range(config.rounds):
        steps.next(f"round {number + 1} of {config.rounds}, {burst} steps each")
        for cell in cells:
            cell.rates.append(decisions_per_s(cell, burst))
    proof.problems += [f"audit of a measured pool: {w}" for c in cells if (w := c.pool.audit())]
    for observe in (True, False):
        if len({cell.pool.digest() for cell in cells if cell.observe == observe}) != 1:
            proof.problems.append("the measured pools did not play the same games")
    return cells


def make_cells(
    rules: Rules, config: BenchPoolConfig, lineups: Sequence[Lineup] | None = None
) -> list[PoolVariant]:
    """Return every variant, each with a separate pool, so that all play the same games."""
    counts = sorted(set(config.threads)) or thread_counts(cores())
    cells = [
        PoolVariant(
            observe,
            driver,
            threads,
            Pool(
                rules,
                config.games,
                seed=config.seed,
                threads=threads,
                observe=observe,
                lineups=lineups,
            ),
        )
        for observe in (True, False)
        for threads in counts
        for driver in ("C++", "Python")
    ]
    for cell in cells:
        cell.pool.reset()
    return cells


def burst_steps(cells: Sequence[PoolVariant], config: BenchPoolConfig, proof: Proof) -> int:
    """Warm up and return how many steps fit the time: whole games if they fit."""
    for cell in cells:
        decisions_per_s(cell, WARM_UP_STEPS)
    live = np.mean([live_rows(cell.pool) for cell in cells])
    step_s = sum(live / decisions_per_s(cell, WARM_UP_STEPS) for cell in cells)
    fitting = int(config.seconds / config.rounds / step_s)
    whole = round(proof.mean)
    return fitting // whole * whole if fitting > whole else max(1, fitting)


def decisions_per_s(cell: PoolVariant, steps: int) -> float:
    """Play and return the rate; rows without a decision do not count."""
    drive: Callable[[Pool, int], None] = run_in_python if cell.driver == "Python" else run_in_cpp
    before = live_rows(cell.pool)
    started = time.perf_counter()
    drive(cell.pool, steps)
    seconds = time.perf_counter() - started
    return steps * (before + live_rows(cell.pool)) / 2 / seconds


def live_rows(pool: Pool) -> int:
    """Return how many rows wait for a decision; where bots play alone, for one of a bot."""
    batch = pool.batch()
    return int((batch.policy >= 0).sum()) or int((batch.seat >= 0).sum())


def run_in_cpp(pool: Pool, steps: int) -> None:
    pool.run_random(steps)


def run_in_python(pool: Pool, steps: int) -> None:
    """Step with random actions, as a caller in Python would."""
    for _ in range(steps):
        pool.step(pool.sample_actions())


def summary(cell: PoolVariant) -> dict[str, Any]:
    return {
        "observe": cell.observe,
        "driver": cell.driver,
        "threads": cell.threads,
        **rate_summary(cell.rates),
    }


def ratios(cells: Sequence[PoolVariant]) -> list[dict[str, Any]]:
    """Compare variants within each round, so that load on the machine affects both."""
    by_key = {(cell.observe, cell.driver, cell.threads): cell for cell in cells}
    fewest = min(cell.threads for cell in cells)

    def compare(cell: PoolVariant, other: PoolVariant) -> float:
        pairs = zip(cell.rates, other.rates, strict=True)
        return round(median(mine / theirs for mine, theirs in pairs), 3)

    return [
        {
            "observe": observe,
            "driver": driver,
            "threads": threads,
            "to_fewest_threads": compare(cell, by_key[observe, driver, fewest]),
            "to_cpp": compare(cell, by_key[observe, "C++", threads]),
        }
        for (observe, driver, threads), cell in by_key.items()
    ]


def memory(pool: Pool) -> dict[str, int]:
    native, games = pool._native, pool.num_games
    rows = games * pool.rules.rows

    def each(count: int, *names: str) -> int:
        return sum(int(getattr(native, name).nbytes) for name in names) // count

    finals = ("final_game", "final_length", "final_reason", "final_score", "final_policy")
    return {
        "state_per_game": each(games, "envs", "extra"),
        "results_per_game": each(games, "reward", "skipped", "terminated", "truncated", *finals),
        "last_rows_per_game": each(games, "final_obs", "final_mask"),
        "observation_row": each(rows, "obs"),
        "whole_row": each(rows, "obs", "mask", "seat", "role", "policy"),
    }


def show(report: dict[str, Any]) -> None:
    out = make_console()
    out.print(Text.assemble((proof_line(report), "bold green")))
    out.print(details(report))
    out.print()
    print_table(rate_table(report))
    out.print()
    out.print(memory_line(report["memory"]))
    out.print(machine_line(report["machine"]))


def rate_table(report: dict[str, Any]) -> Any:
    """Return decisions per second: a row per driver, a column per number of threads."""
    measured = report["measured"]
    threads = sorted({cell["threads"] for cell in measured})
    ratio = {(r["observe"], r["driver"], r["threads"]): r for r in report["ratios"]}
    heads = {count: f"{count} thread{'s' * (count > 1)}" for count in threads}
    options = report["options"]
    players = f"played by {', '.join(options['bots'])}, " if options.get("bots") else ""
    caption = (
        f"{options['games']} games, {players}median and range of {options['rounds']} rounds; "
        "x: relative to the fewest threads; observation includes the mask"
    )
    columns = tuple(heads.values())
    table = make_table(("decisions/s", *columns), numbers=columns, caption=caption)
    for observe, what in ((True, "with observation"), (False, "without")):
        for driver in ("C++", "Python"):
            row = [c for c in measured if (c["observe"], c["driver"]) == (observe, driver)]
            row.sort(key=lambda cell: int(cell["threads"]))
            table.add_row(f"{what}, {driver}", *(rate_cell(cell, ratio) for cell in row))
        shares = [f"{ratio[observe, 'Python', count]['to_cpp']:.2f}" for count in threads]
        table.add_row(Text("  Python / C++", style="dim"), *shares, end_section=True)
    return table


def rate_cell(cell: dict[str, Any], ratio: dict[Any, Any]) -> Text:
    scaling = ratio[cell["observe"], cell["driver"], cell["threads"]]["to_fewest_threads"]
    return Text.assemble(
        (short(cell["decisions_per_s"]), "bold"),
        f" {scaling:.2f}x\n",
        (f"{short(cell['min'])}..{short(cell['max'])}", "dim"),
    )


def memory_line(sizes: dict[str, int]) -> str:
    return (
        f"memory: {sizes['state_per_game']:,} B of state per game, "
        f"{sizes['results_per_game']:,} B of results, "
        f"{sizes['last_rows_per_game']:,} B reserved for last observations; "
        f"an observation is {sizes['observation_row']:,} B, "
        f"a whole row {sizes['whole_row']:,} B"
    )
