"""What another size of minibatches would bring: measured with the learner's own network."""

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
from sparring.learn.learner import Learner, Measured
from sparring.learn.minibatches import Minibatch
from sparring.learn.parts import make_backend
from sparring.learn.plan import Plan, PPOHparams
from sparring.learn.ppo import loss_of
from sparring.learn.together import ALONE
from sparring.nets.net import Net
from sparring.schedule import Moment
from sparring.training.meter.ceilings import Place
from sparring.training.meter.kept import Kept, digest
from sparring.training.meter.share import Pace

FACTORS = (0.25, 1, 4, 16)
"""Sizes that are tried, times the run's own."""
LEAST = 16
MOST = {True: 1 << 18, False: 1 << 16}
"""Samples of a minibatch that is tried: on a GPU, shared by the members there, and elsewhere."""
ROUNDS, ROUND_S = 5, 0.03
"""Every size is timed so often, in turn, for so long each."""
LIMIT_S = 1.2
"""When no further round is begun."""
MIN_ROUNDS = 3
SLOW_S = 0.1
"""A step that takes longer spends its time on products, which other sizes do not spare."""
IN_A_GRAPH = 8
"""Steps of a graph: as in an update, its launch is shared by many."""


def name_of(plan: Plan, net: Net) -> str:
    collect, settings = plan.collect, plan.settings[0]
    shape = digest(
        net.describe(),
        (plan.rules.name, plan.rules.obs_bytes, plan.rules.actions, plan.rules.box),
        (collect.bf16, plan.fused, len(plan.seeds), most_of(plan)),
    )
    return Place(plan.device, plan.threads).named(
        f"minibatches of {settings.minibatch}, network {shape}, sparring {sparring.__version__}"
    )


def can_be_tried(plan: Plan, algo: str) -> bool:
    """Whether minibatches are tried: those of PPO with one network for all roles.

    Not where decisions in a row are learned from, where more is asked than policy and value, or
    where somebody's own code would be run once more.
    """
    plain = not plan.net.recurrent and not plan.heads.asked and not is_factory(plan.net.kind)
    return algo == "ppo" and not plan.roles and plain


def most_of(plan: Plan) -> int:
    return plan.collect.games * plan.collect.steps * plan.rules.rows


