"""Soft actor-critic: sample, targets, losses and update, in the order in which they run.

Continuous actions are drawn from a Gaussian and squashed by tanh; of discrete ones expectations
are taken over the legal ones. All losses are functions of tensors that never wait for a device;
tensors may have members of a population in front.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from sparring import _native
from sparring.config import CollectConfig, NetConfig, ReplayConfig, SACConfig
from sparring.errors import StateError
from sparring.learn.native_sac import NativeSteps
from sparring.learn.off_policy import Losses, OffPolicy
from sparring.learn.replay import Samples
from sparring.learn.sac_gradients import actor_gradient, critic_gradient, head_gradient
from sparring.nets.arithmetic import BF16
from sparring.nets.critic_passes import CriticPasses, critic_passes
from sparring.nets.critics import Critics
from sparring.nets.distribution import (
    LOG_SQRT_TAU,
    entropy_of,
    masked_log_probs,
    mean_and_spread,
)
from sparring.nets.native_critics import NativeCritics, why_not_critics
from sparring.nets.native_net import NativeNet
from sparring.nets.net import POLICY
from sparring.nets.packed import LeanPasses, Packed, PackedAdam, Passes, is_lean, passes_of
from sparring.nets.policy import VALUES
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

LOG_2 = math.log(2)

# What follows from heads and critics: [..., batch], critics [..., 2, batch] or, of discrete
# actions, [..., 2, batch, actions]. A temperature has shape [] or [members, 1].


def squashed_sample(head: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Draw actions within -1..1 from a Gaussian's head; return them and their log-densities.

    The density is that behind tanh: log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which
    stays exact where the left side has long become log(0).
    """
    mean, log_spread = mean_and_spread(head)
    drawn = torch.addcmul(mean, log_spread.exp(), noise)
    squashing = 2 * (LOG_2 - drawn - torch.nn.functional.softplus(-2 * drawn))
    log_prob = -0.5 * noise * noise - LOG_SQRT_TAU - log_spread - squashing
    return torch.tanh(drawn), log_prob.sum(-1)


def critic_target(
    paid: Tensor, discount: Tensor, next_q: Tensor, next_log_prob: Tensor, temperature: Tensor
) -> Tensor:
    """What critics should have said: paid, and the more cautious critic's view of what follows.

    A negative discount means that the value is that of the other seat, whose gain is a loss: there
    the larger estimate is the cautious one.
    """
    cautious = (discount.unsqueeze(-2) * next_q).amin(-2)
    return _with_entropy(paid, discount, cautious, -next_log_prob, temperature)


def _with_entropy(
    paid: Tensor, discount: Tensor, following: Tensor, entropy: Tensor, temperature: Tensor
) -> Tensor:
    """Add what is paid, what follows, and the worth of the next decision's entropy.

    Not where that decision is the other seat's: what it may still choose is worth nothing here.
    """
    following = torch.addcmul(following, discount.clamp(min=0), temperature * entropy)
    # Behind the end there is no row, and whatever stands in its place is not to be read.
    return paid + following.masked_fill(discount == 0, 0.0)


def critic_loss(q: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Half the squared errors of both critics, and every sample's mean error."""
    error = q - target.unsqueeze(-2)
    each = (error * error).sum(-2)
    return 0.5 * (weight * each).mean(-1), error.detach().abs().mean(-2)


def actor_loss(q: Tensor, log_prob: Tensor, temperature: Tensor) -> Tensor:
    """Choose what the more cautious critic likes, and stay undecided."""
    return (temperature * log_prob - q.amin(-2)).mean(-1)


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target: Tensor | float) -> Tensor:
    """Entropy below its target raises the temperature. No other loss learns from this one."""
    return log_temperature * (entropy - target).detach().mean(-1)


# Discrete actions


def discrete_critic_target(
    paid: Tensor, discount: Tensor, next_q: Tensor, next_log_probs: Tensor, temperature: Tensor
) -> Tensor:
    """`critic_target`, as an expectation over the legal actions."""
    cautious = (discount.unsqueeze(-1).unsqueeze(-3) * next_q).amin(-3)
    following = (next_log_probs.exp() * cautious).sum(-1)
    return _with_entropy(paid, discount, following, entropy_of(next_log_probs), temperature)


