"""Validation of a policy's metadata against its weights, before the network is built."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparring.extras import has_torch
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.heads import POLICY, RESULTS, ROLES, VALUE, WDL, head_width
from sparring.pools.custom.choices import MAX_COMBINATIONS, MAX_PARTS
from sparring.pools.custom.layout import Pixels
from sparring.pools.custom.rules import DECLARED
from sparring.store.schema import (
    any_value,
    boolean,
    integer,
    list_of,
    mapping_of,
    number,
    object_with,
    optional,
    short_string,
    short_value,
    string,
    string_matching,
)

if TYPE_CHECKING:
    from torch import Tensor

MAX_SEATS = 2**16
MAX_ROLES = 64
MAX_HEADS = 64
MAX_SIZE = 2**22
"""Largest observation, memory or action. The weights of built-in networks limit them further."""

SIZE = integer(0, MAX_SIZE)
HEAD_NAME = string_matching(r"[A-Za-z]\w{0,60}", "the name of a head")
LAYOUT_PART = list_of(any_value, 6)
BOUNDS = object_with(
    {
        "low": list_of(number, MAX_SIZE),
        "high": list_of(number, MAX_SIZE),
        "shape": list_of(integer(0, MAX_SIZE), 32),
        "dtype": string_matching(r"float\d{2,3}", "a type of floats"),
    },
    closed=True,
)
CHOICES = object_with(
    {
        "counts": list_of(integer(1, MAX_COMBINATIONS), MAX_PARTS),
        "start": list_of(integer(-(2**31), 2**31), MAX_PARTS),
        "shape": list_of(integer(1, MAX_PARTS), MAX_PARTS),
        "dtype": string_matching("u?int(8|16|32|64)", "a type of whole numbers"),
    },
    closed=True,
)
CUSTOM = object_with(
    {
        "name": short_string,
        "seats": integer(1, MAX_SEATS),
        "rows": integer(1, MAX_SEATS),
        "actions": SIZE,
        "numbers": SIZE,
    },
    {
        "first_action": integer(-(2**63)),
        "bounds": optional(BOUNDS),
        "parts": list_of(LAYOUT_PART),
        "names": list_of(string),
        "action_names": list_of(string),
        "choices": CHOICES,
        **dict.fromkeys(DECLARED, boolean),
    },
    closed=True,
)
NET_SCHEMA = object_with({}, {"kind": string})
"""Older files have no kind; they are perceptrons."""
POLICY_SCHEMA = object_with(
    {
        "game": short_string,
        "rules_version": integer(),
        "game_config": mapping_of(short_value, short_string),
        "net": NET_SCHEMA,
    },
    {
        "heads": optional(mapping_of(integer(1, MAX_SIZE), HEAD_NAME, MAX_HEADS)),
        "memory": integer(0, 4 * MAX_SIZE),
        ROLES: mapping_of(NET_SCHEMA, max_items=MAX_ROLES),
        "foreign": CUSTOM,
        "made_by": string,
        "by_value": boolean,
        "dueling": boolean,
        "values": boolean,
        "deterministic": boolean,
        "update": integer(),
        "decisions": integer(),
        "seconds": number,
        "wins": mapping_of(any_value),
    },
)


def uses_custom_net(meta: Mapping[str, Any]) -> bool:
    """Whether one of the networks is a custom class."""
    nets = (meta["net"], *meta.get(ROLES, {}).values())
    return any(is_factory(net.get("kind", "")) for net in nets)


def check_policy(meta: Any, weights: Mapping[str, Tensor] | None) -> None:
    """Raise ValueError unless metadata describe a policy that fits its weights.

    Every input, memory and output number of a built-in network has at least one weight, so the
    network to build cannot be much larger than the file.
    """
    POLICY_SCHEMA(meta, "")
    if weights is None:
        raise ValueError("the weights of a network are missing")
    if "foreign" in meta:
        check_custom(meta["foreign"])
    if uses_custom_net(meta):
        return
    num_weights = sum(math.prod(tensor.shape) for tensor in weights.values())
    custom = meta.get("foreign", {})
    counts = {
        "memory": meta.get("memory", 0) // 4,
        **{f"foreign.{key}": custom[key] for key in ("numbers", "actions") if custom},
        **{f"heads.{head}": width for head, width in (meta.get("heads") or {}).items()},
    }
    shapes = [tuple(part[4]) for part in custom.get("parts", ()) if any(part[4:5])]
    if shapes and has_torch():  # without it no network reads pixels
        from sparring.nets.pixels import PIXEL_NETS

        for net in (meta["net"], *meta.get(ROLES, {}).values()):
            if kind := PIXEL_NETS.get(net.get("kind", "")):
                sizes = [kind.width * kind.maps(*Pixels(shape, 0).size) for shape in shapes]
                counts["foreign.parts"] = max(sizes)
    for where, count in counts.items():
        if count > num_weights:
            raise ValueError(f"{where} is {count:,}, more than its {num_weights:,} weights allow")


def check_forms(where: str, count: int, kind: str, forms: Sequence[Any]) -> None:
    """Raise ValueError unless a part's numbers have its shape, and its choices if it has any."""
    for shape in forms[:1]:
        list_of(integer(1, MAX_SIZE), 4)(shape, f"{where}[4]")
        pixels = len(shape) > 1 and math.prod(shape) == count and kind == "uint8"
        if not pixels and (shape or len(forms) == 1):
            raise ValueError(f"{where} has a shape that its {count} numbers do not have")
    for choices in forms[1:]:
        list_of(list_of(integer(-(2**63)), 2), MAX_SIZE)(choices, f"{where}[5]")
        if any(len(one) != 2 or one[0] < 1 for one in choices) or (
            sum(one[0] for one in choices) != count
        ):
            raise ValueError(f"{where} has choices that its {count} numbers do not have")


