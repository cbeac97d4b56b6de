"""Replays of an episode: in the same object, a new one, another process, beside another env."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from sparring.proof.contract.child import play_elsewhere
from sparring.proof.contract.drivers import Driver, EnvRaisedError
from sparring.proof.contract.ends import Make
from sparring.proof.contract.findings import FindingLog
from sparring.proof.contract.playing import (
    OTHER_GLOBALS,
    Difference,
    EpisodeReplay,
    Script,
    TimeBudget,
    difference,
    seed_globals,
)

MAX_REPLAYED = 2
"""Episodes that are replayed in new objects and processes, which may be slow to make."""


Replayed = Callable[[Script], Difference | None]
"""Plays an episode again; returns the first difference."""


def compare(
    name: str,
    again: Replayed,
    scripts: Sequence[Script],
    log: FindingLog,
    *,
    good: str,
    advice: str,
) -> bool:
    """Record whether episodes repeat, and return it. good: the detail if they do."""
    found = next((found for found in map(again, scripts) if found), None)
    if found is None:
        log.ok(name, good)
    else:
        log.wrong(name, str(found), advice, found.location)
    return found is None


def same_object(driver: Driver, scripts: Sequence[Script], log: FindingLog) -> None:
    """Replay episodes in an object that has played others, one of them only halfway."""
    half = EpisodeReplay(driver, scripts[-1])
    while not half.done and half.step < len(scripts[-1].actions) // 2:
        half.next()
    driver.reset(None)
    compare(
        "same object",
        lambda script: EpisodeReplay(driver, script).rest(),
        scripts,
        log,
        good=f"{len(scripts)} episodes came again after others",
        advice="something lives on from the episode before; set everything in reset",
    )


def reset_twice(driver: Driver, scripts: Sequence[Script], log: FindingLog) -> None:
    """Reset a second time before the first step."""

    def again(script: Script) -> Difference | None:
        driver.reset(script.seed)
        return EpisodeReplay(driver, script).rest()

    texts = {"good": "is as good as once", "advice": "set everything in reset"}
    compare("reset twice", again, scripts[:1], log, **texts)


def fresh_object(make: Make, scripts: Sequence[Script], log: FindingLog) -> bool:
    """Replay episodes in a new object; return whether they repeat."""

    def again(script: Script) -> Difference | None:
        seed_globals(12)  # numbers drawn while an env is made differ from before
        return replayed(make, script)

    advice = "draw from self.np_random (seeded by super().reset(seed=seed)), and in reset alone"
    some = scripts[:MAX_REPLAYED]
    return compare("fresh object", again, some, log, good="the same episodes", advice=advice)


def global_numbers(make: Make, scripts: Sequence[Script], log: FindingLog) -> bool:
    """Replay episodes with other global random numbers of Python and NumPy."""
    return compare(
        "global random numbers",
        lambda script: replayed(make, script, shared=OTHER_GLOBALS),
        scripts[:MAX_REPLAYED],
        log,
        good="have no part in it",
        advice="use self.np_random instead of `random` and `np.random`: workers share no such "
        "numbers",
    )


def replayed(make: Make, script: Script, **options: int) -> Difference | None:
    """Replay an episode in a new object. options: of `EpisodeReplay`."""
    driver = make()
    found = EpisodeReplay(driver, script, **options).rest()
    driver.close_quietly()
    return found


def other_process(
    word: str,
    settings: dict[str, Any],
    scripts: Sequence[Script],
    log: FindingLog,
    budget: TimeBudget,
) -> None:
    """Replay episodes in another process, where strings have other hashes."""
    name = "other process"
    if not word:
        detail = "the factory has no name that another process would find"
        log.unsure(name, detail, "define it at the top of a module")
        return
    some = scripts[:MAX_REPLAYED]
    hashes = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    wanted = [(script.seed, len(script.actions)) for script in some]
    played, trouble = play_elsewhere(
        word, settings, wanted, hashes=hashes, wait_s=60 + 2 * budget.seconds
    )
    if trouble:
        log.wrong(name, trouble, "make everything that the env needs in the factory")
        return

    def again(script: Script) -> Difference | None:
        facts = played[some.index(script)]
        for step in range(len(script.facts)):
            found = difference(script, step, facts[step] if step < len(facts) else {})
            if found:
                return found
        return None

    advice = "sort sets before they are walked through, and ask neither time nor process id"
    compare(name, again, some, log, good="the same episodes", advice=advice)


def seeds_differ(make: Make, scripts: Sequence[Script], log: FindingLog) -> None:
    """Play the actions of an episode from another seed."""
    some = scripts[:MAX_REPLAYED]
    if any(replayed(make, script, seed=script.seed + 1) for script in some):
        log.ok("seeds", "other seeds, other episodes")
        return
    detail = f"seeds {scripts[0].seed} and {scripts[0].seed + 1} play the same"
    log.note("seeds", detail, "fine for a game without chance; else reset forgets its seed")


def independence(make: Make, scripts: Sequence[Script], log: FindingLog) -> None:
    """Play two envs step by step in turn: neither may affect the other."""
    pair = [*scripts, *scripts][:2]
    drivers = [make() for _ in pair]
    replays = [EpisodeReplay(driver, script) for driver, script in zip(drivers, pair, strict=True)]
    while not all(replay.done for replay in replays):
        for replay in replays:
            if not replay.done:
                replay.next()
    for driver in drivers:
        driver.close_quietly()
    differences = [replay.found for replay in replays if replay.found]
    if not differences:
        log.ok("independence", "two envs in turn play as each alone")
        return
    first = min(differences, key=lambda found: found.step)
    advice = "envs share something: keep state in self, not in the class or the module"
    log.wrong("independence", f"beside another env {first}", advice, first.location)


def closing(driver: Driver, log: FindingLog) -> None:
    """Close an env twice."""
    try:
        driver.close()
        driver.close()
    except EnvRaisedError as raised:
        advice = "let close() work whenever it is called, also twice"
        log.wrong("close", str(raised), advice)
    else:
        log.ok("close", "works, also twice")
