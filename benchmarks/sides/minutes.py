"""One training of minutes.py: trains, keeps checkpoints at fixed times, then measures them.

Ours is `sparring train` as it is, with the preset of the game. Peers learn through our adapter
from one seat, against the bot that they are measured by: they have no self-play.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import sparring
from sides.answers import answer
from sides.quality import DEALS, Maskable
from sparring import Rules
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.league.arena import evaluate, whole_rounds
from sparring.league.seating import load_player
from sparring.learn.plan import Plan
from sparring.nets.policy import Policy
from sparring.proof.exploitability import EXACT_GAMES, Tree, exploitability
from sparring.schedule import Moment
from sparring.training.callbacks import CallbackRun
from sparring.training.planning.plan import resolve
from sparring.training.train import complete

CHAMPION = "champion"
OURS, MASKABLE, SAC = "sparring", "maskable_ppo", "sac"
GAMES = 8
"""That SAC and DQN of SB3 play at once."""
CHUNK = 128
"""Decisions of theirs between two looks at the clock."""
EXPLORING, EPSILON = 0.1, 0.05
"""SB3's defaults of DQN: the share of the training with more than the last epsilon, and that."""
Kept = tuple[float, int, Policy]
"""Seconds of training, decisions, and the policy then."""


class OffPolicy:
    """SAC or DQN of Stable-Baselines3 with its defaults, and our discount.

    With eight games at once, it makes as many gradient steps per decision as with one.
    """

    def __init__(self, kind: str, config: TrainConfig, plan: Plan) -> None:
        import stable_baselines3

        from sparring.envs.sb3 import SparringVecEnv

        env = SparringVecEnv(
            plan.rules,
            GAMES,
            opponents=config.opponents[0].partition("=")[0] if plan.rules.seats > 1 else None,
            seed=config.seed,
            threads=plan.threads,
            illegal="error" if plan.rules.box else "random",
        )
        gamma = float(config.ppo.gamma.at(Moment(0, 0.0)))
        options: dict[str, Any] = {"gamma": gamma, "seed": config.seed, "device": "cpu"}
        self.progress = 0.0
        if kind == SAC:
            self.model: Any = stable_baselines3.SAC("MlpPolicy", env, gradient_steps=-1, **options)
        else:
            self.model = stable_baselines3.DQN("MlpPolicy", env, gradient_steps=GAMES, **options)
            self.model.exploration_schedule = self._epsilon

    def _epsilon(self, _: float) -> float:
        """Its schedule by time: how many decisions there will be is not known."""
        return max(1 - (1 - EPSILON) * self.progress / EXPLORING, EPSILON)

    def iterate(self, progress: float) -> int:
        """Play and learn for some decisions."""
        self.progress = progress
        self.model.learn(CHUNK, reset_num_timesteps=False)
        return CHUNK


def settings_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of `sparring.train` for ours; peers read their settings from the same preset."""
    changes = {name: request[name] for name in ("seed", "threads", "minutes")}
    return {**changes, **request["settings"], "device": request["device"]}


def train_ours(request: Mapping[str, Any], folder: Path) -> list[Kept]:
    """Train as `sparring train` does, without its evaluations."""
    kept, every = list[Kept](), 60 * request["minutes"] / request["points"]

    def look(run: CallbackRun) -> None:
        status = run.status
        if status.seconds >= next_moment(kept, every):
            kept.append((status.seconds, status.decisions, run.policy()))

    settings = settings_of(request) | {"eval": {"off": True}, "tensorboard": False, "quiet": True}
    agent = sparring.train(request["game"], runs=str(folder), on_update=look, **settings)
    if not kept or kept[-1][1] < agent.decisions:
        kept.append((60 * agent.minutes, agent.decisions, agent.policy))
    return kept


def train_peer(request: Mapping[str, Any], folder: Path) -> list[Kept]:
    """Train with Stable-Baselines3; the clock stands still while a model is saved."""
    config, total_s = peer_config(request), 60 * request["minutes"]
    plan = resolve([config])
    kind = request["kind"]
    peer = Maskable(config, plan) if kind == MASKABLE else OffPolicy(kind, config, plan)
    kept, every = list[Kept](), total_s / request["points"]
    seconds, decisions = 0.0, 0
    while seconds < total_s:
        started = time.perf_counter()
        decisions += peer.iterate(seconds / total_s)
        seconds += time.perf_counter() - started
        if seconds >= min(next_moment(kept, every), total_s):
            file = folder / f"{len(kept)}.zip"
            peer.model.save(file, exclude=["exploration_schedule", "lr_schedule"])
            kept.append((seconds, decisions, sparring.load(file, game=plan.rules)))
    return kept


def next_moment(kept: list[Kept], every: float) -> float:
    """Return the next multiple of `every` seconds after the last checkpoint."""
    return every * (int(kept[-1][0] / every) + 1) if kept else every


def peer_config(request: Mapping[str, Any]) -> TrainConfig:
    """Return the preset, played against the best bot on the CPU."""
    changes = {"seed": request["seed"], "threads": request["threads"], "device": "cpu"}
    rules = Rules(request["game"])
    against = {"opponents": [f"{rules.bots[-1]}=1"]} if rules.seats > 1 else {}
    return complete(request["game"], "", {**changes, **against})


def champion_of(rules: Rules) -> str:
    """Return the agent that comes along, "" if this version has none for the game."""
    try:
        load_player(CHAMPION, rules)
    except ConfigError:
        return ""
    return CHAMPION


class Measure:
    """How strong policies of one game are: exactly, or by the same games for all of them."""

    def __init__(self, rules: Rules, request: Mapping[str, Any]) -> None:
        self.rules, self.threads = rules, request["threads"]
        self.games = whole_rounds(rules, request["match_games"])
        self.tree = Tree(rules) if rules.name in EXACT_GAMES else None
        alone = self.tree is not None or rules.seats == 1
        self.champion = "" if alone else champion_of(rules)

    def of(self, policy: Policy) -> dict[str, float]:
        """Return the exploitability, the score, or the share of the points against each."""
        policy = policy.to("cpu")
        if self.tree is not None:
            return {"value": exploitability(self.tree, policy).exploitability}
        bots = self.rules.bots[-1:] if self.rules.seats > 1 else ()
        against = [*bots, *filter(None, [self.champion])]
        options: dict[str, Any] = {"games": self.games, "seed": DEALS, "threads": self.threads}
        found = list(evaluate(policy, against, rules=self.rules, greedy=True, **options).values())
        if self.rules.seats == 1:
            return {"value": found[0].first.score}
        shares = [one.first.win_share for one in found]
        return dict(zip(("value", CHAMPION), shares, strict=False))


def train(request: dict[str, Any]) -> dict[str, Any]:
    """Train for so long, then measure what was kept."""
    torch.set_num_threads(request["threads"])
    with tempfile.TemporaryDirectory() as folder:
        by_us = request["kind"] == OURS
        kept = (train_ours if by_us else train_peer)(request, Path(folder))
        measure = Measure(kept[-1][2].rules, request)
        curve = [
            {"seconds": seconds, "decisions": decisions, **measure.of(policy)}
            for seconds, decisions, policy in kept
        ]
    end = curve[-1]
    name = f"{request['game']}, {request['kind']}, seed {request['seed']}"
    print(f"{name}: {end['value']:.3f} after {end['seconds']:.0f} s", file=sys.stderr, flush=True)
    return {"curve": curve, "champion": measure.champion}


if __name__ == "__main__":
    answer(train)
