"""Imitation before a run plays: decisions are made of records, a network learns from them, and
the learner goes on with its weights, held near to it for a while.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.seeds import derive_seed
from sparring.learn.demonstrations import Decisions
from sparring.learn.head_terms import KLPenalty
from sparring.learn.imitation import ACCURACY, ERROR, BehaviorCloning, ImitationProgress
from sparring.learn.learner import Learner
from sparring.learn.members import TurnTaking
from sparring.learn.plan import Plan, PPOHparams
from sparring.learn.transforms import mirrors_of
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.policy import Policy
from sparring.schedule import Moment, Schedule
from sparring.store.folders import IMITATED_POLICY
from sparring.store.policies import load_policy, save_policy
from sparring.training.display.lines import clock, count
from sparring.training.imitation.making import (
    Sources,
    check_distribution,
    make_decisions,
    read_sources,
    tasks_of,
)
from sparring.training.imitation.positions import Pay
from sparring.training.member import Member
from sparring.training.planning.training import RunPlan
from sparring.training.records.run import Run

LINE_EVERY_S = 10.0
DISTRIBUTION = "distribution"
IMITATED = "imitated"
"""The event of it."""
BOT_SEED_SALT = 0x7EAC
"""Bots' games to learn from are others than those that the run plays."""


class ImitationDisplay:
    """Tells how far reading and learning are."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.last_line = quiet, time.monotonic()
        self.bar: Bar | None = None
        if not quiet and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.task = self.bar.add_task("records", total=1.0)

    def __enter__(self) -> ImitationDisplay:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def read(self, done: int, parts: int, positions: int) -> None:
        """Some of the records are read, or of the bots' games played."""
        self.show(f"records: {count(positions)} positions", done / parts)

    def made(self, positions: int, games: int, seconds: float) -> None:
        self.echo(f"records: {count(positions)} positions of {count(games)} games, {seconds:.1f} s")

    def learned(self, standing: ImitationProgress) -> None:
        self.show(f"imitation: {progress_text(standing)}", standing.progress)

    def done(self, standing: ImitationProgress) -> None:
        self.echo(f"imitated in {clock(standing.seconds)}: {progress_text(standing)}")

    def show(self, what: str, progress: float) -> None:
        """Move the bar, or print a line if none was printed lately."""
        if self.bar:
            self.bar.update(self.task, completed=progress, description=what)
        elif time.monotonic() - self.last_line > LINE_EVERY_S:
            self.last_line = time.monotonic()
            self.echo(f"{what} ({progress:.0%})")

    def echo(self, line: str) -> None:
        if self.quiet or sys.stderr is None:
            return
        if self.bar:
            self.bar.console.print(line, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)