def check_custom(custom: Mapping[str, Any]) -> None:
    """Raise ValueError unless the sizes of a custom environment are consistent."""
    parts = custom.get("parts", ())
    for at, part in enumerate(parts):
        where = f"foreign.parts[{at}]"
        if len(part) not in (4, 5, 6):
            raise ValueError(f"{where} has {len(part)} entries, not name, count, type and divisor")
        name, count, kind, divisor, *rest = part
        string(name, where)
        SIZE(count, where)
        string_matching("float32|uint8", "float32 or uint8")(kind, where)
        number(divisor, where)
        check_forms(where, count, kind, rest)
    total = sum(part[1] for part in parts)
    if parts and total != custom["numbers"]:
        raise ValueError(f"foreign.parts has {total} numbers, foreign.numbers {custom['numbers']}")
    if bounds := custom.get("bounds"):
        sizes = {len(bounds["low"]), len(bounds["high"]), math.prod(bounds["shape"])}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError("foreign.bounds has low, high and shape of different sizes, or none")
    if choices := custom.get("choices"):
        sizes = {len(choices["counts"]), len(choices["start"]), math.prod(choices["shape"])}
        if len(sizes) > 1 or math.prod(choices["counts"]) != custom["actions"]:
            raise ValueError("foreign.choices has other counts, start, shape or actions")
    if (names := custom.get("action_names")) and len(names) != custom["actions"]:
        raise ValueError(f"foreign.action_names has {len(names)}, not {custom['actions']}")
    if custom.get("zero_sum") and custom["seats"] != 2:
        raise ValueError(f"foreign.zero_sum is for two seats, not {custom['seats']}")


def check_heads(rules: Rules, heads: Mapping[str, int] | None) -> None:
    """Raise ValueError unless heads have the widths of the game."""
    if heads is None:
        return
    if POLICY not in heads:
        raise ValueError("it has no policy head, so it cannot play")
    widths = {POLICY: head_width(rules), VALUE: 1, WDL: RESULTS}
    for head, width in heads.items():
        if width != widths.get(head, width):
            raise ValueError(
                f"heads.{head} is {width}, a policy of {rules.name} has {widths[head]}"
            )
