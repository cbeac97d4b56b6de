"""The record of what combines, as a text: a line for every learner, place and network.

Of pairs of features it names those alone that are not what the two features say each for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from combinations.cells import ALONE, FEATURES, Cell, pairs, rows, singles
from combinations.trying import (
    ABSENT,
    BROKEN,
    LATE,
    REFUSED,
    RUNS,
    SLOWER,
    UNTRIED,
    Outcome,
)

Key = tuple[str, str, str, str]
SIGNS = {RUNS: ".", UNTRIED: ",", ABSENT: "-", SLOWER: "s", REFUSED: "r", LATE: "l", BROKEN: "b"}
STATES = {sign: state for state, sign in SIGNS.items()}
SAID = "said"
HEAD = """\
# What combines: all learners x places x networks x features, and pairs of features, as written by
# benchmarks/what_combines.py. Of a cell: . runs; , is accepted, and no update was made; s runs
# slower, and says so; r refused; l refused only when the learner is made; b breaks; - does not
# arise. The number is that of what is said, see [said]. A pair is as its two features are, each for
# itself, unless [pairs] names it.
"""


@dataclass
class Record:
    """What came of every cell."""

    made: str
    """Where and when."""
    device: str
    cells: dict[Key, Outcome] = field(default_factory=dict)

    def of(self, cell: Cell) -> Outcome:
        """What came of a cell, or what follows for a pair."""
        if cell.game is None:
            return Outcome(ABSENT)
        found = self.cells.get(cell.key)
        return self.follows(cell) if found is None else found

    def follows(self, cell: Cell) -> Outcome:
        """What the parts of a pair say together."""
        alone = [Cell(cell.learner, cell.place, cell.network)]
        alone += [Cell(cell.learner, cell.place, cell.network, (one,)) for one in cell.features]
        found = [self.cells.get(one.key, Outcome(ABSENT)) for one in alone]
        for state in (REFUSED, LATE, BROKEN, SLOWER):
            for one in found:
                if one.state == state:
                    return one
        return Outcome(RUNS)

    def counts(self) -> Counter[str]:
        """How many cells there are of each state."""
        every = [*singles(self.device), *pairs(self.device)]
        return Counter(self.of(cell).state for cell in every)

    def write(self, file: Path) -> None:
        """Write it."""
        said: dict[str, int] = {}
        for outcome in self.cells.values():
            said.setdefault(outcome.line, len(said) + 1) if outcome.line else None

        def code(outcome: Outcome) -> str:
            return f"{SIGNS[outcome.state]}{said.get(outcome.line, '')}"

        counts = ", ".join(f"{n} {state}" for state, n in sorted(self.counts().items()))
        lines = [f"{HEAD}# {self.made}", f"# {counts}", "", "[features]"]
        names = [ALONE, *(one.name for one in FEATURES)]
        lines += [", ".join(names), "", "[cells]"]
        for row in rows(self.device):
            start = row.key[:3]
            codes = [code(self.cells.get((*start, name), Outcome(ABSENT))) for name in names]
            lines.append(" | ".join([*start, " ".join(codes)]))
        lines += ["", "[pairs]"]
        for cell in pairs(self.device):
            found = self.cells.get(cell.key)
            if found and cell.game and not same_kind(found, self.follows(cell)):
                lines.append(" | ".join([*cell.key, code(found)]))
        lines += ["", f"[{SAID}]"]
        lines += [f"{number} {line}" for line, number in said.items()]
        file.write_text("\n".join(lines) + "\n")


def same_kind(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same, whether or not updates were made."""
    alike = {UNTRIED: RUNS}
    return alike.get(one.state, one.state) == alike.get(other.state, other.state)


def read(file: Path) -> Record:
    """Read a record."""
    sections: dict[str, list[str]] = {"": []}
    current = sections[""]
    for line in file.read_text().splitlines():
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        elif line:
            current.append(line)
    said = dict(line.split(" ", 1) for line in sections[SAID])
    names = sections["features"][0].split(", ")
    made = sections[""][-2].removeprefix("# ")
    record = Record(made, "cuda" if "cuda" in made else "cpu")
    for line in sections["cells"]:
        learner, place, network, codes = line.split(" | ")
        for name, sign in zip(names, codes.split(" "), strict=True):
            record.cells[learner, place, network, name] = decoded(sign, said)
    for line in sections["pairs"]:
        learner, place, network, feature, sign = line.split(" | ")
        record.cells[learner, place, network, feature] = decoded(sign, said)
    return record


def decoded(sign: str, said: Mapping[str, str]) -> Outcome:
    """A state and what is said about it."""
    return Outcome(STATES[sign[0]], said.get(sign[1:], ""))
