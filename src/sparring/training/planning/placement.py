"""Where a run's network and games are, and whether they are graphs on a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from sparring.capabilities.refusals import FeatureRequest, Selection, first_fit, lacking, missing
from sparring.capabilities.table import ABILITIES, PLACE, PLACES
from sparring.config import TrainConfig
from sparring.errors import ConfigError, warn
from sparring.learn.plan import CPU
from sparring.pygames.registry import is_python_game, lacks_on_gpu
from sparring.training.planning.gpus import check_gpu, chosen_gpu, gpus_of, use_gpu

GPU = "cuda"
GRAPHS, BESIDE, APART = "graphs", "graphs beside", "apart"
"""Places of the table on a GPU."""
STEPWISE = "host rollouts"
OF_OPPONENTS = frozenset({"opponents with other networks", "past selves by role"})
"""What opponents need of a place. They may play apart even where a pool on the GPU is asked for."""


@dataclass(frozen=True)
class Placement:
    """Where things are."""

    device: str
    """Of the network."""
    games_on: str
    fused: bool
    """Rollout and update are graphs on the GPU."""
    because: str = ""
    """Why they are not, where the network is there."""


def choose_placement(config: TrainConfig, asked: Iterable[FeatureRequest]) -> Placement:
    """Decide where the network and the games of a run or a population are."""
    device = device_of(config)
    pool = config.pool
    if device != CPU and pool == "auto" and is_python_game(config.game) and (why := lacks_on_gpu()):
        warn(f"slower, because {config.game} runs on CPU threads: {why}")
        pool = CPU
    games_on, asked = choose_pool(pool, device), list(asked)
    names = (CPU,) if device == CPU else (GRAPHS if games_on != CPU else BESIDE, APART)
    way = first_fit(PLACE, {name: PLACES[name] for name in names}, asked)
    if way is None:
        raise ConfigError(why_nowhere(names, asked))
    if way.choice in (GRAPHS, BESIDE):
        without = why_no_kernels()
        if not without:
            return Placement(device, games_on, True)
        if config.pool == "cuda" or missing(PLACES[APART], PLACE, asked):
            raise ConfigError(without)
        way = Selection(APART, (without,))
    if way.choice == APART and not inherent(asked):
        if config.pool == "cuda" and not only_opponents(asked):
            raise ConfigError(f"pool cuda: {'; '.join(way.because)}; leave it out")
        # There every policy is called by itself.
        warn(f"slower, because the games run on the CPU: {'; '.join(way.because)}")
    return Placement(device, CPU, False, "; ".join(way.because))


def why_nowhere(names: Sequence[str], asked: Sequence[FeatureRequest]) -> str:
    for one in asked:
        for ability in one.feature.needs.get(PLACE, ()):
            if all(ability not in PLACES[name].offers for name in names):
                needed = ABILITIES[PLACE][ability]
                return lacking(
                    one, needed, f"this run's device layout ({PLACES[names[0]].shown})", ""
                )
    lacks = {name: missing(PLACES[name], PLACE, asked) for name in names}
    texts = (f"{', '.join(typed)} with {PLACES[name].shown}" for name, typed in lacks.items())
    return f"this run fits no device layout: not {'; not '.join(texts)}; leave one of them out"


def only_opponents(asked: Iterable[FeatureRequest]) -> bool:
    """Whether nothing but opponents keeps a run from its place."""
    needed = {one for ask in asked for one in ask.feature.needs.get(PLACE, ())}
    return not needed - PLACES[GRAPHS].offers - OF_OPPONENTS


def inherent(asked: Iterable[FeatureRequest]) -> bool:
    """Whether games are stepped on the CPU by their nature, so that nothing is slower for it."""
    return any(STEPWISE in one.feature.needs.get(PLACE, ()) for one in asked)


def why_no_kernels() -> str:
    from sparring import kernels

    try:
        kernels.version()
    except ConfigError as missing_here:
        return str(missing_here)
    return ""


def played_elsewhere(config: TrainConfig) -> bool:
    """Whether processes other than the learner's play the games."""
    return bool(config.actors or config.cluster)


def choose_device(name: str) -> str:
    """Return cpu or cuda; a GPU that is asked for and missing is an error."""
    if name == "auto":
        return GPU if torch.cuda.is_available() else CPU
    if name == CPU:
        return CPU
    named = re.fullmatch(r"cuda(?::(\d{1,4}))?", name, re.ASCII)
    if named is None:
        raise ConfigError(f"device {name!r} is unknown; use cpu, cuda or auto")
    index = int(named[1] or 0)
    check_gpu(index, f"device {name!r}")
    if named[1] and (index or chosen_gpu()):
        use_gpu(index)
    if not torch.cuda.is_available():
        raise ConfigError(
            f"device {name!r}: torch cannot use a GPU here; use --device cpu, or check `nvidia-smi`"
        )
    return GPU


def device_of(config: TrainConfig) -> str:
    """Return cpu or cuda for a run; of several GPUs, this process uses the first."""
    gpus = gpus_of(config)
    return choose_device(f"cuda:{gpus[0]}" if gpus else config.device)


def choose_pool(name: str, device: str) -> str:
    if name not in ("auto", CPU, "cuda"):
        raise ConfigError(f"pool {name!r} is unknown; use cpu, cuda or auto")
    if name == "cuda" and not device.startswith("cuda"):
        raise ConfigError(f"pool 'cuda' needs the network there too; the device is {device!r}")
    return CPU if CPU in (name, device) else device


def uses_gpu(device: str) -> bool:
    """Whether the network will live on a GPU."""
    return choose_device(device).startswith("cuda")
