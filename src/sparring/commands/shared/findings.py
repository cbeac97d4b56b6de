"""What responses of `sparring exploit` found, as lines, tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparring.commands.shared.players import loaded_from
from sparring.commands.shared.printing import echo, make_table, print_table
from sparring.commands.shared.responses import ExploitTarget, Loss, Response
from sparring.commands.shared.results import results_table
from sparring.config.commands import ExploitConfig
from sparring.games.flags import changed_flags
from sparring.league.intervals import Interval
from sparring.league.results import MatchResult, finite_or_none
from sparring.nets.policy import Policy
from sparring.store.folders import display_path
from sparring.training.records.exploited import SEES


@dataclass(frozen=True)
class Outcome:
    """A response that was trained, and what its match says."""

    response: Response
    policy: Policy | None
    """None if an earlier command has trained and measured it."""
    ended: str
    decisions: int
    minutes: float
    result: Mapping[str, Any]
    """Summary of its match."""
    loss: Loss
    match: MatchResult | None = None
    """None if an earlier command has played it."""
    unsaved: bool = False

    @property
    def run(self) -> str:
        return str(display_path(self.response.path.absolute()))

    def plain(self) -> dict[str, Any]:
        return {
            "kind": self.response.kind,
            "seed": self.response.settings.seed,
            "run": self.run,
            "ended": self.ended,
            "decisions": self.decisions,
            "minutes": self.minutes,
            **plain_loss(self.response.kind, self.loss),
            "result": dict(self.result),
        }


@dataclass(frozen=True)
class Findings:
    """What responses of a command found: all that see no more than their seat, or all that do."""

    outcomes: Sequence[Outcome]
    best: Outcome
    """The strongest response."""
    result: MatchResult
    """Its last match: on deals of its own, if it was chosen from several."""
    loss: Loss

    @property
    def seeing(self) -> bool:
        return self.best.response.kind == SEES


def plain_loss(kind: str, loss: Loss) -> dict[str, Any]:
    """Return a loss as JSON has it: a lower bound, unless the response sees what is hidden."""
    low, high = map(finite_or_none, loss.interval)
    value = {"of": loss.what, "value": loss.value, "low": low, "high": high, "equal": loss.equal}
    if kind == SEES:
        return {"seeing": value}
    return {"exploited": loss.found, "lower_bound": value}


def summary(
    config: ExploitConfig, target: ExploitTarget, found: Sequence[Findings], kept: Path | None
) -> dict[str, Any]:
    first, last = found[0], found[-1]
    best = first.best.plain()
    seeing = plain_loss(SEES, last.loss)["seeing"] if last.seeing else None
    if seeing:
        seeing |= {"run": last.best.run, "result": last.result.summary()}
    return {
        "policy": config.policy,
        "loaded_from": loaded_from(target.player),
        "game": target.rules.name,
        "flags": changed_flags(target.rules),
        "plays": target.plays,
        "search": target.search[1:],
        **{key: best[key] for key in ("kind", "seed", "run", "ended", "decisions", "minutes")},
        **{"exploited": None, "lower_bound": None, **plain_loss(best["kind"], first.loss)},
        "seeing": seeing,
        "result": first.result.summary(),
        "responses": [one.plain() for group in found for one in group.outcomes],
        "kept_in": str(display_path(kept)) if kept else None,
    }


def print_findings(target: ExploitTarget, found: Sequence[Findings], kept: Path | None) -> None:
    outcomes = [one for group in found for one in group.outcomes]
    if len(outcomes) > 1:
        print_responses(outcomes)
    for group in found:
        print_group(target, group, found[0])
    if kept:
        print(f"kept in {display_path(kept)}, where sparring compare finds it")


def print_group(target: ExploitTarget, found: Findings, first: Findings) -> None:
    """Print what a group of responses found. first: those that see no more, if there are any."""
    best = found.best
    if len(found.outcomes) > 1:
        echo(
            f"the strongest, {best.response.kind} with seed {best.response.settings.seed}, once "
            "more on other deals, because the largest of several measurements is too large:"
        )
    print_table(results_table({target.label: found.result}))
    if found.result.games == target.rules.seats:
        echo("both players and the game are deterministic: one game from every seat")
    verdict = seen_line(found.loss, first) if found.seeing else bound_line(found.loss)
    for line in (*match_lines(target, found.result), verdict):
        echo(line)
    trained = f"{best.decisions:,} decisions in {best.minutes:.1f} minutes"
    print(f"response: {best.run} ({trained}); curves: sparring plot {best.run}")


def print_responses(outcomes: Sequence[Outcome]) -> None:
    what = outcomes[0].loss.what
    numbers = ("seed", "decisions", "minutes", what, "95 %")
    table = make_table(("response", *numbers, "run"), numbers=numbers, least=("minutes",))
    for one in outcomes:
        made = f"{one.decisions:,}", f"{one.minutes:.1f}"
        seed, loss = str(one.response.settings.seed), one.loss
        figures = f"{loss.value:.3f}", shown(loss.interval)
        table.add_row(one.response.kind, seed, *made, *figures, one.run)
    print_table(table)


def match_lines(target: ExploitTarget, found: MatchResult) -> list[str]:
    others = found.seats - 1
    table = "one seat each" if others == 1 else f"one response among {others} copies of it"
    who = f"{target.label}, {target.style}; {table}"
    deals = f"{found.deals:,} deals, each from all {found.seats} seats"
    texts = [f"{who}, {found.games:,} games: {deals}"]
    if found.margin is not None:
        texts.append(
            f"difference of the scores {found.margin:+.3f} {shown(found.margin_interval)}; the "
            f"response wins {found.first.win_share:.1%} of the games, parity is {found.parity:.1%}"
        )
    return texts


def bound_line(loss: Loss) -> str:
    if not loss.found:
        return (
            f"nothing was found within the budget: a {loss.what} of {loss.value:.3f} "
            f"{shown(loss.interval)} is not beyond the {loss.equal:.3g} of an equal; a better "
            "response may still find something: give more --minutes, --decisions or --seeds"
        )
    if loss.what == "score":
        return (
            f"it loses {loss.value:.3f} {shown(loss.interval)} per game to the response: a lower "
            "bound of its exploitability; a better response may win more"
        )
    return (
        f"the response wins {loss.value - loss.equal:.1%} of the games more than an equal "
        f"would, at least {loss.interval[0] - loss.equal:.1%}: a lower bound; a better "
        "response may win more"
    )


def seen_line(loss: Loss, first: Findings) -> str:
    """Say what a response won that sees what is hidden. first: what others found, or itself."""
    text = f"a response that sees what is hidden has a {loss.what} of {loss.value:.3f} "
    text += shown(loss.interval)
    more = loss.value - first.loss.value
    if more < 0:
        return (
            f"{text}, less than the strongest that does not: within the budget it has not learned "
            "to use what it sees; give more --minutes, --decisions or --seeds"
        )
    text += f", {more:+.3f} to the strongest that does not" * (not first.seeing)
    return (
        f"{text}: what seeing is worth within the budget, and no bound of exploitability, because "
        "no opponent may see it"
    )


def shown(interval: Interval) -> str:
    low, high = interval
    return f"({low:.3f} .. {high:.3f})" if math.isfinite(low) else "(one game has no interval)"
