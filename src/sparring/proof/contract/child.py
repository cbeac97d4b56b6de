"""Episodes played in another process."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from sparring.errors import SparringError
from sparring.factories import load_factory
from sparring.messages import Message
from sparring.pools.custom.make import make_env
from sparring.processes import Child, Parent
from sparring.proof.contract.drivers import EnvRaisedError
from sparring.proof.contract.playing import Facts, driver_of, play
from sparring.proof.contract.values import Fact


def play_elsewhere(
    word: str,
    settings: dict[str, Any],
    episodes: Sequence[tuple[int, int]],
    *,
    hashes: str,
    wait_s: float,
) -> tuple[list[list[Facts]], str]:
    """Play episodes, (seed, steps) each, in a new process; return their facts, or an error.

    hashes: seed of Python's hashes there.
    """
    request = {"word": word, "settings": settings, "episodes": list(episodes)}
    variables = {"PYTHONHASHSEED": hashes}
    try:
        with Child("sparring.proof.contract.child", variables=variables) as child:
            played = child.request(Message("play", request), wait_s).payload["found"]
    except TimeoutError:
        return [], f"it had not played {len(episodes)} episodes after {wait_s:.0f} s"
    except SparringError as wrong:
        return [], str(wrong)
    return [
        [{name: Fact(*fact) for name, fact in facts.items()} for facts in script]
        for script in played
    ], ""


def respond(request: Message) -> Message:
    values = request.payload
    make = load_factory(values["word"], "game")
    found = []
    try:
        for seed, steps in values["episodes"]:
            env = make_env(lambda: make(**values["settings"]), values["word"])
            found.append(play(driver_of(env, values["word"]), seed, steps=steps).facts)
    except EnvRaisedError as raised:
        raise SparringError(str(raised)) from None
    return Message("played", {"found": found})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    Parent().serve(respond)
