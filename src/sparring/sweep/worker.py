"""A process that trains for a sweep: `python -m sparring.sweep.worker PARENT`.

Orders and answers are JSON objects, one per line. It is told {"jobs": [...], "raised", "threads"}
and trains them, several as one population; on the way it is told {"hopeless": {number: why}}. It
tells {"number", "point"} after every evaluation, {"ended": ...} for every job, and {"idle": true}.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparring.processes import answering, end_with_children, follow_parent


def listen(orders: queue.SimpleQueue[Mapping[str, Any]], hopeless: dict[int, str]) -> None:
    """Take orders; the end of stdin ends the process, in the middle of a training too."""
    for line in sys.stdin:
        order = json.loads(line)
        if "hopeless" in order:
            hopeless.update({int(number): why for number, why in order["hopeless"].items()})
        else:
            hopeless.clear()  # here: what was said late about the jobs before is gone, too
            orders.put(order)
    end_with_children()


def main(parent: int) -> None:
    """Train what is asked for until stdin closes."""
    follow_parent(parent)
    orders: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
    hopeless: dict[int, str] = {}
    threading.Thread(target=listen, args=(orders, hopeless), daemon=True).start()
    answer = answering()

    from sparring.sweep.training import train_jobs
    from sparring.sweep.trials import Job
    from sparring.training.planning.settings import read_config
    from sparring.training.records.run import finite

    def tell(message: Mapping[str, Any]) -> None:
        answer(finite(message))

    while True:
        order = orders.get()
        jobs = [
            Job(given["number"], read_config(given["config"], "trial"), given["final"])
            for given in order["jobs"]
        ]
        found = train_jobs(
            jobs,
            order["raised"],
            lambda number, point: tell({"number": number, "point": point}),
            lambda number: hopeless.get(number, ""),
            threads=order["threads"],
        )
        for ended in found:
            tell({"ended": asdict(ended)})
        tell({"idle": True})


if __name__ == "__main__":
    main(int(sys.argv[1]))
