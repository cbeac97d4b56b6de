"""Behavior after the end of an episode, with illegal actions, and last observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparring.proof.contract.drivers import Driver, EnvRaisedError, StepResult, describe_raised
from sparring.proof.contract.findings import FindingLog, Location
from sparring.proof.contract.gym import VectorDriver
from sparring.proof.contract.playing import EpisodeReplay, Script
from sparring.proof.contract.values import short

FORBIDDEN = 6
"""Illegal actions that are tried."""

Make = Callable[[], Driver]


def stopped_before(make: Make, script: Script, steps: int) -> Driver | None:
    """Replay the first steps of an episode; None if it differs."""
    driver = make()
    replay = EpisodeReplay(driver, script)
    while not replay.done and replay.step < steps:
        replay.next()
    return None if replay.found else driver


def after_the_end(make: Make, scripts: Sequence[Script], log: FindingLog) -> None:
    """Step after the end without a reset."""
    ended = [script for script in scripts if script.over and script.actions]
    if not ended:
        log.unsure("after the end", "no episode ended")
        return
    script = min(ended, key=lambda one: len(one.actions))
    driver = stopped_before(make, script, len(script.actions))
    if driver is None:
        log.unsure("after the end", "the episode did not come again as it was")
        return
    location = Location(script.seed, None, len(script.actions) + 1)
    try:
        result = driver.step(script.actions[-1])
    except EnvRaisedError as raised:
        log.note(
            "after the end",
            f"a step without a reset {describe_raised(raised.error)}",
            location=location,
        )
        return
    finally:
        driver.close_quietly()
    if result.over:
        detail = "a step without a reset says once more that the episode is over"
    else:
        detail = "a step without a reset goes on as if nothing had ended"
    log.note("after the end", detail, location=location)


def forbidden_actions(make: Make, scripts: Sequence[Script], log: FindingLog) -> None:
    """Try actions that the mask forbids, each in another position."""
    candidates = [
        (script, step, who, int(np.flatnonzero(np.asarray(mask) == 0)[0]))
        for script in scripts
        for step in range(len(script.actions))
        for who, mask in script.masks[step].items()
        if who in script.actions[step] and not np.asarray(mask).all()
    ]
    if not candidates:
        log.ok("forbidden actions", "there are none")
        return
    # In the last step a time limit may end the episode, whatever the action is.
    candidates = [one for one in candidates if one[1] < len(one[0].actions) - 1] or candidates
    chosen = [candidates[i] for i in np.linspace(0, len(candidates) - 1, FORBIDDEN).astype(int)]
    outcomes, first = Counter[str](), ""
    for script, step, who, number in chosen:
        driver = stopped_before(make, script, step)
        if driver is None:
            log.unsure("forbidden actions", "the episode did not come again as it was")
            return
        action = number + int(driver.action_space(who).start)
        try:
            result = driver.step({**script.actions[step], who: action})
        except EnvRaisedError as raised:
            outcomes["refused"] += 1
            first = first or f"; it {describe_raised(raised.error)}"
        else:
            outcomes[outcome_of(result, who)] += 1
        finally:
            driver.close_quietly()
    counts = ", ".join(f"{what} {count} of {len(chosen)}" for what, count in outcomes.items())
    log.note("forbidden actions", f"{counts}{first}")


def outcome_of(result: StepResult, who: Any) -> str:
    """Outcome of an illegal action that raised nothing."""
    if result.terminated.get(who) or result.truncated.get(who):
        return f"the episode ended, paid {short(result.reward.get(who, 0.0))}:"
    return "accepted without an error:"


def last_observations(make: Make, scripts: Sequence[Script], log: FindingLog) -> None:
    """Compare last observations with those that a reset in their place would have returned.

    An env or wrapper that resets itself returns the first observation of the next episode; its
    random numbers are in the state before the last step.
    """
    name, equal, looked, unlike = "last observation", 0, 0, set[str]()
    truncated, moved, shown = False, False, ""
    location = Location()
    for script in scripts:
        ends = ended_in(script)
        driver = stopped_before(make, script, len(script.actions) - 1) if ends else None
        if driver is None:
            continue
        try:
            fresh = driver.reset(None).facts()
        except EnvRaisedError as raised:
            log.wrong("reset and step", f"without a seed {raised}", "allow reset()")
            return
        finally:
            driver.close_quietly()
        final, before = script.facts[-1], script.facts[-2]
        for who in ends:
            last, first = final.get(f"last {who}"), fresh.get(f"obs {who}")
            if last is None or first is None:
                continue
            looked += 1
            unlike.add(first.digest)
            truncated |= final[f"truncated {who}"].text == "True"
            known = before.get(f"obs {who}")
            moved |= known is not None and known.digest != first.digest
            if last.digest == first.digest:
                equal, shown = equal + 1, last.text
                location = Location(script.seed, None, len(script.actions))
    if not looked:
        log.unsure(name, "no episode ended that could be played again")
    elif equal < looked:
        log.ok(name, f"{looked} are not those of the next episode")
    elif moved and (len(unlike) > 1 or truncated):
        detail = f"{shown} is what a reset returns: the first one of the next episode"
        advice = "return the last observation of the episode and let the caller reset"
        log.wrong(name, detail, advice, location)
    else:
        advice = "fine if the episode does end there"
        log.unsure(name, f"{shown} is also what a reset returns", advice, location)


def ended_in(script: Script) -> list[str]:
    """Agents that ended in the last step of a finished episode."""
    if not script.over or not script.actions:
        return []
    names = [what for what in script.facts[-1] if what.startswith("last ")]
    return [what.removeprefix("last ") for what in names]


def skip_missing_properties(driver: Driver, log: FindingLog) -> None:
    """Leave out properties that a kind of env does not have."""
    if isinstance(driver, VectorDriver):
        log.skipped |= {"agents", "after the end"}
        return
    log.skipped |= {"autoreset"}
    if len(driver.all_agents()) == 1 and driver.kind == "gymnasium.Env":
        log.skipped |= {"agents"}
