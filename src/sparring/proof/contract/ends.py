"""What an env does after an end and with forbidden actions, and what it shows last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparring.proof.contract.drivers import Driver, EnvRaisedError, Moment, told
from sparring.proof.contract.findings import Ledger, Place
from sparring.proof.contract.gym import VectorDriver
from sparring.proof.contract.playing import Replay, Script
from sparring.proof.contract.values import short

FORBIDDEN = 6
"""So many forbidden actions are tried."""

Make = Callable[[], Driver]


def stopped_before(make: Make, script: Script, steps: int) -> Driver | None:
    """Play so many steps of an episode; None if it does not come as before."""
    driver = make()
    replay = Replay(driver, script)
    while not replay.done and replay.step < steps:
        replay.next()
    return None if replay.found else driver


def after_the_end(make: Make, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Step once more without a reset."""
    ended = [script for script in scripts if script.over and script.actions]
    if not ended:
        ledger.unsure("after the end", "no episode ended")
        return
    script = min(ended, key=lambda one: len(one.actions))
    driver = stopped_before(make, script, len(script.actions))
    if driver is None:
        ledger.unsure("after the end", "the episode did not come again as it was")
        return
    place = Place(script.seed, None, len(script.actions) + 1)
    try:
        moment = driver.step(script.actions[-1])
    except EnvRaisedError as raised:
        ledger.tell("after the end", f"a step without a reset {told(raised.error)}", place=place)
        return
    finally:
        driver.dismiss()
    if moment.over:
        detail = "a step without a reset says once more that the episode is over"
    else:
        detail = "a step without a reset goes on as if nothing had ended"
    ledger.tell("after the end", detail, place=place)


def forbidden_actions(make: Make, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Try actions that the mask forbids, each in a position of its own."""
    places = [
        (script, step, who, int(np.flatnonzero(np.asarray(mask) == 0)[0]))
        for script in scripts
        for step in range(len(script.actions))
        for who, mask in script.masks[step].items()
        if who in script.actions[step] and not np.asarray(mask).all()
    ]
    if not places:
        ledger.ok("forbidden actions", "there are none")
        return
    chosen = [places[i] for i in np.linspace(0, len(places) - 1, FORBIDDEN).astype(int)]
    outcomes, first = Counter[str](), ""
    for script, step, who, number in chosen:
        driver = stopped_before(make, script, step)
        if driver is None:
            ledger.unsure("forbidden actions", "the episode did not come again as it was")
            return
        action = number + int(driver.action_space(who).start)
        try:
            moment = driver.step({**script.actions[step], who: action})
        except EnvRaisedError as raised:
            outcomes["refused"] += 1
            first = first or f"; it {told(raised.error)}"
        else:
            outcomes[outcome_of(moment, who)] += 1
        finally:
            driver.dismiss()
    counts = ", ".join(f"{what} {count} of {len(chosen)}" for what, count in outcomes.items())
    ledger.tell("forbidden actions", f"{counts}{first}")


def outcome_of(moment: Moment, who: Any) -> str:
    """Say what came of a forbidden action that raised nothing."""
    if moment.terminated.get(who) or moment.truncated.get(who):
        return f"the episode ended, paid {short(moment.reward.get(who, 0.0))}:"
    return "taken without a word:"


def last_observations(make: Make, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Hold last observations against those that a reset in their place would have given.

    An env, or a wrapper around it, that begins the next episode by itself returns the first
    observation of that one; its random numbers stand where they stood before the last step.
    """
    name, equal, looked, unlike = "last observation", 0, 0, set[str]()
    truncated, moved, shown = False, False, ""
    place = Place()
    for script in scripts:
        ends = ended_in(script)
        driver = stopped_before(make, script, len(script.actions) - 1) if ends else None
        if driver is None:
            continue
        try:
            fresh = driver.reset(None).facts()
        except EnvRaisedError as raised:
            ledger.wrong("reset and step", f"without a seed {raised}", "allow reset()")
            return
        finally:
            driver.dismiss()
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
                place = Place(script.seed, None, len(script.actions))
    if not looked:
        ledger.unsure(name, "no episode ended that could be played again")
    elif equal < looked:
        ledger.ok(name, f"{looked} are not those of the next episode")
    elif moved and (len(unlike) > 1 or truncated):
        detail = f"{shown} is what a reset returns: the first one of the next episode"
        advice = "return the last observation of the episode and let the caller reset"
        ledger.wrong(name, detail, advice, place)
    else:
        advice = "fine if the episode does end there"
        ledger.unsure(name, f"{shown} is also what a reset returns", advice, place)


def ended_in(script: Script) -> list[str]:
    """Return who ended in the last step of an episode that is over."""
    if not script.over or not script.actions:
        return []
    names = [what for what in script.facts[-1] if what.startswith("last ")]
    return [what.removeprefix("last ") for what in names]


def skip_what_is_not_there(driver: Driver, ledger: Ledger) -> None:
    """Leave out the properties that a kind of env does not have."""
    if isinstance(driver, VectorDriver):
        ledger.skipped |= {"agents", "after the end"}
        return
    ledger.skipped |= {"autoreset"}
    if len(driver.everyone()) == 1 and driver.kind == "gymnasium.Env":
        ledger.skipped |= {"agents"}
