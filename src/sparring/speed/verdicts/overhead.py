"""Causes around the learner: checkpoints, metrics, league, evaluation, other programs."""

from __future__ import annotations

from typing import Any

from sparring.speed.code import last_user_frame, location_of
from sparring.speed.curves import BETWEEN
from sparring.speed.evidence import EVALUATION
from sparring.speed.verdicts.profiled_run import (
    CALLBACK,
    LEAGUE,
    RECORDING,
    SAVING,
    SHOWING,
    ProfiledRun,
    Verdict,
    estimated,
    percent,
)
from sparring.usage import find_contention

BUSY = "other programs"
NOTICED = 0.06
USUAL_SAVE_S, USUAL_EVALUATION_S = 60.0, 40.0


def verdicts(run: ProfiledRun) -> list[Verdict]:
    """Return the verdicts about work around the learner."""
    causes = (checkpoints, leagues, curves, evaluations, threads, others)
    return [found for cause in causes if (found := cause(run))]


def checkpoints(run: ProfiledRun) -> Verdict | None:
    """Training waits for checkpoints. Evaluations save checkpoints, too."""
    share, config = run.at(SAVING), run.config
    change: dict[str, Any] = {}
    if config.checkpoint_every_decisions:
        change["checkpoint_every_decisions"] = config.checkpoint_every_decisions * 20
    elif config.checkpoint_every_s < USUAL_SAVE_S:
        change["checkpoint_every_s"] = USUAL_SAVE_S
    if wanted := fewer_evaluations(run):
        change["eval"] = wanted
    if share < NOTICED or not change:
        return None
    text = f"{percent(share)} in saving checkpoints: save less often"
    return estimated("checkpoints too often", text, share, 0.85, change=change)


def fewer_evaluations(run: ProfiledRun) -> dict[str, float]:
    """Return settings of rarer evaluations, {} if they are rare already."""
    wanted = run.config.eval
    if wanted.off:
        return {}
    if wanted.every_decisions:
        return {"every_decisions": wanted.every_decisions * 20}
    return {"every_s": USUAL_EVALUATION_S} if wanted.every_s < USUAL_EVALUATION_S else {}


def leagues(run: ProfiledRun) -> Verdict | None:
    """Past selves are saved after every few updates."""
    share, every = run.at(LEAGUE), run.config.league.every_decisions
    if share < NOTICED:
        return None
    cause = "past selves saved too often"
    text = f"{percent(share)} in saving and exchanging past selves: do so less often"
    if not every:
        return Verdict(cause, text, share, do="--league.every_decisions with more decisions")
    return estimated(cause, text, share, 0.8, change={"league": {"every_decisions": 20 * every}})


def curves(run: ProfiledRun) -> Verdict | None:
    """Updates are so short that writing metrics counts."""
    writes = sum(s.samples for s in run.other_threads if s.phase == RECORDING) / run.wall
    share = run.at(RECORDING, SHOWING) + 0.5 * min(writes, 1.0)
    if share < NOTICED:
        return None
    change: dict[str, Any] = {"collect": {"steps": run.config.collect.steps * 4}}
    advice = "as updates are very short: make rollouts four times as long"
    if run.config.episodes_csv:
        change, advice = {"episodes_csv": False}, "every game among them: leave episodes_csv out"
    text = f"{percent(share)} in writing and displaying metrics, {advice}"
    return estimated("metrics too often", text, share, 0.7, change=change)


def threads(run: ProfiledRun) -> Verdict | None:
    """Threads of the user in the same process: only one thread at a time runs Python."""
    mine = [stack for stack in run.other_threads if stack.user_frames]
    share = sum(stack.samples for stack in mine) / run.wall
    if share < 0.15:
        return None
    first = last_user_frame(max(mine, key=lambda stack: stack.samples).user_frames)
    where = location_of(first) if first else "your thread"
    advice = "let it wait for events instead of polling, or make it a process"
    return estimated(
        "a thread beside training",
        f"a thread beside training is busy for {percent(share)} of the time, in {where}, "
        f"and only one at a time runs Python: {advice}",
        min(0.5 * share, 0.5),
        0.8,
        do=f"{where}: {advice}",
    )


def evaluations(run: ProfiledRun) -> Verdict | None:
    """Evaluations take cores that training needs, or training waits for them."""
    change, cores, taken = fewer_evaluations(run), run.evidence.cores, evaluation_cores(run)
    waited = wait_between_updates(run) if run.config.eval.every_decisions else 0.0
    if not change or max(waited, taken) < NOTICED:
        return None
    wanted = min(run.threads, cores)
    lost = max(wanted + taken - cores, 0.0) / (wanted + taken)
    share = max(waited, 0.5 * lost)
    if share < NOTICED:
        return None
    why = f"evaluations beside training take {taken:.1f} of {cores} cores"
    if waited > 0.5 * share:
        why = f"{percent(waited)} in waiting for evaluations"
    text = f"{why}: evaluate less often"
    return estimated("evaluations too often", text, share, 0.8, change={"eval": change})


def wait_between_updates(run: ProfiledRun) -> float:
    """Share of the time between updates in which the process waits."""
    busy = run.at(CALLBACK, SAVING, RECORDING, SHOWING, LEAGUE)
    return max(run.phase(BETWEEN) - busy, 0.0)


def evaluation_cores(run: ProfiledRun) -> float:
    """Return the cores that evaluations take, by their sampled threads."""
    evidence = run.evidence
    pids = {pid for pid, kind in evidence.processes.items() if kind == EVALUATION}
    stacks = evidence.child_stacks.of_processes(pids)
    return stacks.samples / max(stacks.rate * evidence.seconds, 1e-9)


def others(run: ProfiledRun) -> Verdict | None:
    """Other programs on the same cores."""
    evidence = run.evidence
    load = max(evidence.load - evaluation_cores(run), 0.0)
    crowd = find_contention(evidence.cpu_cores + evidence.load - load, load, evidence.cores)
    if crowd is None:
        return None
    text = f"{crowd} at the same time: end them, or train when they are done"
    share = load / (evidence.cpu_cores + load)
    return estimated(BUSY, text, share, 0.4, do="top shows them; nice lowers their priority")
