"""Which GPUs a run uses, by their numbers among those that CUDA shows; a process uses one.

CUDA reads CUDA_VISIBLE_DEVICES once, so that a GPU is chosen before anything else asks for one.
"""

from __future__ import annotations

import os
import re
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError, printable

VISIBLE = "CUDA_VISIBLE_DEVICES"
CHOSEN = "SPARRING_GPU"
"""Environment variable: the only GPU of a process and its children, and what `VISIBLE` was."""


def chosen_gpu() -> int | None:
    """Return the number of the only GPU of this process; None: it may use all."""
    number = os.environ.get(CHOSEN, "").partition("|")[0]
    return int(number) if number.isdecimal() else None


def limited_to(gpu: int) -> dict[str, str]:
    """Environment variables of a process that uses one GPU alone. gpu: -1: none of its own."""
    if gpu < 0:
        return {}
    before = os.environ.get(VISIBLE, "")
    if chosen_gpu() is not None:
        before = os.environ[CHOSEN].partition("|")[2]
    names = before.split(",") if before else []
    return {VISIBLE: names[gpu] if names else str(gpu), CHOSEN: f"{gpu}|{before}"}


def use_gpu(gpu: int) -> None:
    """Make a GPU the only one of this process and its children."""
    if chosen_gpu() == gpu:
        return
    variables = limited_to(gpu)
    if chosen_gpu() is None:
        before = os.environ.get(VISIBLE)
        os.environ.update(variables)
        if gpus_of_cuda() == 1:
            return
        del os.environ[CHOSEN]
        os.environ.pop(VISIBLE)
        if before is not None:
            os.environ[VISIBLE] = before
    raise ConfigError(
        f"device 'cuda:{gpu}': this program has used another GPU already; start it anew, or with "
        f"{VISIBLE}={variables[VISIBLE]} and --device cuda"
    )


def gpus_of_cuda() -> int:
    """Count the GPUs that CUDA shows this process; from then on they stay the same."""
    runtime: Any = torch._C
    return int(runtime._cuda_getDeviceCount())


def check_gpu(gpu: int, typed: str) -> None:
    """Raise if there is no GPU of that number. typed: the setting."""
    if chosen_gpu() is not None:
        return  # torch sees one alone; this one was there before
    count = torch.cuda.device_count()
    if not count:
        raise ConfigError(
            f"{typed}: torch sees no GPU here; use --device cpu, or install a CUDA build of torch "
            "and check `nvidia-smi`"
        )
    if gpu >= count:
        some = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise ConfigError(f"{typed} is not there; torch sees {some}")


def world_of_torchrun() -> int:
    """Return the number of processes with which torchrun has started this one; 0: it has not."""
    started = "TORCHELASTIC_RUN_ID" in os.environ
    return int(os.environ.get("WORLD_SIZE", "0")) if started else 0


def check_torchrun(config: TrainConfig) -> None:
    """Raise if a run does not have as many learners as torchrun has started processes."""
    world, learners = world_of_torchrun(), max(len(config.devices.split(",")), config.replicas)
    if world and os.environ.get("LOCAL_WORLD_SIZE") != str(world):
        raise ConfigError("torchrun: all processes have to be on one machine; use --nnodes 1")
    if world and world != learners:
        numbers = ",".join(map(str, range(world)))
        raise ConfigError(
            f"torchrun has started {world} processes, and the run has {learners}; add "
            f"--devices {numbers}, or --replicas {world} on CPUs"
        )


def learns_with_others(config: TrainConfig) -> bool:
    """Whether several learners share the updates of a run: replicas, or one on every GPU."""
    return config.replicas > 1 or "," in config.devices


def gpus_of(config: TrainConfig) -> tuple[int, ...]:
    """Return the GPUs of `devices`, one for each process of a run; empty: one process."""
    if not config.devices:
        return ()
    typed = f"devices {printable(config.devices)}"
    if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", config.devices, re.ASCII):
        raise ConfigError(f"{typed}: give the numbers of GPUs, such as 0 or 0,1")
    gpus = tuple(map(int, config.devices.split(",")))
    twice = next((gpu for place, gpu in enumerate(gpus) if gpu in gpus[:place]), None)
    if twice is not None and not config.distributed.shared_gpu:
        raise ConfigError(
            f"{typed}: GPU {twice} is named twice; name every GPU once (for a test of processes "
            "that share one GPU, add --distributed.shared_gpu)"
        )
    if config.device not in ("auto", "cuda"):
        raise ConfigError(f"{typed} and device {config.device} do not combine; leave one out")
    for gpu in gpus:
        check_gpu(gpu, f"{typed}: GPU {gpu}" if len(gpus) > 1 else typed)
    return gpus
