"""Causes in somebody's own code: what an environment, an opponent or a callback does besides."""

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
from sparring.speed.verdicts.case import (
    CALLBACK,
    ENV,
    OPPONENTS,
    RESET,
    Case,
    Sight,
    Verdict,
    percent,
    reckoned,
)
from sparring.training.planning.custom import by_factory

NETWORK_INSIDE = "a network inside the environment"
SLOW_ENV = "slow environment"
ONE_CALL_EACH = "one call per opponent"
NAMED = "; as module:factory it could be stepped in --workers"
NOTICED, NOTICED_CALLBACK, NOTICED_OPPONENT = 0.08, 0.06, 0.1
"""Shares of the time below these are left alone."""


@dataclass(frozen=True)
class Waste:
    """A kind of work that a step can do without, or do otherwise."""

    cause: str
    words: str
    advice: str
    part: float
    """Of its share that would go."""


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
        "read it once, when the environment is made, and keep what it said",
        0.9,
    ),
    COPYING: Waste(
        "copying",
        "in copy.deepcopy",
        "copy only the arrays that change (array.copy()), or write into one that is there",
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
        "gymnasium.make(..., disable_env_checker=True) once sparring check is content",
        0.9,
    ),
    GARBAGE: Waste(
        "garbage collection",
        "in collecting garbage",
        "take gc.collect() out, and keep objects instead of making them anew in every step",
        0.85,
    ),
    IMPORTING: Waste(
        "importing in a step", "in import statements", "import at the top of the module", 0.9
    ),
}


def verdicts(case: Case) -> list[Verdict]:
    """What the code of somebody could do without, or do otherwise."""
    wasted = [waste(case, work) for work in WASTE]
    others = [network_inside(case), costly_reset(case), slow_opponent(case), callback(case)]
    return [one for one in (*wasted, *others) if one]


def share_of(case: Case, work: str) -> float:
    """Share of the time that environments spend with a kind of work, wherever they are stepped."""
    here = case.doing(work, ENV, RESET)
    inside = [sight for sight in case.stepped if sight.in_env]
    busy = sum(sight.samples for sight in inside)
    if not busy:
        return here
    part = sum(sight.samples for sight in inside if sight.work == work) / busy
    return max(here, part * case.phase("stepping"))


def waste(case: Case, work: str) -> Verdict | None:
    """A kind of work that a step can do without."""
    kind, share = WASTE[work], share_of(case, work)
    if share < NOTICED:
        return None
    where = case.where(lambda sight: sight.in_env and sight.work == work)
    text = f"{percent(share)} {kind.words} inside your environment{place(where)}: {kind.advice}"
    do = f"{where or 'your environment'}: {kind.advice}"
    return reckoned(kind.cause, text, share, kind.part, do=do)


def place(where: str) -> str:
    return f", in {where}" if where else ""


def network_inside(case: Case) -> Verdict | None:
    """An environment that asks a network in its step, one observation after the other."""
    share = share_of(case, INFERENCE)
    if share < NOTICED:
        return None
    where = case.where(lambda sight: sight.in_env and sight.work == INFERENCE)
    # Answered together, its rows cost about what the learner's own rows cost.
    part = 0.85 * max(share - case.phase("inference"), 0.4 * share) / share
    return reckoned(
        NETWORK_INSIDE,
        f"{percent(share)} in opponents' inference, one call per observation inside your "
        f"environment's step{place(where)}: give it as an opponent, so that all rows are answered "
        "together",
        share,
        part,
        do=(
            f"{where or 'your environment'}: make the opponent a seat of a PettingZoo "
            "environment and train with --opponents FILE, or opponents=[policy] in Python; "
            "until then, ask it without gradients (torch.inference_mode) on one thread"
        ),
    )


def costly_reset(case: Case) -> Verdict | None:
    """A reset that takes as long as the episode."""
    share = case.at(RESET)
    known = sum(case.doing(work, RESET) for work in (*WASTE, INFERENCE))
    if share < 0.2 or share < 0.4 * case.env_share() or known > 0.5 * share:
        return None
    where = case.where(lambda sight: sight.phase == RESET)
    advice = "keep what a reset can use again, and make it in __init__"
    text = f"{percent(share)} in your environment's reset{place(where)}: {advice}"
    return reckoned("a costly reset", text, share, 0.6, do=f"{where or 'reset'}: {advice}")


def slow(case: Case, share: float) -> Verdict:
    """A step that simply takes long, where processes do not help."""
    where = case.where(lambda sight: sight.in_env)
    return reckoned(
        SLOW_ENV,
        f"{percent(share)} in your environment's step{hot(case)}: make it twice as fast",
        share,
        0.5,
        do=(
            f"{where or 'your environment'}: arrays instead of loops, or a native game "
            f"(docs/add-a-game.md){'' if by_factory(case.config) else NAMED}"
        ),
    )


def hot(case: Case) -> str:
    """The user's costliest function in an environment, as a clause."""
    where = case.where(lambda sight: sight.in_env)
    return f", most of it in {where}" if where else ""


def of_function(sight: Sight) -> bool:
    return sight.phase == OPPONENTS and bool(sight.theirs)


def slow_opponent(case: Case) -> Verdict | None:
    """Opponents that are functions: nobody but their author can change them."""
    share = case.share(of_function)
    if share < NOTICED_OPPONENT:
        return None
    asks = case.share(lambda sight: of_function(sight) and sight.work == INFERENCE)
    where = case.where(of_function) or "your function"
    cause, part = "a slow opponent", 0.5
    advice = "answer all rows at once with arrays, not row by row"
    if asks > 0.5 * share:
        cause, part = ONE_CALL_EACH, 0.6
        advice = "give the network itself as opponent, or answer all rows in one call"
    text = f"{percent(share)} in an opponent that is your function, {where}: {advice}"
    return reckoned(cause, text, share, part, do=f"{where}: {advice}")


def callback(case: Case) -> Verdict | None:
    """Code of the program that trains, between two updates."""
    share = case.at(CALLBACK)
    if share < NOTICED_CALLBACK:
        return None
    logs = case.doing(LOGGING, CALLBACK) > 0.5 * share
    where = case.where(lambda sight: sight.phase == CALLBACK)
    advice = "do it every hundredth update, or hand it to a thread"
    what = "in a callback that logs or writes" if logs else "in a callback"
    return reckoned(
        "logging in a callback" if logs else "a slow callback",
        f"{percent(share)} {what} after every update{place(where)}: {advice}",
        share,
        0.9,
        do=f"{where or 'your callback'}: {advice}",
    )
