"""How `sparring bench` shows what it measured."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from sparring.commands.shared.printing import make_console, make_table, print_table
from sparring.games.flags import as_typed


def show(report: dict[str, Any]) -> None:
    """Print the proof, the rates, the ratios and the sizes."""
    out = make_console()
    out.print(Text.assemble((proof_line(report), "bold green")))
    out.print(details(report))
    out.print()
    print_table(rate_table(report))
    out.print()
    out.print(memory_line(report["memory"]))
    out.print(machine_line(report["machine"]))


def show_problems(report: dict[str, Any]) -> None:
    """Print why nothing was measured."""
    out = make_console()
    out.print(f"{title(report)}: not valid, so there is nothing to measure", style="bold red")
    for problem in report["proof"]["problems"]:
        out.print(f"  {problem}")
    out.print(f"next: sparring check {report['game']}")


def title(report: dict[str, Any]) -> str:
    """Return the game and the flags that are not the usual ones."""
    return " ".join([report["game"], *as_typed(report["flags"])])


def proof_line(report: dict[str, Any]) -> str:
    """Say that the games are whole."""
    proof = report["proof"]
    return f"{title(report)}: valid, signature {proof['signature']}"


def details(report: dict[str, Any]) -> str:
    """Say how long the games were, how they ended and what was compared."""
    proof = report["proof"]
    lengths = f"{proof['shortest']}..{proof['longest']} decisions, mean {proof['mean']:.1f}"
    if proof["shortest"] == proof["longest"]:
        lengths = f"{proof['longest']} decisions each"
    ends = ", ".join(f"{count} {end}" for end, count in proof["ends"].items())
    return (
        f"{proof['games']} games: {lengths}; ends: {ends}; {proof['audits']} audits clean; "
        "the same on 1, 2 and 4 threads and in two pools"
    )


def rate_table(report: dict[str, Any]) -> Any:
    """Return decisions per second: a row per way to drive the pool, a column per threads."""
    measured = report["measured"]
    threads = sorted({cell["threads"] for cell in measured})
    ratio = {(r["observe"], r["driver"], r["threads"]): r for r in report["ratios"]}
    heads = {count: f"{count} thread{'s' * (count > 1)}" for count in threads}
    options = report["options"]
    table = make_table(("decisions/s", *heads.values()), numbers=tuple(heads.values()))
    players = f"played by {', '.join(options['bots'])}, " if options.get("bots") else ""
    table.caption = (
        f"{options['games']} games, {players}median and range of {options['rounds']} rounds; "
        "x: to the fewest threads; observation includes the mask"
    )
    table.caption_justify = "left"
    for observe, what in ((True, "with observation"), (False, "without")):
        for driver in ("C++", "Python"):
            row = [c for c in measured if (c["observe"], c["driver"]) == (observe, driver)]
            row.sort(key=lambda cell: int(cell["threads"]))
            table.add_row(f"{what}, {driver}", *(rate_cell(cell, ratio) for cell in row))
        shares = [f"{ratio[observe, 'Python', count]['to_cpp']:.2f}" for count in threads]
        table.add_row(Text("  Python / C++", style="dim"), *shares, end_section=True)
    return table


def rate_cell(cell: dict[str, Any], ratio: dict[Any, Any]) -> Text:
    """Return a median and how it scales with threads, the spread below."""
    scaling = ratio[cell["observe"], cell["driver"], cell["threads"]]["to_fewest_threads"]
    return Text.assemble(
        (short(cell["decisions_per_s"]), "bold"),
        f" {scaling:.2f}x\n",
        (f"{short(cell['min'])}..{short(cell['max'])}", "dim"),
    )


def short(number: float) -> str:
    """Return a number with three digits and its unit."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            digits = 2 if number < 10 * size else 1 if number < 100 * size else 0
            return f"{number / size:.{digits}f}{unit}"
    return f"{number:.0f}"


def memory_line(sizes: dict[str, int]) -> str:
    """Say what a game and a row weigh."""
    return (
        f"memory: {sizes['state_per_game']:,} B of state per game, "
        f"{sizes['results_per_game']:,} B of results, "
        f"{sizes['last_rows_per_game']:,} B reserved for last observations; "
        f"an observation is {sizes['observation_row']:,} B, "
        f"a whole row {sizes['whole_row']:,} B"
    )


def machine_line(facts: dict[str, Any]) -> str:
    """Say where and when this was measured."""
    commit = f" at {facts['commit']}" if facts["commit"] else ""
    return (
        f"machine: {facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, "
        f"sparring {facts['sparring']}{commit}, {facts['date']}"
    )
