"""Mirror images on the GPU are those of the CPU, and nothing waits for the device on the way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring import Rules
from sparring.learn.mirror import Mirroring, coins


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete", "shogi"])
def test_images_are_captured_and_equal(game: str) -> None:
    rules = Rules(game)
    assert rules.mirror
    rng = np.random.default_rng(1)
    coin = coins(1, 2, 512)
    minibatch = {
        "obs": torch.from_numpy(rng.integers(0, 256, (512, rules.obs_bytes)).astype(np.uint8)),
        "mask": torch.from_numpy(rng.integers(0, 2, (512, rules.actions)).astype(np.uint8)),
        "action": torch.from_numpy(rng.integers(0, rules.actions or 1, 512).astype(np.int32)),
    }
    if rules.box:
        minibatch["action"] = torch.from_numpy(rng.normal(size=(512, rules.box))).float()
    on_gpu = {name: tensor.cuda() for name, tensor in minibatch.items()}
    there, device_coin = Mirroring(rules, rules.mirror, "cuda"), coin.cuda()
    Mirroring(rules, rules.mirror).reflect(minibatch, coin)
    there.reflect(dict(on_gpu), device_coin)  # what is made at a first call is not captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # a wait inside would be refused
        there.reflect(on_gpu, device_coin)
    graph.replay()
    for name, tensor in on_gpu.items():
        assert torch.equal(tensor.cpu(), minibatch[name])
