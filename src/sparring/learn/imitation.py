"""Behavior cloning on one page: supervised learning of policy and value from recorded games.

The order of execution: demonstrations, value scale, epochs of minibatches, rows, loss, step, and a
report with metrics of held-out games. The loss is the negative log-likelihood of the recorded
actions, over legal actions (cross-entropy) or under a Gaussian that ends at the bounds, plus the
squared error of values. With `imitation.targets distribution` it is the KL divergence from the
policy that acted. A run by epochs is reproducible.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, ImitationConfig
from sparring.learn.backends.native import NativeAutograd, NativeImitation
from sparring.learn.backends.torch import TorchBackend
from sparring.learn.demonstrations import TARGET, Decisions, Places, split, unpacked
from sparring.learn.forward import Forward
from sparring.learn.head_terms import kl_from
from sparring.learn.process_group import SINGLE
from sparring.learn.transforms import RowTransform
from sparring.nets.distribution import (
    bounded_log_prob,
    log_prob_of,
    masked_log_probs,
    mean_and_log_std,
)
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.net import HeadOutputs, Net
from sparring.schedule import Moment

EPS = 1e-8
"""Of Adam."""
MAX_GRAD_NORM = 1.0
MEASURES = 20
"""How often held-out games are evaluated during training."""
MAX_MEASURED = 65536
"""Held-out decisions of an evaluation during training; the last one takes all."""
MEASURED_AT_ONCE = 4096
WARM_UP = 100
"""Optimizer steps of learning-rate warmup. Adam's first steps have full size though gradients are
noise; over hundreds of inputs of one sign they add up and kill relu units of the value head."""
POLICY_LOSS, VALUE_LOSS = "imitation_policy", "imitation_value"
"""Metric names of the two losses."""
ACCURACY, ERROR = "accuracy", "error"
"""Metric names of the fit to held-out actions: of discrete and of continuous ones."""


EpochColumns = Mapping[str, Tensor]
"""Columns of an epoch for some decisions, see `RowTransform.epoch`."""


@dataclass(frozen=True)
class StepHparams:
    """Hyperparameters of one optimizer step."""

    lr: float
    value_weight: float
    max_grad_norm: float = MAX_GRAD_NORM


@dataclass(frozen=True)
class ImitationProgress:
    """Progress and metrics of behavior cloning."""

    progress: float
    seconds: float
    seen: int
    """Decisions learned from, counted once per epoch."""
    moves: float
    """Mean negative log-likelihood of actions, or KL divergence, since the last report."""
    values: float
    """Mean squared error of scaled values since the last report."""
    measured: Mapping[str, float]
    """Metrics of held-out games, see `BehaviorCloning.measure`; empty without any."""

    @property
    def curves(self) -> dict[str, float]:
        """Metrics by name."""
        losses = {f"losses/{POLICY_LOSS}": self.moves, f"losses/{VALUE_LOSS}": self.values}
        return losses | {f"imitation/{name}": value for name, value in self.measured.items()}


class BehaviorCloning:
    """Trains a network on demonstrations."""

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
        """Move the network to the device and prepare training. transforms: of the rows."""
        self.net, self.config, self.seed = net.to(device), config, seed
        self.decisions, self.device, self.transforms = decisions, torch.device(device), transforms
        self.learned, self.held_out = split(decisions, config.held_out, seed)
        self.normalize()
        self.set_value_scale()
        self.forward = Forward(net, self.device, collect)
        two_heads = list(net.heads) == [POLICY, VALUE]
        native = self.forward.go_native(threads) if two_heads else None
        plain = not net.box and not decisions.has_target
        self.native = NativeImitation(native, eps=EPS) if native and plain else None
        self.optimizer: TorchBackend | NativeAutograd | None = None
        if self.native is None:
            autograd = NativeAutograd(self.forward, eps=EPS) if native else None
            self.optimizer = autograd or TorchBackend(net, eps=EPS)
        self.columns = self.place_columns()

    @torch.no_grad()
    def normalize(self) -> None:
        """Compute the observation statistics of a network that normalizes its inputs."""
        if self.net.normalizer is None:
            return
        for at in range(0, len(self.learned), MEASURED_AT_ONCE):
            places = self.learned[at : at + MEASURED_AT_ONCE]
            self.net.update_normalizer(torch.from_numpy(self.decisions.obs[places]))

    def set_value_scale(self) -> None:
        """Scale values by the RMS of returns, unless all are 0."""
        returns = self.decisions.returns[self.learned]
        returns = returns[np.isfinite(returns)]
        rms = float(np.sqrt(np.mean(np.square(returns, dtype=np.float64)))) if len(returns) else 0.0
        if rms > 0:
            self.net.rescale_value_head(max(rms, 1e-6))
        self.value_scale = float(self.net.value_scale)

    def place_columns(self) -> dict[str, Tensor]:
        """Return the decisions as tensors, on the network's device if they fit there."""
        names = ["obs", "legal", "action", "returns"] + [TARGET] * self.decisions.has_target
        columns = {name: torch.from_numpy(self.decisions.arrays[name]) for name in names}
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            if self.decisions.size < free / 2:
                columns = {name: one.to(self.device) for name, one in columns.items()}
        return columns

    def learn(self, seconds: float) -> Iterator[ImitationProgress]:
        """Train for so many seconds or the configured epochs; yield progress.

        The last report evaluates all held-out decisions.
        """
        epochs = self.config.epochs
        began, measured_s, measured = time.perf_counter(), 0.0, 0
        progress, seen, epoch, steps = 0.0, 0, 0, 0
        losses: list[tuple[float, float]] = []
        with self.forward.best_matmul():
            while progress < 1:
                for places, extra in self.minibatches(epoch):
                    losses.append(self.step(places, extra, self.hparams(steps, seen, progress)))
                    seen, steps = seen + len(places), steps + 1
                    elapsed_s = time.perf_counter() - began - measured_s
                    progress = (
                        seen / (epochs * len(self.learned)) if epochs else elapsed_s / seconds
                    )
                    progress = min(progress, 1.0)
                    last = progress >= 1
                    if last or progress * MEASURES >= measured + 1:
                        at, measured = time.perf_counter(), int(progress * MEASURES)
                        metrics = self.measure(None if last else MAX_MEASURED)
                        measured_s += time.perf_counter() - at
                        moves, values = np.mean(losses, axis=0)
                        losses = []
                        yield ImitationProgress(
                            progress, elapsed_s, seen, float(moves), float(values), metrics
                        )
                    if last:
                        break
                epoch += 1

    def minibatches(self, epoch: int) -> Iterator[tuple[Places, EpochColumns]]:
        """Shuffle an epoch into minibatches; yield their places and columns of the epoch."""
        order = np.random.default_rng([self.seed % 2**64, epoch]).permutation(len(self.learned))
        extra: dict[str, Tensor] = {}
        for transform in self.transforms:  # epochs in pairs: the second mirrors the other rows
            extra |= transform.epoch(epoch // 2, epoch, len(order))
        count = max(1, round(len(order) / self.config.minibatch))
        for part in np.array_split(order, count):
            yield self.learned[part], {name: one[part] for name, one in extra.items()}

    def hparams(self, steps: int, seen: int, progress: float) -> StepHparams:
        """Return the hyperparameters of the next step."""
        lr = self.config.lr.at(Moment(seen, progress)) * warmup_factor(steps, progress)
        return StepHparams(lr, self.config.value_weight)

    def step(
        self, places: Places, extra: EpochColumns, hparams: StepHparams
    ) -> tuple[float, float]:
        """Make one optimizer step; return policy and value loss."""
        if self.native:
            rows = self.rows(places, extra) if extra else {}
            return self.native.step(
                self.decisions, places, rows, value_scale=self.value_scale, **asdict(hparams)
            )
        assert self.optimizer
        step_metrics = self.optimizer.step_on(self.rows(places, extra), hparams, self.loss, SINGLE)
        return float(step_metrics[POLICY_LOSS]), float(step_metrics[VALUE_LOSS])

    def rows(self, places: Places, extra: EpochColumns | None = None) -> dict[str, Tensor]:
        """Copy the rows of some decisions; `extra` columns apply the transforms."""
        index = torch.from_numpy(places).to(self.columns["obs"].device)
        rows = {name: column[index].to(self.device) for name, column in self.columns.items()}
        legal, actions = rows.pop("legal"), self.net.inputs.rules.actions
        if self.device.type == "cpu":
            rows["mask"] = torch.from_numpy(unpacked(legal.numpy(), actions))
        else:
            bits = torch.arange(actions, device=self.device)
            rows["mask"] = (legal[:, bits // 8] >> bits % 8) & 1
        if extra:
            rows |= extra
            for transform in self.transforms:
                transform.apply(rows)
        rows["known"] = torch.isfinite(rows["returns"])
        rows["returns"] = (rows["returns"] / self.value_scale).nan_to_num(0.0)
        return rows

    def loss(
        self, rows: Mapping[str, Tensor], hparams: StepHparams
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Likelihood of actions, and squared error of values where the return is known."""
        heads = self.forward(rows["obs"])
        if TARGET in rows:
            moves = kl_from(rows[TARGET].float(), heads[POLICY], box=bool(self.net.box)).mean()
        else:
            moves = -self.log_prob(heads, rows).mean()
        error = (heads[VALUE].float() - rows["returns"]) * rows["known"]
        values = (error**2).sum() / rows["known"].sum().clamp(min=1)
        return moves + hparams.value_weight * values, {POLICY_LOSS: moves, VALUE_LOSS: values}

    def log_prob(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """Return the log-likelihood of every row's action."""
        if self.net.box:
            return bounded_log_prob(heads[POLICY], rows["action"], squash=self.net.config.squash)
        return log_prob_of(masked_log_probs(heads[POLICY], rows["mask"]), rows["action"])

    def fit(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """Return of every row whether its action is the most probable one; of continuous actions
        the mean distance between the action and the Gaussian's mean, as the game takes it.
        """
        if not self.net.box:
            best = masked_log_probs(heads[POLICY], rows["mask"]).argmax(-1)
            return (best == rows["action"]).float()
        mean, _ = mean_and_log_std(heads[POLICY])
        mean = mean.tanh() if self.net.config.squash else mean.clamp(-1, 1)
        return (mean - rows["action"]).abs().mean(-1)

    @torch.no_grad()
    def measure(self, max_rows: int | None = None) -> dict[str, float]:
        """Return accuracy or error, cross-entropy, explained variance of held-out decisions.

        max_rows: evaluate at most so many, evenly spread.
        """
        places = self.held_out
        if not len(places):
            return {}
        if max_rows is not None and len(places) > max_rows:
            places = places[np.linspace(0, len(places) - 1, max_rows).astype(np.intp)]
        fit = cross_entropy = 0.0
        values = []
        for at in range(0, len(places), MEASURED_AT_ONCE):
            rows = self.rows(places[at : at + MEASURED_AT_ONCE])
            heads = self.forward(rows["obs"])
            fit += float(self.fit(heads, rows).sum())
            cross_entropy -= float(self.log_prob(heads, rows).sum())
            values.append(self.net.unscaled_values(heads).cpu().numpy().copy())
        metrics = {
            ERROR if self.net.box else ACCURACY: fit / len(places),
            "cross_entropy": cross_entropy / len(places),
        }
        returns = self.decisions.returns[places]
        finite = np.isfinite(returns)
        if finite.any() and float(np.var(returns[finite])) > 0:
            residual = np.var(returns[finite] - np.concatenate(values)[finite])
            metrics["explained_variance"] = 1 - float(residual / np.var(returns[finite]))
        return metrics


def warmup_factor(steps: int, progress: float) -> float:
    """Factor of the learning rate, which reaches 1 at half of the run at the latest."""
    return min(1.0, max((steps + 1) / WARM_UP, 2 * progress))
