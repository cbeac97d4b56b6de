"""`sparring check`: the conformance test, with what it found."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from sparring.commands.printing import ProgressBar, make_console, print_json
from sparring.config import CheckConfig
from sparring.games.flags import changed_flags, read_rules
from sparring.proof.conformance import PROPERTIES, Report, check


def run(config: CheckConfig) -> int:
    """Check a game; 3 if a property does not hold."""
    rules = read_rules(config.game, config.set)
    with ProgressBar(f"checking {rules.name}", len(PROPERTIES)) as steps:
        report = check(rules, games=config.games, seed=config.seed, progress=steps.next)
    if config.json:
        print_json(
            {
                "game": report.game,
                "flags": changed_flags(rules),
                "passed": report.passed,
                "findings": [asdict(finding) for finding in report.findings],
            }
        )
    else:
        show(report)
    return 0 if report.passed else 3


def show(report: Report) -> None:
    """Print a line per property."""
    out = make_console()
    for finding in report.findings:
        verdict = ("ok  ", "green") if finding.passed else ("FAIL", "bold red")
        out.print(Text.assemble(verdict, f" {finding.name}: {finding.detail}"))
    verdict = ("passed", "bold green") if report.passed else ("FAILED", "bold red")
    out.print(Text.assemble(f"{report.game} ", verdict))
