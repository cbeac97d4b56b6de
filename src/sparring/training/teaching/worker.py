"""A process that makes decisions for `making`: tasks come in line by line, decisions go out."""

from __future__ import annotations

import json
import os
import sys

from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.learn.taught import Decisions
from sparring.processes import follow_parent
from sparring.training.teaching.making import Task, done, write_answer
from sparring.training.teaching.positions import Pay


def main() -> None:
    """Answer one task after the other, until there are none."""
    follow_parent(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not stand among answers
    first = json.loads(sys.stdin.readline())
    rules, pay = Rules(first["game"], first["config"]), Pay(**first["pay"])
    for line in sys.stdin:
        found: Decisions | str | None
        try:
            found = done(rules, pay, Task(**json.loads(line)))
        except SparringError as wrong:
            found = str(wrong)
        write_answer(answers, found)
    os._exit(0)


if __name__ == "__main__":
    main()
