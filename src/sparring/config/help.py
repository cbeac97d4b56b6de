"""What the lines under the fields of a configuration say, for whoever shows settings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast


@cache
def help_of(kind: Hashable) -> Mapping[str, str]:
    """Return the help text of every field of a configuration, without line breaks."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cast(type, kind)))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def all_help(config: Any, prefix: str = "") -> dict[str, str]:
    """Return the help texts of a configuration and of those inside it, by dotted names."""
    found: dict[str, str] = {}
    kind: type = type(config)
    texts = help_of(kind)
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            found |= all_help(value, f"{prefix}{field.name}.")
        else:
            found[f"{prefix}{field.name}"] = texts.get(field.name, "")
    return found
