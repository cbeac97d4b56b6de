"""Policy: a trained network with the rules of its game; observations in, actions out. No torch.

Its network evaluates rows and answers in arrays: `nets.net.Net`, or `nets.array_net.ArrayNet`
where torch is not installed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import HIDDEN, POLICY, VALUE, Evaluation, Floats, log_belief
from sparring.nets.levels import LEVELS
from sparring.nets.roots import Roots, roots_in
from sparring.nets.sampling import ActionSampler, log_softmax, mean_and_std, squash_actions
from sparring.nets.searching import (
    SearchCache,
    belief_of,
    check_budget,
    check_searchable,
    config_of,
    evaluator_of,
    make_search,
    search_actions,
)
from sparring.search.budget import Budget
from sparring.search.search import Search

if TYPE_CHECKING:
    from sparring.nets.net import Net

Bytes = npt.NDArray[np.uint8]

DEFAULT_SIMULATIONS = 64
BY_VALUE, DUELING, VALUES = "by_value", "dueling", "values"
DETERMINISTIC = "deterministic"
HEAD_META = (BY_VALUE, DUELING, VALUES, DETERMINISTIC)
"""Keys of `meta` for heads that differ from an actor-critic's.

by_value: the policy head holds action values (Q), or advantages; the best action is played.
dueling: the policy head holds advantages, the value head state values.
values: false if the value head was never trained.
deterministic: the policy head holds means, and its log standard deviations were never trained.
"""


class Policy:
    """Chooses actions with a frozen network. It never learns and keeps no state.

    The memory of a recurrent network is an argument and a result of every decision, see `decide`;
    in single games `StatefulPlayer` keeps it.
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
        """Take ownership of the network.

        name: shown in tables and messages.
        meta: metadata of its checkpoint, such as the number of updates, and `HEAD_META`.
        """
        if POLICY not in net.heads:
            raise ConfigError(f"{name} is a critic: it has no policy head to play with")
        if key := net.nonfinite():
            raise SparringError(
                f"{name}: {key} holds numbers that are not finite; use an earlier checkpoint"
            )
        self.rules, self.name, self.meta = rules, name, dict(meta or {})
        self.is_value_based = bool(self.meta.get(BY_VALUE, False))
        """Whether the policy head holds action values: the best is played, none is sampled."""
        self.is_greedy = self.is_value_based or bool(self.meta.get(DETERMINISTIC, False))
        """Whether it always plays the best action, and never samples one."""
        self.greedy: bool | None = self.is_greedy or None
        """Overrides the `greedy` argument of all calls, see `always`; None: does not."""
        self.budget: Budget | None = None
        """Of a tree search at every decision, see `searching`; None: the network alone."""
        self.searches = SearchCache()
        self.seeing = CriticRows(rules) if net.config.sees else None
        """Its rows, if they hold what is hidden: then it measures, in pools, and never plays."""
        self.temperature = 1.0
        """Divides the logits that sampled actions are drawn from, see `at_level`."""
        self.device = device
        self.net = net.to(device).eval()

    def __repr__(self) -> str:
        return f"Policy({self.name!r}, {self.rules!r})"

    def always(self, *, greedy: bool) -> Policy:
        """Return this policy with greedy or sampled actions in all calls; the network is shared."""
        if self.is_greedy and not greedy:
            learned = "action values" if self.is_value_based else "actions without a spread"
            raise ConfigError(
                f"{self.name} has learned {learned} and plays the best action; there are no "
                "probabilities to sample from, leave @sampled out"
            )
        fixed = copy.copy(self)
        fixed.greedy, fixed.name = greedy, f"{self.name}@{'greedy' if greedy else 'sampled'}"
        return fixed

    def searching(self, budget: Budget | str | int) -> Policy:
        """Return this policy with a tree search at every decision; the network is shared.

        budget: simulations (64), or text as behind a name: "64", "2s", "800/puct".
        """
        self.check_searchable()
        fixed = copy.copy(self)
        fixed.budget = as_budget(budget)
        check_budget(self.rules, fixed.budget)
        fixed.name = f"{self.name}@{fixed.budget}"
        return fixed

    def at_level(self, level: int) -> Policy:
        """Return this policy at a level of play from 1 to 9, see `LEVELS`."""
        if level not in LEVELS:
            raise ConfigError(f"level {level} is outside 1..{max(LEVELS)}")
        simulations, temperature = LEVELS[level]
        if temperature and (self.is_value_based or self.rules.box):
            raise ConfigError(
                f"{self.name} has no probabilities to sample from, as level {level} does; give a "
                "higher level, or leave it out"
            )
        try:
            fixed = self.searching(simulations) if simulations else copy.copy(self)
        except ConfigError as wrong:
            lower = min(number for number, one in LEVELS.items() if one.simulations) - 1
            reason = str(wrong).removeprefix("search: ").partition("; ")[0]
            raise ConfigError(
                f"level {level} searches, and {reason}; give a level up to {lower}"
            ) from None
        fixed.greedy, fixed.temperature = not temperature, temperature or 1.0
        fixed.name = f"{self.name}@level{level}"
        return fixed

    def to(self, device: str) -> Policy:
        """Move the network to a device, as `torch.nn.Module.to` does, and return the policy."""
        self.device = device
        self.net.to(device)
        return self

    def check_searchable(self) -> None:
        """Raise with the reason if the policy cannot search: no values, hidden cards, memory."""
        check_searchable(self)

    def without_search(self) -> Policy:
        """Return this policy with its network alone, under the same name."""
        alone = copy.copy(self)
        alone.budget = None
        return alone

    def search(
        self,
        rules: Rules | None = None,
        *,
        budget: Budget | str | int | None = None,
        **options: Any,
    ) -> Search:
        """Return a search whose leaves this policy's network evaluates.

        rules: of the roots, if their flags differ from those of the training.
        budget: simulations (64), or text as behind a name: "64", "2s", "800/puct".
        options: of `Search`: trees, threads, seed, noise, config. Left out, the discount is that
            of the training.
        """
        self.check_searchable()
        squash = self.net.config.squash
        budget = as_budget(budget if budget is not None else self.budget or DEFAULT_SIMULATIONS)
        evaluate = evaluator_of(self, options.get("threads", 1))
        rules = rules or self.rules
        options = {"config": config_of(self), **options}
        if believe := belief_of(self, rules, options["config"]):
            options["believe"] = believe
        return make_search(rules, evaluate, budget, squash=squash, **options)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per seat from one decision to the next; 0: none."""
        return self.net.inputs.memory

    def initial_memory(self, rows: int = 1) -> Bytes:
        """Return the memory at the start of a game: zeros [rows, memory_bytes]."""
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

        obs: or a state of the game, which returns an action for `State.apply`; a list of states
            returns an array of them. States have their own masks. A policy with a budget takes
            states alone.
        mask: left out, every action is legal. Continuous actions are numbers within -1..1 [B, box];
            their mask has no columns.
        deterministic, or greedy: the most probable action instead of a sampled one. A value-based
            policy always plays its best action.
        Sampled actions depend on (seed, row, rollout, step) alone; give every step another number.
        rows: indices of the rows, 0..B-1 if left out.
        A policy with memory needs it after each observation, see `decide`.
        """
        options: dict[str, Any] = {"seed": seed, "rollout": rollout, "step": step, "rows": rows}
        options["greedy"] = greedy or deterministic
        if not isinstance(obs, np.ndarray) and is_state(obs):
            if mask is not None:
                raise ConfigError("mask: a state knows its legal actions; leave the mask out")
            return act_in(self, obs, **options)
        return self.decide(obs, mask, **options)[0]

    act_batch = act
    """Alias of `act`, which takes batches."""

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
        roots: Roots | None = None,
    ) -> tuple[npt.NDArray[Any], Bytes]:
        """Return an action per row, and the next memory of each [B, memory_bytes].

        memory: what the previous decision returned for the same game and seat, `initial_memory` at
            the start of a game. Left out: it follows the observations, as in the rows of a pool.
        roots: positions of the rows, from which a policy with a budget searches, and of which one
            that sees reads what is hidden.
        The other arguments are those of `act`.
        """
        if self.seeing is not None:
            obs = self.seeing.of_roots(roots, obs, self.name)
        network_rows = self.rows(obs, memory)
        mask = self._check_mask(network_rows, mask)
        greedy = greedy if self.greedy is None else self.greedy
        if self.budget is not None:
            where: dict[str, Any] = {"seed": seed, "rollout": rollout, "step": step}
            action = search_actions(self, roots, greedy=greedy, **where)
            return action, np.zeros((len(obs), 0), np.uint8)
        found = self.evaluate(network_rows)
        head = found.heads[POLICY]
        if self.temperature != 1:
            head = head / self.temperature
        action, _ = ActionSampler(seed).draw(
            head, mask, rollout=rollout, step=step, rows=rows, greedy=greedy
        )
        if self.rules.box:
            action = squash_actions(action, squash=self.net.config.squash).clip(-1, 1)
        return action, self.next_memory(network_rows, found)

    def predict(
        self,
        observation: Any,
        state: Bytes | None = None,
        episode_start: npt.ArrayLike | None = None,
        deterministic: bool = True,
        action_masks: npt.ArrayLike | None = None,
        *,
        step: int = 0,
    ) -> tuple[Any, Bytes | None]:
        """Return an action for the environment and the next `state`, see `Agent.predict`.

        step: another number for every call, if actions are sampled.
        """
        from sparring.nets.predict import predict

        given: dict[str, Any] = {"deterministic": deterministic, "action_masks": action_masks}
        return predict(self, observation, state, episode_start, **given, step=step)

    def rows(self, obs: Bytes, memory: Bytes | None = None) -> Bytes:
        """Return the network's rows: observations followed by memory."""
        if memory is None:
            return obs
        shape = (len(obs), self.memory_bytes)
        if memory.shape != shape or memory.dtype != np.uint8:
            raise ConfigError(
                f"memory is {memory.dtype} {memory.shape}; {self.name} needs uint8 {shape}, as "
                "`initial_memory` and `decide` return it"
            )
        return np.concatenate([obs, memory], axis=1) if self.memory_bytes else obs

    def probabilities(
        self, obs: Bytes, mask: Bytes | None = None, memory: Bytes | None = None
    ) -> Floats:
        """Return the probability of every action [B, actions]; exactly 0 for illegal ones.

        A value-based policy gives its best action the probability 1. memory: see `decide`.
        """
        obs = self.rows(obs, memory)
        mask = self._check_mask(obs, mask)
        if self.rules.box:
            raise ConfigError(f"{self.rules.name} has continuous actions; see `gaussian`")
        if self.is_value_based:
            best = np.zeros(mask.shape, np.float32)
            best[np.arange(len(best)), self.act(obs, mask)] = 1.0
            return best
        probs: Floats = np.exp(log_softmax(self.heads(obs)[POLICY], mask))
        return probs

    def gaussian(self, obs: Bytes) -> tuple[Floats, Floats]:
        """Return mean and std of continuous actions [B, box], not squashed."""
        if not self.rules.box:
            raise ConfigError(f"{self.rules.name} has discrete actions; see `probabilities`")
        return mean_and_std(self.heads(obs)[POLICY])

    def value(self, obs: Bytes, mask: Bytes | None = None, memory: Bytes | None = None) -> Floats:
        """Return the expected return of each row's seat, in units of the rewards [B].

        For a value-based policy that is the value of its best action.
        mask: used by value-based policies alone; left out, every action is legal.
        memory: see `decide`.
        """
        if VALUE not in self.net.heads:
            raise ConfigError(f"{self.name} has no value head; it chooses actions alone")
        if not self.has_values:
            raise ConfigError(f"{self.name} has no values: its value head was never trained")
        obs = self.rows(obs, memory)
        found = self.evaluate(obs)
        if self.is_value_based:
            return self.best_value(found, self._check_mask(obs, mask))
        assert found.values is not None
        return found.values

    def best_value(self, found: Evaluation, mask: Bytes) -> Floats:
        """Return the value of each row's best legal action, in units of the rewards [B].

        For a value-based policy, whose head holds action values, or advantages.
        """
        legal, actions = mask != 0, found.heads[POLICY]
        best: Floats = np.where(legal, actions, -np.float32(np.inf)).max(-1)
        if self.meta.get(DUELING, False):
            mean = (actions * legal).sum(-1) / legal.sum(-1).clip(1)
            best = found.heads[VALUE] + best - mean.astype(np.float32)
        return best * np.float32(float(self.net.value_scale))

    @property
    def has_values(self) -> bool:
        """Whether its value head is there and was trained."""
        return VALUE in self.net.heads and bool(self.meta.get(VALUES, True))

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act in a single game: a number, or an array of them.

        For a policy with memory use `StatefulPlayer`.
        """
        self.check_fits(state.rules)
        self.check_no_memory()
        obs, mask = state.decision(row)
        options: dict[str, Any] = {"seed": seed, "step": step, "roots": roots_in(state, row)}
        (action,), _ = self.decide(obs, mask, greedy=greedy, **options)
        return action if self.rules.box else int(action)

    def check_no_memory(self) -> None:
        """Raise if the policy has memory, which a state does not contain."""
        if self.memory_bytes:
            raise ConfigError(
                f"{self.name} has {self.memory_bytes} bytes of memory per seat, which a state "
                "does not contain; use `StatefulPlayer(policy)`, which keeps them during a game"
            )

    def check_fits(self, rules: Rules) -> None:
        """Raise if observation or actions of a game differ from those of the training."""
        trained = self.rules
        if rules is trained or (
            rules.name == trained.name
            and (rules.actions, rules.box) == (trained.actions, trained.box)
            and rules.features == trained.features
        ):
            return
        if rules.name != trained.name:
            raise ConfigError(f"{self.name} plays {trained.name}, not {rules.name}")
        before, now = trained.config, rules.config
        flags = " ".join(f"{key}={before[key]}" for key in before if before[key] != now[key])
        raise ConfigError(
            f"{self.name} was trained with {flags} ({describe_sizes(trained)}); this game has "
            f"{describe_sizes(rules)}; set those flags"
        )

    def heads(self, obs: Bytes) -> dict[str, Floats]:
        """Return the network's outputs for rows, by head."""
        return self.evaluate(obs).heads

    def evaluate(self, obs: Bytes) -> Evaluation:
        """Return what the network says about rows: heads, values, the next memory."""
        self._check_rows(obs)
        return self.net.evaluate(obs)

    def belief(self, obs: Bytes, *, temperature: float = 1.0) -> Floats | None:
        """Return log-probabilities of what is hidden from each row's seat [B, items * classes].

        `State.resample_hidden` and `draw_worlds` take them. None: the network has no `hidden` head.
        temperature: divides the logits; above 1 the belief is less certain than the head.
        """
        if HIDDEN not in self.net.heads:
            return None
        return log_belief(self.rules, self.heads(obs)[HIDDEN] / temperature)

    def next_memory(self, obs: Bytes, found: Evaluation) -> Bytes:
        """Return the next memory of rows [B, memory_bytes]. found: `evaluate` of these rows."""
        if found.memory is None:  # the network leaves the memory as it is
            return obs[:, self.net.inputs.row_bytes - self.memory_bytes :]
        return np.ascontiguousarray(found.memory).view(np.uint8).reshape(len(obs), -1)

    def _check_rows(self, obs: Bytes) -> None:
        row_bytes = self.net.inputs.row_bytes
        if obs.ndim == 2 and obs.shape[1] == row_bytes and obs.dtype == np.uint8:
            return
        if self.memory_bytes and obs.ndim == 2 and obs.shape[1] == self.rules.obs_bytes:
            raise ConfigError(
                f"{self.name} has {self.memory_bytes} bytes of memory per seat, which do not "
                "follow the observation in these rows; call `decide(obs, mask, memory)` with the "
                "memory that it returned, or `initial_memory(rows)` at the start of a game"
            )
        raise ConfigError(
            f"observations are {obs.dtype} {obs.shape}; {self.name} needs uint8 (rows, {row_bytes})"
        )

    def _check_mask(self, obs: Bytes, mask: Bytes | None) -> Bytes:
        """Return the mask, ones if there is none; raise if rows or mask do not fit."""
        self._check_rows(obs)  # first: for a single row the message would be about its mask
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
                "choose one; leave out rows without a seat to act"
            )
        return np.ascontiguousarray(mask)


