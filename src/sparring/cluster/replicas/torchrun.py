"""Replicas that torchrun has started: all run the same command, and work for the first of them.

The first process listens on the loopback and leaves the address, with a token, in torchrun's store.
From there on a replica is what it is as a child process.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sparring.cluster.replicas.process_group import LOOPBACK, MEETING_S, find_store
from sparring.cluster.replicas.replica import ReplicaShare, responder
from sparring.errors import SparringError
from sparring.learn.learner import LostError
from sparring.messages import Channel, Message, error_reply
from sparring.processes import LOOK_S

ADDRESS = "sparring/address"
"""Key in torchrun's store."""


def store() -> Any:
    """Connect to torchrun's store."""
    return find_store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


class TorchrunReplica:
    """Handle of a process that torchrun has started."""

    def __init__(
        self, end: socket.socket, settings: Mapping[str, Any], share: ReplicaShare, timeout_s: float
    ) -> None:
        """Have it begin; its first message says that it is ready. timeout_s: for every reply."""
        self.share, self.timeout_s = share, timeout_s
        end.setblocking(False)
        self.channel = Channel(end)
        self._received: deque[Message] = deque()
        self.send(Message("begin", {"settings": settings, "share": asdict(share)}))

    def send(self, message: Message) -> None:
        self.channel.send(message)

    def next_message(self) -> Message:
        until = time.monotonic() + self.timeout_s
        while not self._received:
            if self.channel.closed:
                raise LostError(f"replica {self.share.rank} has died: its process has ended")
            if time.monotonic() > until:
                raise LostError(
                    f"replica {self.share.rank} sent nothing for {self.timeout_s:g} s "
                    "(distributed.timeout_s)"
                )
            poll = select.poll()
            poll.register(
                self.channel.socket,
                select.POLLIN | (select.POLLOUT if self.channel.has_unsent else 0),
            )
            poll.poll(LOOK_S * 1000)
            self.channel.flush()
            while self.channel.read():
                pass
            self._received.extend(self.channel.messages())
        return self._received.popleft()

    def has_died(self) -> bool:
        poll = select.poll()
        try:
            poll.register(self.channel.socket, select.POLLRDHUP)
        except ValueError:
            return False  # it was ended here
        return bool(poll.poll(0))

    def end(self) -> None:
        self.channel.close()


def gather(
    settings: Mapping[str, Any], shares: Sequence[ReplicaShare], timeout_s: float
) -> list[TorchrunReplica]:
    """Wait for the other processes; return their handles, by rank."""
    token, found = secrets.token_hex(16), dict[int, socket.socket]()
    with socket.create_server((LOOPBACK, 0)) as server:
        server.settimeout(MEETING_S)
        store().set(ADDRESS, json.dumps([server.getsockname()[1], token]))
        while len(found) < len(shares):
            try:
                end, _ = server.accept()
            except TimeoutError:
                raise LostError("torchrun: not all of its processes have come") from None
            end.settimeout(MEETING_S)
            try:
                hello = receive(Channel(end)).payload
            except (OSError, SparringError):
                hello = {}
            if secrets.compare_digest(str(hello.get("token", "")), token):
                found[int(hello["rank"])] = end
            else:
                end.close()  # of somebody else
    return [TorchrunReplica(found[one.rank], settings, one, timeout_s) for one in shares]


def receive(channel: Channel) -> Message:
    """Wait for a message on a socket that blocks."""
    while True:
        channel.read()
        if found := channel.messages():
            return found[0]
        if channel.closed:
            raise LostError("the run's learner has ended")


def serve() -> int:
    """Work for the first process until it closes its socket; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first decides when to end
    port, token = json.loads(store().get(ADDRESS))
    channel = Channel(socket.create_connection((LOOPBACK, port), timeout=MEETING_S))
    channel.socket.settimeout(None)
    channel.send(Message("hello", {"rank": int(os.environ["RANK"]), "token": token}))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # from here on the socket ends this process
    respond = responder()
    while True:
        try:
            message = receive(channel)
        except LostError:
            return 0
        try:
            reply = respond(message)
        except SparringError as wrong:
            reply = error_reply(wrong)
        channel.send(reply)
