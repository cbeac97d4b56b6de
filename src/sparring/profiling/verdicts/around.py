"""Causes around the learner: callbacks, checkpoints, curves, evaluation, and other programs."""

from __future__ import annotations

from sparring.profiling.verdicts.case import Case
from sparring.profiling.verdicts.frames import LOGGING
from sparring.profiling.verdicts.own_env import place
from sparring.profiling.verdicts.places import CALLBACK, EVALUATION, RECORDING, SAVING, SHOWING
from sparring.profiling.verdicts.told import Verdict, expected, percent, typed, without

CALLBACKS = "a slow callback"
CHECKPOINTS = "checkpoints too often"
EVALUATIONS = "evaluations too often"
CURVES = "updates too short"
BUSY = "other programs"
NOTICED = 0.06
USUAL_SAVE_S, USUAL_EVALUATION_S = 60.0, 40.0


def verdicts(case: Case) -> list[Verdict]:
    """What surrounds the learner and takes its time."""
    return [
        *callbacks(case),
        *checkpoints(case),
        *curves(case),
        *evaluations(case),
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


def curves(case: Case) -> list[Verdict]:
    """Updates so short that writing down what came of them counts."""
    share, collect = case.places.at(RECORDING, SHOWING), case.config.collect
    if share < NOTICED:
        return []
    change = {"collect": {"steps": collect.steps * 4}}
    gain = without(share, 0.7)
    return [
        Verdict(
            CURVES,
            f"{percent(share)} in writing curves and showing them, as an update is over in no "
            f"time: make rollouts four times as long; {expected(gain, timed=False)}",
            share,
            gain,
            do=typed(change),
            change=change,
        )
    ]


def evaluations(case: Case) -> list[Verdict]:
    """Evaluation beside training that takes cores which training wants, or that it waits for."""
    evidence = case.evidence
    waited = case.places.at(EVALUATION)
    taken = beside(case)
    free = max(evidence.cores - evidence.cpu_cores - taken - evidence.load, 0.0)
    lost = max(taken - free, 0.0) / max(evidence.cpu_cores + taken, 1e-9)
    share, change = max(waited, 0.5 * lost), seldom(case)
    if share < NOTICED or not change:
        return []
    gain = without(share, 0.8)
    told = f"{percent(waited)} in waiting for evaluations" if waited >= 0.5 * lost else (
        f"evaluations beside training take {taken:.1f} of {evidence.cores} cores"
    )
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


def beside(case: Case) -> float:
    """Cores that evaluation takes."""
    return 0.0


def others(case: Case) -> list[Verdict]:
    """Programs of somebody else's on the same cores."""
    evidence = case.evidence
    if evidence.load < 0.5 or evidence.cpu_cores + evidence.load < 0.9 * evidence.cores:
        return []
    share = evidence.load / (evidence.cpu_cores + evidence.load)
    gain = without(share, 0.4)
    return [
        Verdict(
            BUSY,
            f"other programs want {evidence.load:.1f} of {evidence.cores} cores at the same time: "
            f"end them, or train when they are done; {expected(gain, timed=False)}",
            share,
            gain,
            do="top, or nice for whatever may wait",
        )
    ]
