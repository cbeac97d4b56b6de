"""Policies that remember, on a GPU: what goes in and comes out is as on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from remembering import remembering
from sparring import Policy, Pool


@pytest.mark.parametrize("kind", ["gru", "stack"])
def test_a_policy_on_a_gpu_remembers_what_it_does_on_a_cpu(kind: str) -> None:
    here = remembering("leduc_poker", kind)
    there = Policy(here.rules, remembering("leduc_poker", kind).net, device="cuda")
    pool = Pool(here.rules, 64, seed=1, threads=1, memory=here.memory_bytes)
    batch, games = pool.reset(), np.arange(64)
    for _ in range(12):
        _, wanted = here.decide(batch.obs, batch.mask, greedy=True)
        _, found = there.decide(batch.obs, batch.mask, greedy=True)
        np.testing.assert_allclose(found.view(np.float32), wanted.view(np.float32), atol=1e-5)
        pool.memory[games, batch.seat] = found
        batch = pool.step(pool.sample_actions())
