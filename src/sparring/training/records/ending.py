"""How a run ended, and how it goes on from there. Needs no torch."""

from __future__ import annotations

from sparring.store.folders import BEST
from sparring.training.records.overview import Overview, newest_meta, read_json

COUNTED = ("updates", "decisions", "episodes")
"""Budgets that go before the minutes."""


def amount(kind: str, value: float) -> str:
    """Return a budget, or what is used of it, as a person writes it."""
    return f"{value:,.2f}".rstrip("0").rstrip(".") if kind == "minutes" else f"{int(value):,}"


def done_line(run: Overview) -> str:
    """Say that a run is done, and which budget would have it go on."""
    kind = next((kind for kind in COUNTED if run.planned(kind)), "minutes")
    episodes = newest_meta(run.path).get("episodes", 0)
    gone = {
        "updates": run.updates,
        "decisions": run.decisions,
        "episodes": episodes if isinstance(episodes, int) else 0,
        "minutes": run.minutes,
    }[kind]
    planned = run.planned(kind)
    more = amount(kind, 2 * (planned if 2 * planned > gone else gone)).replace(",", "")
    why = " (no progress for as many evaluations as eval.patience says)" * run.ended_early
    return (
        f"done: {amount(kind, gone)} of {amount(kind, planned)} {kind}{why}; "
        f"give more: sparring resume {run.path} --{kind} {more}"
    )


def measured_line(run: Overview, update: int, decisions: int) -> str:
    """Say whose strength is measured: of a run's checkpoints, the best one or the last."""
    named = read_json(run.path / BEST)
    best = named.get("checkpoint") if isinstance(named, dict) else None
    which = "best so far" if best == update else "the last"
    last = max(run.updates, update)
    return f"measured: update {update:,} of {last:,} ({which}), {decisions:,} decisions"
