"""BehaviorCloning: a network learns to do what others did, as records have it.

The page reads in the order in which it runs: decisions, the unit of values, epochs of minibatches,
rows, loss, step, and the report with what held-out games say. The loss is the cross-entropy of
their actions among the legal ones, and the squared error of values. By epochs it comes out the same
wherever it is computed alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, ImitationConfig
from sparring.learn.backends.native import NativeImitation
from sparring.learn.backends.torch import TorchBackend
from sparring.learn.demonstrations import Decisions, Places, split, unpacked
from sparring.learn.forward import Forward
from sparring.learn.process_group import SINGLE
from sparring.learn.transforms import RowTransform
from sparring.nets.distribution import log_prob_of, masked_log_probs
from sparring.nets.net import POLICY, VALUE, Net
from sparring.schedule import Moment

EPS = 1e-8
"""Adam's."""
MAX_GRAD_NORM = 1.0
MEASURES = 20
"""How often held-out games are looked at on the way."""
MAX_MEASURED = 65536
"""Held-out decisions that are looked at on the way; at the end it is all of them."""
MEASURED_AT_ONCE = 4096
WARM_UP = 100
"""Optimizer steps in which the learning rate rises to its own: Adam makes full steps of gradients
that are noise yet, which add up over hundreds of inputs of one sign until units of a value head
never answer again."""
MOVES, VALUES = "imitation_policy", "imitation_value"
"""What curves call the two losses."""


Known = Mapping[str, Tensor]
"""What an epoch knows of some decisions, see `RowTransform.epoch`."""


@dataclass(frozen=True)
class Rate:
    """What a step is made with."""

    lr: float
    value_weight: float
    max_grad_norm: float = MAX_GRAD_NORM


@dataclass(frozen=True)
class ImitationProgress:
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
    """Of held-out games, see `BehaviorCloning.measure`; empty without any."""

    @property
    def curves(self) -> dict[str, float]:
        """What is drawn of it."""
        losses = {f"losses/{MOVES}": self.moves, f"losses/{VALUES}": self.values}
        return losses | {f"imitation/{name}": value for name, value in self.measured.items()}


