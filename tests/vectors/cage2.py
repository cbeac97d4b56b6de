"""CAGE-2 as the reference simulator (CybORG 2.1) played it: recorded episodes and statistics.

`cage2_traces.json.xz` holds 43,500 recorded steps; `cage2_golden.json.xz` means over 400,000
episodes of a model that reproduces every one of them.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RED_FLAGS = {"bline": "B_LINE", "meander": "MEANDER", "sleep": "SLEEP"}
NAMES = (
    *("bline_decoy_30x50_challenge", "bline_decoy_60x50", "bline_defend_20x100"),
    *("bline_defend_40x50_challenge", "bline_random_200x30", "bline_remove_30x50"),
    *("bline_sleep_200x30", "meander_decoy_20x50_cardiff", "meander_decoy_60x50"),
    *("meander_defend_20x100", "meander_defend_40x50_challenge", "meander_random_200x30"),
    *("meander_random_30x40_green", "meander_sleep_200x30", "sleep_random_10x30"),
)


@dataclass(frozen=True)
class Step:
    """One recorded step. -1 stands for "none" everywhere."""

    action: int
    red_action: int
    """0 sleep, 1 sweep, 2 scan, 3 exploit, 4 escalate, 5 impact."""
    red_target: int
    port: int
    """Chosen for an exploit."""
    noticed: int
    """Whether a new shell was noticed."""
    green: int
    success: int
    """2 for a red that sleeps."""
    reward_tenths: int
    seen: str
    """One hexadecimal digit per host: active, exploit, and the two bits of the label."""
    levels: str
    stopped: bool


@dataclass(frozen=True)
class Trace:
    """Episodes that were recorded with the same settings."""

    name: str
    red: str
    green: bool
    preset: str
    obs_rule: str
    steps: int
    episodes: tuple[tuple[Step, ...], ...]

    @property
    def config(self) -> dict[str, Any]:
        """The flags of the native game."""
        return {
            "red": RED_FLAGS[self.red],
            "green": int(self.green),
            "preset": self.preset.upper(),
            "obs_rule": self.obs_rule.upper(),
            "max_steps": self.steps,
        }


def stored(name: str) -> Any:
    return json.loads(lzma.decompress((HERE / name).read_bytes()))


@cache
def all_traces() -> dict[str, Any]:
    traces: dict[str, Any] = stored("cage2_traces.json.xz")
    return traces


@cache
def trace(name: str) -> Trace:
    raw = all_traces()[name]
    episodes = tuple(tuple(steps_of(episode, raw["steps"])) for episode in raw["episodes"])
    kept = {key: raw[key] for key in ("red", "green", "preset", "obs_rule", "steps")}
    return Trace(name, **kept, episodes=episodes)


def steps_of(raw: dict[str, Any], count: int) -> list[Step]:
    return [
        Step(
            action=raw["a"][i],
            red_action=raw["t"][i],
            red_target=raw["h"][i],
            port=raw["x"][i],
            noticed=raw["d"][i],
            green=raw["g"][i] if "g" in raw else -1,
            success=raw["s"][i],
            reward_tenths=raw["r"][i],
            seen=raw["o"][13 * i : 13 * i + 13],
            levels=raw["p"][13 * i : 13 * i + 13],
            stopped=raw["i"][i] == "1",
        )
        for i in range(count)
    ]


def golden() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = stored("cage2_golden.json.xz")
    return entries


def hex_of(bits: Any) -> str:
    """The 52 numbers of an observation as a trace shows them."""
    digits = np.asarray(bits, int)[:52].reshape(13, 4) @ [8, 4, 2, 1]
    return "".join(f"{digit:x}" for digit in digits)
