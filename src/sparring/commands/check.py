"""`sparring check`: conformance test of a native game or a custom environment."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.text import Text

from sparring.commands.shared.printing import ProgressBar, make_console, print_json
from sparring.config.commands import CheckConfig
from sparring.errors import ConfigError
from sparring.factories import read_keywords
from sparring.games.flags import changed_flags, read_rules
from sparring.proof.conformance import ConformanceReport, check, stages_of
from sparring.proof.contract import EnvReport, check_env
from sparring.proof.contract.findings import NOTE, OK, UNSURE, WRONG, Location
from sparring.pygames.registry import is_env, is_python_game

FAILED = 3
SECONDS, STEPS = 30.0, 10_000
STAGES = 9
"""Stages of an environment's check: spaces, episodes, and seven ways to replay them."""
VERDICTS = {
    OK: ("ok  ", "green"),
    NOTE: ("note", "cyan"),
    UNSURE: ("?   ", "yellow"),
    WRONG: ("FAIL", "bold red"),
}


def run(config: CheckConfig) -> int:
    """Check a game or an environment; 3 if a property does not hold."""
    return run_on_env(config) if is_env(config.game) else run_on_game(config)


def run_on_game(config: CheckConfig) -> int:
    for name in ("seconds", "steps"):
        if getattr(config, name):
            raise ConfigError(
                f"--{name} is for custom environments (module:factory); {config.game} is "
                "checked by --games"
            )
    in_python = is_python_game(config.game)
    flags = read_keywords(config.set) if in_python else {}
    rules = config.game if in_python else read_rules(config.game, config.set)
    with ProgressBar(f"checking {config.game}", stages_of(config.game)) as steps:
        options: dict[str, Any] = {"games": config.games, "seed": config.seed}
        report = check(rules, config=flags, progress=steps.next, **options)
    if config.json:
        print_json(
            {
                "game": report.game,
                "flags": flags if isinstance(rules, str) else changed_flags(rules),
                "passed": report.passed,
                "findings": [asdict(finding) for finding in report.findings],
            }
        )
    else:
        show(report)
    return 0 if report.passed else FAILED


def show(report: ConformanceReport) -> None:
    out = make_console()
    for finding in report.findings:
        verdict = VERDICTS[OK if finding.passed else WRONG]
        out.print(Text.assemble(verdict, f" {finding.name}: {finding.detail}"))
    verdict = ("passed", "bold green") if report.passed else ("FAILED", "bold red")
    out.print(Text.assemble(f"{report.game} ", verdict))


def run_on_env(config: CheckConfig) -> int:
    with ProgressBar(f"checking {config.game}", STAGES) as stages:
        report = check_env(
            config.game,
            games=config.games,
            seconds=config.seconds or SECONDS,
            steps=config.steps or STEPS,
            seed=config.seed,
            settings=read_keywords(config.set),
            progress=stages.next,
        )
    if config.json:
        print_json(report.plain())
    else:
        show_env(report)
    return 0 if report.passed else FAILED


def show_env(report: EnvReport) -> None:
    out = make_console()
    for finding in report.findings:
        place = str(Location(finding.seed, finding.episode, finding.step))
        text = f"{place}: {finding.detail}" if place else finding.detail
        out.print(Text.assemble(VERDICTS[finding.verdict], f" {finding.name}: {text}"))
        if finding.advice:
            out.print(f"     {finding.advice}", style="dim")
    verdict = ("passed", "bold green") if report.passed else ("FAILED", "bold red")
    counts = f": {report.kind}, {report.episodes:,} episodes, {report.steps:,} steps"
    unsure = sum(finding.verdict == UNSURE for finding in report.findings)
    undecided = f"; {unsure} undecided" if unsure else ""
    out.print(Text.assemble(f"{report.env} ", verdict, f"{counts}{undecided}"))
