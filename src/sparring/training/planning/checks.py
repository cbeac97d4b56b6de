"""What a run needs besides settings in their ranges: other settings, room, a folder, an account."""

from __future__ import annotations

import importlib.util
import netrc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from sparring.capabilities.refusals import shown
from sparring.config import (
    DistributedConfig,
    DQNConfig,
    ImitationConfig,
    NetConfig,
    QRDQNConfig,
    TD3Config,
    TrainConfig,
)
from sparring.config.algorithms import REPLAYED
from sparring.curriculum.curriculum import Curriculum
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.goals import check_goals, check_reward_parts
from sparring.games.rules import Rules
from sparring.learn.memory import memory_line
from sparring.learn.plan import Plan
from sparring.machine import UNCHECKED_BYTES, format_bytes, free_memory
from sparring.nets.critics import CRITICS, Critics
from sparring.nets.inputs import Inputs, frame_bytes, memory_bytes_of
from sparring.nets.sizes import num_parameters
from sparring.output_files import check_folder
from sparring.pools.limits import MAX_MEMORY
from sparring.schedule import Schedule
from sparring.training.planning.algorithms import REMEMBERS, ROLLOUTS, check_custom_settings
from sparring.training.planning.custom import check_custom_nets
from sparring.training.planning.requests import changed

COPIES = 5
"""Of a network while it learns: weights, gradients, two moments, and what is saved."""
MEASURED = ("step_timeout_s", "start_timeout_s")
"""Settings of worker processes that measurements heed too: they have such a process in any case."""
OFFLINE = ("offline", "disabled", "dryrun")
"""Modes of wandb that need no account."""


