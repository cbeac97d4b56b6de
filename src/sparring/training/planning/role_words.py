"""Settings by role as words, ROLE.SETTING=VALUE, and as the tables that files have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sparring.errors import ConfigError
from sparring.games.flags import read_pair
from sparring.schedule import Schedule

BY_ROLE = ("net", "ppo")
"""Sections whose settings roles may have their own of."""


def joined(before: Sequence[str], given: Any) -> tuple[str, ...]:
    """Put words or tables behind those that are there; of two of a name the later one counts."""
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Mapping | Sequence):
        raise ConfigError(f"roles needs words or a table by role, not {given!r}")
    words = list(words_of(given) if isinstance(given, Mapping) else map(str, given))
    return tuple({read_pair(word, "roles")[0]: word for word in (*before, *words)}.values())


def words_of(tables: Mapping[str, Any]) -> Iterator[str]:
    """Write {role: {"net": {...}, "ppo": {...}, "ended_by": ...}} as words."""
    for role, settings in tables.items():
        if not isinstance(settings, Mapping):
            raise ConfigError(f"roles.{role} needs a table of settings, not {settings!r}")
        for name, value in settings.items():
            inner = value if isinstance(value, Mapping) else {"": value}
            for key, one in inner.items():
                yield f"{'.'.join(filter(None, (role, name, key)))}={as_text(one)}"


def as_text(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and isinstance(value[0], Sequence) and not isinstance(value[0], str):
            return str(Schedule.read(value, "roles"))  # points, as files may write them
        return ",".join(map(str, value))
    return str(value)


def demand_heard(words: Sequence[str], names: Collection[str]) -> None:
    """Refuse settings of all networks, such as net.hidden, that every role has its own of."""
    own = [read_pair(word, "roles")[0].partition(".") for word in words]
    roles = {role for role, _, _ in own}
    for name in names:
        deaf = {role for role, _, setting in own if setting == name}
        if deaf and deaf == roles:
            example = " ".join(f"{role}.{name}=..." for role in sorted(roles))
            raise ConfigError(
                f"{name}: with hierarchy.on every role has its own; use --roles {example}"
            )