def as_budget(given: Budget | str | int) -> Budget:
    return given if isinstance(given, Budget) else Budget.parse(str(given))


def is_state(obs: Any) -> bool:
    """Whether this is a state of a game, or a list of them."""
    is_list = isinstance(obs, list | tuple) and len(obs) > 0
    return isinstance(obs[0] if is_list else obs, State)


def act_in(policy: Policy, given: State | Sequence[State], **options: Any) -> Any:
    """Return the action of a state for `State.apply`, or an array of actions of several.

    All states share one forward pass. options: see `Policy.act`.
    """
    states = [given] if isinstance(given, State) else list(given)
    indices, obs, mask = [], [], []
    for number, state in enumerate(states):
        check_state(policy, state, number if len(states) > 1 else None)
        for row in range(policy.rules.rows):
            if state.native.seat(row) >= 0:
                row_obs, row_mask = state.decision(row)
                indices.append((number, row))
                obs.append(row_obs)
                mask.append(row_mask)
    roots = [root for number, row in indices for root in roots_in(states[number], row)]
    by_row, _ = policy.decide(np.concatenate(obs), np.concatenate(mask), roots=roots, **options)
    actions = np.zeros((len(states), policy.rules.rows, *by_row.shape[1:]), by_row.dtype)
    for (number, row), action in zip(indices, by_row, strict=True):
        actions[number, row] = action
    if policy.rules.rows == 1:
        actions = actions[:, 0]
    if not isinstance(given, State):
        return actions
    return int(actions[0]) if actions.ndim == 1 else actions[0]


def check_state(policy: Policy, state: Any, number: int | None) -> None:
    """Raise for what is no state, a state of another game, a finished game or lost memory."""
    which = "the state" if number is None else f"state {number}"
    if not isinstance(state, State):
        raise ConfigError(f"{which} is {type(state).__name__}; give states alone, or rows alone")
    policy.check_fits(state.rules)
    policy.check_no_memory()
    if state.over:
        raise ConfigError(f"{which}: the game of {state.rules.name} is over, no seat is to act")


def describe_sizes(rules: Rules) -> str:
    kind = f"{rules.box} numbers per action" if rules.box else f"{rules.actions} actions"
    return f"{len(rules.features)} features, {kind}"
