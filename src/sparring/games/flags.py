"""Flags of a game as KEY=VALUE texts, such as num_players=6, and schedules of flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.errors import ConfigError, suggestion
from sparring.games.rules import SKIP_FORCED, UNIVERSAL_FLAGS, Field, Rules
from sparring.schedule import Schedule, format_number


def read_pair(word: str, where: str) -> tuple[str, str]:
    """Split KEY=VALUE. where: setting that an error names."""
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise ConfigError(f"{where}: {word!r} is not key=value; give a name, = and a value")
    return key, value


def read_rules(game: str, pairs: Sequence[str]) -> Rules:
    fields = Rules(game).fields
    given: dict[str, object] = {}
    for pair in pairs:
        key, text = read_pair(pair, "set")
        if key in given:
            raise ConfigError(f"set: {key} was given twice; give it once")
        if key in UNIVERSAL_FLAGS:
            given[key] = read_switch(key, text)
        elif key in fields and fields[key].count > 1:
            given[key] = split_list(text)
        else:
            given[key] = text.strip()
    return Rules(game, given)


def split_list(text: str) -> list[str]:
    return [value.strip() for value in text.split(",") if value.strip()]


def scheduled_flags(rules: Rules, pairs: Sequence[str]) -> dict[str, Schedule]:
    """Return the flags with a schedule."""
    given = dict(read_pair(pair, "set") for pair in pairs)
    scheduled = {key: text for key, text in given.items() if ":" in text}
    for key in scheduled:
        if key in rules.fields and rules.fields[key].count > 1:
            raise ConfigError(
                f"set: {key} is a list, which can change only in phases; give numbers, or a phase "
                f'set = {{ {key} = ["0:1,1e6:0", ...] }}'
            )
    read = {key: read_flag(rules, key, text) for key, text in scheduled.items()}
    return {key: value for key, value in read.items() if isinstance(value, Schedule)}


def read_flag(rules: Rules, key: str, given: Any) -> Any:
    """Read a flag that may change while games run: a value or a schedule.

    Every member of a list may be a schedule.
    """
    if not rules.declares_flags:  # a custom environment validates its flags itself
        return Schedule.read(given, key) if is_schedule(given) else given
    fields = {**rules.fields, "skip_forced": SKIP_FORCED}
    if key not in fields:
        raise ConfigError(f"set: {rules.name} has no flag {key!r}{suggestion(key, fields)}")
    field = fields[key]
    if not field.live:
        may = ", ".join(name for name, one in fields.items() if one.live) or "none"
        raise ConfigError(
            f"set: {key} cannot change while games run; set it for the whole run with --set "
            f"{key}=...; flags that can: {may}"
        )
    try:
        return parse_flag(field, given)
    except ConfigError as error:
        raise ConfigError(f"set: {error}") from None


def is_schedule(given: Any) -> bool:
    """Whether a value is the text of a schedule."""
    if not isinstance(given, str) or ":" not in given:
        return False
    try:
        return Schedule.read(given).changes
    except ConfigError:
        return False


def parse_flag(field: Field, given: Any) -> Any:
    """Validate a value, or all values of a schedule, and return it."""
    if field.count > 1:
        members = split_list(given) if isinstance(given, str) else given
        if not isinstance(members, Sequence):
            raise ConfigError(f"{field.name} needs a list of up to {field.count} values")
        read = [parse_number_or_schedule(field, member) for member in members]
        field.parse([first if not isinstance(first, Schedule) else field.low for first in read])
        return read
    if isinstance(given, str | list) and not field.words:
        one = parse_number_or_schedule(field, given)
        if isinstance(one, Schedule):
            return one
    field.parse(given)
    return given


def parse_number_or_schedule(field: Field, given: Any) -> Any:
    """Return a number as given, or a validated schedule."""
    if not isinstance(given, list) and ":" not in str(given):
        return given
    if field.words:
        raise ConfigError(f"{field.name} is one of {', '.join(field.words)}, no schedule")
    schedule = Schedule.read(given, field.name)
    for value in schedule.values:
        field.parse([value] if field.count > 1 else value)
    return schedule if schedule.changes else schedule.values[0]


def initial_flags(pairs: Sequence[str]) -> list[str]:
    """Return flags without those that a later text overrides; schedules by their first value."""
    given = dict(read_pair(pair, "set") for pair in pairs)
    return [f"{key}={initial_value(key, text)}" for key, text in given.items()]


def initial_value(key: str, text: str) -> str:
    return format_number(Schedule.read(text, f"set: {key}").values[0]) if ":" in text else text


def read_switch(key: str, text: str) -> int:
    if text.strip() not in ("0", "1"):
        raise ConfigError(f"{key}={text} must be 0 or 1")
    return int(text)


def changed_flags(rules: Rules) -> dict[str, object]:
    """Return the flags that differ from the game's defaults."""
    if not rules.config:  # custom environments have no known defaults
        return {}
    defaults = Rules(rules.name).config
    return {key: value for key, value in rules.config.items() if value != defaults[key]}


def flags_as_options(flags: Mapping[str, object]) -> list[str]:
    """Return flags as KEY=VALUE texts for --set, without trailing zeros of lists."""
    texts = []
    for key, value in flags.items():
        if isinstance(value, list):
            end = max((at + 1 for at, item in enumerate(value) if item), default=1)
            texts.append(f"{key}={','.join(map(str, value[:end]))}")
        else:
            texts.append(f"{key}={value}")
    return texts
