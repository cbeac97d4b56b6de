"""Causes around the learner: callbacks, checkpoints, curves, evaluation, and other programs."""

from __future__ import annotations

from sparring.speed.evidence import EVALUATION
from sparring.speed.progress import BETWEEN
from sparring.speed.verdicts.case import Case
from sparring.speed.verdicts.frames import LOGGING, hottest, place_of
from sparring.speed.verdicts.own_env import place
from sparring.speed.verdicts.places import CALLBACK, LEAGUE, RECORDING, SAVING, SHOWING
from sparring.speed.verdicts.told import Verdict, expected, percent, typed, without
from sparring.training.meter.beside import crowd_of

CALLBACKS = "a slow callback"
CHECKPOINTS = "checkpoints too often"
EVALUATIONS = "evaluations too often"
CURVES = "curves too often"
LEAGUES = "past selves kept too often"
SPINNING = "a thread beside training"
BUSY = "other programs"
NOTICED = 0.06
USUAL_SAVE_S, USUAL_EVALUATION_S = 60.0, 40.0


def verdicts(case: Case) -> list[Verdict]:
    """What surrounds the learner and takes its time."""
    return [
        *callbacks(case),
        *checkpoints(case),
        *kept_often(case),
        *curves(case),
        *evaluations(case),
        *threads(case),
        *others(case),
    ]


def callbacks(case: Case) -> list[Verdict]:
    """Code of the program that trains, between two updates."""
    share = case.places.at(CALLBACK)
    if share < NOTICED:
        return []
    logs = case.places.doing(LOGGING, CALLBACK) > 0.5 * share
    where = case.places.where(lambda sight: sight.place == CALLBACK)
    advice = "do it every hundredth update, or hand it to a thread"
    gain = without(share, 0.9)
    what = "in a callback that logs or writes" if logs else "in a callback"
    return [
        Verdict(
            "logging in a callback" if logs else CALLBACKS,
            f"{percent(share)} {what} after every update{place(where)}: {advice}; "
            f"{expected(gain, timed=False)}",
            share,
            gain,
            do=f"{where or 'your callback'}: {advice}",
        )
    ]


def checkpoints(case: Case) -> list[Verdict]:
    """Saving that training waits for. Evaluations need checkpoints, too."""
    share, config = case.places.at(SAVING), case.config
    if share < NOTICED:
        return []
    change: dict[str, object] = {}
    if config.checkpoint_every_decisions:
        change["checkpoint_every_decisions"] = config.checkpoint_every_decisions * 20
    elif config.checkpoint_every_s < USUAL_SAVE_S:
        change["checkpoint_every_s"] = USUAL_SAVE_S
    wanted = seldom(case)
    if wanted:
        change["eval"] = wanted
    if not change:
        return []
    gain = without(share, 0.85)
    return [
        Verdict(
            CHECKPOINTS,
            f"{percent(share)} in saving checkpoints: save less often; "
            f"{expected(gain, timed=False)}",
            share,
            gain,
            do=typed(change),
            change=change,
        )
    ]


def seldom(case: Case) -> dict[str, float]:
    """Evaluations less often, where they are more frequent than usual."""
    wanted = case.config.eval
    if wanted.off:
        return {}
    if wanted.every_decisions:
        return {"every_decisions": wanted.every_decisions * 20}
    return {"every_s": USUAL_EVALUATION_S} if wanted.every_s < USUAL_EVALUATION_S else {}


def kept_often(case: Case) -> list[Verdict]:
    """Past selves that are kept after every few updates."""
    share = case.places.at(LEAGUE)
    if share < NOTICED:
        return []
    every = case.config.league.every
    change = {"league": {"every": 20 * every if every else 0}}
    gain = without(share, 0.8) if every else None
    hope = f"; {expected(gain, timed=False)}" if gain is not None else ""
    return [
        Verdict(
            LEAGUES,
            f"{percent(share)} in keeping and exchanging past selves: do so less often{hope}",
            share,
            gain,
            do=typed(change) if every else "--league.every with more decisions",
            change=change if every else {},
        )
    ]


