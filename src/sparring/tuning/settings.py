"""From the options of `sparring tune` to a space: what is tried, and where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.config.tools import TuneConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.learn.plan import CPU
from sparring.machine import cores, free_memory, show_size
from sparring.pools.foreign.make import facts_of
from sparring.training.planning.place import uses_gpu
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of, merged, with_preset
from sparring.tuning.knobs import Ground, chosen, knobs_of
from sparring.tuning.space import Space

ROOM = 0.8
"""Share of the free memory that points which are open at once may take."""


def read_settings(config: TuneConfig) -> TrainConfig:
    """What `sparring train` would train with."""
    base = with_preset(config.game, config.config, algo=config.algo)
    device = base.device if config.device == "auto" else config.device
    if uses_gpu(device):
        base = with_preset(config.game, config.config, algo=config.algo, gpu=True)
    changes: dict[str, Any] = {
        "seed": config.seed or base.seed,
        "device": device,
        "set": (*base.set, *config.set),
    }
    if base.workers == "auto":  # what pays is found here
        changes["workers"] = "0"
    settings: TrainConfig = merged(base, changes, "tune")
    demand_one(settings)
    return settings


def demand_one(settings: TrainConfig) -> None:
    """Refuse settings of several runs or machines: one run is timed, on this one."""
    usual = TrainConfig()
    for name in ("cluster", "actors", "replicas", "population", "seeds", "vary"):
        given = getattr(settings, name)
        if given != getattr(usual, name):
            raise ConfigError(
                f"{name} {given}: tune times one run in one process; leave it out of the file"
            )


def make_space(config: TuneConfig) -> Space:
    """Check everything, and return what is tried. Nothing is opened or measured yet."""
    settings = read_settings(config)
    plan = resolve(members_of(settings), played=False)
    own = is_factory(settings.game)
    free = config.device == settings.device == "auto"
    ground = Ground(
        cores=cores(),
        threads=plan.threads,
        device=plan.device,
        games_on=plan.games_on,
        gpu=torch.cuda.is_available(),
        own=own,
        fixed_games=bool(own and facts_of(settings.game).games),
    )
    knobs = chosen(
        knobs_of(settings, ground, free_device=free),
        config.only,
        same_learning=config.same_learning,
    )
    # What is written is what was timed: on this device, whatever other machines have.
    settings = replace(settings, device=plan.device)
    space = Space(settings, tuple(knobs), plan.rules, own, round(config.gigabytes * 2**30))
    for knob in knobs:
        for value in knob.values:  # what somebody typed is refused now, not on the way
            space.config(space.preset.turned({knob.name: value}))
    needed = space.bytes(space.preset)
    if space.most_bytes and needed > space.most_bytes:
        raise ConfigError(
            f"gigabytes {config.gigabytes:g}: games and rollout of the preset alone need "
            f"{show_size(needed)}; give more, or begin with fewer games in a file (--config)"
        )
    return space


def room_for(space: Space) -> int:
    """Bytes that points which are open at once may take together."""
    if space.most_bytes:
        return space.most_bytes
    if space.base.device == CPU:
        return round(ROOM * free_memory())
    return round(ROOM * torch.cuda.mem_get_info()[0])
