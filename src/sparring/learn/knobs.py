"""Settings that schedules may change, as they are at one moment."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from sparring.schedule import Moment


class AtMoment:
    """A dataclass of numbers, each named as the schedule that it is read from."""

    @classmethod
    def at(cls, config: Any, moment: Moment) -> Self:
        """Read every schedule."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: getattr(config, name).at(moment) for name in names})


@dataclass(frozen=True)
class Knobs(AtMoment):
    """The numbers of `PPOConfig` that a schedule may change, as they are in one update.

    In the order of `Knobs` in csrc/cuda.
    """

    lr: float
    entropy: float
    clip: float
    value_clip: float
    value_weight: float
    max_grad_norm: float
    target_kl: float
    gamma: float
    gae_lambda: float
