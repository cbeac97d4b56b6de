"""A trained network with the rules it was trained for: observations in, actions out."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.distribution import Sampler, masked_log_probs, mean_and_spread, played
from sparring.nets.net import POLICY, VALUE, Heads, Net

Bytes = npt.NDArray[np.uint8]


class Policy:
    """Answers decisions with a frozen network. It never learns and keeps no state."""

    def __init__(
        self,
        rules: Rules,
        net: Net,
        *,
        name: str = "policy",
        device: str = "cpu",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Take over the network.

        name: what tables and messages call it.
        meta: what its checkpoint says about it, such as the number of updates.
        """
        if POLICY not in net.heads:
            raise ConfigError(f"{name} is a critic: it has no policy head to play with")
        for key, tensor in net.state_dict().items():
            if not torch.isfinite(tensor).all():
                raise SparringError(
                    f"{name}: {key} holds numbers that are not finite; use an earlier checkpoint"
                )
        self.rules, self.name, self.meta = rules, name, dict(meta or {})
        self.greedy: bool | None = None
        """How it chooses whatever it is asked for, see `always`; None: as it is asked."""
        self.device = torch.device(device)
        self.net = net.to(self.device).eval()

    def __repr__(self) -> str:
        return f"Policy({self.name!r}, {self.rules!r})"

    def always(self, *, greedy: bool) -> Policy:
        """Return the same policy, which takes its most probable action or draws wherever it sits.

        The network is shared; the name says which.
        """
        fixed = copy.copy(self)
        fixed.greedy, fixed.name = greedy, f"{self.name}@{'greedy' if greedy else 'sampled'}"
        return fixed

    def act(
        self,
        obs: Bytes,
        mask: Bytes,
        *,
        greedy: bool = False,
        seed: int = 0,
        rollout: int = 0,
        step: int = 0,
        rows: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Return an action per row of obs [B, obs_bytes] and mask [B, actions].

        Continuous actions are numbers within -1..1 [B, box]; their mask has no columns.
        Drawn actions depend on (seed, row, rollout, step) alone; give every step another number.
        rows: the numbers of the rows, where they are not 0..B-1.
        """
        self._check_mask(obs, mask)
        greedy = greedy if self.greedy is None else self.greedy
        logits = self._forward(obs)[POLICY]
        drawn, _ = Sampler(seed).draw(
            logits, mask, rollout=rollout, step=step, rows=rows, greedy=greedy
        )
        if not self.rules.box:
            return drawn
        return played(drawn, squash=self.net.config.squash).clip(-1, 1)

    def probabilities(self, obs: Bytes, mask: Bytes) -> npt.NDArray[np.float32]:
        """Return the probability of every action [B, actions]; exactly 0 for illegal ones."""
        self._check_mask(obs, mask)
        if self.rules.box:
            raise ConfigError(f"{self.rules.name} has continuous actions; see `gaussian`")
        logits = self._forward(obs)[POLICY]
        legal = torch.from_numpy(np.ascontiguousarray(mask)).to(self.device)
        shares: npt.NDArray[np.float32] = masked_log_probs(logits, legal).exp().cpu().numpy()
        return shares

    def gaussian(self, obs: Bytes) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return mean and spread of every number of a continuous action [B, box], not squashed."""
        if not self.rules.box:
            raise ConfigError(f"{self.rules.name} has discrete actions; see `probabilities`")
        mean, log_spread = mean_and_spread(self._forward(obs)[POLICY])
        return mean.cpu().numpy(), log_spread.exp().cpu().numpy()

    def value(self, obs: Bytes) -> npt.NDArray[np.float32]:
        """Return what each row's seat is expected to be paid from here on [B]."""
        if VALUE not in self.net.heads:
            raise ConfigError(f"{self.name} has no value head; it chooses actions alone")
        paid: npt.NDArray[np.float32] = self.net.true_values(self._forward(obs)).cpu().numpy()
        return paid

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act in a single game: a number, or an array of them."""
        self.check_fits(state.rules)
        obs, mask = state.decision(row)
        (action,) = self.act(obs, mask, greedy=greedy, seed=seed, step=step)
        return action if self.rules.box else int(action)

    def check_fits(self, rules: Rules) -> None:
        """Refuse a game whose observation or actions are not those of the training."""
        mine = self.rules
        if rules is mine or (
            rules.name == mine.name
            and (rules.actions, rules.box) == (mine.actions, mine.box)
            and rules.features == mine.features
        ):
            return
        if rules.name != mine.name:
            raise ConfigError(f"{self.name} plays {mine.name}, not {rules.name}")
        here, there = mine.config, rules.config
        flags = " ".join(f"{key}={here[key]}" for key in here if here[key] != there[key])
        raise ConfigError(
            f"{self.name} was trained with {flags} ({sizes_of(mine)}); this game has "
            f"{sizes_of(rules)}; set those flags"
        )

    def heads(self, obs: Bytes) -> Heads:
        """Return what the network says about rows, by head."""
        return self._forward(obs)

    @torch.no_grad()
    def _forward(self, obs: Bytes) -> Heads:
        row_bytes = self.net.inputs.row_bytes
        if obs.ndim != 2 or obs.shape[1] != row_bytes or obs.dtype != np.uint8:
            raise ConfigError(
                f"observations are {obs.dtype} {obs.shape}; {self.name} needs uint8 "
                f"(rows, {row_bytes})"
            )
        heads: Heads = self.net(torch.from_numpy(np.ascontiguousarray(obs)).to(self.device))
        return heads

    def _check_mask(self, obs: Bytes, mask: Bytes) -> None:
        if mask.shape != (len(obs), self.rules.actions) or mask.dtype != np.uint8:
            raise ConfigError(
                f"masks are {mask.dtype} {mask.shape}; {self.name} needs uint8 "
                f"({len(obs)}, {self.rules.actions})"
            )


def sizes_of(rules: Rules) -> str:
    """Say what a network for a game takes and gives."""
    kind = f"{rules.box} numbers per action" if rules.box else f"{rules.actions} actions"
    return f"{len(rules.features)} features, {kind}"


def differences(mine: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> str:
    """Say in which tensor two networks differ first, "" if in none."""
    for name in {**mine, **theirs}:
        here, there = (tuple(net[name].shape) if name in net else None for net in (mine, theirs))
        if here != there:
            return f"{name} is {there} there and {here} here"
    return ""


def check_alike(where: str, mine: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
    """Refuse weights that do not fit into a network, and say what differs.

    where: how the user named them, such as "init: runs/x".
    """
    if differ := differences(mine, theirs):
        raise ConfigError(f"{where} holds another network: {differ}; set net as it was there")
