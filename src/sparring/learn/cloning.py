"""A network learns to do what others did: cross-entropy of their actions among the legal ones, and
the squared error of values. By epochs it comes out the same wherever it is computed alike.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CloningConfig, CollectConfig
from sparring.learn.forward import Forward
from sparring.learn.steps import TorchSteps, diverged
from sparring.learn.taught import Decisions, Places, split, unpacked
from sparring.learn.together import ALONE
from sparring.learn.transforms import RowTransform
from sparring.nets.distribution import log_prob_of, masked_log_probs
from sparring.nets.native_net import NativeNet
from sparring.nets.net import POLICY, VALUE, Net
from sparring.nets.packed import PackedAdam
from sparring.schedule import Moment

EPS = 1e-8
"""Adam's."""
MAX_GRAD_NORM = 1.0
MEASURES = 20
"""How often held-out games are looked at on the way."""
MOST_MEASURED = 65536
"""Held-out decisions that are looked at on the way; at the end it is all of them."""
MEASURED_AT_ONCE = 4096
WARM_UP = 100
"""Optimiser steps in which the learning rate rises to its own: Adam makes full steps of gradients
that are noise yet, which add up over hundreds of inputs of one sign until units of a value head
never answer again."""
MOVES, VALUES = "clone_policy", "clone_value"
"""What curves call the two losses."""


@dataclass(frozen=True)
class Rate:
    """What a step is made with."""

    lr: float
    value_weight: float
    max_grad_norm: float = MAX_GRAD_NORM


@dataclass(frozen=True)
class Standing:
    """How far cloning is, and how well it goes."""

    progress: float
    seconds: float
    seen: int
    """Decisions that were learned from, each as often as it was."""
    moves: float
    """The mean cross-entropy since the last time."""
    values: float
    """The mean squared error of values in units of the network's, since the last time."""
    measured: Mapping[str, float]
    """Of held-out games, see `Cloning.measure`; empty without any."""

    @property
    def curves(self) -> dict[str, float]:
        """What is drawn of it."""
        losses = {f"losses/{MOVES}": self.moves, f"losses/{VALUES}": self.values}
        return losses | {f"cloning/{name}": value for name, value in self.measured.items()}


Known = Mapping[str, Tensor]
"""What an epoch knows of some decisions, see `RowTransform.epoch`."""


class Steps(Protocol):
    """Makes optimiser steps of the loss of cloning."""

    def take(self, picked: Places, known: Known, rate: Rate) -> tuple[float, float]:
        """Learn from some decisions; return both losses."""


