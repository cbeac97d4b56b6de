"""Recorded matches of the original game, answers of its scripted player, and statistics.

The data lie beside this file as compressed JSON: 45 matches (3,366 steps), 200 answers, and
the outcome of 20,000 matches for each of 21 pairings.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.games.laser_hockey import HockeyPosition, RigidBody

FILE = Path(__file__).with_name("laser_hockey.json.xz")
PUCK_MASS, STEP_S = 1.0323623, 0.02

Floats = npt.NDArray[np.float64]


@cache
def data() -> dict[str, Any]:
    return dict(json.loads(lzma.decompress(FILE.read_bytes())))


@dataclass(frozen=True)
class Trace:
    name: str
    mode: str
    keep: bool
    start: HockeyPosition
    actions: npt.NDArray[np.float32]
    """[steps, 2, 4]"""
    obs: Floats
    """[steps, 18]"""
    reward: Floats
    """[steps, 2]"""
    spin: Floats
    """Of the puck."""
    raw: dict[str, Any]
    """Everything else as it was recorded."""

    @property
    def steps(self) -> int:
        return len(self.obs)

    def position_before(self, step: int) -> HockeyPosition:
        """What was recorded before a step, with nothing touching anything."""
        if step == 0:
            return self.start
        seen = self.obs[step - 1].tolist()
        return HockeyPosition(
            left=RigidBody(*seen[0:6]),
            right=RigidBody(*seen[6:12]),
            puck=RigidBody(seen[12], seen[13], 0.0, seen[14], seen[15], float(self.spin[step - 1])),
            keep=(int(seen[16]), int(seen[17])),
            mode=self.mode,
        )


def first_position(raw: dict[str, Any]) -> HockeyPosition:
    bodies = {
        name: RigidBody(at["x"] - 5, at["y"] - 4, at["angle"], at["vx"], at["vy"], at["w"])
        for name, at in raw["initial_body_states"].items()
    }
    x, y = (force * STEP_S / PUCK_MASS for force in raw["initial_puck_force"])
    left, right = raw["initial_keep_counters"]
    return HockeyPosition(
        bodies["p1"], bodies["p2"], bodies["puck"], (left, right), mode=raw["mode"], kick=(x, y)
    )


def trace_of(raw: dict[str, Any]) -> Trace:
    actions = np.array(raw["actions"], np.float32).reshape(raw["steps"], 2, -1)
    padding = np.zeros((raw["steps"], 2, 4 - actions.shape[2]), np.float32)
    obs = np.array(raw["obs"], np.float64)
    return Trace(
        name=raw["name"],
        mode=raw["mode"],
        keep=raw["keep_mode"],
        start=first_position(raw),
        actions=np.concatenate([actions, padding], axis=2),
        obs=np.pad(obs, ((0, 0), (0, 18 - obs.shape[1]))),
        reward=np.stack([raw["reward"], raw["reward_agent_two"]], axis=1),
        spin=np.array(raw["puck_spin"]),
        raw=raw,
    )


@cache
def traces() -> tuple[Trace, ...]:
    return tuple(trace_of(raw) for raw in data()["traces"])