class BehaviorCloning:
    """A network and the decisions that it learns from."""

    def __init__(
        self,
        net: Net,
        decisions: Decisions,
        config: ImitationConfig,
        collect: CollectConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        device: str = "cpu",
        transforms: Sequence[RowTransform] = (),
    ) -> None:
        """Take over a network, which is moved to the device.

        turning: what is done to decisions before they are learned from.
        """
        self.net, self.config, self.seed = net.to(device), config, seed
        self.decisions, self.device, self.transforms = decisions, torch.device(device), transforms
        self.learned, self.held_out = split(decisions, config.held_out, seed)
        self.normalize()
        self.choose_unit()
        self.forward = Forward(net, self.device, collect)
        two_heads = list(net.heads) == [POLICY, VALUE]
        native = self.forward.go_native(threads) if two_heads else None
        self.native = NativeImitation(native, eps=EPS) if native else None
        self.optimizer = None if native else TorchBackend(net, eps=EPS)
        self.columns = self.place_columns()

    @torch.no_grad()
    def normalize(self) -> None:
        """Let a network that normalizes its observations see them once."""
        if self.net.normalizer is None:
            return
        for at in range(0, len(self.learned), MEASURED_AT_ONCE):
            places = self.learned[at : at + MEASURED_AT_ONCE]
            self.net.update_normalizer(torch.from_numpy(self.decisions.obs[places]))

    def choose_unit(self) -> None:
        """Measure values in the size of what was paid; nothing was: the unit stays."""
        paid = self.decisions.returns[self.learned]
        paid = paid[np.isfinite(paid)]
        size = float(np.sqrt(np.mean(np.square(paid, dtype=np.float64)))) if len(paid) else 0.0
        if size > 0:
            self.net.rescale_value_head(max(size, 1e-6))
        self.unit = float(self.net.value_scale)

    def place_columns(self) -> dict[str, Tensor]:
        """Return the decisions as tensors, where the network is if there is room."""
        names = ("obs", "legal", "action", "returns")
        columns = {name: torch.from_numpy(self.decisions.arrays[name]) for name in names}
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            if self.decisions.size < free / 2:
                columns = {name: one.to(self.device) for name, one in columns.items()}
        return columns

    def learn(self, seconds: float) -> Iterator[ImitationProgress]:
        """Learn for so long, or as many epochs as are configured; yield how it goes.

        The last one looked at all held-out decisions.
        """
        epochs = self.config.epochs
        began, measured_s, measured = time.perf_counter(), 0.0, 0
        progress, seen, epoch, steps = 0.0, 0, 0, 0
        losses: list[tuple[float, float]] = []
        with self.forward.best_matmul():
            while progress < 1:
                for picked, known in self.minibatches(epoch):
                    losses.append(self.step(picked, known, self.rate(steps, seen, progress)))
                    seen, steps = seen + len(picked), steps + 1
                    gone = time.perf_counter() - began - measured_s
                    progress = seen / (epochs * len(self.learned)) if epochs else gone / seconds
                    progress = min(progress, 1.0)
                    last = progress >= 1
                    if last or progress * MEASURES >= measured + 1:
                        at, measured = time.perf_counter(), int(progress * MEASURES)
                        found = self.measure(None if last else MAX_MEASURED)
                        measured_s += time.perf_counter() - at
                        moves, values = np.mean(losses, axis=0)
                        losses = []
                        yield ImitationProgress(
                            progress, gone, seen, float(moves), float(values), found
                        )
                    if last:
                        break
                epoch += 1

    def minibatches(self, epoch: int) -> Iterator[tuple[Places, Known]]:
        """Shuffle an epoch and cut it; what it knows of each part besides."""
        order = np.random.default_rng([self.seed % 2**64, epoch]).permutation(len(self.learned))
        known: dict[str, Tensor] = {}
        for transform in self.transforms:  # every second epoch shows what the one before did not
            known |= transform.epoch(epoch // 2, epoch, len(order))
        count = max(1, round(len(order) / self.config.minibatch))
        for part in np.array_split(order, count):
            yield self.learned[part], {name: one[part] for name, one in known.items()}

    def rate(self, steps: int, seen: int, progress: float) -> Rate:
        """What the next step is made with, after so many steps and positions."""
        lr = self.config.lr.at(Moment(seen, progress)) * risen(steps, progress)
        return Rate(lr, self.config.value_weight)

    def step(self, picked: Places, known: Known, rate: Rate) -> tuple[float, float]:
        """Make one step of the optimizer on some decisions; return both losses."""
        if self.native:
            rows = self.rows(picked, known) if known else {}
            return self.native.step(self.decisions, picked, rows, unit=self.unit, **asdict(rate))
        assert self.optimizer
        shown = self.optimizer.step_on(self.rows(picked, known), rate, self.loss, SINGLE)
        return float(shown[MOVES]), float(shown[VALUES])

    def rows(self, picked: Places, known: Known | None = None) -> dict[str, Tensor]:
        """Copy what is known of some decisions; as they are learned from, if `known` is given."""
        index = torch.from_numpy(picked).to(self.columns["obs"].device)
        rows = {name: column[index].to(self.device) for name, column in self.columns.items()}
        legal, actions = rows.pop("legal"), self.net.inputs.rules.actions
        if self.device.type == "cpu":
            rows["mask"] = torch.from_numpy(unpacked(legal.numpy(), actions))
        else:
            bits = torch.arange(actions, device=self.device)
            rows["mask"] = (legal[:, bits // 8] >> bits % 8) & 1
        if known:
            rows |= known
            for transform in self.transforms:
                transform.apply(rows)
        rows["known"] = torch.isfinite(rows["returns"])
        rows["returns"] = (rows["returns"] / self.unit).nan_to_num(0.0)
        return rows

    def loss(self, rows: Mapping[str, Tensor], rate: Rate) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Cross-entropy of actions, and the squared error of values that are known."""
        heads = self.forward(rows["obs"])
        log_probs = masked_log_probs(heads[POLICY], rows["mask"])
        moves = -log_prob_of(log_probs, rows["action"]).mean()
        off = (heads[VALUE].float() - rows["returns"]) * rows["known"]
        values = (off**2).sum() / rows["known"].sum().clamp(min=1)
        return moves + rate.value_weight * values, {MOVES: moves, VALUES: values}

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
            rows = self.rows(places[at : at + MEASURED_AT_ONCE])
            heads = self.forward(rows["obs"])
            log_probs = masked_log_probs(heads[POLICY], rows["mask"])
            right += float((log_probs.argmax(-1) == rows["action"]).sum())
            missed -= float(log_prob_of(log_probs, rows["action"]).sum())
            values.append(self.net.unscaled_values(heads).cpu().numpy().copy())
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