def check_settings(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
    """Refuse a run that could not be made or would fail at its first update. nets: by role."""
    check_custom_settings(config)
    into = getattr(getattr(config, config.algo, None), "gamma_into", ())
    if len(into) not in (0, len(rules.roles)):
        raise ConfigError(
            f"{config.algo}.gamma_into has {len(into)} discounts; {rules.name} needs one for each "
            f"role: {', '.join(rules.roles)}"
        )
    check_networks(rules, config, nets)
    if config.collect.groups > config.collect.games:
        raise ConfigError(
            f"collect.groups {config.collect.groups} must be at most collect.games, which is "
            f"{config.collect.games}"
        )
    check_network(rules, config, nets)
    check_folder(config.runs, "--runs")
    if config.wandb:
        check_wandb()


def check_processes(config: TrainConfig) -> None:
    """Refuse settings of processes that are not there."""
    several = config.actors or config.cluster or config.replicas > 1 or config.devices
    usual, alone = TrainConfig(), not several
    groups = {"distributed": (alone, "--actors N"), "env": (config.workers == "0", "--workers N")}
    runs_in_cluster = config.cluster and not config.actors and config.replicas == 1
    if config.distributed.gpus != DistributedConfig.gpus and not runs_in_cluster:
        raise ConfigError(
            f"distributed.gpus {config.distributed.gpus:g}: it has no effect here; add --cluster "
            "and --seeds or --vary, or leave it out (actors and replicas are on CPUs)"
        )
    for group, (unused, needs) in groups.items():
        for field in fields(getattr(usual, group)) if unused else ():
            given = getattr(getattr(config, group), field.name)
            if field.name in MEASURED and group == "env":
                continue
            if given != getattr(getattr(usual, group), field.name):
                raise ConfigError(
                    f"{group}.{field.name} {given}: it has no effect here; add "
                    f"{needs}, or leave it out"
                )


def check_network(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
    Inputs(rules, block_names=config.net.inputs)  # refuses blocks that there are not
    check_custom_nets(rules, config, nets)
    needed = 4 * learned_numbers(rules, config, nets)
    if needed < UNCHECKED_BYTES:
        return
    free = free_memory()
    if needed > free:
        told = described(config.net, getattr(config, config.algo, None))
        raise ConfigError(
            f"the network ({told}) needs {format_bytes(needed)} to learn, and "
            f"{format_bytes(free)} of memory are free; make it smaller"
        )


def check_targets(rules: Rules, targets: Sequence[float]) -> None:
    """Refuse win shares that no interval reaches, or that all do."""
    for target in targets if rules.seats > 1 else ():
        if not 0 < target < 1:
            raise ConfigError(
                f"eval.target {target:g}: {rules.name} is measured by the win share, whose 95 % "
                "interval lies within 0..1; give shares between, such as 0.6"
            )


def learned_numbers(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> int:
    """How many numbers all networks of an algorithm have while they learn."""
    own = COPIES * sum(num_parameters(rules, net) for net in nets.values())
    settings, net = getattr(config, config.algo, None), config.net
    if not isinstance(settings, REPLAYED) or getattr(settings, "mode", "") == ROLLOUTS:
        return own
    target = num_parameters(rules, net)
    if isinstance(settings, QRDQNConfig):
        head = settings.quantiles * rules.actions * (net.hidden[-1] + 1)
        return own + target + (COPIES + 1) * head
    if isinstance(settings, DQNConfig):
        return own + target
    inputs, widths = Inputs(rules, memory_bytes_of(rules, net), net.inputs), settings.critic_hidden
    number = getattr(settings, "critics", CRITICS)
    with torch.device("meta"):
        critics = Critics(inputs, widths or net.hidden, norm=settings.critic_norm, count=number)
    own += target * isinstance(settings, TD3Config)
    return own + (COPIES + 1) * critics.flat.numel()  # each has a target besides


def described(net: NetConfig, settings: Any) -> str:
    """The settings that make a network large. settings: of the algorithm, with critics or none."""
    if is_factory(net.kind):
        return f"net.kind {' '.join((net.kind, *net.set))}"
    own = f"net.hidden {' '.join(map(str, net.hidden))}"
    if net.kind == "residual":
        own = f"net.channels {net.channels}, net.blocks {net.blocks}"
    elif net.kind == "attention":
        own = f"net.token_width {net.token_width}, net.token_layers {net.token_layers}"
    elif net.kind != "mlp":
        own = f"net.kind {net.kind}"
    if net.memory:
        own += f", net.memory {net.memory}"
    critic = getattr(settings, "critic_hidden", ())
    name = f"{type(settings)._section}critic_hidden" if critic else ""
    return f"{own}, {name} {' '.join(map(str, critic))}" if critic else own


def check_wandb() -> None:
    """Refuse wandb without a login: it would ask for one in the middle of a run."""
    if importlib.util.find_spec("wandb") is None:
        raise ConfigError("wandb is not installed: pip install 'sparring[track]', or leave it out")
    known = ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE")
    if os.environ.get("WANDB_MODE") in OFFLINE or any(map(os.environ.get, known)):
        return
    if not has_login():
        raise ConfigError(
            "wandb: not logged in; run `wandb login` first, set WANDB_API_KEY, or set "
            "WANDB_MODE=offline"
        )


def has_login() -> bool:
    """Whether `wandb login` has left something; it always calls its user `user`."""
    places = [os.environ.get("NETRC", ""), "~/.netrc", "~/_netrc"]
    for place in filter(None, places):
        path = Path(place).expanduser()
        try:
            hosts = netrc.netrc(str(path)).hosts if path.is_file() else {}
        except (OSError, netrc.NetrcParseError):
            continue
        if any(host == "api.wandb.ai" or entry[0] == "user" for host, entry in hosts.items()):
            return True
    return False


@contextmanager
def within_memory(plan: Plan) -> Iterator[None]:
    """Turn running out of memory into advice."""
    collect = plan.collect
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        out = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not out and "allocate memory" not in str(error):
            raise
        raise ConfigError(
            f"out of memory with collect.games {collect.games}, collect.steps {collect.steps} and "
            f"{described(plan.net, plan.settings[0])}; make them smaller"
            + (f": {memory_line(plan)}" if plan.fused else "")
        ) from None


def check_networks(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
    for role, net in nets.items():
        if memory_bytes_of(rules, net) > MAX_MEMORY:
            where = f"roles {role}.net" if role else "net"
            each = frame_bytes(rules, net)
            raise ConfigError(
                f"{where}.frames {net.frames}: an observation of {rules.name} takes {each} bytes, "
                f"of which at most {MAX_MEMORY // each + 1} frames are remembered"
            )
    heads = config.heads
    if heads.blend and heads.wdl == Schedule.constant(0.0):
        raise ConfigError(
            f"heads.blend {heads.blend:g}: there is no head of win, draw and loss to blend in; "
            "give its weight with --heads.wdl, or leave it out"
        )
    name = changed(config.imitation, ImitationConfig())
    given = f"imitation.{name} {shown(getattr(config.imitation, name))}" if name else ""
    if config.imitate_minutes != TrainConfig.imitate_minutes:
        given = f"imitate_minutes {config.imitate_minutes:g}"
    if given and not config.imitate:
        raise ConfigError(
            f"{given}: nothing is imitated; add --imitate with records or bots, or leave it out"
        )


def check_hindsight(rules: Rules, config: TrainConfig, curriculum: Curriculum) -> None:
    """Refuse hindsight where flags leave out what a record would have to tell."""
    if not config.hindsight.on:
        return
    check_goals(rules)
    if config.algo in REMEMBERS:
        check_reward_parts(rules, paid_parts(rules, curriculum))


def paid_parts(rules: Rules, curriculum: Curriculum) -> list[str]:
    """The parts that are paid for at some time of a run."""
    parts, own = [], curriculum.base.rewards
    if not own:
        weights, roles = rules.weights(None), len(rules.roles)
        parts = [one for i, one in enumerate(rules.parts) if any(weights[i * roles :][:roles])]
    for one in (curriculum.base, *curriculum.phases):
        for name, weight in one.rewards.items():
            if any(weight.values):
                parts.append(name.rpartition(".")[2])
    return list(dict.fromkeys(parts))