def curves(case: Case) -> list[Verdict]:
    """Updates so short that writing down what came of them counts."""
    config, places = case.config, case.places
    writes = sum(s.samples for s in places.threads if s.place == RECORDING) / places.wall
    share = places.at(RECORDING, SHOWING) + 0.5 * min(writes, 1.0)
    if share < NOTICED:
        return []
    change: dict[str, object] = {"collect": {"steps": config.collect.steps * 4}}
    advice = "as an update is over in no time: make rollouts four times as long"
    if config.episodes_csv:
        change, advice = {"episodes_csv": False}, "every game among them: leave episodes_csv out"
    gain = without(share, 0.7)
    return [
        Verdict(
            CURVES,
            f"{percent(share)} in writing curves and showing them, {advice}; "
            f"{expected(gain, timed=False)}",
            share,
            gain,
            do=typed(change),
            change=change,
        )
    ]


def threads(case: Case) -> list[Verdict]:
    """Threads of the user's own in the same process: only one at a time runs Python."""
    places = case.places
    mine = [sight for sight in places.threads if sight.theirs]
    share = sum(sight.samples for sight in mine) / places.wall
    if share < 0.15:
        return []
    taken = min(0.5 * share, 0.5)
    gain = without(taken, 0.8)
    first = hottest(max(mine, key=lambda sight: sight.samples).theirs)
    where = place_of(first) if first else "your thread"
    advice = "let it wait for events instead of looking again and again, or make it a process"
    return [
        Verdict(
            SPINNING,
            f"a thread beside training is at work for {percent(share)} of the time, in {where}, "
            f"and only one at a time runs Python: {advice}; {expected(gain, timed=False)}",
            taken,
            gain,
            do=f"{where}: {advice}",
        )
    ]


def evaluations(case: Case) -> list[Verdict]:
    """Evaluation beside training that takes cores which training wants, or that it waits for."""
    evidence, change = case.evidence, seldom(case)
    waited = between(case) if case.config.eval.every_decisions else 0.0
    taken = beside(case)
    if not change or max(waited, taken) < NOTICED:
        return []
    wanted = min(case.threads, evidence.cores)
    lost = max(wanted + taken - evidence.cores, 0.0) / (wanted + taken)
    share = max(waited, 0.5 * lost)
    if share < NOTICED:
        return []
    gain = without(share, 0.8)
    told = f"evaluations beside training take {taken:.1f} of {evidence.cores} cores"
    if waited > 0.5 * share:
        told = f"{percent(waited)} in waiting for evaluations"
    return [
        Verdict(
            EVALUATIONS,
            f"{told}: evaluate less often; {expected(gain, timed=False)}",
            share,
            gain,
            do=typed({"eval": change}),
            change={"eval": change},
        )
    ]


def between(case: Case) -> float:
    """Share of the time between updates in which nothing was seen at work: a wait."""
    seen = case.places.at(CALLBACK, SAVING, RECORDING, SHOWING, LEAGUE)
    return max(case.evidence.phases.get(BETWEEN, 0.0) - seen, 0.0)


def beside(case: Case) -> float:
    """Cores that evaluation takes: its threads at work, as they were met."""
    evidence = case.evidence
    them = {pid for pid, does in evidence.processes.items() if does == EVALUATION}
    met = sum(stack.samples for stack in evidence.beside.stacks if stack.process in them)
    return met / max(evidence.beside.rate * evidence.seconds, 1e-9)


def others(case: Case) -> list[Verdict]:
    """Programs of somebody else's on the same cores."""
    evidence = case.evidence
    load = max(evidence.load - beside(case), 0.0)
    crowd = crowd_of(evidence.cpu_cores + evidence.load - load, load, evidence.cores)
    if crowd is None:
        return []
    share = load / (evidence.cpu_cores + load)
    gain = without(share, 0.4)
    return [
        Verdict(
            BUSY,
            f"{crowd.words} at the same time: end them, or train when they are done; "
            f"{expected(gain, timed=False)}",
            share,
            gain,
            do="top, or nice for whatever may wait",
        )
    ]
