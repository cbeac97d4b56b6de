"""Where a run's network and games are, and whether they are graphs on a GPU."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.learn.algos import LEARNERS
from sparring.learn.cast import Cast
from sparring.learn.plan import CPU
from sparring.nets.grouped_flat import unsupported as no_grouped_pass
from sparring.training.planning.algorithms import REMEMBERS, ROLLOUTS

GPU = "cuda"


@dataclass(frozen=True)
class Place:
    """Where things are."""

    device: str
    """Of the network."""
    games_on: str
    fused: bool
    """Rollout and update are graphs on the GPU."""


def choose_place(configs: Sequence[TrainConfig], box: int, cast: Cast, *, own: bool) -> Place:
    """Decide where the network and the games of a run or a population are.

    box: numbers of an action. own: the games are an environment of somebody's own.
    """
    config, several = configs[0], len(configs) > 1
    device = choose_device(config.device)
    games_on = choose_pool(config.pool, device)
    stepwise = own or config.algo not in LEARNERS or played_elsewhere(config)
    if stepwise:
        games_on = CPU
    fused = not stepwise and device != CPU
    hindrance = why_not_fused(config, box, games_on) if fused else ""
    if hindrance:
        if games_on != CPU and (config.pool == "cuda" or several):
            raise ConfigError(hindrance)
        games_on, fused = play_apart(hindrance)
    if several:
        demand_one_gpu(config, "a foreign environment" if own else games_on)
    apart = why_apart(cast, config) if fused else ""
    if apart:
        if several:
            raise ConfigError(
                f"opponents cannot be answered on the GPU, where a population is trained: {apart}"
            )
        games_on, fused = play_apart(apart)
    return Place(device, games_on, fused)


def played_elsewhere(config: TrainConfig) -> bool:
    """Whether processes other than the learner's play the games."""
    return bool(config.actors or config.cluster)


def play_apart(why: str) -> tuple[str, bool]:
    """Have the games on the CPU, where one call per policy can be made; say that it is slower."""
    text = f"slower than it could be, with games on the CPU: {why}"
    warnings.warn(SparringWarning(text), stacklevel=4)
    return CPU, False


def why_apart(cast: Cast, config: TrainConfig) -> str:
    """Say what keeps opponents from being answered inside the rollout's graph, "" if nothing."""
    if cast.actors:
        return f"{', '.join(cast.others)} has another network than the learner, or none"
    if config.hierarchy.on and cast.slots:
        return "past selves with a network for every role are answered step by step"
    return no_grouped_pass(config.net) if cast.slots else ""


def demand_one_gpu(config: TrainConfig, where: str) -> None:
    """Refuse a population whose games are not with its networks. where: they are."""
    if config.algo not in LEARNERS:
        raise ConfigError(f"algo {config.algo!r} trains one run at a time, no population")
    if not where.startswith(GPU):
        raise ConfigError(
            f"a population is trained on one GPU, games included; here the games are on {where}: "
            "use seeds for runs one after the other"
        )


def why_not_fused(config: TrainConfig, box: int, games_on: str) -> str:
    """Say what keeps rollout and update from being graphs on the GPU, "" if nothing does."""
    by_rollouts = config.algo == "dqn" and config.dqn.mode == ROLLOUTS
    if by_rollouts or config.net.normalise:
        what = "dqn.mode rollouts" if by_rollouts else "net.normalise"
        return f"{what} plays and learns step by step"
    if config.algo in REMEMBERS and (games_on == CPU or config.hindsight.sees):
        why = "is seen in hindsight" if config.hindsight.sees else "lies with the games"
        return f"what is remembered {why}, and is learned from step by step there"
    if games_on == CPU and config.hindsight.sees:
        return "games that are seen in hindsight go with the network, not on the CPU"
    from sparring import kernels

    try:
        kernels.version()
    except ConfigError as missing:
        return str(missing)
    if games_on == CPU and (box or config.hierarchy.on):
        which = "with continuous actions" if box else "with a network for every role"
        return f"games {which} go with the network, not on the CPU"
    return ""


def choose_device(name: str) -> str:
    """Return cpu or cuda; a GPU that is asked for and missing is an error."""
    if name == "auto":
        return GPU if torch.cuda.is_available() else CPU
    if name == CPU:
        return CPU
    named = re.fullmatch(r"cuda(?::(\d{1,4}))?", name, re.ASCII)
    if named is None:
        raise ConfigError(f"device {name!r} is unknown; use cpu, cuda or auto")
    if not torch.cuda.is_available():
        raise ConfigError(
            f"device {name!r}: torch sees no GPU here; use --device cpu, or install a CUDA build "
            "of torch and check `nvidia-smi`"
        )
    index, count = int(named[1] or 0), torch.cuda.device_count()
    if index >= count:
        some = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise ConfigError(f"device {name!r} is not there; torch sees {some}")
    if index:
        raise ConfigError(
            f"device {name!r}: training takes the first GPU it sees; make it that one with "
            f"CUDA_VISIBLE_DEVICES={index} and --device cuda"
        )
    return GPU


def choose_pool(name: str, device: str) -> str:
    """Return where the games live: with the network, unless said otherwise."""
    if name not in ("auto", CPU, "cuda"):
        raise ConfigError(f"pool {name!r} is unknown; use cpu, cuda or auto")
    if name == "cuda" and not device.startswith("cuda"):
        raise ConfigError(f"pool 'cuda' needs the network there too; the device is {device!r}")
    return CPU if CPU in (name, device) else device


def uses_gpu(device: str) -> bool:
    """Whether the network will live on a GPU."""
    return choose_device(device).startswith("cuda")
