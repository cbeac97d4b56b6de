"""Settings that schedules may change, as they are at one moment."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

from sparring.schedule import Moment


class AtMoment:
    """A dataclass of numbers, each named as the schedule that it is read from."""

    @classmethod
    def at(cls, config: Any, moment: Moment) -> Self:
        """Read every schedule."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: getattr(config, name).at(moment) for name in names})
