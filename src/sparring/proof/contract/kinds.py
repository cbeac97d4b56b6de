"""The driver of every kind of environment."""

from __future__ import annotations

from typing import Any

from sparring.pools.foreign.make import SOLO, TOGETHER, TURNS, VECTOR, kind_of
from sparring.proof.contract.drivers import Driver
from sparring.proof.contract.solo import SoloDriver
from sparring.proof.contract.tables import ParallelDriver, TurnDriver
from sparring.proof.contract.vectors import VectorDriver

DRIVERS: dict[str, type[Driver]] = {
    SOLO: SoloDriver,
    VECTOR: VectorDriver,
    TURNS: TurnDriver,
    TOGETHER: ParallelDriver,
}


def driver_of(env: Any, what: str) -> Driver:
    """Return the driver for an env of any kind that is known."""
    return DRIVERS[kind_of(env, what)](env)
