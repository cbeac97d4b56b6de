"""Causes around the learner: checkpoints, curves, leagues, evaluation, and other programs."""

from __future__ import annotations

from typing import Any

from sparring.speed.code import hottest, place_of
from sparring.speed.evidence import EVALUATION
from sparring.speed.progress import BETWEEN
from sparring.speed.verdicts.case import (
    CALLBACK,
    LEAGUE,
    RECORDING,
    SAVING,
    SHOWING,
    Case,
    Verdict,
    percent,
    reckoned,
)
from sparring.usage import crowd_of

BUSY = "other programs"
NOTICED = 0.06
USUAL_SAVE_S, USUAL_EVALUATION_S = 60.0, 40.0


def verdicts(case: Case) -> list[Verdict]:
    """What surrounds the learner and takes its time."""
    causes = (checkpoints, leagues, curves, evaluations, threads, others)
    return [found for cause in causes if (found := cause(case))]


def checkpoints(case: Case) -> Verdict | None:
    """Saving that training waits for. Evaluations need checkpoints, too."""
    share, config = case.at(SAVING), case.config
    change: dict[str, Any] = {}
    if config.checkpoint_every_decisions:
        change["checkpoint_every_decisions"] = config.checkpoint_every_decisions * 20
    elif config.checkpoint_every_s < USUAL_SAVE_S:
        change["checkpoint_every_s"] = USUAL_SAVE_S
    if wanted := seldom(case):
        change["eval"] = wanted
    if share < NOTICED or not change:
        return None
    text = f"{percent(share)} in saving checkpoints: save less often"
    return reckoned("checkpoints too often", text, share, 0.85, change=change)


def seldom(case: Case) -> dict[str, float]:
    """Evaluations less often, where they are more frequent than usual."""
    wanted = case.config.eval
    if wanted.off:
        return {}
    if wanted.every_decisions:
        return {"every_decisions": wanted.every_decisions * 20}
    return {"every_s": USUAL_EVALUATION_S} if wanted.every_s < USUAL_EVALUATION_S else {}


def leagues(case: Case) -> Verdict | None:
    """Past selves that are kept after every few updates."""
    share, every = case.at(LEAGUE), case.config.league.every_decisions
    if share < NOTICED:
        return None
    cause = "past selves kept too often"
    text = f"{percent(share)} in keeping and exchanging past selves: do so less often"
    if not every:
        return Verdict(cause, text, share, do="--league.every_decisions with more decisions")
    return reckoned(cause, text, share, 0.8, change={"league": {"every_decisions": 20 * every}})


def curves(case: Case) -> Verdict | None:
    """Updates so short that writing down what came of them counts."""
    writes = sum(s.samples for s in case.others if s.phase == RECORDING) / case.wall
    share = case.at(RECORDING, SHOWING) + 0.5 * min(writes, 1.0)
    if share < NOTICED:
        return None
    change: dict[str, Any] = {"collect": {"steps": case.config.collect.steps * 4}}
    advice = "as an update is over in no time: make rollouts four times as long"
    if case.config.episodes_csv:
        change, advice = {"episodes_csv": False}, "every game among them: leave episodes_csv out"
    text = f"{percent(share)} in writing curves and showing them, {advice}"
    return reckoned("curves too often", text, share, 0.7, change=change)


def threads(case: Case) -> Verdict | None:
    """Threads of the user's own in the same process: only one at a time runs Python."""
    mine = [sight for sight in case.others if sight.theirs]
    share = sum(sight.samples for sight in mine) / case.wall
    if share < 0.15:
        return None
    first = hottest(max(mine, key=lambda sight: sight.samples).theirs)
    where = place_of(first) if first else "your thread"
    advice = "let it wait for events instead of looking again and again, or make it a process"
    return reckoned(
        "a thread beside training",
        f"a thread beside training is at work for {percent(share)} of the time, in {where}, "
        f"and only one at a time runs Python: {advice}",
        min(0.5 * share, 0.5),
        0.8,
        do=f"{where}: {advice}",
    )


def evaluations(case: Case) -> Verdict | None:
    """Evaluation beside training that takes cores which training wants, or that it waits for."""
    change, cores, taken = seldom(case), case.evidence.cores, beside(case)
    waited = between(case) if case.config.eval.every_decisions else 0.0
    if not change or max(waited, taken) < NOTICED:
        return None
    wanted = min(case.threads, cores)
    lost = max(wanted + taken - cores, 0.0) / (wanted + taken)
    share = max(waited, 0.5 * lost)
    if share < NOTICED:
        return None
    told = f"evaluations beside training take {taken:.1f} of {cores} cores"
    if waited > 0.5 * share:
        told = f"{percent(waited)} in waiting for evaluations"
    text = f"{told}: evaluate less often"
    return reckoned("evaluations too often", text, share, 0.8, change={"eval": change})


def between(case: Case) -> float:
    """Share of the time between updates in which nothing was seen at work: a wait."""
    seen = case.at(CALLBACK, SAVING, RECORDING, SHOWING, LEAGUE)
    return max(case.phase(BETWEEN) - seen, 0.0)


def beside(case: Case) -> float:
    """Cores that evaluation takes: its threads at work, as they were met."""
    evidence = case.evidence
    them = {pid for pid, does in evidence.processes.items() if does == EVALUATION}
    met = sum(stack.samples for stack in evidence.beside.stacks if stack.process in them)
    return met / max(evidence.beside.rate * evidence.seconds, 1e-9)


def others(case: Case) -> Verdict | None:
    """Programs of somebody else's on the same cores."""
    evidence = case.evidence
    load = max(evidence.load - beside(case), 0.0)
    crowd = crowd_of(evidence.cpu_cores + evidence.load - load, load, evidence.cores)
    if crowd is None:
        return None
    text = f"{crowd.words} at the same time: end them, or train when they are done"
    share = load / (evidence.cpu_cores + load)
    return reckoned(BUSY, text, share, 0.4, do="top, or nice for whatever may wait")
