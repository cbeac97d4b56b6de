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
        """What came of a cell, or what follows for a pair; a learner of later is absent."""
        if cell.game is None or (*cell.key[:3], ALONE) not in self.cells:
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

    def counts(self) -> str:
        """How many cells there are of each state; of pairs nobody knows which were updated."""
        one = Counter(self.of(cell).state for cell in singles(self.device))
        two = Counter(self.of(cell).state for cell in pairs(self.device))
        two[UNTRIED] += two.pop(RUNS, 0)
        shown = [
            ", ".join(f"{number} {state}" for state, number in sorted(counted.items()) if number)
            for counted in (one, two)
        ]
        return f"{shown[0]}; pairs: {shown[1]}"

    def write(self, file: Path) -> None:
        """Write it."""
        names = [ALONE, *(one.name for one in FEATURES)]
        odd = [
            cell
            for cell in pairs(self.device)
            if cell.key in self.cells
            and cell.game
            and not same_kind(self.cells[cell.key], self.follows(cell))
        ]
        said: dict[str, int] = {}

        def code(cell: Cell) -> str:
            outcome = self.of(cell)
            if not outcome.line:
                return SIGNS[outcome.state]
            return f"{SIGNS[outcome.state]}{said.setdefault(outcome.line, len(said) + 1)}"

        lines = [f"{HEAD}# {self.made}", f"# {self.counts()}", "", "[features]"]
        lines += [", ".join(names), "", "[cells]"]
        each = iter(singles(self.device))
        for row in rows(self.device):
            codes = " ".join(code(next(each)) for _ in names)
            lines.append(" | ".join([*row.key[:3], codes]))
        lines += ["", "[pairs]", *(" | ".join([*cell.key, code(cell)]) for cell in odd)]
        lines += ["", f"[{SAID}]", *(f"{number} {line}" for line, number in said.items())]
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
