"""Acts by search: the actor of Gumbel AlphaZero.

A search is a tree, or, where seats hide something from each other, playouts in worlds and one step
of mirror descent; the worlds are drawn by the `hidden` head if the network has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.config import GumbelConfig, HeadsConfig
from sparring.games.rules import Rules
from sparring.games.seeds import derive_seed
from sparring.learn.acting import ActorOutput, Bytes, RngKeys
from sparring.learn.forward import Forward
from sparring.learn.transforms import IMPROVED
from sparring.nets.heads import HIDDEN, POLICY, VALUE, log_belief, takes_belief
from sparring.nets.sampling import ActionSampler, to_floats
from sparring.phases import Timing
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool
from sparring.search.budget import Budget
from sparring.search.search import Search, SearchConfig
from sparring.search.worlds import WorldsConfig, uses_worlds

FULL = "full"
"""Column: 1 after a full search, else 0."""
Floats = npt.NDArray[np.float32]


def search_settings(config: GumbelConfig) -> SearchConfig:
    """Return the settings of trees, and of worlds where cards are hidden."""
    worlds = WorldsConfig(
        considered=config.considered,
        least=config.least,
        horizon=config.horizon,
        caution=config.caution,
    )
    return SearchConfig(
        considered=config.considered,
        gamma=config.gamma,
        c_scale=config.c_scale,
        gamma_into=config.gamma_into,
        worlds=worlds,
    )


def belief_hint(rules: Rules, heads: HeadsConfig) -> str:
    """Return what to type where worlds are drawn without a belief, "" where nothing is missing."""
    if not uses_worlds(rules) or any(heads.hidden.values):
        return ""
    takes = rules.native.belief_size > 0
    lack = "no belief head" if takes else f"{rules.name} takes no belief"
    advice = "add --heads.hidden 1" if takes else "--algo ppo has no such bias"
    return (
        f"hint: {lack}, so searches take all hidden cards for equally likely, whatever the others "
        f"did, and the agent may be easy to exploit; {advice}"
    )


class Searching:
    """Acts for the learner: searches from every row of the pool, fully or with few simulations."""

    counted = ("learning/simulated", "learning/evaluations")

    def __init__(self, forward: Forward, pool: GamePool, seed: int, **options: Any) -> None:
        """options: first_row of the pool among all pools, threads."""
        self.forward, self.pool, self.seed = forward, pool, seed
        self.first_row, self.threads = options.get("first_row", 0), options.get("threads", 1)
        self.coin = ActionSampler(derive_seed(seed, 0xCAB))
        self.simulations = 1
        """Of a full search."""
        self.search: Search | None = None
        """None where processes of its own play the games: they search."""
        self._step = (0.0, 0.0, 1.0)
        """Eta, alpha and the unit of values, of searches over worlds."""
        self.phases = Timing()

    def configure(self, config: GumbelConfig) -> None:
        """Make the search, large enough for every simulation of the run."""
        self.config, rules = config, self.pool.rules
        if not isinstance(self.pool, Pool):
            return
        self.search = Search(
            rules,
            self.evaluate,
            Budget(max(round(max(config.simulations.values)), config.fast_simulations)),
            trees=self.pool.num_games * rules.rows,
            threads=self.threads,
            seed=self.seed,
            squash=self.forward.net.config.squash,
            noise=True,
            config=search_settings(config),
            phases=self.phases,
            believe=self.believe if takes_belief(rules, self.forward.net) else None,
        )

    def prepare(self, simulations: int, *, eta: float, alpha: float) -> None:
        """Take the simulations of full searches; eta and alpha are per unit of the values."""
        self._use(simulations, (eta, alpha, float(self.forward.net.value_scale)))

    def _use(self, simulations: int, step: tuple[float, float, float]) -> None:
        self.simulations, self._step = simulations, step
        if self.search and uses_worlds(self.pool.rules):
            (eta, alpha, unit), usual = step, self.search.config.worlds
            self.search.set_step(replace(usual, eta=eta, alpha=alpha, unit=unit))

    def settings(self) -> dict[str, npt.NDArray[Any]]:
        return {"simulations": np.array([self.simulations]), "step": np.array(self._step)}

    def adjust(self, settings: Mapping[str, npt.NDArray[Any]]) -> None:
        eta, alpha, unit = settings["step"].tolist()
        self._use(int(settings["simulations"][0]), (eta, alpha, unit))

    def pop_counts(self) -> tuple[int, int]:
        if self.search is None:
            return 0, 0
        counts = self.search.simulated, self.search.evaluated
        self.search.evaluated = self.search.simulated = 0
        return counts

    @torch.no_grad()
    def evaluate(self, obs: Bytes) -> tuple[Floats, Floats]:
        """Return policy head and value, in units of the rewards, of leaves."""
        heads = self.forward(torch.from_numpy(obs))
        logits, value = heads[POLICY].float().contiguous(), self.forward.net.unscaled_values(heads)
        return logits.cpu().numpy(), value.cpu().numpy()

    @torch.no_grad()
    def believe(self, obs: Bytes) -> Floats:
        """Return log-probabilities of what is hidden from rows."""
        logits = self.forward(torch.from_numpy(obs))[HIDDEN]
        return log_belief(self.pool.rules, to_floats(logits))

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        assert self.search and isinstance(self.pool, Pool), "played by other processes"
        full = self.is_full(keys)
        few = min(self.config.fast_simulations, self.simulations)
        simulations = np.where(full, self.simulations, few).astype(np.int32)
        found = self.search.from_pool(self.pool, keys.rows - self.first_row, simulations)
        columns = {VALUE: found.value, FULL: full, IMPROVED: found.policy}
        return ActorOutput(found.action, columns)

    def is_full(self, keys: RngKeys) -> npt.NDArray[np.bool_]:
        """Draw which rows are searched fully, by (seed, row, rollout, step): resume repeats it."""
        share = torch.tensor([1 - self.config.full_share, self.config.full_share])
        odds = share.log().expand(len(keys.rows), 2)
        drawn, _ = keys.draw(self.coin, odds, np.ones(odds.shape, np.uint8))
        full: npt.NDArray[np.bool_] = drawn == 1
        return full
