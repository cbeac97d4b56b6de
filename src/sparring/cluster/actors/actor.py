"""An actor as a process: `python -m sparring.cluster.actors.actor PARENT SOCKET BOARD SIZE`.

It hears messages and plays orders in the order in which they come, and ends when the other side of
its socket is closed.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from sparring.cluster.messages import Message, refusal
from sparring.cluster.wire import Inbox, send
from sparring.errors import SparringError
from sparring.processes import SharedArrays, end_with_children, follow_parent

if TYPE_CHECKING:
    from sparring.cluster.actors.board import Board
    from sparring.cluster.actors.body import Body

Told = queue.SimpleQueue[Message]


def main(parent: int, socket_fd: int, board_fd: int, size: int) -> None:
    """Play until the learner is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner decides when to end
    follow_parent(parent)
    faulthandler.enable()
    os.dup2(2, 1)  # what games print is no output of the learner
    for fd in (socket_fd, board_fd):
        os.set_inheritable(fd, False)
    learner, told = socket.socket(fileno=socket_fd), Told()
    threading.Thread(target=listen, args=(learner, told), daemon=True).start()

    from sparring.cluster.actors.board import Board
    from sparring.cluster.actors.body import Body, Place

    begin = told.get()
    try:
        body = Body(begin.facts["settings"], Place(**begin.facts["place"]))
    except SparringError as wrong:
        send(learner, refusal(wrong))
        raise
    shapes = body.shapes
    buffers = [SharedArrays(shapes) for _ in range(begin.facts["buffers"])]
    plain = {name: [np.dtype(kind).str, list(shape)] for name, (kind, shape) in shapes.items()}
    send(learner, Message("ready", {"shapes": plain}), [one.fd for one in buffers])
    play(learner, told, body, Board(size, board_fd), buffers)


def listen(learner: socket.socket, told: Told) -> None:
    """Put messages into the queue; end the process when the learner is gone, whatever it does."""
    inbox = Inbox(learner)
    while inbox.fill():
        for message in inbox.messages():
            told.put(message)
    end_with_children()


def play(
    learner: socket.socket, told: Told, body: Body, board: Board, buffers: list[SharedArrays]
) -> None:
    """Do what is said, one thing after the other."""
    version, idle_since = 0, time.perf_counter()
    while True:
        message = told.get()
        if message.name != "order":
            answer(learner, body, message)
            continue
        started = time.perf_counter()
        if board.newest() != version:
            version, flat = board.read()
            body.take_weights(flat)
        facts = message.facts
        body.play(facts["number"], buffers[facts["buffer"]].items())
        ended = time.perf_counter()
        done = {"version": version, "played_s": ended - started, "idle_s": started - idle_since}
        send(learner, Message("parcel", {**facts, **done}))
        idle_since = ended


def answer(learner: socket.socket, body: Body, message: Message) -> None:
    """Hear a message; a question is answered, also by what is wrong with it."""
    asked = message.facts.get("asked")
    try:
        said = body.hear(message)
    except SparringError as wrong:
        if asked is None:
            raise
        said = refusal(wrong)
    if asked is not None:
        send(learner, Message(said.name, {**said.facts, "asked": asked}, said.arrays))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