class Cloning:
    """A network and the decisions that it learns from."""

    def __init__(
        self,
        net: Net,
        decisions: Decisions,
        config: CloningConfig,
        collect: CollectConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        device: str = "cpu",
        turning: Sequence[RowTransform] = (),
    ) -> None:
        """Take over a network, which is moved to the device.

        turning: what is done to decisions before they are learned from.
        """
        self.net, self.config, self.seed = net.to(device), config, seed
        self.actions = net.inputs.rules.actions
        self.turning = turning
        self.learned, self.held_out = split(decisions, config.held_out, seed)
        self.decisions = decisions
        normalise(net, decisions, self.learned)
        self.choose_unit()
        self.forward = Forward(net, torch.device(device), collect)
        own = list(net.heads) == [POLICY, VALUE]
        native = self.forward.go_native(threads) if own else None
        self.rows = Rows(self, device)
        self.steps: Steps = NativeSteps(self, native) if native else AutogradSteps(self)

    def choose_unit(self) -> None:
        """Measure values in the size of what was paid; nothing was: the unit stays."""
        paid = self.decisions.returns[self.learned]
        paid = paid[np.isfinite(paid)]
        size = float(np.sqrt(np.mean(np.square(paid, dtype=np.float64)))) if len(paid) else 0.0
        self.has_unit = size > 0
        if self.has_unit:
            self.net.rescale_values(max(size, 1e-6))

    def learn(self, seconds: float) -> Iterator[Standing]:
        """Learn for so long, or as many epochs as are configured; yield how it goes.

        The last one looked at all held-out decisions.
        """
        epochs = self.config.epochs
        began, measured_s, measured = time.perf_counter(), 0.0, 0
        progress, seen, number, steps = 0.0, 0, 0, 0
        losses: list[tuple[float, float]] = []
        with self.forward.best_matmul():
            while progress < 1:
                for picked, known in self.minibatches(number):
                    rate = self.rate(steps, seen, progress)
                    losses.append(self.steps.take(picked, known, rate))
                    seen, steps = seen + len(picked), steps + 1
                    gone = time.perf_counter() - began - measured_s
                    progress = min(
                        seen / (epochs * len(self.learned)) if epochs else gone / seconds, 1.0
                    )
                    last = progress >= 1
                    if last or progress * MEASURES >= measured + 1:
                        at, measured = time.perf_counter(), int(progress * MEASURES)
                        found = self.measure(None if last else MOST_MEASURED)
                        measured_s += time.perf_counter() - at
                        means = np.mean(losses, axis=0)
                        losses = []
                        yield Standing(
                            progress, gone, seen, float(means[0]), float(means[1]), found
                        )
                    if last:
                        break
                number += 1

    def rate(self, steps: int, seen: int, progress: float) -> Rate:
        """What the next step is made with, after so many steps and positions."""
        lr = self.config.lr.at(Moment(seen, progress)) * risen(steps, progress)
        return Rate(lr, self.config.value_weight)

    def minibatches(self, epoch: int) -> Iterator[tuple[Places, Known]]:
        """Shuffle an epoch and cut it; what it knows of each part besides."""
        order = np.random.default_rng([self.seed % 2**64, epoch]).permutation(len(self.learned))
        known: dict[str, Tensor] = {}
        for transform in self.turning:  # every second epoch shows what the one before did not
            known |= transform.epoch(epoch // 2, epoch, len(order))
        count = max(1, round(len(order) / self.config.minibatch))
        for part in np.array_split(order, count):
            yield self.learned[part], {name: one[part] for name, one in known.items()}

    @torch.no_grad()
    def measure(self, most: int | None = None) -> dict[str, float]:
        """Of held-out decisions: how many actions are right, cross-entropy, values explained.

        most: so many of them at most, evenly spread.
        """
        places = self.held_out
        if not len(places):
            return {}
        if most is not None and len(places) > most:
            places = places[np.linspace(0, len(places) - 1, most).astype(np.intp)]
        right = missed = 0.0
        values = []
        for at in range(0, len(places), MEASURED_AT_ONCE):
            rows = self.rows.of(places[at : at + MEASURED_AT_ONCE])
            heads = self.forward(rows["obs"])
            log_probs = masked_log_probs(heads[POLICY], rows["mask"])
            right += float((log_probs.argmax(-1) == rows["action"]).sum())
            missed -= float(log_prob_of(log_probs, rows["action"]).sum())
            values.append(self.net.true_values(heads).cpu().numpy().copy())
        found = {"accuracy": right / len(places), "cross_entropy": missed / len(places)}
        paid = self.decisions.returns[places]
        known = np.isfinite(paid)
        if known.any() and float(np.var(paid[known])) > 0:
            left = np.var(paid[known] - np.concatenate(values)[known])
            found["explained_variance"] = 1 - float(left / np.var(paid[known]))
        return found


def risen(steps: int, progress: float) -> float:
    """Share of the learning rate after so many steps; all of it from half of the way on."""
    return min(1.0, max((steps + 1) / WARM_UP, 2 * progress))


class Rows:
    """Minibatches as tensors where the network is; the decisions lie there too if there is room."""

    def __init__(self, cloning: Cloning, device: str) -> None:
        self.cloning, self.device = cloning, torch.device(device)
        decisions = cloning.decisions
        self.scale = float(cloning.net.value_scale)
        self.arrays = {
            "obs": torch.from_numpy(decisions.obs),
            "legal": torch.from_numpy(decisions.legal),
            "action": torch.from_numpy(decisions.action),
            "returns": torch.from_numpy(decisions.returns),
        }
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            if decisions.size < free / 2:
                self.arrays = {name: one.to(self.device) for name, one in self.arrays.items()}
        bits = torch.arange(cloning.actions)
        self.byte, self.bit = (bits // 8).to(self.device), (bits % 8).to(self.device)

    def of(self, picked: Places, known: Known | None = None) -> dict[str, Tensor]:
        """Copy what is known of some decisions; as they are learned from, if `known` is given."""
        index = torch.from_numpy(picked).to(self.arrays["obs"].device)
        rows = {name: array[index].to(self.device) for name, array in self.arrays.items()}
        legal = rows.pop("legal")
        if self.device.type == "cpu":
            rows["mask"] = torch.from_numpy(unpacked(legal.numpy(), len(self.bit)))
        else:
            rows["mask"] = (legal[:, self.byte] >> self.bit) & 1
        if known:
            rows |= known
            for transform in self.cloning.turning:
                transform.turn(rows)
        rows["known"] = torch.isfinite(rows["returns"])
        rows["returns"] = (rows["returns"] / self.scale).nan_to_num(0.0)
        return rows


class AutogradSteps:
    """Autograd and torch's Adam, for every network and device: the readable reference."""

    def __init__(self, cloning: Cloning) -> None:
        self.cloning = cloning
        self.steps = TorchSteps(cloning.net, eps=EPS)

    def take(self, picked: Places, known: Known, rate: Rate) -> tuple[float, float]:
        """One optimiser step."""
        rows = self.cloning.rows.of(picked, known)
        shown = self.steps.step(rows, rate, self.loss, ALONE)
        return float(shown[MOVES]), float(shown[VALUES])

    def loss(self, rows: Mapping[str, Tensor], rate: Rate) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Cross-entropy of actions, and the squared error of values that are known."""
        heads = self.cloning.forward(rows["obs"])
        log_probs = masked_log_probs(heads[POLICY], rows["mask"])
        moves = -log_prob_of(log_probs, rows["action"]).mean()
        off = (heads[VALUE].float() - rows["returns"]) * rows["known"]
        values = (off**2).sum() / rows["known"].sum().clamp(min=1)
        return moves + rate.value_weight * values, {MOVES: moves, VALUES: values}


class NativeSteps:
    """The same for perceptrons on a CPU: rows are read where they lie, passes are native."""

    def __init__(self, cloning: Cloning, native: NativeNet) -> None:
        self.cloning, self.native = cloning, native
        self.adam = PackedAdam(native.packed, eps=EPS, native=native.work, tell=native.changed)
        self._grad = native.packed.grad.numpy()
        self._rooms = np.empty((2, 0, 1), np.float32)

    def take(self, picked: Places, known: Known, rate: Rate) -> tuple[float, float]:
        """One optimiser step."""
        cloning, decisions = self.cloning, self.cloning.decisions
        obs: npt.NDArray[np.uint8] = decisions.obs
        place: Places | None = picked
        action, mask = decisions.action[picked], unpacked(decisions.legal[picked], cloning.actions)
        if known:
            rows = cloning.rows.of(picked, known)
            obs, place = rows["obs"].numpy(), None
            action, mask = rows["action"].numpy(), rows["mask"].numpy()
        said, grad = self._room(len(picked))
        layers = self.native.passes().layers
        layers.forward(obs, place, said, True)
        missed = self.native.work.example_loss(
            said=said, mask=mask, action=action, drawn=None, weight=1.0, grad=grad
        )
        returns = decisions.returns[picked] / cloning.rows.scale
        paid = np.isfinite(returns)
        off = np.where(paid, said[:, -1] - returns, 0.0)
        count = max(int(paid.sum()), 1)
        grad[:, -1] = rate.value_weight * 2 * off / count
        layers.backward(grad, self._grad, None, False)
        moves, values = missed / len(picked), float(np.sum(off**2)) / count
        self.adam.lr = rate.lr
        total, norm = moves + rate.value_weight * values, math.nan
        if math.isfinite(total):
            norm = self.adam.descend(rate.max_grad_norm)
        if not math.isfinite(norm):
            raise diverged(total, norm, rate.lr)
        return moves, values

    def _room(self, rows: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Where what is said goes, and its gradient."""
        if rows > self._rooms.shape[1]:
            self._rooms = np.empty((2, rows, self.cloning.actions + 1), np.float32)
        return self._rooms[0, :rows], self._rooms[1, :rows]


@torch.no_grad()
def normalise(net: Net, decisions: Decisions, places: Places) -> None:
    """Let a network that normalises its observations see them once."""
    if net.normaliser is None:
        return
    for at in range(0, len(places), MEASURED_AT_ONCE):
        net.take_in(torch.from_numpy(decisions.obs[places[at : at + MEASURED_AT_ONCE]]))
