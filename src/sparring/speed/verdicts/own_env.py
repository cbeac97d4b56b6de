"""Causes in the code of somebody's environment: what its step does besides playing."""

from __future__ import annotations

from dataclasses import dataclass

from sparring.speed.verdicts.case import Case
from sparring.speed.verdicts.frames import (
    CHECKING,
    COPYING,
    GARBAGE,
    IMPORTING,
    INFERENCE,
    LOGGING,
    READING,
    RENDERING,
)
from sparring.speed.verdicts.places import ENV, RESET, Sight
from sparring.speed.verdicts.settings import SLOW_ENV, hot
from sparring.speed.verdicts.told import Verdict, expected, percent, without
from sparring.training.planning.own import by_factory

NETWORK_INSIDE = "a network inside the environment"
COSTLY_RESET = "a costly reset"
NAMED = "; as module:factory it could be stepped in --workers"
NOTICED = 0.08
"""Shares of the time below this are left alone."""


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


def in_env(sight: Sight) -> bool:
    """Whether a stack is in somebody's environment."""
    return sight.place in (ENV, RESET)


def verdicts(case: Case) -> list[Verdict]:
    """What the code of an environment could do without."""
    found = [v for v in (waste(case, work) for work in WASTE) if v]
    return [*found, *network_inside(case), *costly_reset(case)]


def share_of(case: Case, work: str) -> float:
    """Share of the time that environments spend with a kind of work, wherever they are stepped."""
    places = case.places
    here = places.doing(work, ENV, RESET)
    busy = sum(s.samples for s in places.workers if in_env(s))
    if not busy:
        return here
    part = sum(s.samples for s in places.workers if in_env(s) and s.work == work) / busy
    return max(here, part * case.phase("stepping"))


def waste(case: Case, work: str) -> Verdict | None:
    """A kind of work that a step can do without."""
    kind, share = WASTE[work], share_of(case, work)
    if share < NOTICED:
        return None
    gain = without(share, kind.part)
    where = case.places.where(lambda sight: in_env(sight) and sight.work == work)
    text = f"{percent(share)} {kind.words} inside your environment{place(where)}: {kind.advice}"
    return Verdict(
        kind.cause,
        f"{text}; {expected(gain, timed=False)}",
        share,
        gain,
        do=f"{where or 'your environment'}: {kind.advice}",
    )


def place(where: str) -> str:
    """A function as a clause."""
    return f", in {where}" if where else ""


def network_inside(case: Case) -> list[Verdict]:
    """An environment that asks a network in its step, one observation after the other."""
    share = share_of(case, INFERENCE)
    if share < NOTICED:
        return []
    # Answered together, its rows cost about what the learner's own rows cost.
    gain = without(0.85 * max(share - case.phase("inference"), 0.4 * share))
    where = case.places.where(lambda sight: in_env(sight) and sight.work == INFERENCE)
    advice = "give it as an opponent, so that all rows are answered together"
    return [
        Verdict(
            NETWORK_INSIDE,
            f"{percent(share)} in opponents' inference, one call per observation inside your "
            f"environment's step{place(where)}: {advice}; {expected(gain, timed=False)}",
            share,
            gain,
            do=(
                f"{where or 'your environment'}: make the opponent a seat of a PettingZoo "
                "environment and train with --opponents FILE, or opponents=[policy] in Python; "
                "until then, ask it without gradients (torch.inference_mode) on one thread"
            ),
        )
    ]


def costly_reset(case: Case) -> list[Verdict]:
    """A reset that takes as long as the episode."""
    share, inside = case.places.at(RESET), case.places.at(ENV, RESET)
    known = sum(case.places.doing(work, RESET) for work in (*WASTE, INFERENCE))
    if share < 0.2 or share < 0.4 * inside or known > 0.5 * share:
        return []
    gain = without(share, 0.6)
    where = case.places.where(lambda sight: sight.place == RESET)
    advice = "keep what a reset can use again, and make it in __init__"
    return [
        Verdict(
            COSTLY_RESET,
            f"{percent(share)} in your environment's reset{place(where)}: {advice}; "
            f"{expected(gain, timed=False)}",
            share,
            gain,
            do=f"{where or 'reset'}: {advice}",
        )
    ]


def slow(case: Case, share: float) -> Verdict:
    """A step that simply takes long, where processes do not help."""
    where = case.places.where(in_env)
    gain = without(share, 0.5)
    return Verdict(
        SLOW_ENV,
        f"{percent(share)} in your environment's step{hot(case)}: make it twice as fast; "
        f"{expected(gain, timed=False)}",
        share,
        gain,
        do=(
            f"{where or 'your environment'}: arrays instead of loops, or a native game "
            f"(docs/add-a-game.md){'' if by_factory(case.config) else NAMED}"
        ),
    )
