"""Choice of snapshots to remove: those most similar to others in rating and age."""

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
    """Return entries to remove until the others fit into max_bytes; keeps the newest and `kept`."""
    left = list(entries)
    removed: list[SnapshotEntry] = []
    while left and sum(entry.bytes for entry in left) > max_bytes:
        distance = distances(left, ratings)
        removable = [entry for entry in left[:-1] if entry.hash not in kept]
        if not removable:
            break
        # Ties remove the oldest.
        next_one = min(removable, key=lambda entry: (distance[entry.hash], entry.number))
        left.remove(next_one)
        removed.append(next_one)
    return removed


def distances(entries: Sequence[SnapshotEntry], ratings: Mapping[str, float]) -> dict[str, float]:
    """Return the crowding distance (Deb et al., 2002) of every entry, over age and rating.

    The first and the last in age or rating have an infinite distance, so the weakest, the
    strongest and the oldest stay.
    """
    numbers = {entry.hash: float(entry.number) for entry in entries}
    rated = {entry.hash: ratings[entry.hash] for entry in entries if entry.hash in ratings}
    by_age, by_rating = gaps(numbers), gaps(rated)
    return {
        # Entries without a rating use age alone.
        content: (by_age.get(content, 0) + by_rating.get(content, by_age.get(content, 0))) / 2
        for content in numbers
    }


def gaps(values: Mapping[str, float]) -> dict[str, float]:
    """Return the distance between the neighbors of each value, relative to the whole range."""
    order = sorted(values, key=lambda name: values[name])
    if len(order) < 3 or values[order[0]] == values[order[-1]]:
        return {}
    span = values[order[-1]] - values[order[0]]
    inner = {
        name: (values[after] - values[before]) / span
        for before, name, after in zip(order, order[1:], order[2:], strict=False)
    }
    return {order[0]: math.inf, order[-1]: math.inf, **inner}
