"""`sparring port`: an environment and a native game side by side, up to their first difference."""

from __future__ import annotations

from rich.text import Text

from sparring.commands.shared.printing import make_console, print_json
from sparring.config.commands import PortConfig
from sparring.games.flags import read_rules
from sparring.proof.port import AFTER_THE_END, PortDifference, PortReport, port

FAILED = 3


def run(config: PortConfig) -> int:
    """Play both; 3 if they differ."""
    report = port(
        config.env,
        read_rules(config.game, config.set),
        games=config.games,
        seconds=config.seconds,
        seed=config.seed,
        same_seed=config.same_seed,
        load=config.load,
        ignore=config.ignore,
    )
    if config.json:
        print_json(report.plain())
    else:
        show(report)
    return 0 if report.passed else FAILED


def show(report: PortReport) -> None:
    out = make_console()
    counts = ", ".join(f"{name} {count:,}" for name, count in report.compared.items() if count)
    played = f"{report.games:,} games, {report.decisions:,} decisions; compared: {counts}"
    if report.difference is None:
        out.print(Text.assemble(f"{report.env} and {report.game} ", ("agree", "bold green")))
        out.print(f"  {played}")
        never = [name for name, count in report.compared.items() if not count]
        if never:
            out.print(f"  never compared, because the env does not tell: {', '.join(never)}")
        return
    out.print(Text.assemble(f"{report.env} and {report.game} ", ("DIFFER", "bold red")))
    out.print(f"  {played}")
    show_difference(report.difference)


def show_difference(found: PortDifference) -> None:
    out = make_console()
    out.print(f"  seed {found.seed}, step {found.step}: {found.what}", style="bold")
    out.print(f"    native: {found.native}")
    out.print(f"    env:    {found.env}")
    if found.what.endswith(AFTER_THE_END):
        out.print("    no player acts on it; if it is intended: --ignore final-mask", style="dim")
    out.print(f"  actions: {', '.join(found.actions) or 'none, at the start'}")
    if found.numbers:
        out.print(f"  numbers: {', '.join(map(str, found.numbers))}")
    if found.native_before:
        show_text("native before the last action", found.native_before)
        show_text("env before the last action", found.env_before)
    show_text("native now", found.native_after)
    show_text("env now", found.env_after)
    out.print(f"  legal: native {found.native_legal}, env {found.env_legal}")
    out.print(f"  rewards: native {found.native_rewards}, env {found.env_rewards}")


def show_text(title: str, text: str) -> None:
    out = make_console()
    out.print(f"  {title}:")
    for line in text.rstrip().splitlines():
        out.print(f"    {line}")
