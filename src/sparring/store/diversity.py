"""Which snapshots to do without: those that resemble others in rating and age."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from sparring.store.archive_index import SnapshotEntry


def choose_removed(
    entries: Sequence[SnapshotEntry],
    max_bytes: int,
    kept: Collection[str],
    ratings: Mapping[str, float],
) -> list[SnapshotEntry]:
    """Return the entries to remove until the others fit; never the newest, nor any in `kept`."""
    left = list(entries)
    removed: list[SnapshotEntry] = []
    while left and sum(entry.bytes for entry in left) > max_bytes:
        crowded = distances(left, ratings)
        spare = [entry for entry in left[:-1] if entry.hash not in kept]
        if not spare:
            break
        # Of those that are equally crowded the oldest.
        goes = min(spare, key=lambda entry: (crowded[entry.hash], entry.number))
        left.remove(goes)
        removed.append(goes)
    return removed


def distances(entries: Sequence[SnapshotEntry], ratings: Mapping[str, float]) -> dict[str, float]:
    """Return how far apart the neighbors of every entry are, in age and in rating, as shares.

    The crowding distance of Deb et al. (2002): who is first or last in one of both is infinitely
    far from the others, so the weakest, the strongest and the oldest stay.
    """
    numbers = {entry.hash: float(entry.number) for entry in entries}
    rated = {entry.hash: ratings[entry.hash] for entry in entries if entry.hash in ratings}
    by_age, by_rating = gaps(numbers), gaps(rated)
    return {
        # Without a rating, age alone says how far an entry is from others.
        content: (by_age.get(content, 0) + by_rating.get(content, by_age.get(content, 0))) / 2
        for content in numbers
    }


def gaps(values: Mapping[str, float]) -> dict[str, float]:
    """Return the distance between the neighbors of each value, the whole range being 1."""
    order = sorted(values, key=lambda name: values[name])
    if len(order) < 3 or values[order[0]] == values[order[-1]]:
        return {}
    whole = values[order[-1]] - values[order[0]]
    inner = {
        name: (values[after] - values[before]) / whole
        for before, name, after in zip(order, order[1:], order[2:], strict=False)
    }
    return {order[0]: math.inf, order[-1]: math.inf, **inner}
