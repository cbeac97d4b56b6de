"""Causes in the user's code: environments, opponents and callbacks."""

from __future__ import annotations

from dataclasses import dataclass

from sparring.speed.code import (
    CHECKING,
    COPYING,
    GARBAGE,
    IMPORTING,
    INFERENCE,
    LOGGING,
    READING,
    RENDERING,
)
from sparring.speed.verdicts.profiled_run import (
    CALLBACK,
    ENV,
    OPPONENTS,
    RESET,
    ClassifiedStack,
    ProfiledRun,
    Verdict,
    estimated,
    percent,
)
from sparring.training.planning.custom import by_factory

NETWORK_INSIDE = "a network inside the environment"
SLOW_ENV = "slow environment"
ONE_CALL_EACH = "one call per opponent"
NAMED = "; as module:factory it could be stepped in --workers"
NOTICED, NOTICED_CALLBACK, NOTICED_OPPONENT = 0.08, 0.06, 0.1
"""Smaller shares of the time get no verdict."""


@dataclass(frozen=True)
class Waste:
    """A kind of work that a step can avoid."""

    cause: str
    where: str
    advice: str
    part: float
    """Part of its share that would be saved."""


WASTE = {
    LOGGING: Waste(
        "logging every step",
        "in logging, printing or writing",
        "take it out, or write once per episode, or every thousandth step",
        0.92,
    ),
    READING: Waste(
        "reading a file in every step",
        "in reading and parsing files",
        "read it once, in the constructor, and keep the content",
        0.9,
    ),
    COPYING: Waste(
        "copying",
        "in copy.deepcopy",
        "copy only the arrays that change (array.copy()), or write into an existing one",
        0.8,
    ),
    RENDERING: Waste(
        "rendering every step",
        "in drawing",
        "draw only when render() is called, and train without a render_mode",
        0.95,
    ),
    CHECKING: Waste(
        "checks around the environment",
        "in Gymnasium's checks of every step",
        "gymnasium.make(..., disable_env_checker=True) once sparring check finds no fault",
        0.9,
    ),
    GARBAGE: Waste(
        "garbage collection",
        "in collecting garbage",
        "take gc.collect() out, and reuse objects instead of creating them in every step",
        0.85,
    ),
    IMPORTING: Waste(
        "importing in a step", "in import statements", "import at the top of the module", 0.9
    ),
}


def verdicts(run: ProfiledRun) -> list[Verdict]:
    """Return the verdicts about the user's code."""
    wasted = [waste(run, work) for work in WASTE]
    others = [network_inside(run), costly_reset(run), slow_opponent(run), callback(run)]
    return [one for one in (*wasted, *others) if one]


def share_of(run: ProfiledRun, work: str) -> float:
    """Share of the time that environments spend on a kind of work, here or in workers."""
    in_main = run.doing(work, ENV, RESET)
    in_workers = [stack for stack in run.worker_stacks if stack.in_env]
    busy = sum(stack.samples for stack in in_workers)
    if not busy:
        return in_main
    part = sum(stack.samples for stack in in_workers if stack.work == work) / busy
    return max(in_main, part * run.phase("stepping"))


def waste(run: ProfiledRun, work: str) -> Verdict | None:
    """The verdict about a kind of work that a step can avoid."""
    kind, share = WASTE[work], share_of(run, work)
    if share < NOTICED:
        return None
    where = run.where(lambda stack: stack.in_env and stack.work == work)
    text = f"{percent(share)} {kind.where} inside your environment{inside(where)}: {kind.advice}"
    do = f"{where or 'your environment'}: {kind.advice}"
    return estimated(kind.cause, text, share, kind.part, do=do)


def inside(where: str) -> str:
    return f", in {where}" if where else ""


def network_inside(run: ProfiledRun) -> Verdict | None:
    """An environment that calls a network in its step, one observation at a time."""
    share = share_of(run, INFERENCE)
    if share < NOTICED:
        return None
    where = run.where(lambda stack: stack.in_env and stack.work == INFERENCE)
    # Answered together, its rows cost about as much as those of the learner.
    part = 0.85 * max(share - run.phase("inference"), 0.4 * share) / share
    return estimated(
        NETWORK_INSIDE,
        f"{percent(share)} in opponents' inference, one call per observation inside your "
        f"environment's step{inside(where)}: pass it as an opponent, so that all rows are "
        "answered together",
        share,
        part,
        do=(
            f"{where or 'your environment'}: make the opponent a seat of a PettingZoo "
            "environment and train with --opponents FILE, or opponents=[policy] in Python; "
            "until then, call it without gradients (torch.inference_mode) on one thread"
        ),
    )


def costly_reset(run: ProfiledRun) -> Verdict | None:
    """A reset that takes as long as the episode."""
    share = run.at(RESET)
    known = sum(run.doing(work, RESET) for work in (*WASTE, INFERENCE))
    if share < 0.2 or share < 0.4 * run.env_share() or known > 0.5 * share:
        return None
    where = run.where(lambda stack: stack.phase == RESET)
    advice = "create in __init__ what every reset can reuse"
    text = f"{percent(share)} in your environment's reset{inside(where)}: {advice}"
    return estimated("a costly reset", text, share, 0.6, do=f"{where or 'reset'}: {advice}")


def slow_step(run: ProfiledRun, share: float) -> Verdict:
    """A step that takes long, where workers do not help."""
    where = run.where(lambda stack: stack.in_env)
    return estimated(
        SLOW_ENV,
        f"{percent(share)} in your environment's step{mostly_in(run)}: make it twice as fast",
        share,
        0.5,
        do=(
            f"{where or 'your environment'}: arrays instead of loops, or a native game "
            f"(docs/inside/add-a-game.md){'' if by_factory(run.config) else NAMED}"
        ),
    )


def mostly_in(run: ProfiledRun) -> str:
    """Return the costliest function of the environment as a clause."""
    where = run.where(lambda stack: stack.in_env)
    return f", most of it in {where}" if where else ""


def is_opponent_function(stack: ClassifiedStack) -> bool:
    return stack.phase == OPPONENTS and bool(stack.user_frames)


def slow_opponent(run: ProfiledRun) -> Verdict | None:
    """Opponents that are functions of the user."""
    share = run.share(is_opponent_function)
    if share < NOTICED_OPPONENT:
        return None
    inference = run.share(lambda s: is_opponent_function(s) and s.work == INFERENCE)
    where = run.where(is_opponent_function) or "your function"
    cause, part = "a slow opponent", 0.5
    advice = "answer all rows at once with arrays, not row by row"
    if inference > 0.5 * share:
        cause, part = ONE_CALL_EACH, 0.6
        advice = "pass the network itself as opponent, or answer all rows in one call"
    text = f"{percent(share)} in an opponent that is your function, {where}: {advice}"
    return estimated(cause, text, share, part, do=f"{where}: {advice}")


def callback(run: ProfiledRun) -> Verdict | None:
    """A callback of the user between updates."""
    share = run.at(CALLBACK)
    if share < NOTICED_CALLBACK:
        return None
    logs = run.doing(LOGGING, CALLBACK) > 0.5 * share
    where = run.where(lambda stack: stack.phase == CALLBACK)
    advice = "do it every hundredth update, or in a thread"
    what = "in a callback that logs or writes" if logs else "in a callback"
    return estimated(
        "logging in a callback" if logs else "a slow callback",
        f"{percent(share)} {what} after every update{inside(where)}: {advice}",
        share,
        0.9,
        do=f"{where or 'your callback'}: {advice}",
    )
