"""One training of time_to_quality.py: trains, measures on the way, reports.

The clock runs while a contestant plays and learns, and stands still while it is measured.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch

from sides.answers import answer
from sparring import Rules
from sparring.config import TrainConfig
from sparring.league.arena import play_match
from sparring.learn.plan import Plan
from sparring.nets.policy import Policy
from sparring.schedule import Moment
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.train import complete

DEALS = 20_240_229
"""The seed of the games that measure: the same deals for everybody, at every moment."""


class Ours:
    """The learner of `sparring train`."""

    def __init__(self, config: TrainConfig, plan: Plan) -> None:
        self.learner = make_learner(config, plan)

    def iterate(self, progress: float) -> int:
        """Play and learn once; returns the samples."""
        return int(self.learner.iterate(progress)[0].stats["learning/samples"])

    def player(self) -> Policy:
        """What is measured."""
        return self.learner.policy()


class Maskable:
    """sb3-contrib's MaskablePPO through our adapter, with the same settings as far as it has them.

    Learning rate and entropy follow our schedules. It has no trunk that actor and critic share, no
    unit of values, and no discount of its own into a role.
    """

    def __init__(self, config: TrainConfig, plan: Plan) -> None:
        from sb3_contrib import MaskablePPO

        from sparring.envs.sb3 import SparringVecEnv

        games, steps, self.ppo = config.collect.games, config.collect.steps, config.ppo
        opponent = config.opponents[0].partition("=")[0]
        env = SparringVecEnv(
            plan.rules,
            games,
            opponents=opponent if plan.rules.seats > 1 else None,
            seed=config.seed,
            threads=plan.threads,
        )
        self.rules, self.rollout, self.decisions = plan.rules, games * steps, 0
        widths = list(config.net.hidden)
        kinds = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "silu": torch.nn.SiLU}
        self.model = MaskablePPO(
            "MlpPolicy",
            env,
            n_steps=steps,
            batch_size=self.ppo.minibatch,
            n_epochs=self.ppo.epochs,
            gamma=self._now("gamma", 0.0),
            gae_lambda=self._now("gae_lambda", 0.0),
            clip_range=self._now("clip", 0.0),
            vf_coef=self._now("value_weight", 0.0),
            max_grad_norm=self._now("max_grad_norm", 0.0),
            target_kl=self._now("target_kl", 0.0) or None,
            policy_kwargs={
                "net_arch": {"pi": widths, "vf": widths},
                "activation_fn": kinds[config.net.activation],
            },
            seed=config.seed,
            device="cpu",
        )

    def _now(self, name: str, progress: float) -> float:
        """A setting's value now."""
        return float(getattr(self.ppo, name).at(Moment(self.decisions, progress)))

    def iterate(self, progress: float) -> int:
        """One iteration of learn(), with all that it does around the update."""
        lr = self._now("lr", progress)
        self.model.lr_schedule = lambda _: lr
        self.model.ent_coef = self._now("entropy", progress)
        self.model.learn(self.rollout, reset_num_timesteps=False)
        self.decisions += self.rollout
        return self.rollout

    def player(self) -> Any:
        """What is measured."""

        def maskable(obs: Any, mask: Any, _: Any) -> Any:
            seen = self.rules.widen(obs)
            return self.model.predict(seen, action_masks=mask, deterministic=True)[0]

        return maskable


KINDS: dict[str, Any] = {"maskable": Maskable, "preset": Ours, "same": Ours}
SAME_NETS = {"shared": False}
"""What makes our networks those of the peer."""


def config_of(request: dict[str, Any]) -> TrainConfig:
    """Return the settings of a contestant; ours has two trunks with the same networks."""
    changes = {"seed": request["seed"], "threads": request["threads"], "device": "cpu"}
    changes["opponents"] = [f"{request['opponent']}=1"]
    own = {} if request["kind"] == "maskable" else dict(request["settings"])
    if request["kind"] == "same":
        own["net"] = {**own.get("net", {}), **SAME_NETS}
    return complete(request["game"], "", {**changes, **own})


def measured(rules: Rules, player: Any, request: dict[str, Any]) -> dict[str, float]:
    """Win share against a table full of the opponent, every deal from every seat."""
    table = [player, *[request["opponent"]] * (rules.seats - 1)]
    found = play_match(
        rules, table, games=request["games"], seed=DEALS, threads=request["threads"], greedy=True
    )
    return {"win": found.first.win_share, "low": found.first.win_interval[0]}


def train(request: dict[str, Any]) -> dict[str, Any]:
    """Train for so long; measure at every moment that is asked for, and at the end."""
    config = config_of(request)
    torch.set_num_threads(request["threads"])
    plan = resolve([config])
    contestant = KINDS[request["kind"]](config, plan)
    curve: list[dict[str, float]] = []
    seconds, samples, moment = 0.0, 0, request["every"]
    while seconds < request["seconds"]:
        started = time.perf_counter()
        samples += contestant.iterate(seconds / request["seconds"])
        seconds += time.perf_counter() - started
        if seconds >= min(moment, request["seconds"]):
            moment = (seconds // request["every"] + 1) * request["every"]
            found = measured(plan.rules, contestant.player(), request)
            curve.append({"seconds": seconds, "samples": samples, **found})
            name = f"{request['kind']}, seed {request['seed']}"
            print(f"{name}: {found['win']:.3f} after {seconds:.0f} s", file=sys.stderr, flush=True)
    return {"samples_per_s": samples / seconds, "curve": curve}


if __name__ == "__main__":
    answer(train)
