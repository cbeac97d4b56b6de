"""The process of a sweep's trials: it trains jobs, several as one population.

On the way it is told which of them are hopeless. It tells a point after every evaluation, what came
of every job, and that it is idle.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparring.messages import Message
from sparring.processes import Parent


def main() -> None:
    """Train what is asked for until nobody is there, which ends a training too."""
    parent, orders = Parent(), queue.SimpleQueue[Mapping[str, Any]]()
    hopeless: dict[int, str] = {}

    def hear(message: Message) -> None:
        if message.name == "hopeless":
            hopeless[message.payload["number"]] = message.payload["why"]
        else:
            hopeless.clear()  # here: what was said late about the jobs before is gone, too
            orders.put(message.payload)

    parent.listen(hear)

    from sparring.sweep.record import read_trial
    from sparring.sweep.training import train_jobs
    from sparring.sweep.trials import Job, RefusedError
    from sparring.training.planning.settings import read_config
    from sparring.training.records.run import finite

    def tell(name: str, **facts: Any) -> None:
        parent.send(Message(name, finite(facts)))

    while True:
        order = orders.get()
        jobs = [
            Job(read_trial(given["trial"]), read_config(given["config"], "trial"), given["final"])
            for given in order["jobs"]
        ]
        try:
            found = train_jobs(
                jobs,
                order["raised"],
                lambda number, point: tell("point", number=number, point=point),
                lambda number: hopeless.get(number, ""),
                threads=order["threads"],
            )
        except RefusedError as wrong:
            found = []
            tell("refused", why=str(wrong))
        for trial in found:
            tell("ended", **asdict(trial))
        tell("idle")


if __name__ == "__main__":
    main()