def discrete_actor_loss(q: Tensor, log_probs: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """`actor_loss`, as an expectation over the legal actions; and the entropy of every row."""
    entropy = entropy_of(log_probs)
    value = (log_probs.exp() * q.amin(-3)).sum(-1)
    return -(temperature * entropy + value).mean(-1), entropy


def chosen(q: Tensor, action: Tensor) -> Tensor:
    """What critics say of the actions that were taken, [..., 2, batch]."""
    at = action.long().unsqueeze(-2).unsqueeze(-1).expand(*q.shape[:-1], 1)
    return q.gather(-1, at).squeeze(-1)


def put_chosen(grad: Tensor, action: Tensor, actions: int) -> Tensor:
    """The gradient of what critics said of all actions, from that of those that were taken."""
    at = action.long().unsqueeze(-1).expand(*grad.shape, 1)
    return grad.new_zeros(*grad.shape, actions).scatter_(-1, at, grad.unsqueeze(-1))


def entropy_target(mask: Tensor, config: SACConfig) -> Tensor:
    """What the entropy of every row aims at: a share of the most that its legal actions allow.

    With one legal action that is 0, as is the entropy: such rows do not move the temperature.
    """
    most = (mask != 0).sum(-1).clamp(min=1).log()
    if config.target_entropy:
        return most.clamp(max=config.target_entropy)
    return config.target_share * most


class SAC(OffPolicy):
    """The learner: the usual network is the actor, beside it critics and a temperature."""

    by_value = False

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: SACConfig,
        replay: ReplayConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `OffPolicy`."""
        assert not pool.rules.box or (net.squash and net.spread == "predicted")
        super().__init__(pool, collect, replay, net, gamma_into=config.gamma_into, **options)
        self.config = config
        self.critics = Critics(
            self.net.inputs,
            config.critic_hidden or net.hidden,
            activation=net.activation,
            norm=config.critic_norm,
            normaliser=self.net.normaliser,
        ).to(self.device)
        first = config.temperature or config.first_temperature
        self.temperature = Temperature(first).to(self.device)
        self.passes: Passes
        self.judges: CriticPasses
        self.native: NativeSteps | None = None
        actor = self.forward.go_native(self.threads)
        if actor is None:
            self._lay_out()
        else:
            self._lay_out_natively(actor)
        self._learn_from = self._continuous if self.net.box else self._discrete
        if self.native:
            self._learn_from = self._natively
        self.generator = torch.Generator()
        self.tau = self.max_grad_norm = 0.0

    def _lay_out(self) -> None:
        """Make everything that learns one array each, so that Adam is one call each."""
        actor, critics = Packed(self.net), Packed(self.critics)
        self.passes, self.judges = passes_of(actor, self.forward), critic_passes(self.critics)
        if is_lean(actor):
            self.forward.lean = LeanPasses(actor).forward
        self.actor_adam, self.critic_adam = PackedAdam(actor), PackedAdam(critics)
        self.temperature_adam = PackedAdam(Packed(self.temperature))

    def _lay_out_natively(self, actor: NativeNet) -> None:
        """The same where the actor is computed natively, and critics if they can be."""
        critics, work = Packed(self.critics), _native.Updating(self.threads)
        self.passes, self.judges = actor.passes(), critic_passes(self.critics)
        tell = None
        if not why_not_critics(self.critics):
            bf16 = self.forward.arithmetic == BF16
            self.judges = judges = NativeCritics(self.critics, threads=self.threads, bf16=bf16)
            tell = judges.changed
            if self.net.box:
                self.native = NativeSteps(actor, judges)
        self.actor_adam = PackedAdam(actor.packed, native=work, tell=actor.changed)
        self.critic_adam = PackedAdam(critics, native=work, tell=tell)
        self.temperature_adam = PackedAdam(Packed(self.temperature), native=work)

    def turn_knobs(self, moment: Moment) -> dict[str, float]:
        """Read every schedule, set learning rates; return what curves show of them."""
        config = self.config
        self.actor_adam.lr = config.lr.at(moment)
        self.critic_adam.lr = config.critic_lr.at(moment)
        self.temperature_adam.lr = config.temperature_lr.at(moment)
        self.tau, self.max_grad_norm = config.tau.at(moment), config.max_grad_norm.at(moment)
        return {
            "lr": self.actor_adam.lr,
            "critic_lr": self.critic_adam.lr,
            "gamma": config.gamma.at(moment),
            "temperature": math.exp(float(self.temperature.log.detach())),
        }

    @torch.no_grad()
    def descend(self, samples: Samples) -> tuple[Losses, Tensor]:
        """One step of the critics, the actor, the temperature and the targets.

        All of them see the temperature as it was before.
        """
        losses, off, error = self._learn_from(on_device(samples, self.device))
        if not self.config.temperature:
            self.temperature_adam.packed.grad.fill_(off)
            self._step(self.temperature_adam, off, "entropy beyond its target")
        if self.native:
            self.native.follow(self.tau)
        else:
            self.critics.follow(self.tau)
        return losses, error

    # Each steps critics and actor. Returned are losses, by how much entropies are beyond their
    # target, and errors.

    def _natively(self, samples: Samples) -> tuple[Losses, float, Tensor]:
        """`_continuous`, in native code."""
        assert self.native
        noise, temperature = self._noise(), math.exp(float(self.temperature.log))
        loss, error = self.native.learn_critics(samples, noise, temperature)
        self._step(self.critic_adam, loss, "critic_loss")
        policy_loss, entropy = self.native.learn_actor(samples, noise, temperature)
        self._step(self.actor_adam, policy_loss, "policy_loss")
        losses = {"critic_loss": loss, "policy_loss": policy_loss, "entropy": entropy}
        return losses, entropy - self._aim(), error

    def _continuous(self, samples: Samples) -> tuple[Losses, Tensor, Tensor]:
        """The readable way for actions that are numbers."""
        here, ahead, temperature = self._heads(samples)
        judges, widen, noise = self.judges, self.critics.widen, self._noise()
        numbers, following = widen(samples.obs), widen(samples.next_obs)
        (action, next_action), log_probs = squashed_sample(torch.stack((here, ahead)), noise)
        log_prob, next_log_prob = log_probs
        target = critic_target(
            samples.paid,
            samples.discount,
            judges.ahead(following, next_action),
            next_log_prob,
            temperature,
        )
        q = judges.forward(numbers, samples.action, learn=True)
        loss, error, grad = critic_gradient(q, target, samples.weight)
        judges.backward(grad)
        self._step(self.critic_adam, loss, "critic_loss")
        # The critics' own weights learn nothing from what follows.
        q = judges.forward(numbers, action, learn=False)
        policy_loss, grad = actor_gradient(q, log_prob, temperature)
        of_action, of_log_prob = judges.action_grad(grad), temperature / len(here)
        grad = head_gradient(here, noise[0], action, of_action, of_log_prob)
        self.passes.backward(grad, grad.new_zeros(len(grad)))
        self._step(self.actor_adam, policy_loss, "policy_loss")
        entropy = -log_prob.mean()
        losses = {"critic_loss": loss, "policy_loss": policy_loss, "entropy": entropy}
        return losses, entropy - self._aim(), error.abs().mean(0)

    def _discrete(self, samples: Samples) -> tuple[Losses, Tensor, Tensor]:
        """`_continuous`, with expectations over legal actions instead of draws."""
        here, ahead, temperature = self._heads(samples)
        judges, widen = self.judges, self.critics.widen
        numbers, following = widen(samples.obs), widen(samples.next_obs)
        target = discrete_critic_target(
            samples.paid,
            samples.discount,
            judges.ahead(following, None),
            masked_log_probs(ahead, samples.next_mask),
            temperature,
        )
        said = judges.forward(numbers, None, learn=True)
        loss, error, grad = critic_gradient(chosen(said, samples.action), target, samples.weight)
        judges.backward(put_chosen(grad, samples.action, said.shape[-1]))
        self._step(self.critic_adam, loss, "critic_loss")
        q = judges.forward(numbers, None, learn=False)
        with torch.enable_grad():
            head = here.detach().requires_grad_()
            log_probs = masked_log_probs(head, samples.mask)
            policy_loss, entropy = discrete_actor_loss(q, log_probs, temperature)
        (grad,) = torch.autograd.grad(policy_loss, head)
        self.passes.backward(grad, grad.new_zeros(len(grad)))
        policy_loss = policy_loss.detach()
        self._step(self.actor_adam, policy_loss, "policy_loss")
        entropy = entropy.detach()
        losses = {"critic_loss": loss, "policy_loss": policy_loss, "entropy": entropy.mean()}
        off = (entropy - entropy_target(samples.mask, self.config)).mean()
        return losses, off, error.abs().mean(0)

    def _heads(self, samples: Samples) -> tuple[Tensor, Tensor, Tensor]:
        """What the actor says about decisions and what followed, and the temperature."""
        heads = self.passes.forward(samples.obs, samples.next_obs)
        here, ahead = (head[POLICY].float() for head in heads)
        return here, ahead, self.temperature.log.exp()

    def _aim(self) -> float:
        """Where the entropy of continuous actions is to be."""
        return self.config.target_entropy or -float(self.net.box)

    def _noise(self) -> Tensor:
        """Standard normal numbers for both draws of a step, [2, batch, box]: by seed and step."""
        self.generator.manual_seed(mixed(self.seed, self.steps))
        shape = 2, self.replay_config.batch, self.net.box
        return torch.randn(shape, generator=self.generator).to(self.device)

    def _step(self, adam: PackedAdam, loss: Tensor | float, name: str) -> None:
        """Follow the gradient of a loss, if both are finite."""
        norm = adam.descend(self.max_grad_norm) if math.isfinite(loss) else math.nan
        if not math.isfinite(norm):
            raise self.diverged({name: loss, "its gradient's norm": norm})

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads: critics hold the values, apart."""
        return {**super().facts, VALUES: False}

    def learned(self) -> dict[str, dict[str, Tensor]]:
        """Critics, their targets, the temperature, and what every optimiser remembers."""
        modules = {"critics": self.critics, "temperature": self.temperature}
        return {
            **{name: copied(module) for name, module in modules.items()},
            "optimiser": self.actor_adam.tensors(),
            "critic_optimiser": self.critic_adam.tensors(),
            "temperature_optimiser": self.temperature_adam.tensors(),
        }

    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment; without critics, begin anew."""
        if "critics" not in tensors:
            tensors = {**tensors, **self._fresh()}
        try:
            self.critics.load_state_dict(dict(tensors["critics"]))
        except RuntimeError as wrong:
            first = str(wrong).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds other critics: {first}") from None
        self.temperature.load_state_dict(dict(tensors["temperature"]))
        self.actor_adam.load(tensors["optimiser"])
        self.critic_adam.load(tensors["critic_optimiser"])
        self.temperature_adam.load(tensors["temperature_optimiser"])

    def _fresh(self) -> dict[str, dict[str, Tensor]]:
        """Critics and a temperature that have learned nothing."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + 1_000_003 * (self.updates + 1))
            self.critics.begin()
        first = self.config.temperature or self.config.first_temperature
        return {
            "critics": copied(self.critics),
            "temperature": copied(Temperature(first)),
            **{name: {} for name in ("optimiser", "critic_optimiser", "temperature_optimiser")},
        }


class Temperature(torch.nn.Module):
    """What entropy is worth; its logarithm is what learns."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.log = torch.nn.Parameter(torch.tensor(math.log(first)))


def copied(module: torch.nn.Module) -> dict[str, Tensor]:
    """All tensors of a module by name, on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


def mixed(seed: int, step: int) -> int:
    """A seed of 32 bits for every step (splitmix64 of both): neighbours have nothing in common."""
    x = (seed * 0x9E3779B97F4A7C15 + step * 0xD1342543DE82EF95 + 0x5AC) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x >> 32


def on_device(samples: Samples, device: torch.device) -> Samples:
    """The batch where the network is."""
    if samples.obs.device.type == device.type:
        return samples
    kept = {f.name: getattr(samples, f.name) for f in fields(samples)}
    moved = {n: t.to(device, non_blocking=True) for n, t in kept.items() if n != "places"}
    return replace(samples, **moved)
