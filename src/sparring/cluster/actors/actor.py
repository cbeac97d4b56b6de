"""An actor as a process: it hears messages and plays orders in the order in which they come."""

from __future__ import annotations

import queue
import signal

import numpy as np

from sparring.errors import SparringError
from sparring.messages import Message, refusal
from sparring.processes import Parent, SharedArrays


def main() -> None:
    """Play until the learner is gone, which ends this process whatever it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner decides when to end
    learner, told = Parent(), queue.SimpleQueue[Message]()
    learner.listen(told.put)

    from sparring.cluster.actors.body import Body, Place
    from sparring.cluster.actors.weights import Board

    begin = told.get().facts
    try:
        body = Body(begin["settings"], Place(**begin["place"]))
    except SparringError as wrong:
        learner.tell(refusal(wrong))
        raise
    board, shapes = Board(begin["size"], learner.fds[0]), body.shapes
    buffers = [SharedArrays(shapes) for _ in range(begin["buffers"])]
    plain = {name: [np.dtype(kind).str, list(shape)] for name, (kind, shape) in shapes.items()}
    learner.tell(Message("ready", {"shapes": plain}), [one.fd for one in buffers])
    while True:
        message = told.get()
        facts = message.facts
        if message.name == "order":
            out = buffers[facts["buffer"]].items()
            learner.tell(Message("parcel", body.fulfill(facts["number"], out, board.newer)))
            continue
        try:
            said = body.hear(message)
        except SparringError as wrong:
            if "asked" not in facts:
                raise
            said = refusal(wrong)
        if "asked" in facts:
            answer = {**said.facts, "asked": facts["asked"]}
            learner.tell(Message(said.name, answer, said.arrays))


if __name__ == "__main__":
    main()
