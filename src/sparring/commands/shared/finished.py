"""What is said about a run that is trained and measured."""

from __future__ import annotations

from sparring.commands.shared.printing import print_json
from sparring.config.runs import ResumeConfig
from sparring.store.folders import display_path
from sparring.training.budget import BUDGETS
from sparring.training.records.overview import Overview, done_line
from sparring.training.records.run import Run
from sparring.training.records.strength import Strength


def done_already(config: ResumeConfig) -> Overview | None:
    """Return a run that is trained and measured; None if something is left to do."""
    seen = Overview(display_path(Run.open(config.run).path))
    more = config.checkpoint >= 0 or any(getattr(config, kind) for kind in BUDGETS)
    return None if more or seen.state != "done" or not seen.met else seen


def report_done(overview: Overview, *, as_json: bool) -> int:
    line = done_line(overview)
    if as_json:
        kept = ("decisions", "minutes", "checkpoint", "strength", "results", "progress")
        summary = {key: overview.results.get(key) for key in kept}
        print_json({"run": str(overview.path), "ended": overview.ended, "message": line, **summary})
        return 0
    print(line)
    if overview.strength:
        print(f"strength: {strength_words(overview.strength)}")
    return 0


def strength_words(found: Strength) -> str:
    return f"{found.measure} {found.figure}" + (f" ({found.interval})" * bool(found.interval))
