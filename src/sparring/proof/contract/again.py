"""The same episode once more: in the same object, a fresh one, another process, beside another."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from sparring.proof.contract.child import play_elsewhere
from sparring.proof.contract.drivers import Driver, EnvRaisedError
from sparring.proof.contract.ends import Make
from sparring.proof.contract.findings import Ledger
from sparring.proof.contract.playing import (
    OTHER_GLOBALS,
    Clock,
    Difference,
    Replay,
    Script,
    difference,
    seed_globals,
)

IN_OTHERS = 2
"""So many episodes are played in fresh objects and processes: making them may be dear."""


Again = Callable[[Script], Difference | None]
"""Plays an episode once more; returns where it parts from the first time."""


def hold(
    name: str, again: Again, scripts: Sequence[Script], ledger: Ledger, *, good: str, advice: str
) -> bool:
    """Note whether episodes come again; return that. good: what is said if they do."""
    found = next((found for found in map(again, scripts) if found), None)
    if found is None:
        ledger.ok(name, good)
    else:
        ledger.wrong(name, str(found), advice, found.place)
    return found is None


def same_object(driver: Driver, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Play episodes again in an object that has played others, one of them not to its end."""
    half = Replay(driver, scripts[-1])
    while not half.done and half.step < len(scripts[-1].actions) // 2:
        half.next()
    driver.reset(None)
    hold(
        "same object",
        lambda script: Replay(driver, script).rest(),
        scripts,
        ledger,
        good=f"{len(scripts)} episodes came again after others",
        advice="something lives on from the episode before; set everything in reset",
    )


def reset_twice(driver: Driver, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Reset a second time before the first step."""

    def again(script: Script) -> Difference | None:
        driver.reset(script.seed)
        return Replay(driver, script).rest()

    told = {"good": "is as good as once", "advice": "set everything in reset"}
    hold("reset twice", again, scripts[:1], ledger, **told)


def fresh_object(make: Make, scripts: Sequence[Script], ledger: Ledger) -> bool:
    """Play episodes again in a new object; return whether they came again."""

    def again(script: Script) -> Difference | None:
        seed_globals(12)  # what is drawn while an env is made has another source than before
        return replayed(make, script)

    advice = "draw from self.np_random (seeded by super().reset(seed=seed)), and in reset alone"
    some = scripts[:IN_OTHERS]
    return hold("fresh object", again, some, ledger, good="the same episodes", advice=advice)


def global_numbers(make: Make, scripts: Sequence[Script], ledger: Ledger) -> bool:
    """Play episodes again with other global random numbers of Python and NumPy."""
    return hold(
        "global random numbers",
        lambda script: replayed(make, script, shared=OTHER_GLOBALS),
        scripts[:IN_OTHERS],
        ledger,
        good="have no part in it",
        advice="use self.np_random instead of `random` and `np.random`: workers share no such "
        "numbers",
    )


def replayed(make: Make, script: Script, **options: int) -> Difference | None:
    """Play an episode again in an object of its own. options: of `Replay`."""
    driver = make()
    found = Replay(driver, script, **options).rest()
    driver.dismiss()
    return found


def other_process(
    word: str, settings: dict[str, Any], scripts: Sequence[Script], ledger: Ledger, clock: Clock
) -> None:
    """Play episodes again in another process, where strings have other hashes."""
    name = "other process"
    if not word:
        detail = "the factory has no name that another process would find"
        ledger.unsure(name, detail, "define it at the top of a module")
        return
    some = scripts[:IN_OTHERS]
    hashes = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    wanted = [(script.seed, len(script.actions)) for script in some]
    played, trouble = play_elsewhere(
        word, settings, wanted, hashes=hashes, wait_s=60 + 2 * clock.seconds
    )
    if trouble:
        ledger.wrong(name, trouble, "make everything that the env needs in the factory")
        return

    def again(script: Script) -> Difference | None:
        facts = played[some.index(script)]
        for step in range(len(script.facts)):
            found = difference(script, step, facts[step] if step < len(facts) else {})
            if found:
                return found
        return None

    advice = "sort sets before they are walked through, and ask neither clock nor process id"
    hold(name, again, some, ledger, good="the same episodes", advice=advice)


def seeds_differ(make: Make, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Play the actions of an episode from another seed."""
    some = scripts[:IN_OTHERS]
    if any(replayed(make, script, seed=script.seed + 1) for script in some):
        ledger.ok("seeds", "other seeds, other episodes")
        return
    detail = f"seeds {scripts[0].seed} and {scripts[0].seed + 1} play the same"
    ledger.tell("seeds", detail, "fine for a game without chance; else reset forgets its seed")


def independence(make: Make, scripts: Sequence[Script], ledger: Ledger) -> None:
    """Play two envs in turn, step by step: neither may notice the other."""
    pair = [*scripts, *scripts][:2]
    drivers = [make() for _ in pair]
    replays = [Replay(driver, script) for driver, script in zip(drivers, pair, strict=True)]
    while not all(replay.done for replay in replays):
        for replay in replays:
            if not replay.done:
                replay.next()
    for driver in drivers:
        driver.dismiss()
    differences = [replay.found for replay in replays if replay.found]
    if not differences:
        ledger.ok("independence", "two envs in turn play as each alone")
        return
    first = min(differences, key=lambda found: found.step)
    advice = "envs share something: keep state in self, not in the class or the module"
    ledger.wrong("independence", f"beside another env {first}", advice, first.place)


def closing(driver: Driver, ledger: Ledger) -> None:
    """Close an env, and once more."""
    try:
        driver.close()
        driver.close()
    except EnvRaisedError as raised:
        advice = "let close() work whenever it is called, also twice"
        ledger.wrong("close", str(raised), advice)
    else:
        ledger.ok("close", "works, also twice")
