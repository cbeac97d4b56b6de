"""Child process of a sweep: trains jobs, several as one population.

It receives jobs and prune messages, and sends evaluations, finished trials, and that it is idle.

"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparring.messages import Message
from sparring.processes import Parent


def main() -> None:
    """Train jobs until the parent process is gone, which also stops a training."""
    parent, orders = Parent(), queue.SimpleQueue[Mapping[str, Any]]()
    hopeless: dict[int, str] = {}

    def hear(message: Message) -> None:
        if message.name == "hopeless":
            hopeless[message.payload["number"]] = message.payload["why"]
        else:
            hopeless.clear()  # here: drops late messages about earlier jobs, too
            orders.put(message.payload)

    parent.listen(hear)

    from sparring.sweep.storage import read_trial
    from sparring.sweep.training import train_jobs
    from sparring.sweep.trials import TrialJob, TrialRefusedError
    from sparring.training.planning.settings import read_config
    from sparring.training.records.run import finite

    def tell(name: str, **facts: Any) -> None:
        parent.send(Message(name, finite(facts)))

    while True:
        order = orders.get()
        jobs = [
            TrialJob(
                read_trial(given["trial"]), read_config(given["config"], "trial"), given["final"]
            )
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
        except TrialRefusedError as error:
            found = []
            tell("refused", why=str(error))
        for trial in found:
            tell("ended", **asdict(trial))
        tell("idle")


if __name__ == "__main__":
    main()
