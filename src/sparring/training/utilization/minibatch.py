"""Timings of other minibatch sizes, measured with a network of the learner's architecture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

import sparring
from sparring.errors import SparringError
from sparring.factories import is_factory
from sparring.learn.forward import Forward
from sparring.learn.learner import Learner, SupportsDryRun
from sparring.learn.minibatches import Minibatch
from sparring.learn.plan import Plan, PPOHparams
from sparring.learn.ppo import loss_of
from sparring.learn.process_group import SINGLE
from sparring.learn.role_learners import make_backend
from sparring.nets.net import Net
from sparring.schedule import Moment
from sparring.training.utilization.advice import sizes_to_try
from sparring.training.utilization.cache import MeasurementCache, short_hash
from sparring.training.utilization.peaks import ComputeDevice
from sparring.training.utilization.share import MinibatchTimings

MAX_SIZE = {True: 1 << 18, False: 1 << 16}
"""Largest size to time, by whether the learner is fused; members on a GPU share it."""
ROUNDS, ROUND_S = 5, 0.03
"""Rounds in which each size is timed, and seconds per size and round."""
TIMEOUT_S = 1.2
"""After so long no further round starts."""
MIN_ROUNDS = 3
SLOW_S = 0.1
"""A step that takes longer is dominated by arithmetic: other sizes would not be faster."""
STEPS_PER_GRAPH = 8
"""As in an update, many steps share one launch."""


def entry_name(plan: Plan, net: Net) -> str:
    collect, settings = plan.collect, plan.settings[0]
    shape = short_hash(
        net.describe(),
        (plan.rules.name, plan.rules.obs_bytes, plan.rules.actions, plan.rules.box),
        (collect.bf16, plan.fused, len(plan.seeds), samples_per_rollout(plan)),
    )
    return ComputeDevice(plan.device, plan.threads).entry_name(
        f"minibatches of {settings.minibatch}, network {shape}, sparring {sparring.__version__}"
    )


def can_time_minibatches(plan: Plan, algo: str) -> bool:
    """Whether other sizes can be timed: with PPO and one network for all roles.

    Not with recurrent networks, auxiliary heads, a custom network, or members that take turns.
    """
    if len(plan.seeds) > 1 and not plan.fused:
        return False
    plain = not plan.net.recurrent and not plan.heads.asked and not is_factory(plan.net.kind)
    return algo == "ppo" and not plan.roles and plain


def samples_per_rollout(plan: Plan) -> int:
    return plan.collect.games * plan.collect.steps * plan.rules.rows


def sizes_to_time(plan: Plan) -> list[int]:
    """Return the sizes to time: up to all samples of a rollout."""
    now = min(plan.settings[0].minibatch, samples_per_rollout(plan))
    allowed = max(MAX_SIZE[plan.fused] // len(plan.seeds), now)
    return sizes_to_try(now, min(samples_per_rollout(plan), allowed))


def saved_timings(plan: Plan, net: Net, cache: MeasurementCache) -> MinibatchTimings | None:
    entry = cache.entries.get(entry_name(plan, net))
    return MinibatchTimings.from_json(entry) if entry else None


def measure_minibatches(
    plan: Plan, learner: Learner, net: Net, cache: MeasurementCache
) -> MinibatchTimings | None:
    """Time optimizer steps of all sizes if they are not cached yet; None without the memory.

    net: is trained by this, so the caller must not use it afterwards.
    """
    saved = saved_timings(plan, net, cache)
    if saved is not None:
        return saved
    name = entry_name(plan, net)
    try:
        make = fused_step_factory(plan) if plan.fused else step_factory(plan, learner, net)
        timings = time_sizes(make, sizes_to_time(plan), plan)
    except (torch.OutOfMemoryError, SparringError):
        return None
    cache.put(name, **timings.to_json())
    return timings


StepFactory = Callable[[int], Callable[[], int]]
"""Takes a minibatch size; returns a function that makes steps and returns how many it made."""


def time_sizes(make: StepFactory, sizes: Sequence[int], plan: Plan) -> MinibatchTimings:
    """Time all sizes in turn, so that a busy moment affects all of them."""
    device = ComputeDevice(plan.device, plan.threads)
    now = min(plan.settings[0].minibatch, max(sizes))
    steps = {size: make(size) for size in sizes}
    if seconds_per_step(device, steps[now]) > SLOW_S:
        return MinibatchTimings(now, ())
    for size in sizes:
        if size != now:
            seconds_per_step(device, steps[size])
    rounds: list[dict[int, float]] = []
    until = time.perf_counter() + TIMEOUT_S
    while len(rounds) < ROUNDS and time.perf_counter() < until:
        rounds.append({size: seconds_per_sample(device, steps[size], size) for size in sizes})
    if len(rounds) < MIN_ROUNDS:
        return MinibatchTimings(now, ())
    ratios = {size: sorted(one[size] / one[now] for one in rounds) for size in sizes}
    return MinibatchTimings(
        now,
        tuple(
            (size, median(each), each[-(-3 * (len(each) - 1) // 4)])
            for size, each in ratios.items()
        ),
    )


def seconds_per_step(device: ComputeDevice, steps: Callable[[], int]) -> float:
    """Time one call after a warm-up call."""
    steps()
    device.synchronize()
    started = time.perf_counter()
    count = steps()
    device.synchronize()
    return (time.perf_counter() - started) / count


def seconds_per_sample(device: ComputeDevice, steps: Callable[[], int], size: int) -> float:
    count, started = 0, time.perf_counter()
    while not count or time.perf_counter() < started + ROUND_S:
        count += steps()
        device.synchronize()
    return (time.perf_counter() - started) / count / size


def step_factory(plan: Plan, learner: Learner, net: Net) -> StepFactory:
    """Make steps like `learn.ppo`, on rows of the learner's games."""
    device, settings = torch.device(plan.device), plan.settings[0]
    forward = Forward(net.to(device), device, plan.collect)
    backend, loss = make_backend(forward, plan.threads), partial(loss_of, forward, ())
    hparams = PPOHparams.at(settings, Moment(0, 0.0))
    data = sample_rows(plan, learner, max(sizes_to_time(plan)))
    shuffled = ComputeDevice(plan.device, 1).rand(len(data["obs"])).argsort()

    def make(size: int) -> Callable[[], int]:
        def step() -> int:
            minibatch = Minibatch(data, shuffled[:size], {})
            backend.step(minibatch, hparams, loss, SINGLE)
            return 1

        return step

    return make


