"""Writes the generated tables of docs/algorithms: scripts/algorithm_tables.py [--check].

What every algorithm takes is computed from `sparring.capabilities.table`, settings from
`sparring.config`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sparring.capabilities.table import FEATURES, LEARNERS, PLACE, PLACES
from sparring.config import TrainConfig
from sparring.config.options import options_of
from sparring.schedule import Schedule

DOCS = Path(__file__).resolve().parents[1] / "docs/algorithms"
YES, NO = "yes", "-"
NAMES = {
    "ppo": ("PPO", "ppo.md"),
    "dqn": ("DQN", "dqn.md"),
    "qrdqn": ("QR-DQN", "dqn.md#qr-dqn"),
    "pqn": ("PQN", "dqn.md#pqn"),
    "sac": ("SAC", "sac.md"),
    "redq": ("REDQ", "sac.md#redq"),
    "td3": ("TD3", "sac.md#td3"),
    "gumbel": ("Gumbel", "gumbel.md"),
}
"""Learners of the table, by their names there, with their pages."""
NEEDS = {
    "ppo": (),
    "dqn": ("replay",),
    "qrdqn": ("replay", "algo qrdqn"),
    "pqn": ("dqn.mode rollouts",),
    "sac": ("replay",),
    "redq": ("replay", "sac.critics"),
    "td3": ("replay", "algo td3"),
    "gumbel": ("algo gumbel",),
}
"""Features that choosing the learner asks for."""
ROWS = (
    ("discrete actions, with masks", "discrete"),
    ("continuous actions", "continuous"),
    ("stacked frames (`--net.memory stack`)", "memory"),
    ("recurrent networks (`--net.memory gru`)", "sequences"),
    ("pixels (`--net.kind nature`, `impala`)", "pixels"),
    ("a network per role (`--hierarchy.on`)", "roles"),
    ("auxiliary heads (`--heads`)", "terms"),
    ("a critic that sees all (`--net.critic full`)", "critic"),
    ("imitation first (`--imitate`)", "records"),
    ("hindsight (`--hindsight.on`)", "hindsight"),
    ("mirror images (`--collect.mirror`)", "mirror"),
    ("averaged weights (`--average`)", "average"),
    ("processes that play (`--actors`)", "rollouts"),
    ("several learners of one run (`--devices`, replicas)", "gradients"),
)
"""Rows that are abilities of the learner."""
SECTIONS = {
    "ppo.md": ("ppo",),
    "dqn.md": ("dqn", "qrdqn"),
    "sac.md": ("sac", "td3"),
    "gumbel.md": ("gumbel",),
    "replay.md": ("replay",),
}
"""Sections of the settings by page. `redq` has the settings of `sac` with other defaults."""


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def takes(names: Sequence[str]) -> str:
    """Return what learners take, one column each."""
    titles = (f"[{NAMES[name][0]}]({NAMES[name][1]})" for name in names)
    lines = [row(["", *titles]), row(["---"] * (len(names) + 1))]
    for shown, ability in ROWS:
        there = (ability in offers(name) for name in names)
        lines.append(row([shown, *(YES if one else NO for one in there)]))
    lines.append(row(["learns from", *(memory(name) for name in names)]))
    lines.append(row(["games and update as graphs on a GPU", *(on_gpu(name) for name in names)]))
    lines.append(row(["populations on one GPU", *(population(name) for name in names)]))
    return "\n".join(lines)


def memory(name: str) -> str:
    """Return what a learner learns from."""
    return "replay" if "replay" in NEEDS[name] else "rollouts"


def offers(name: str) -> frozenset[str]:
    """Return the abilities of a learner, those of PPO with a network per role among PPO's."""
    more = LEARNERS["ppo by role"].offers if name == "ppo" else frozenset()
    return LEARNERS[name].offers | more


def on_gpu(name: str) -> str:
    """Whether games, rollout and update of a learner run as CUDA graphs."""
    needed = {one for name in NEEDS[name] for one in FEATURES[name].needs.get(PLACE, ())}
    return YES if needed <= PLACES["graphs"].offers else NO


def population(name: str) -> str:
    return YES if on_gpu(name) == YES and "population" in offers(name) else NO


def settings(section: str) -> str:
    """Return the settings of a section: flag, default, what raising it does."""
    lines = [row(["setting", "default", ""]), row(["---"] * 3)]
    compared = defaults("redq") if section == "sac" else {}
    for option in options_of(TrainConfig):
        if option.section == section:
            default, key = cell(option.default), option.path.rpartition(".")[2]
            if compared and cell(compared[key]) != default:
                default += f"; REDQ {cell(compared[key])}"
            name = option.path.replace("_", "-")
            lines.append(row([f"`--{name}`", default, " ".join(option.help.split())]))
    return "\n".join(lines)


def defaults(section: str) -> dict[str, Any]:
    """Return the defaults of a section by name."""
    of_section = (one for one in options_of(TrainConfig) if one.section == section)
    return {option.path.rpartition(".")[2]: option.default for option in of_section}


def cell(value: Any) -> str:
    """Return a default as it is typed."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in ((), ""):
        return "none"
    if isinstance(value, tuple):
        return f"`{' '.join(map(str, value))}`"
    if isinstance(value, (float, int)):
        return f"`{value:,}`" if isinstance(value, int) else f"`{value:g}`"
    return f"`{value}`" if isinstance(value, (str, Schedule)) else f"`{value!r}`"


def wanted(page: Path) -> str:
    """Return a page with its tables as they ought to be."""
    text = page.read_text()
    tables = {"takes": takes([*NAMES])} if page.name == "index.md" else {}
    for section in SECTIONS.get(page.name, ()):
        tables[f"settings {section}"] = settings(section)
    for name, table in tables.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin not in text or end not in text:
            sys.exit(f"{page} has no {begin} ... {end}")
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return re.sub(r"\n{3,}", "\n\n", text)


def main() -> int:
    pages = [DOCS / "index.md", *(DOCS / name for name in SECTIONS)]
    if "--check" in sys.argv[1:]:
        return int(any(wanted(page) != page.read_text() for page in pages))
    for page in pages:
        page.write_text(wanted(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
