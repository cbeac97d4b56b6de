"""How settings of runs are told side by side: by dotted names, and shortly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from sparring.config.options import flat
from sparring.games.flags import read_pair
from sparring.training.planning.settings import as_text

LONGEST = 60
"""Characters of a value; longer ones are shortened."""
AS_THE_RUN = "as the run"
"""What a phase has for a key that it does not name."""


def spread(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every setting of a role and of a phase a name of its own, beside the whole lists.

    So runs are told apart by the one setting in which their roles differ. What some run says
    about a role or a phase is known of all runs that have it.
    """
    inner = [of_roles(run) | of_phases(run) for run in runs]
    names = dict.fromkeys(name for found in inner for name in found)
    return [
        {**run, **{name: found.get(name, usual(run, name)) for name in names if has(run, name)}}
        for run, found in zip(runs, inner, strict=True)
    ]


def of_roles(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run says about its roles: roles.worker.ppo.lr and so on."""
    pairs = [read_pair(word, "roles") for word in run.get("roles", ())]
    return {f"roles.{name}": number_or_text(value) for name, value in pairs}


def of_phases(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run says about its phases: phases.late.set.mode and so on."""
    phases = zip(names_of(run.get("phases", ())), run.get("phases", ()), strict=True)
    return flat({"phases": dict(phases)})


def has(run: Mapping[str, Any], name: str) -> bool:
    """Whether a run has the role or the phase of such a name."""
    if name.startswith("roles."):
        return bool(run.get("hierarchy.on"))
    return any(name.startswith(f"phases.{phase}.") for phase in names_of(run.get("phases", ())))


def usual(run: Mapping[str, Any], name: str) -> Any:
    """Return what holds for a role or a phase that says nothing about it."""
    if name.startswith("phases."):
        return AS_THE_RUN
    return number_or_text(as_text(run.get(name.split(".", 2)[2], "none")))


def number_or_text(text: str) -> float | str:
    """Return the number that a word is, so that 1e-3 and 0.001 are the same."""
    try:
        return float(text)
    except ValueError:
        return text


def names_of(phases: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(phase.get("name", at + 1)) for at, phase in enumerate(phases)]


def typed(value: Any) -> str:
    """Return a setting as a user would type it; of phases their names."""
    if isinstance(value, list):
        if value and isinstance(value[0], Mapping):
            return " / ".join(names_of(value))
        return " ".join(map(typed, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def shortened(text: str, others: Sequence[str]) -> str:
    """Return a part of a long text, and if possible the part in which it differs from others."""
    if len(text) <= LONGEST:
        return text
    columns = zip(text, *others, strict=False)
    same = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, columns))
    first = text.rfind(" ", 0, same) + 1 if same > LONGEST // 2 else 0
    part = text[first : first + LONGEST].rstrip()
    return f"{'…' * bool(first)}{part}{'…' * (first + LONGEST < len(text))}"
