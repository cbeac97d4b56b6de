"""What PPO learns from in an update: rows and targets of its rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.learn.plan import PPOHparams
from sparring.learn.ppo import PPO


def batch_of(
    ppo: PPO, hparams: PPOHparams
) -> tuple[npt.NDArray[np.intp], dict[str, npt.NDArray[Any]]]:
    """Samples of one network's rollout, and the arrays that minibatches are picked from."""
    samples, targets = ppo.targets({"": hparams})
    return ppo.batch(ppo.learners[""], samples, targets)


def data_of(ppo: PPO, hparams: PPOHparams) -> dict[str, torch.Tensor]:
    """The arrays as tensors."""
    return {name: torch.from_numpy(array) for name, array in batch_of(ppo, hparams)[1].items()}