def progress_text(standing: ImitationProgress) -> str:
    parts = [f"{count(standing.seen / max(standing.seconds, 1e-9))} positions/s"]
    parts.append(f"loss {standing.moves:.3f}")
    if ACCURACY in standing.measured:
        parts.append(f"{standing.measured[ACCURACY]:.1%} of held-out moves")
    elif standing.measured:
        parts.append(f"held-out loss {standing.measured['cross_entropy']:.3f}")
        parts.append(f"error {standing.measured[ERROR]:.3f}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Imitated:
    """How cloning went."""

    facts: dict[str, Any]
    """As events have them."""
    course: Sequence[ImitationProgress]


def reward_settings(plan: Plan, rules: Rules) -> Pay:
    hparams = PPOHparams.at(plan.settings[0], Moment(0, 0.0))
    return Pay(
        tuple(rules.weights(plan.rewards)),
        hparams.gamma,
        tuple(plan.settings[0].gamma_into),
        plan.by_role,
    )


def check_same_imitation(plan: Plan) -> None:
    first, several = plan.settings[0], len(plan.seeds) > 1
    if several and any(terms.flags or terms.rewards for terms in plan.first):
        raise ConfigError("imitate: all members imitate alike; vary neither flags nor rewards")
    for other in plan.settings[1:]:
        if (other.gamma, other.gamma_into) != (first.gamma, first.gamma_into):
            raise ConfigError("imitate: all members imitate alike; leave ppo.gamma in --vary out")


def check_sources(plan: Plan, wanted: RunPlan) -> Sources:
    """Find what --imitate names; refuse what is nothing, or has no distribution to imitate."""
    sources = read_sources(plan.rules, wanted.imitate)
    if wanted.imitation.targets == DISTRIBUTION and wanted.imitate:
        check_distribution(plan.rules, sources, plan.net)
    return sources


def read_decisions(
    plan: Plan, wanted: RunPlan, progress: ImitationDisplay
) -> tuple[Sources, Decisions]:
    rules = plan.rules
    sources = check_sources(plan, wanted)
    tasks = tasks_of(
        sources,
        wanted.imitation.games,
        derive_seed(plan.seed, BOT_SEED_SALT),
        distribution=wanted.imitation.targets == DISTRIBUTION,
    )
    decisions = make_decisions(
        rules, reward_settings(plan, rules), tasks, threads=plan.threads, tell=progress.read
    )
    return sources, decisions


def check_records(plan: Plan, wanted: RunPlan) -> str:
    """Read and play everything that --imitate names; return what was found, in a line."""
    with ImitationDisplay(quiet=True) as progress:
        sources, decisions = read_decisions(plan, wanted, progress)
    files = [f"{len(sources.files):,} files"] if sources.files else []
    games = int(decisions.game[-1]) + 1
    parts = " and ".join([*files, *sources.bots, *sources.policies])
    return f"imitate: {len(decisions):,} positions of {games:,} games ({parts})"


def fresh_net(plan: Plan, learner: Learner) -> Net:
    start = learner.snapshot()
    with torch.random.fork_rng(devices=[]):
        net = make_net(
            plan.rules,
            plan.net,
            heads=start.meta.get("heads"),
            memory=start.meta.get("memory", 0),
            threads=plan.threads,
        )
    net.load_state_dict(start.tensors["net"])
    return net


def imitate(
    plan: Plan, wanted: RunPlan, learner: Learner, *, quiet: bool = False
) -> tuple[Policy, Imitated]:
    """Let a copy of a learner's network learn from records; the learner itself does not change."""
    check_same_imitation(plan)
    with ImitationDisplay(quiet=quiet) as progress:
        started = time.perf_counter()
        sources, decisions = read_decisions(plan, wanted, progress)
        read_s = time.perf_counter() - started
        progress.made(len(decisions), int(decisions.game[-1]) + 1, read_s)
        net = fresh_net(plan, learner)
        cloning = BehaviorCloning(
            net,
            decisions,
            wanted.imitation,
            plan.collect,
            seed=plan.seed,
            threads=plan.threads,
            device=plan.device,
            transforms=mirrors_of(plan.rules, plan.collect, plan.device, seed=plan.seed),
        )
        course = []
        for standing in cloning.learn(60 * wanted.file["imitate_minutes"]):
            course.append(standing)
            progress.learned(standing)
        progress.done(course[-1])
    last = course[-1]
    facts = {
        "files": len(sources.files),
        "bots": list(sources.bots),
        "policies": list(sources.policies),
        "games": int(decisions.game[-1]) + 1,
        "positions": len(decisions),
        "held_out": len(cloning.held_out),
        "epochs": round(last.seen / len(cloning.learned), 2),
        "read_s": round(read_s, 2),
        "seconds": round(last.seconds, 2),
        "native": cloning.forward.native is not None,
        **{name: round(value, 4) for name, value in last.measured.items()},
    }
    policy = Policy(plan.rules, net.cpu_copy(), name=IMITATED_POLICY, meta={"update": 0})
    return policy, Imitated(facts, course)


def set_weights(learner: Learner, policy: Policy, members: int) -> None:
    """Begin with the weights of what was cloned; all else of fresh learners stays."""
    has_value_scale = float(policy.net.value_scale) != 1  # else the first update finds one
    weights = {name: value.detach().cpu() for name, value in policy.net.state_dict().items()}
    for member in range(members):
        fresh = learner.snapshot(member)
        meta = {**fresh.meta, "has_value_scale": has_value_scale}
        learner.restore(
            replace(fresh, tensors={**fresh.tensors, "net": dict(weights)}, meta=meta), member
        )


def add_kl_penalty(plan: Plan, learner: Any, policy: Policy, weight: Schedule) -> None:
    """Hold a learner near to what was cloned, as long as the schedule says."""
    if all(value == 0 for value in weight.values):
        return
    mirrors = mirrors_of(plan.rules, plan.collect, plan.device)
    if not plan.fused:
        members: Sequence[Any] = learner.members if isinstance(learner, TurnTaking) else [learner]
        for one in members:
            term = KLPenalty(policy.net, weight, mirrors)
            term.net.to(plan.device)
            one.terms.append(term)
        return
    term = KLPenalty(policy.net, weight, mirrors)
    from sparring.learn.fused.heads import FusedKLPenalty

    fused = FusedKLPenalty(term, learner.rollout, bf16=plan.collect.bf16)
    learner.put_terms([*learner.terms, fused])


def begin_imitated(
    plan: Plan,
    wanted: RunPlan,
    learner: Learner,
    runs: Sequence[Run],
    *,
    resumed: bool,
    quiet: bool,
) -> Imitated | None:
    """Give runs what --imitate names; a population is imitated once, with the same weights."""
    folder = runs[0].path / IMITATED_POLICY
    if not wanted.imitate:
        return None
    imitated = None
    if folder.is_dir():
        policy = load_policy(folder)
    else:
        policy, imitated = imitate(plan, wanted, learner, quiet=quiet)
        for run in runs:
            save_policy(policy, run.path / IMITATED_POLICY)
    if not resumed:
        set_weights(learner, policy, len(runs))
    add_kl_penalty(plan, learner, policy, wanted.imitation.kl_weight)
    return imitated


def record_imitation(imitated: Imitated, members: Sequence[Member]) -> None:
    """Write down how cloning went: an event, and curves that end before training begins."""
    last = imitated.course[-1]
    for member in members:
        member.record_event(IMITATED, **imitated.facts)
        for number, standing in enumerate(imitated.course, -len(imitated.course)):
            member.metrics.add(number, standing.curves, seconds=standing.seconds - last.seconds)
