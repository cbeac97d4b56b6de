"""Weights, messages and what stands between processes, without any."""

from __future__ import annotations

import socket
import sys
import threading

import numpy as np
import pytest
import torch
from torch import nn

from sparring.cluster.actors.weights import FlatWeights, SharedWeights
from sparring.errors import ConfigError, SparringError, StateError
from sparring.learn.learner import DivergedError, LostError
from sparring.messages import Channel, Message, error_reply, to_exception
from sparring.processes import SharedArrays
from sparring.sweep.training import reason


def test_weights_are_never_torn_however_fast_they_change() -> None:
    size = 200_000
    board = SharedWeights(size)
    board.write(1, np.full(size, 1, np.uint8))
    over = threading.Event()

    def write() -> None:
        version = 1
        while not over.is_set():
            version += 1
            board.write(version, np.full(size, version % 251, np.uint8))

    writer = threading.Thread(target=write)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer.start()
    seen = set()
    try:
        for _ in range(100_000):
            version, flat = board.read()
            assert (flat == version % 251).all()
            seen.add(version)
            if len(seen) == 20:
                break
    finally:
        over.set()
        writer.join()
        sys.setswitchinterval(usual)
    assert len(seen) == 20
    assert sorted(seen)[-1] <= board.newest()
    board.close()


def test_half_written_weights_are_not_read() -> None:
    board = SharedWeights(64)
    board.write(1, np.ones(64, np.uint8))
    board._flat[int(board._newest[0])][:32] = 7  # a writer that died in the middle
    with pytest.raises(Exception, match="no consistent weights"):
        board.read()
    board.close()


def test_flat_weights_bring_back_every_tensor_bit_for_bit() -> None:
    def make() -> nn.Module:
        net = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5))
        net.register_buffer("count", torch.tensor(7, dtype=torch.int64))
        net.register_buffer("flag", torch.tensor([True, False]))
        return net

    one, other = make(), make()
    flat = FlatWeights(one)
    raw = np.zeros(flat.size, np.uint8)
    flat.write(one, raw)
    FlatWeights(other).read(other, raw)
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    with pytest.raises(StateError, match="need"):
        flat.read(other, raw[1:])


def test_messages_come_whole_and_in_order_with_their_files() -> None:
    mine, theirs = socket.socketpair()
    memory = SharedArrays({"a": (np.int32, (4,))})
    memory["a"][:] = 3, 1, 4, 1
    arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "none": np.zeros((0, 2), np.uint8)}
    sent = [Message("first", {"a": [1, "b"]}, arrays), Message("second"), Message("third")]
    sender, inbox, found = Channel(mine), Channel(theirs), []
    sender.send(sent[0])
    sender.send(sent[1], [memory.fd])
    sender.send(sent[2])
    sender.close()
    while inbox.read():
        found += inbox.messages()
    assert inbox.closed
    assert [message.name for message in found] == ["first", "second", "third"]
    assert found[0].payload == sent[0].payload
    for name, array in arrays.items():
        assert found[0].arrays[name].dtype == array.dtype
        assert (found[0].arrays[name] == array).all()
        assert found[0].arrays[name].shape == array.shape
    seen = SharedArrays({"a": (np.int32, (4,))}, inbox.fds.pop())
    assert seen["a"].tolist() == [3, 1, 4, 1]
    for one in (seen, memory):
        one.close()
    inbox.close()


@pytest.mark.parametrize("kind", [DivergedError, LostError, ConfigError, StateError, SparringError])
def test_what_is_wrong_elsewhere_is_the_same_error_here(kind: type[SparringError]) -> None:
    error = to_exception(Message.unpack(error_reply(kind("the loss is nan")).pack()))
    assert type(error) is kind
    assert str(error) == "the loss is nan"


def test_an_error_that_nobody_knows_here_is_a_plain_one() -> None:
    for name in ("NotKnownHere", "difflib"):
        assert type(to_exception(Message("refused", {"kind": name, "text": "no"}))) is SparringError


def test_a_sweep_hears_that_a_run_elsewhere_diverged() -> None:
    assert reason(to_exception(error_reply(DivergedError("update 3")))) == "diverged: update 3"
