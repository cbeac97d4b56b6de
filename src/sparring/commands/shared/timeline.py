"""`sparring train --dry-run`: checks of a run, and the timeline of its phases."""

from __future__ import annotations

from typing import Any

from sparring.commands.shared.printing import echo, make_table, print_facts, print_json, print_table
from sparring.config import TrainConfig
from sparring.curriculum.timeline import (
    TimelineEntry,
    checks_of,
    end_text,
    moment_text,
    overrides_text,
    timeline_of,
)
from sparring.learn.memory import memory_line
from sparring.nets.sizes import NetCounts
from sparring.nets.transfer import Transfer
from sparring.training.imitation.imitate import check_records
from sparring.training.planning.settings import members_of
from sparring.training.session import count_network
from sparring.training.train import at_once, prepare_new


def show_timeline(config: TrainConfig) -> int:
    """Prepare a run, print its network and phases, and write nothing."""
    members = members_of(config)
    for configs in [members] if at_once(config) else [[member] for member in members]:
        session, begun = prepare_new(configs, quiet=True)
    first = begun[0]
    imitated = check_records(session.plan, session.training.first) if first.imitate else ""
    entries = timeline_of(session.training.curricula[0], first.opponents)
    budget, amount = session.training.first.budget
    checks = checks_of(entries, budget, amount)
    network, kept = count_network(session.learner), session.transfers.get(0)
    if config.json:
        print_json(
            {
                **{"game": first.game, "algo": first.algo, "runs": len(members)},
                "budget": {budget: amount},
                "phases": entries,
                "checks": checks,
                **({"imitate": imitated} if imitated else {}),
                **session.announced.plain(),
                **({"network": network.plain()} if network else {}),
                **({"init": kept.plain()} if kept else {}),
                **({"memory": memory_line(session.plan)} if session.plan.fused else {}),
            }
        )
        return 0
    if kept:
        print_kept(kept)
    if network:
        print_network(network)
    echo(session.announced.line + (f"; {network.line()}" if network else ""))
    print_phases(entries)
    for check in checks:
        echo(check)
    if imitated:
        echo(imitated)
    if session.plan.fused:
        echo(f"memory: {memory_line(session.plan)}")
    echo(f"{first.game}, {first.algo}, {budget} {amount:,.10g}; nothing was trained or written")
    return 0


def print_network(network: NetCounts) -> None:
    heads = ("layer", "kind", "shape", "parameters", "MACs")
    table = make_table(heads, numbers=heads[3:])
    for layer in network.layers:
        shape = " x ".join(map(str, layer.shape))
        table.add_row(layer.name, layer.kind, shape, f"{layer.parameters:,}", f"{layer.macs:,}")
    print_table(table)


def print_kept(kept: Transfer) -> None:
    heads = ("tensor", "shape", "kept", "numbers", "of")
    table = make_table(heads, numbers=heads[3:])
    for one in kept.kept:
        shape = " x ".join(map(str, one.shape))
        how = f"{one.how}: {one.part}" if one.part else one.how
        table.add_row(one.name, shape, how, f"{one.kept:,}", f"{one.numbers:,}")
    print_table(table)
    echo(f"init: {kept.line()}")


def print_phases(entries: list[TimelineEntry]) -> None:
    """Print when every phase is and its opponents, then its other overrides."""
    table = make_table(("phase", "from", "to", "opponents"))
    facts: list[tuple[Any, str]] = []
    for number, entry in enumerate(entries, start=1):
        before = f"end of {entries[number - 2]['name']}" if number > 1 else "0"
        table.add_row(
            f"{number} {entry['name']}",
            moment_text(entry["from"], before),
            end_text(entry, last=number == len(entries)),
            " ".join(entry["opponents"]),
        )
        facts.append((f"{number} {entry['name']}", overrides_text(entry)))
    print_table(table)
    print_facts(facts, label=max(len(name) for name, _ in facts))
