"""Actions on their way to games on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import IllegalActionError


def as_given(action: npt.ArrayLike, rows: int, box: int) -> npt.NDArray[Any]:
    """Return actions as the native core takes them.

    box: numbers of an action, 0 where it is a choice.
    """
    wanted = (rows, box) if box else (rows,)
    try:
        given = np.asarray(action)
    except ValueError:  # lists of different lengths
        raise IllegalActionError(f"actions are not an array of shape {wanted}") from None
    if given.shape != wanted:
        raise IllegalActionError(f"actions have shape {given.shape}, need {wanted}")
    if box and given.dtype == np.float32:
        return np.ascontiguousarray(given)
    if box and given.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # what is too large becomes infinite and is refused
            return np.ascontiguousarray(given, np.float32)
    if box:
        raise IllegalActionError(f"actions are {given.dtype}, need numbers")
    if given.dtype == np.int32:
        return np.ascontiguousarray(given)
    if given.dtype.kind not in "iu":
        raise IllegalActionError(f"actions are {given.dtype}, need integers")
    limit = np.iinfo(np.int32)
    clipped: npt.NDArray[Any] = np.clip(given, limit.min, limit.max).astype(np.int32)
    return clipped
