"""A trained network with the rules it was trained for: observations in, actions out."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.distribution import ActionSampler, masked_log_probs, mean_and_log_std, played
from sparring.nets.net import POLICY, VALUE, HeadOutputs, Net

Bytes = npt.NDArray[np.uint8]

BY_VALUE, DUELING, VALUES = "by_value", "dueling", "values"
FACTS = (BY_VALUE, DUELING, VALUES)
"""What `meta` says about the heads where they are not those of an actor and its critic.

by_value: the policy head holds values of actions, or advantages; the best is played.
dueling: they are advantages, and the value head holds values of states.
values: false if the value head was never trained.
"""


class Policy:
    """Answers decisions with a frozen network. It never learns and keeps no state.

    What a network with memory remembers goes in and out with every decision, see `decide`; in
    single games `StatefulPlayer` keeps it.
    """

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
        meta: what its checkpoint says about it, such as the number of updates, and what its heads
            hold where that is not usual, see `FACTS`.
        """
        if POLICY not in net.heads:
            raise ConfigError(f"{name} is a critic: it has no policy head to play with")
        for key, tensor in net.state_dict().items():
            if not torch.isfinite(tensor).all():
                raise SparringError(
                    f"{name}: {key} holds numbers that are not finite; use an earlier checkpoint"
                )
        self.rules, self.name, self.meta = rules, name, dict(meta or {})
        self.by_value = bool(self.meta.get(BY_VALUE, False))
        """Whether its head holds values of actions: it takes the best, there is nothing to draw."""
        self.greedy: bool | None = self.by_value or None
        """How it chooses whatever it is asked for, see `always`; None: as it is asked."""
        self.device = torch.device(device)
        self.net = net.to(self.device).eval()

    def __repr__(self) -> str:
        return f"Policy({self.name!r}, {self.rules!r})"

    def always(self, *, greedy: bool) -> Policy:
        """Return the same policy, which takes its most probable action or draws wherever it sits.

        The network is shared; the name says which.
        """
        if self.by_value and not greedy:
            raise ConfigError(
                f"{self.name} has learned values of actions and takes the best; there are no "
                "probabilities to draw from, leave @sampled out"
            )
        fixed = copy.copy(self)
        fixed.greedy, fixed.name = greedy, f"{self.name}@{'greedy' if greedy else 'sampled'}"
        return fixed

    @property
    def memory_bytes(self) -> int:
        """What it remembers of each seat from one decision to its next; 0: nothing."""
        return self.net.inputs.memory

    def initial_memory(self, rows: int = 1) -> Bytes:
        """What is remembered where a game begins: zeros [rows, memory_bytes]."""
        return np.zeros((rows, self.memory_bytes), np.uint8)

    def act(
        self,
        obs: Any,
        mask: Bytes | None = None,
        *,
        deterministic: bool = False,
        greedy: bool = False,
        seed: int = 0,
        rollout: int = 0,
        step: int = 0,
        rows: npt.NDArray[Any] | None = None,
    ) -> Any:
        """Return an action per row of obs [B, obs_bytes] and mask [B, actions].

        obs: a position of the game is fine too: what `State.apply` takes comes back; of a list of
            positions an array of that. Their masks are their own.
        mask: left out, every action is legal. Continuous actions are numbers within -1..1 [B, box];
            their mask has no columns.
        deterministic, or greedy in the words of line-ups: the most probable action, instead of one
            that is drawn. A policy by value always takes its best.
        Drawn actions depend on (seed, row, rollout, step) alone; give every step another number.
        rows: the numbers of the rows, where they are not 0..B-1.
        A policy with memory needs what it remembers behind each observation, see `decide`.
        """
        how: dict[str, Any] = {"greedy": greedy or deterministic, "seed": seed, "rollout": rollout}
        how |= {"step": step, "rows": rows}
        if not isinstance(obs, np.ndarray) and is_position(obs):
            if mask is not None:
                raise ConfigError("mask: a state knows its legal actions; leave the mask out")
            return act_in(self, obs, **how)
        return self.decide(obs, mask, **how)[0]

    act_batch = act
    """The same, for those who look for it under this name: `act` takes batches."""

    def decide(
        self,
        obs: Bytes,
        mask: Bytes | None = None,
        memory: Bytes | None = None,
        *,
        greedy: bool = False,
        seed: int = 0,
        rollout: int = 0,
        step: int = 0,
        rows: npt.NDArray[Any] | None = None,
    ) -> tuple[npt.NDArray[Any], Bytes]:
        """Return an action per row, and what is remembered of each [B, memory_bytes].

        memory: what the decision before returned for the same game and seat,
            `initial_memory` where a game begins. Left out: it lies behind the observations, as in
            the rows of a pool.
        The other arguments are those of `act`.
        """
        seen = self.rows(obs, memory)
        mask = self._legal(seen, mask)
        greedy = greedy if self.greedy is None else self.greedy
        shown = self._shown(seen)
        with torch.no_grad():
            heads: HeadOutputs = self.net(shown)
        drawn, _ = ActionSampler(seed).draw(
            heads[POLICY], mask, rollout=rollout, step=step, rows=rows, greedy=greedy
        )
        if self.rules.box:
            drawn = played(drawn, squash=self.net.config.squash).clip(-1, 1)
        return drawn, self._remembered(seen, shown, heads)

    def rows(self, obs: Bytes, memory: Bytes | None = None) -> Bytes:
        """Return rows as the network reads them: what is remembered behind each observation."""
        if memory is None:
            return obs
        wanted = (len(obs), self.memory_bytes)
        if memory.shape != wanted or memory.dtype != np.uint8:
            raise ConfigError(
                f"memory is {memory.dtype} {memory.shape}; {self.name} needs uint8 {wanted}, as "
                "`initial_memory` and `decide` return it"
            )
        return np.concatenate([obs, memory], axis=1) if self.memory_bytes else obs

    def probabilities(
        self, obs: Bytes, mask: Bytes | None = None, memory: Bytes | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the probability of every action [B, actions]; exactly 0 for illegal ones.

        Of a policy by value it is 1 for its best action. memory: see `decide`.
        """
        obs = self.rows(obs, memory)
        mask = self._legal(obs, mask)
        if self.rules.box:
            raise ConfigError(f"{self.rules.name} has continuous actions; see `gaussian`")
        if self.by_value:
            best = np.zeros(mask.shape, np.float32)
            best[np.arange(len(best)), self.act(obs, mask)] = 1.0
            return best
        logits = self.heads(obs)[POLICY]
        legal = torch.from_numpy(mask).to(self.device)
        shares: npt.NDArray[np.float32] = masked_log_probs(logits, legal).exp().cpu().numpy()
        return shares

    def gaussian(self, obs: Bytes) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return mean and spread of every number of a continuous action [B, box], not squashed."""
        if not self.rules.box:
            raise ConfigError(f"{self.rules.name} has discrete actions; see `probabilities`")
        mean, log_std = mean_and_log_std(self.heads(obs)[POLICY])
        return mean.cpu().numpy(), log_std.exp().cpu().numpy()

    def value(
        self, obs: Bytes, mask: Bytes | None = None, memory: Bytes | None = None
    ) -> npt.NDArray[np.float32]:
        """Return what each row's seat is expected to be paid from here on [B].

        Of a policy by value that is the value of its best action.
        mask: asked by such policies alone; left out, every action is legal. memory: see `decide`.
        """
        if VALUE not in self.net.heads:
            raise ConfigError(f"{self.name} has no value head; it chooses actions alone")
        if not self.meta.get(VALUES, True):
            raise ConfigError(f"{self.name} has no values: its value head was never trained")
        obs = self.rows(obs, memory)
        heads = self.heads(obs)
        if self.by_value:
            legal = torch.from_numpy(self._legal(obs, mask)).to(self.device)
            dueling = bool(self.meta.get(DUELING, False))
            return best_value(self.net, heads, legal, dueling=dueling).cpu().numpy()
        paid: npt.NDArray[np.float32] = self.net.unscaled_values(heads).cpu().numpy()
        return paid

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act in a single game: a number, or an array of them.

        A policy with memory is asked by `StatefulPlayer`, which keeps it from decision to decision.
        """
        self.check_fits(state.rules)
        self.check_no_memory()
        obs, mask = state.decision(row)
        (action,) = self.act(obs, mask, greedy=greedy, seed=seed, step=step)
        return action if self.rules.box else int(action)

    def check_no_memory(self) -> None:
        """Refuse to choose in a position, which does not show what was remembered before."""
        if self.memory_bytes:
            raise ConfigError(
                f"{self.name} remembers {self.memory_bytes} bytes of each seat, which a position "
                "does not show; use `StatefulPlayer(policy)`, which keeps them during a game"
            )

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

    @torch.no_grad()
    def heads(self, obs: Bytes) -> HeadOutputs:
        """Return what the network says about rows, by head."""
        heads: HeadOutputs = self.net(self._shown(obs))
        return heads

    def next_memory(self, obs: Bytes, heads: HeadOutputs) -> Bytes:
        """Return what is remembered of rows [B, memory_bytes] about which heads were said."""
        return self._remembered(obs, self._shown(obs), heads)

    @torch.no_grad()
    def _remembered(self, obs: Bytes, shown: Tensor, heads: HeadOutputs) -> Bytes:
        """What the network says, or what was there before if it leaves that as it is."""
        said = self.net.next_memory(shown, heads) if self.memory_bytes else None
        if said is None:
            return obs[:, self.rules.obs_bytes :]
        numbers: npt.NDArray[np.float32] = said.float().cpu().contiguous().numpy()
        return numbers.view(np.uint8).reshape(len(obs), self.memory_bytes)

    def _shown(self, obs: Bytes) -> Tensor:
        self._check_rows(obs)
        return torch.from_numpy(np.ascontiguousarray(obs)).to(self.device)

    def _check_rows(self, obs: Bytes) -> None:
        row_bytes = self.net.inputs.row_bytes
        if obs.ndim == 2 and obs.shape[1] == row_bytes and obs.dtype == np.uint8:
            return
        if self.memory_bytes and obs.ndim == 2 and obs.shape[1] == self.rules.obs_bytes:
            raise ConfigError(
                f"{self.name} remembers {self.memory_bytes} bytes of each seat, which are not "
                "behind the observation in these rows; ask `decide(obs, mask, memory)` with what "
                "it returned before, or `initial_memory(rows)` where a game begins"
            )
        raise ConfigError(
            f"observations are {obs.dtype} {obs.shape}; {self.name} needs uint8 (rows, {row_bytes})"
        )

    def _legal(self, obs: Bytes, mask: Bytes | None) -> Bytes:
        """Return the mask, of ones where none is given."""
        self._check_rows(obs)  # first: a single row would be taken for many, and its mask blamed
        if mask is None:
            return np.ones((len(obs), self.rules.actions), np.uint8)
        if mask.shape != (len(obs), self.rules.actions) or mask.dtype != np.uint8:
            raise ConfigError(
                f"masks are {mask.dtype} {mask.shape}; {self.name} needs uint8 "
                f"({len(obs)}, {self.rules.actions})"
            )
        if not self.rules.box and not mask.any(axis=1).all():
            row = int((~mask.any(axis=1)).argmax())
            raise ConfigError(
                f"mask: row {row} allows no action of {self.rules.name}, and {self.name} has to "
                "choose one; leave rows out in which nobody is to act"
            )
        return np.ascontiguousarray(mask)


def is_position(given: Any) -> bool:
    """Whether this is a position of a game, or a list of them."""
    listed = isinstance(given, list | tuple) and len(given) > 0
    return isinstance(given[0] if listed else given, State)


def act_in(policy: Policy, given: State | Sequence[State], **how: Any) -> Any:
    """Return what `State.apply` takes in a position, or an array of that for several.

    All positions share a forward pass. how: see `Policy.act`.
    """
    states = [given] if isinstance(given, State) else list(given)
    asked, obs, mask = [], [], []
    for number, state in enumerate(states):
        check_decision(policy, state, number if len(states) > 1 else None)
        for row in range(policy.rules.rows):
            if state.native.seat(row) >= 0:
                seen, legal = state.decision(row)
                asked.append((number, row))
                obs.append(seen)
                mask.append(legal)
    answers = policy.act(np.concatenate(obs), np.concatenate(mask), **how)
    actions = np.zeros((len(states), policy.rules.rows, *answers.shape[1:]), answers.dtype)
    for (number, row), answer in zip(asked, answers, strict=True):
        actions[number, row] = answer
    if policy.rules.rows == 1:
        actions = actions[:, 0]
    if not isinstance(given, State):
        return actions
    return int(actions[0]) if actions.ndim == 1 else actions[0]


def check_decision(policy: Policy, state: Any, number: int | None) -> None:
    """Refuse a position that is none, of another game, over, or not all that a policy knows."""
    which = "the state" if number is None else f"state {number}"
    if not isinstance(state, State):
        raise ConfigError(f"{which} is {type(state).__name__}; give states alone, or rows alone")
    policy.check_fits(state.rules)
    policy.check_no_memory()
    if state.over:
        raise ConfigError(f"{which}: the game of {state.rules.name} is over, nobody is to act")


def best_value(net: Net, heads: HeadOutputs, mask: Tensor, *, dueling: bool) -> Tensor:
    """Return the value of each row's best legal action, in units of the rewards [B].

    dueling: values of states are the value head, those of actions are above the mean of the legal
    ones.
    """
    legal = mask != 0
    actions = heads[POLICY].float()
    best = actions.masked_fill(~legal, -torch.inf).amax(-1)
    if dueling:
        mean = (actions * legal).sum(-1) / legal.sum(-1).clamp(min=1)
        best = heads[VALUE].float() + best - mean
    return best * net.value_scale


def sizes_of(rules: Rules) -> str:
    """Say what a network for a game takes and gives."""
    kind = f"{rules.box} numbers per action" if rules.box else f"{rules.actions} actions"
    return f"{len(rules.features)} features, {kind}"