def sample_rows(plan: Plan, learner: Learner, count: int) -> dict[str, Tensor]:
    """Return `count` samples: the pool's pending rows, repeated, with random targets."""
    assert isinstance(learner, SupportsDryRun)
    batch, device = learner.pool.batch(), ComputeDevice(plan.device, 1)
    rows = (batch.policy >= 0).nonzero()[0]
    if not len(rows):
        raise SparringError("no row waits for an action")
    index = torch.from_numpy(rows).repeat(-(-count // len(rows)))[:count]
    mask = torch.from_numpy(batch.mask)[index].to(plan.device)
    box = plan.rules.box
    action: Any = device.rand(count, box) if box else mask.to(torch.int32).argmax(1)
    zeros = torch.zeros(count, device=plan.device)
    return {
        "obs": torch.from_numpy(batch.obs)[index].to(plan.device),
        "mask": mask,
        "action": action if box else action.to(torch.int32),
        "log_prob": zeros,
        "value": zeros,
        "advantage": device.rand(count) - 0.5,
        "returns": device.rand(count) - 0.5,
    }


def fused_step_factory(plan: Plan) -> StepFactory:
    """Make steps like `learn.fused`: forward, backward and Adam of all members in a CUDA graph."""
    from sparring.learn.fused.adam import FlatAdam
    from sparring.learn.fused.kernels import PPO_SOURCE, learner_kernels
    from sparring.learn.fused.update import EPSILON
    from sparring.nets.run.make_flat import make_flat

    device, members, bf16 = torch.device(plan.device), len(plan.seeds), plan.collect.bf16
    rand = ComputeDevice(plan.device, 1).rand
    flat = make_flat(plan.rules, plan.net, members, bf16=bf16, device=device, memory=plan.memory)
    flat.weight.copy_(rand(*flat.weight.shape) * 0.02 - 0.01)
    flat.compute.copy_(flat.weight)
    kernels = learner_kernels(plan.rules, PPO_SOURCE, bf16=bf16, device=device)
    with device:
        no_member = torch.zeros(members, dtype=torch.uint8)
        lr, norm = torch.zeros(members), torch.ones(members)
    adam = FlatAdam(kernels, flat, epsilon=EPSILON, stopped=no_member, diverged=no_member.clone())

    def make(size: int) -> Callable[[], int]:
        net = flat.make_pass(size, learn=True)
        net.logits_grad.copy_(rand(*net.logits_grad.shape) * 1e-3)
        net.value_grad.copy_(rand(*net.value_grad.shape) * 1e-3)
        obs = torch.zeros(members * size, flat.inputs.row_bytes, dtype=torch.uint8, device=device)

        def step() -> None:
            net.read(obs)
            net.forward()
            net.backward()
            adam.step(lr, norm, apart=1)

        return StepGraph(step)

    return make


class StepGraph:
    """Several steps as one CUDA graph. Keeps the step, whose tensors must not be freed."""

    def __init__(self, step: Callable[[], None]) -> None:
        from sparring.learn.fused.graphs import no_garbage

        self.step = step
        for _ in range(2):
            step()
        self.graph = torch.cuda.CUDAGraph()
        with no_garbage(), torch.cuda.graph(self.graph):
            for _ in range(STEPS_PER_GRAPH):
                step()

    def __call__(self) -> int:
        self.graph.replay()
        return STEPS_PER_GRAPH
