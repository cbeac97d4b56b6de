"""Settings that schedules may change, as they are at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from sparring.schedule import AtMoment

__all__ = ["AtMoment", "Knobs"]


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
