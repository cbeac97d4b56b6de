"""From a configuration to a learner: where the games live, and who learns from them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeAlias

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.games.flags import read_rules
from sparring.learn.ppo import PPO
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool
from sparring.training.settings import check_against, read_opponents

if TYPE_CHECKING:
    from sparring.learn.fused import FusedPPO

Learner: TypeAlias = "PPO | FusedPPO"
MAY_DIFFER = ("seed", "ppo", "minutes", "updates", "runs", "json")
"""What members of a population may have otherwise than the first."""


def make_learner(configs: Sequence[TrainConfig], *, pool: GamePool | None = None) -> Learner:
    """Return the learner of one run or of a population. `pool` brings a foreign environment."""
    config = configs[0]
    for member in configs:
        rules = pool.rules if pool else read_rules(member.game, member.set)
        check_against(rules, member.eval.against)
    threads = config.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    device = choose_device(config.device)
    place = choose_pool(config.pool, device)
    hindrance = "" if pool or device == "cpu" else why_not_fused(config)
    if hindrance:
        if place == "cuda" and (config.pool == "cuda" or len(configs) > 1):
            raise ConfigError(hindrance)
        text = f"slower than it could be, with games on the CPU: {hindrance}"
        warnings.warn(SparringWarning(text), stacklevel=2)
        place = "cpu"
    if pool is None and place == "cuda":
        return make_fused(configs, device)
    if len(configs) > 1:
        raise ConfigError(
            "a population is trained on one GPU, games included; "
            f"here the games are on {'a foreign environment' if pool else place}"
        )
    if pool is None and device != "cpu" and not hindrance:
        from sparring.learn.fused import FusedPPO
        from sparring.learn.host_games import LEAST_SLOTS, HostGames

        slots = max(config.ppo.slots, LEAST_SLOTS)
        games = make_pool(config, threads, slots=slots)
        return FusedPPO(HostGames(games, device), config.ppo, config.net)
    plain = pool or make_pool(config, threads, slots=config.ppo.slots)
    return PPO(plain, config.ppo, config.net, seed=config.seed, threads=threads, device=device)


def why_not_fused(config: TrainConfig) -> str:
    """Say what keeps the learner that lives on the GPU from being used, "" if nothing does."""
    from sparring import kernels
    from sparring.nets import fused_mlp, fused_residual

    try:
        kernels.version()
    except ConfigError as missing:
        return str(missing)
    if read_rules(config.game, config.set).box and config.pool == "cpu":
        return "games with continuous actions go with the network, not on the CPU"
    if config.net.kind == "residual":
        return fused_residual.unsupported(config.net)
    return fused_mlp.unsupported(config.net)


def make_fused(configs: Sequence[TrainConfig], device: str) -> FusedPPO:
    """Return the learner that has everything on the GPU."""
    from sparring.learn.fused import FusedPPO
    from sparring.pools.cuda import CudaPool

    config = configs[0]
    for other in configs[1:]:
        mine, theirs = asdict(config), asdict(other)
        differ = [key for key in mine if key not in MAY_DIFFER and mine[key] != theirs[key]]
        if differ:
            raise ConfigError(f"members of a population share {', '.join(differ)}")
    rules = read_rules(config.game, config.set)
    pool = CudaPool(
        rules,
        config.ppo.games * len(configs),
        seeds=[one.seed for one in configs],
        lineups=read_opponents(rules, config.opponents),
        device=device,
    )
    return FusedPPO(pool, [one.ppo for one in configs], config.net)


def make_pool(config: TrainConfig, threads: int, *, slots: int = 1) -> Pool:
    """The games on CPU threads, with the flags and line-ups of the configuration."""
    rules = read_rules(config.game, config.set)
    return Pool(
        rules,
        config.ppo.games,
        seed=config.seed,
        threads=threads,
        lineups=read_opponents(rules, config.opponents),
        slots=slots,
    )


def choose_device(name: str) -> str:
    """Return cpu or cuda; a GPU that is asked for and missing is an error."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"device {name!r}: torch sees no GPU here; use --device cpu, or install a CUDA build "
            "of torch and check `nvidia-smi`"
        )
    if name not in ("cpu",) and not name.startswith("cuda"):
        raise ConfigError(f"device {name!r} is unknown; use cpu, cuda or auto")
    return name


def choose_pool(name: str, device: str) -> str:
    """Return where the games live: with the network, unless said otherwise."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"pool {name!r} is unknown; use cpu, cuda or auto")
    if name == "cuda" and not device.startswith("cuda"):
        raise ConfigError(f"pool 'cuda' needs the network there too; the device is {device!r}")
    if name == "auto":
        return "cuda" if device.startswith("cuda") else "cpu"
    return name


def uses_gpu(device: str) -> bool:
    """Whether the network will live on a GPU."""
    return choose_device(device).startswith("cuda")
