"""Settings that have another place by now: old files are read, old words say where they went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparring.config import PPOConfig

COLLECTING = ("games", "steps", "slots", "bf16")
MOVED = {
    **{name: f"collect.{name}" for name in COLLECTING},
    "lambda_": "ppo.gae_lambda",
    "lr_end": "part of ppo.lr, for example 0%:1e-3,100%:1e-4",
    "entropy_end": "part of ppo.entropy, for example 0%:0.01,100%:0.001",
}
"""What was in `ppo` before."""
SWITCHES = {"bf16": "--collect.no-bf16"}
"""Those that are switched away from their default."""
GONE = "compile"
"""What `collect`, and `ppo` before it, had: torch.compile, which made networks slower."""


def moved_to(config: type, key: str) -> str:
    """Say where a setting is now, "" if it never was there."""
    return f"; it is now {MOVED[key]}" if config is PPOConfig and key in MOVED else ""


def moved_option(words: list[str]) -> str:
    """Say which word of a command line has another name by now, "" if none has."""
    for word in words:
        option = word.partition("=")[0]
        key = option.removeprefix("--ppo.").removeprefix("no-").replace("-", "_")
        key = "lambda_" if key in ("lambda", "lambda_") else key
        if option.startswith("--ppo.") and key in MOVED:
            place = MOVED[key]
            shown = place if " " in place else f"--{place.replace('_', '-')}"
            return f"{option} has moved: it is now {SWITCHES.get(key, shown)}"
    return ""


def modernised(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's configuration as it is written today; one of today stays as it is.

    One that never was ours stays, too: `merged` says what is wrong with it.
    """
    new = dict(table)
    if not all(isinstance(new.get(name, {}), Mapping) for name in ("eval", "ppo", "collect")):
        return new
    if ":" in str(new.get("algo", "")):  # those of PPO stood in the files of all learners
        new.pop("ppo", None)
    for name in ("collect", "ppo"):
        if GONE in new.get(name, {}):
            new[name] = {key: value for key, value in new[name].items() if key != GONE}
    measured = dict(new.get("eval", {}))
    if isinstance(measured.get("target"), float):  # there was one, 0 for none
        measured["target"] = [measured["target"]] if measured["target"] else []
        new["eval"] = measured
    ppo = dict(new.get("ppo", {}))
    if not ppo.keys() & MOVED.keys():
        return new
    collect = {name: ppo.pop(name) for name in COLLECTING if name in ppo}
    if "lambda_" in ppo:
        ppo["gae_lambda"] = ppo.pop("lambda_")
    for name in ("lr", "entropy"):
        start, end = ppo.get(name), ppo.get(f"{name}_end", 1.0)
        if not all(isinstance(value, int | float | None) for value in (start, end)):
            continue
        ppo.pop(f"{name}_end", None)
        if start is not None and end not in (None, 1):
            ppo[name] = [["0%", start], ["100%", start * end]]
    return {**new, "ppo": ppo, "collect": {**collect, **new.get("collect", {})}}
