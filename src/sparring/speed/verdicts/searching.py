"""Causes in searches: many simulations, at the learner's decisions or at those of opponents."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparring.config import TrainConfig
from sparring.phases import SEARCHING, TREES
from sparring.speed.kernels import TREE_KERNELS
from sparring.speed.verdicts.profiled_run import (
    OPPONENTS,
    Candidate,
    ProfiledRun,
    counted,
    percent,
    without,
)
from sparring.speed.verdicts.user_code import NOTICED_OPPONENT
from sparring.training.planning.settings import merged

FEWER = 4
"""Simulations of opponents are divided by this."""
BUDGET = re.compile(r"@(\d+)(?=$|[/=,+])")
"""Simulations in the name of an opponent."""
NOTICED = 0.3
"""Share of the time from which on searches are worth a verdict."""
SURE = 0.7
"""Part of the saved simulations that counts where nothing is timed: few make smaller batches."""
LEVERS = "fewer simulations (gumbel.simulations, gumbel.full_share)"


def candidates(run: ProfiledRun, usual: TrainConfig | None) -> list[Candidate]:
    """Return changes of searches that the profile suggests. usual: the preset, if there is one."""
    found = [opponents(run)]
    if run.config.algo == "gumbel" and usual is not None:
        found += [simulations(run, usual), full_share(run, usual)]
    return list(filter(None, found))


def share_of(run: ProfiledRun) -> float:
    """Share of the time in the learner's searches; on a GPU they are nearly all of the rollout."""
    return run.phase(*SEARCHING) or run.phase("rollout")


def most_simulations(config: TrainConfig) -> int:
    return round(max(config.gumbel.simulations.values))


def mean_simulations(config: TrainConfig) -> float:
    """Simulations per decision, full and fast searches together."""
    most, share = most_simulations(config), config.gumbel.full_share
    return share * most + (1 - share) * min(config.gumbel.fast_simulations, most)


def simulations(run: ProfiledRun, usual: TrainConfig) -> Candidate | None:
    now, less = most_simulations(run.config), most_simulations(usual)
    why = f"{now} simulations in a full one"
    advice = f"take {less}, as in the preset; more find better targets at fewer decisions"
    change = {"simulations": less}
    return shorter(run, "many simulations", change, why, advice) if now >= 2 * less else None


def full_share(run: ProfiledRun, usual: TrainConfig) -> Candidate | None:
    now, less = run.config.gumbel.full_share, usual.gumbel.full_share
    why, change = f"{percent(now)} of them full", {"full_share": less}
    advice = (
        f"take {less:g}, as in the preset: the other decisions get few simulations, and games end "
        "sooner"
    )
    return shorter(run, "many full searches", change, why, advice) if now >= 2 * less else None


def shorter(
    run: ProfiledRun, cause: str, change: Mapping[str, float], why: str, advice: str
) -> Candidate | None:
    """Return a change that makes searches shorter; their time goes with their simulations."""
    share, then = share_of(run), merged(run.config, {"gumbel": change}, "try")
    if share < NOTICED:
        return None
    saved = 1 - mean_simulations(then) / mean_simulations(run.config)
    return Candidate(
        cause,
        share,
        {"gumbel": change},
        f"{percent(share)} in searches, {why}",
        advice,
        estimated=without(share, SURE * saved),
        hope=without(share, saved),
        alters=True,
    )


def opponents(run: ProfiledRun) -> Candidate | None:
    share = run.share(lambda stack: stack.phase == OPPONENTS and not stack.user_frames)
    named = [word for word in run.config.opponents if BUDGET.search(word)]
    if share < NOTICED_OPPONENT or not named:
        return None
    fewer = tuple(
        BUDGET.sub(lambda found: f"@{max(int(found[1]) // FEWER, 1)}", word)
        for word in run.config.opponents
    )
    return Candidate(
        "opponents that search",
        share,
        {"opponents": fewer},
        f"{percent(share)} in opponents that search: {', '.join(named)}",
        "give them fewer simulations",
        estimated=without(share, 0.5),
        hope=without(share, 1 - 1 / FEWER),
        alters=True,
    )


def details(run: ProfiledRun) -> str:
    """Return how much is searched, as the end of a sentence."""
    config = run.config
    return (
        f", {most_simulations(config)} simulations in {percent(config.gumbel.full_share)} of the "
        f"decisions, {counted(config.collect.games, 'game')} at once"
    )


def remedy(run: ProfiledRun, name: str) -> str:
    """Return what makes searches shorter, by the phase that takes most time."""
    if name in TREES:
        network = percent(run.phase("evaluate"))
        return (
            f"; {LEVERS} take less time and learn otherwise; the network takes {network}, so that "
            "a larger one costs little"
        )
    trees = run.phase(*TREES) or run.evidence.gpu.get(TREE_KERNELS, 0.0)
    return (
        f"; a smaller network or {LEVERS} take less time and learn otherwise; the trees take "
        f"{percent(trees)}"
    )