def sizes_of(plan: Plan) -> list[int]:
    """What is tried: smaller and larger ones, as far as a rollout has samples."""
    now = min(plan.settings[0].minibatch, most_of(plan))
    room = max(MOST[plan.fused] // len(plan.seeds), now)
    most = min(most_of(plan), room)
    return sorted({now} | {min(max(round(now * factor), LEAST), most) for factor in FACTORS})


def pace_of(plan: Plan, net: Net, kept: Kept) -> Pace | None:
    entry = kept.entries.get(name_of(plan, net))
    return Pace.read(entry) if entry else None


def measure_pace(plan: Plan, learner: Learner, net: Net, kept: Kept) -> Pace | None:
    """Time steps of another network of the same kind, if that is not known yet, and keep it.

    net: is learned with, and of no use to anybody else afterwards.
    """
    known = pace_of(plan, net, kept)
    if known is not None:
        return known
    name = name_of(plan, net)
    try:
        makes = on_gpu(plan) if plan.fused else step_by_step(plan, learner, net)
        found = timed(makes, sizes_of(plan), plan)
    except (torch.OutOfMemoryError, SparringError):  # then there is no advice, and no harm done
        return None
    kept.put(name, **found.plain())
    return found


Make = Callable[[int], Callable[[], int]]
"""Prepares minibatches of a size; what it returns makes steps and says how many."""


def timed(make: Make, sizes: Sequence[int], plan: Plan) -> Pace:
    """Time all sizes in turn, so that a busy moment meets them alike."""
    place, now = Place(plan.device, plan.threads), min(plan.settings[0].minibatch, max(sizes))
    steps = {one: make(one) for one in sizes}
    if once(place, steps[now]) > SLOW_S:
        return Pace(now, ())
    for one in sizes:
        if one != now:
            once(place, steps[one])
    rounds: list[dict[int, float]] = []
    until = time.perf_counter() + LIMIT_S
    while len(rounds) < ROUNDS and time.perf_counter() < until:
        rounds.append({one: per_sample(place, steps[one], one) for one in sizes})
    if len(rounds) < MIN_ROUNDS:
        return Pace(now, ())
    ratios = {one: sorted(each[one] / each[now] for each in rounds) for one in sizes}
    return Pace(
        now,
        tuple(
            (one, median(found), found[-(-3 * (len(found) - 1) // 4)])
            for one, found in ratios.items()
        ),
    )


def once(place: Place, steps: Callable[[], int]) -> float:
    """Seconds of a step; the first ones are slow."""
    steps()
    place.wait()
    started = time.perf_counter()
    made = steps()
    place.wait()
    return (time.perf_counter() - started) / made


def per_sample(place: Place, steps: Callable[[], int], size: int) -> float:
    made, started = 0, time.perf_counter()
    while not made or time.perf_counter() < started + ROUND_S:
        made += steps()
        place.wait()
    return (time.perf_counter() - started) / made / size


def step_by_step(plan: Plan, learner: Learner, net: Net) -> Make:
    """Steps as `learn.ppo` makes them, from rows of the learner's own games."""
    device, settings = torch.device(plan.device), plan.settings[0]
    forward = Forward(net.to(device), device, plan.collect)
    backend, loss = make_backend(forward, plan.threads), partial(loss_of, forward, ())
    hparams = PPOHparams.at(settings, Moment(0, 0.0))
    data = rows_like(plan, learner, max(sizes_of(plan)))
    shuffled = Place(plan.device, 1).random(len(data["obs"])).argsort()

    def make(size: int) -> Callable[[], int]:
        def step() -> int:
            minibatch = Minibatch(data, shuffled[:size], {})
            backend.step(minibatch, hparams, loss, ALONE)
            return 1

        return step

    return make


def rows_like(plan: Plan, learner: Learner, count: int) -> dict[str, Tensor]:
    """What minibatches are picked from: rows that wait for a decision, over and over again."""
    assert isinstance(learner, Measured)
    batch, place = learner.pool.batch(), Place(plan.device, 1)
    rows = (batch.policy >= 0).nonzero()[0]
    if not len(rows):
        raise SparringError("no row waits for a decision")
    at = torch.from_numpy(rows).repeat(-(-count // len(rows)))[:count]
    mask = torch.from_numpy(batch.mask)[at].to(plan.device)
    box = plan.rules.box
    action: Any = place.random(count, box) if box else mask.to(torch.int32).argmax(1)
    zeros = torch.zeros(count, device=plan.device)
    return {
        "obs": torch.from_numpy(batch.obs)[at].to(plan.device),
        "mask": mask,
        "action": action if box else action.to(torch.int32),
        "log_prob": zeros,
        "value": zeros,
        "advantage": place.random(count) - 0.5,
        "returns": place.random(count) - 0.5,
    }


def on_gpu(plan: Plan) -> Make:
    """Steps as `learn.fused` makes them: passes and Adam of all members, as a graph."""
    from sparring.learn.fused.adam import FlatAdam
    from sparring.learn.fused.kernels import PPO_SOURCE, learner_kernels
    from sparring.learn.fused.update import EPSILON
    from sparring.nets.run.make_flat import make_flat

    device, members, bf16 = torch.device(plan.device), len(plan.seeds), plan.collect.bf16
    place = Place(plan.device, 1)
    flat = make_flat(plan.rules, plan.net, members, bf16=bf16, device=device, memory=plan.memory)
    flat.weight.copy_(place.random(*flat.weight.shape) * 0.02 - 0.01)
    flat.compute.copy_(flat.weight)
    kernels = learner_kernels(plan.rules, PPO_SOURCE, bf16=bf16, device=device)
    with device:
        nobody = torch.zeros(members, dtype=torch.uint8)
        lr, norm = torch.zeros(members), torch.ones(members)
    adam = FlatAdam(kernels, flat, epsilon=EPSILON, stopped=nobody, diverged=nobody.clone())

    def make(size: int) -> Callable[[], int]:
        at = flat.make_pass(size, learn=True)
        at.logits_grad.copy_(place.random(*at.logits_grad.shape) * 1e-3)
        at.value_grad.copy_(place.random(*at.value_grad.shape) * 1e-3)
        obs = torch.zeros(members * size, flat.inputs.row_bytes, dtype=torch.uint8, device=device)

        def step() -> None:
            at.read(obs)
            at.forward()
            at.backward()
            adam.step(lr, norm, apart=1)

        return Captured(step)

    return make


class Captured:
    """Steps as one graph. Holds the step itself: what it reads and writes must not be freed."""

    def __init__(self, step: Callable[[], None]) -> None:
        from sparring.learn.fused.graphs import no_garbage

        self.step = step
        for _ in range(2):
            step()
        self.graph = torch.cuda.CUDAGraph()
        with no_garbage(), torch.cuda.graph(self.graph):
            for _ in range(IN_A_GRAPH):
                step()

    def __call__(self) -> int:
        self.graph.replay()
        return IN_A_GRAPH
