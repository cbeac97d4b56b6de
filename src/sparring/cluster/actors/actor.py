"""Main program of an actor process: plays requests and applies messages in order of arrival."""

from __future__ import annotations

import queue
import signal

import numpy as np

from sparring.errors import SparringError
from sparring.messages import Message, error_reply
from sparring.processes import Parent, SharedArrays


def main() -> None:
    """Play until the learner closes the socket, which ends this process at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner decides when to end
    learner, received = Parent(), queue.SimpleQueue[Message]()
    learner.listen(received.put)
    from sparring.cluster.actors.runner import ActorRunner, ActorShare
    from sparring.cluster.actors.weights import SharedWeights

    begin = received.get().payload
    try:
        runner = ActorRunner(begin["settings"], ActorShare(**begin["share"]))
    except SparringError as wrong:
        learner.send(error_reply(wrong))
        raise
    weights, shapes = SharedWeights(begin["size"], learner.fds[0]), runner.shapes
    buffers = [SharedArrays(shapes) for _ in range(begin["buffers"])]
    plain = {name: [np.dtype(dtype).str, list(shape)] for name, (dtype, shape) in shapes.items()}
    learner.send(Message("ready", {"shapes": plain}), [one.fd for one in buffers])
    while True:
        message = received.get()
        payload = message.payload
        if message.name == "play":
            out = buffers[payload["buffer"]].items()
            rollout = runner.play_request(payload["number"], out, weights.read_newer)
            learner.send(Message("rollout", rollout))
            continue
        try:
            reply = runner.handle(message)
        except SparringError as wrong:
            if "call" not in payload:
                raise
            reply = error_reply(wrong)
        if "call" in payload:
            values = {**reply.payload, "call": payload["call"]}
            learner.send(Message(reply.name, values, reply.arrays))


if __name__ == "__main__":
    main()
