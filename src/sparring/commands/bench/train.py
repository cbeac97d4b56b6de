"""`sparring bench train`: speed of training, and its ceiling if games cost nothing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import torch
from rich.text import Text

from sparring.commands.bench.shared import BenchRecorder, finish, machine_line, short, title
from sparring.commands.shared.printing import ProgressBar, make_console, make_table, print_table
from sparring.config import TrainConfig
from sparring.config.commands import BenchTrainConfig
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.games.flags import changed_flags
from sparring.games.rules import Rules
from sparring.learn.learner import SupportsDryRun
from sparring.learn.memory import memory_line, memory_uses
from sparring.learn.plan import CPU, Plan
from sparring.machine import machine_info, warn_if_busy
from sparring.pools.lineups import LEARNER
from sparring.pools.protocol import GamePool
from sparring.proof.validity import Proof, prove
from sparring.speed.bench_records import Figure
from sparring.speed.rounds import (
    Round,
    fill_slots,
    measure_round,
    phase_shares,
    spread,
    steady,
    timed_round,
)
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, merged, with_preset
from sparring.training.planning.training import run_plan
from sparring.training.utilization.monitor import make_monitor, measured_run

OURS, CEILING, PLAIN = "ours", "ceiling", "plain"
GAMES_STEP = 32
"""Numbers of games are multiples of it, which a population on a GPU needs."""
RATES = {
    "decisions_per_s": "decisions/s",
    "samples_per_s": "samples/s",
    "optimizer_steps_per_s": "gradient steps/s",
}
LEARNING_OPTIONS = {True: ("epochs", "minibatch"), False: ("ratio", "batch")}
"""Options of algorithms that learn from fresh rollouts, and from replay."""
NET_OPTIONS = {"mlp": ("hidden", "shared"), "residual": ("channels", "blocks")}
"""Options that only one kind of network has."""
SHARE_ROUNDS = 4
"""Rounds that give the utilization; the first one warms up."""
LEARNS_OTHERWISE = "another minibatch changes what is learned, not only the speed"


def run(config: BenchTrainConfig) -> int:
    """Check, measure, report; 3 if the games are not valid."""
    settings = read_settings(config)
    plan = resolve(members_of(settings))
    rules = plan.rules
    beside: SupportsDryRun | None = None
    if plan.participants.slots:
        settings, alone, plan = against_plain(settings, plan)
        beside = measurable(alone, resolve(members_of(alone)))
    learner = measurable(settings, plan)
    if plan.participants.slots:
        fill_slots(learner, plan)
    report = describe(config, settings, plan, learner)
    known = {"game": report["game"], "flags": report["flags"], **report["training"]}
    recorder = BenchRecorder(config, "bench train", known, plan.device)
    warn_if_busy(report["machine"]["load_average"])
    warn_if_blas_differs(settings.threads)
    with ProgressBar(f"bench {rules.name}", config.rounds + 3) as steps:
        steps.next("checking the games")
        proof, measured = prove(rules, config.seed), {}
        if proof.valid:
            measured = measure(learner, config, plan, proof, steps, beside=beside)
    report["valid"], report["proof"] = proof.valid, asdict(proof)
    if proof.valid:
        report["measured"] = {name: summary(rounds) for name, rounds in measured.items()}
        report["fraction"] = fraction(measured[OURS], measured[CEILING])
        if config.utilization:
            report["machine_share"] = machine_share(settings, plan, learner)
        if PLAIN in measured:
            report["of_plain"] = fraction(measured[OURS], measured[PLAIN])
        if plan.device != CPU:
            report["memory_bytes"] = torch.cuda.max_memory_allocated()
            report["memory_bytes_per_game"] = memory_uses(plan)[1].per_game // len(plan.seeds)
            report["room"] = memory_line(plan)
    return finish(recorder, report, figures(measured), show)


def figures(measured: Mapping[str, Sequence[Round]]) -> dict[str, Figure]:
    names = {OURS: "", CEILING: ", free games", PLAIN: ", plain self-play"}
    found = {}
    for name, rounds in measured.items():
        for unit in ("decisions", "samples"):
            rates = tuple(getattr(one, unit) / one.seconds for one in rounds)
            found[f"{unit}/s{names[name]}"] = Figure(rates, f"{unit}/s")
    return found


def against_plain(settings: TrainConfig, plan: Plan) -> tuple[TrainConfig, TrainConfig, Plan]:
    """Return these settings, those of plain self-play with as many learner rows, and the plan.

    Frozen opponents get additional games, so that both learn from as many samples.
    """
    games = settings.collect.games
    wanted = round(games / learner_share(plan) / GAMES_STEP) * GAMES_STEP
    more = merged(settings, {"collect": {"games": max(wanted, games)}}, "bench train")
    alone = merged(settings, {"opponents": ("self=1",)}, "bench train")
    return more, alone, resolve(members_of(more))


def learner_share(plan: Plan) -> float:
    """Return the approximate share of rows that the learner decides."""
    mine = others = 0.0
    for lineup in plan.participants.lineups:
        policies = [player for player in lineup.players if not isinstance(player, str)]
        share = sum(player == LEARNER for player in policies) / len(policies)
        mine += lineup.weight * share
        others += lineup.weight * (1 - share)
    return mine / (mine + others)


def measurable(settings: TrainConfig, plan: Plan) -> SupportsDryRun:
    """Return the learner; refuse one that cannot be measured without games."""
    learner = make_learner(settings, plan)
    if not isinstance(learner, SupportsDryRun):
        raise ConfigError(f"algo {settings.algo!r} cannot do a dry run without games; try ppo")
    return learner


def describe(
    config: BenchTrainConfig, settings: TrainConfig, plan: Plan, learner: SupportsDryRun
) -> dict[str, Any]:
    rules, net = plan.rules, learner.policy().net
    return {
        "command": "bench train",
        "game": rules.name,
        "flags": changed_flags(rules),
        "options": {name: getattr(config, name) for name in ("rounds", "warm_up", "seed")},
        "training": {
            "algo": settings.algo,
            **{name: getattr(plan.collect, name) for name in ("games", "steps")},
            **learning_facts(settings),
            **asdict(plan.net),
            "parameters": sum(parameter.numel() for parameter in net.parameters()),
            "opponents": settings.opponents,
            "slots": plan.participants.slots,
            "threads": plan.threads,
            "device": plan.device,
            "pool": plan.games_on,
            "population": len(plan.seeds),
        },
        "machine": {**machine_info(), "torch": torch.__version__},
    }


def warn_if_blas_differs(threads: int) -> None:
    blas = os.environ.get("OPENBLAS_NUM_THREADS", "")
    if blas and blas != str(threads):
        warnings.warn(
            f"OPENBLAS_NUM_THREADS is {blas} and threads is {threads}; set both to the same",
            SparringWarning,
            stacklevel=2,
        )


def measure(
    learner: SupportsDryRun,
    config: BenchTrainConfig,
    plan: Plan,
    proof: Proof,
    steps: ProgressBar,
    *,
    beside: SupportsDryRun | None = None,
) -> dict[str, list[Round]]:
    """Measure the learner with and without games in turn; the order alternates.

    beside: plain self-play, measured in the same rounds.
    """
    steps.next("warming up")
    # On a GPU many games make few steps each; there the first two rounds capture graphs.
    finished = play_through(learner.pool, proof.longest) if plan.fused else 0
    warm_up = config.warm_up + int(plan.fused)
    played = [measure_round(learner) for _ in range(warm_up)]
    steps.next("rehearsing")
    for _ in range(warm_up):
        measure_round(learner, free=True)
    rounds: dict[str, list[Round]] = {OURS: [], CEILING: []}
    if beside:
        rounds[PLAIN] = []
        if plan.fused:
            play_through(beside.pool, proof.longest)
        for _ in range(warm_up):
            measure_round(beside)
    for number in range(config.rounds):
        steps.next(f"round {number + 1} of {config.rounds}")
        for name in list(rounds)[:: 1 if number % 2 == 0 else -1]:
            of = beside if name == PLAIN and beside else learner
            rounds[name].append(measure_round(of, free=name == CEILING))
        if error := learner.pool.audit():
            proof.problems.append(f"audit after round {number + 1}: {error}")
    if not finished and not any(one.games for one in (*played, *rounds[OURS])):
        total = plan.collect.steps * (len(played) + config.rounds)
        raise SparringError(f"no game was finished in {total} steps; raise --rounds or --steps")
    return rounds


def play_through(pool: GamePool, steps: int) -> int:
    """Play every game at random past its first end; return how many ended."""
    finished = 0
    for _ in range(steps + 1):
        batch = pool.step(pool.sample_actions())
        finished += int((batch.terminated | batch.truncated).sum())
    return finished


def summary(rounds: Sequence[Round]) -> dict[str, Any]:
    return {
        "decisions_per_s": spread([one.decisions / one.seconds for one in rounds], 0),
        "samples_per_s": spread([one.samples / one.seconds for one in rounds], 0),
        "optimizer_steps_per_s": spread([one.optimizer_steps / one.seconds for one in rounds], 1),
        "forced_per_s": round(median(one.forced / one.seconds for one in rounds)),
        "samples_per_round": round(median(one.samples for one in rounds)),
        "optimizer_steps_per_round": round(median(one.optimizer_steps for one in rounds)),
        "games_finished": sum(one.games for one in rounds),
        "gpu_busy": round(median(one.gpu_busy for one in rounds), 4),
        "phases": {name: round(share, 4) for name, share in phase_shares(rounds).items()},
    }


def fraction(ours: Sequence[Round], ceiling: Sequence[Round]) -> dict[str, Any]:
    """Compare samples per second within each round, so that load affects both."""
    rates = [[one.samples / one.seconds for one in rounds] for rounds in (ours, ceiling)]
    pairs = spread([mine / free for mine, free in zip(*rates, strict=True)], 4)
    return {**pairs, "of_medians": round(median(rates[0]) / median(rates[1]), 4)}


def show(report: dict[str, Any]) -> None:
    out, share = make_console(), report["fraction"]
    finished = report["measured"][OURS]["games_finished"]
    proved = f"{title(report)}: valid, {finished:,} games finished while measuring, audits clean"
    out.print(Text(proved, style="bold green"))
    out.print(training_line(report["training"]))
    out.print()
    print_table(rate_table(report))
    out.print()
    out.print(
        f"fraction of the ceiling: {share['median']:.3f} ({share['min']:.3f}..{share['max']:.3f} "
        f"over {len(share['rounds'])} pairs of rounds; of the medians {share['of_medians']:.3f})",
        style="bold",
    )
    if beside := report.get("of_plain"):
        plain = report["measured"][PLAIN]
        out.print(
            f"of plain self-play: {beside['median']:.3f} "
            f"({beside['min']:.3f}..{beside['max']:.3f}) of its "
            f"{short(plain['samples_per_s']['median'])} samples/s, with "
            f"{plain['samples_per_round']:,} samples a round, here "
            f"{report['measured'][OURS]['samples_per_round']:,}; "
            f"slots: {report['training']['slots']}",
            style="bold",
        )
    if "machine_share" in report:
        for one in share_lines(report["machine_share"]):
            out.print(one)
    if "memory_bytes" in report:
        busy = report["measured"][OURS]["gpu_busy"]
        share_busy = f"GPU busy {busy:.1%}, " if busy else ""
        out.print(f"{share_busy}{report['memory_bytes'] / 2**30:.2f} GiB of its memory in use")
        out.print(f"memory: {report['room']}")
    out.print(machine_line(report["machine"]))


def training_line(training: dict[str, Any]) -> str:
    threads = training["threads"]
    where = f"games on {threads} thread{'s' * (threads != 1)}, network on {training['device']}"
    if training["pool"].startswith("cuda"):
        where = f"all on {training['device']}"
    if training["population"] > 1:
        where = f"{training['population']} members, {where}"
    return (
        f"{training['algo']}: {training['games']} games x {training['steps']} steps, "
        f"{learning_words(training)}; {net_words(training)}, "
        f"{training['parameters']:,} parameters; "
        f"against {' '.join(training['opponents'])}; "
        f"{where}"
    )


def learning_words(training: dict[str, Any]) -> str:
    if "ratio" in training:
        return f"batches of {training['batch']}, {training['ratio']:g} samples per decision"
    return f"minibatches of {training['minibatch']}, epochs: {training['epochs']}"


def net_words(training: dict[str, Any]) -> str:
    if training["kind"] == "residual":
        return f"residual net, blocks: {training['blocks']}, channels: {training['channels']}"
    widths = "-".join(map(str, training["hidden"]))
    trunk = "one trunk" if training["shared"] else "two trunks"
    first = "sparse" if training["sparse"] and training["device"] == "cpu" else "dense"
    return f"{trunk} {widths} {training['activation']}, {first} first layer"


def rate_table(report: dict[str, Any]) -> Any:
    cells = [report["measured"][name] for name in (OURS, CEILING)]
    heads = ("ours", "free games")
    caption = (
        f"median and range of {report['options']['rounds']} rounds; decisions: of the learner; "
        "phases: share of the time"
    )
    table = make_table(("", *heads), numbers=heads, caption=caption)
    for key, name in RATES.items():
        table.add_row(name, *(rate_cell(cell[key]) for cell in cells))
    if cells[0]["forced_per_s"]:
        table.add_row("forced moves/s", *(short(cell["forced_per_s"]) for cell in cells))
    for phase in cells[0]["phases"]:
        table.add_row(f"  {phase}", *(f"{cell['phases'].get(phase, 0):.1%}" for cell in cells))
    return table


def rate_cell(rate: dict[str, Any]) -> Text:
    return Text.assemble(
        (short(rate["median"]), "bold"),
        (f" ({short(rate['min'])}..{short(rate['max'])})", "dim"),
    )


def machine_share(settings: TrainConfig, plan: Plan, learner: SupportsDryRun) -> dict[str, Any]:
    """Play and learn a few rounds more; return the share of the machine that they use."""
    monitor = make_monitor(measured_run(run_plan(settings), plan, learner), measure=True)
    utilization = None
    for _ in range(SHARE_ROUNDS):
        utilization = monitor.add_update(*timed_round(learner)) or utilization
    if utilization is None or monitor.peaks is None:
        reason = "not enough memory to measure the machine"
        if utilization:
            reason = utilization.unknown_reason
        return {"share": None, "line": f"share of this machine unknown: {reason}"}
    return {
        "share": round(utilization.share, 4),
        "bound": utilization.bound,
        "advice": asdict(utilization.advice) if utilization.advice else None,
        "peaks": asdict(monitor.peaks),
        "line": utilization.line,
    }


def share_lines(found: dict[str, Any]) -> list[str]:
    """The line, and what to know about its advice."""
    lines = [str(found["line"])]
    return [*lines, f"({LEARNS_OTHERWISE})"] if found.get("advice") else lines


def read_settings(config: BenchTrainConfig) -> TrainConfig:
    """Return the settings of `sparring train`, with the changes of options."""
    base = with_preset(config.game, config.config, gpu=uses_gpu(config.device), algo=config.algo)
    net = given_of_net(config, base.net.kind)
    changes: dict[str, Any] = {
        "game": config.game,
        "seed": config.seed,
        "threads": config.threads or base.threads or os.cpu_count() or 1,
        "device": config.device,
        "pool": config.pool,
        "population": config.population,
        "set": (*base.set, *config.set),
        "opponents": config.opponents or base.opponents,
        **given_of_learning(config, base),
        "collect": given_of(config, "games", "steps"),
        "league": given_of(config, "slots"),
        "net": net,
    }
    if base.hierarchy.on:  # options override the settings of roles
        by_role = {"net": net, base.algo: changes.get(base.algo, {})}
        changes["roles"] = dict.fromkeys(Rules(config.game).roles, by_role)
    settings: TrainConfig = merged(base, changes, "bench train")
    check_one_process(settings)
    return steady(settings)


def check_one_process(settings: TrainConfig) -> None:
    """Refuse a file for several processes: only one would rehearse, and wait for the others."""
    several = {"devices": "," in settings.devices, "replicas": settings.replicas > 1}
    several |= {"actors": bool(settings.actors), "cluster": bool(settings.cluster)}
    for name, given in several.items():
        if given:
            raise ConfigError(
                f"{name} {getattr(settings, name)}: bench train measures one process; leave it out "
                "of the file (sparring train shows the speed of several)"
            )


def given_of_learning(config: BenchTrainConfig, base: TrainConfig) -> dict[str, Any]:
    """Return the options of learning; refuse one that the algorithm does not have."""
    rollouts = learns_from_rollouts(base)
    names = LEARNING_OPTIONS[rollouts]
    for name in LEARNING_OPTIONS[not rollouts]:
        if getattr(config, name):
            raise ConfigError(
                f"--{name}: {base.algo} learns from {'fresh rollouts' if rollouts else 'replay'} "
                f"here; it has {', '.join(f'--{option}' for option in names)}"
            )
    given = given_of(config, *names)
    return {base.algo if rollouts else "replay": given}


def learns_from_rollouts(settings: TrainConfig) -> bool:
    """Whether the algorithm learns from fresh rollouts, not from replay."""
    return "replay" not in sections_of(settings.algo, settings.dqn.mode)


def learning_facts(settings: TrainConfig) -> dict[str, Any]:
    rollouts = learns_from_rollouts(settings)
    of = getattr(settings, settings.algo, None) if rollouts else settings.replay
    return {name: getattr(of, name) for name in LEARNING_OPTIONS[rollouts] if hasattr(of, name)}


def given_of(config: BenchTrainConfig, *names: str) -> dict[str, Any]:
    return {name: getattr(config, name) for name in names if getattr(config, name)}


def given_of_net(config: BenchTrainConfig, kind: str) -> dict[str, Any]:
    """Return the options of the network; refuse one that its kind does not have."""
    default = BenchTrainConfig(config.game)
    found: dict[str, Any] = {} if config.sparse is None else {"sparse": config.sparse}
    for of, names in NET_OPTIONS.items():
        for name in names:
            value = getattr(config, name)
            if value == getattr(default, name):
                continue
            if of != kind:
                raise ConfigError(
                    f"--{name} is for nets of kind {of}; {config.game} is trained with kind {kind}"
                )
            found[name] = value
    return found
