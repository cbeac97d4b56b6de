"""MaskablePPO and sparring as contestants.

Each contestant has a net, a pool, `iterate` (a rollout and its update) and `lengths`.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from peers.entries import BOT, DECISIONS, GAME, SEATS, Entry, Settings
from sparring import LEARNER, Lineup, Pool, Rules
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.ppo import PPO
from sparring.schedule import Schedule


class Maskable:
    """sb3-contrib's MaskablePPO through SparringVecEnv."""

    def __init__(self, entry: Entry, settings: Settings) -> None:
        from sb3_contrib import MaskablePPO

        from sparring.envs.sb3 import SparringVecEnv

        env = SparringVecEnv(
            GAME, entry.games, opponents=BOT, seed=settings.seed, threads=settings.threads
        )
        widths = list(settings.hidden)
        self.model = MaskablePPO(
            "MlpPolicy",
            env,
            n_steps=settings.rollout // entry.games,
            batch_size=settings.minibatch,
            n_epochs=settings.epochs,
            learning_rate=settings.lr,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            clip_range=settings.clip,
            ent_coef=settings.entropy,
            vf_coef=settings.value_weight,
            max_grad_norm=settings.max_grad_norm,
            policy_kwargs={"net_arch": {"pi": widths, "vf": widths}, "activation_fn": nn.Tanh},
            seed=settings.seed,
            device="cpu",
        )
        self.rollout, self.net = settings.rollout, self.model.policy
        self.pool, self.whole_game = env._seats._pools[0], DECISIONS // SEATS

    def iterate(self) -> dict[str, int]:
        """One iteration of learn(), with all that it does around the update."""
        self.model.learn(self.rollout, reset_num_timesteps=False)
        return {"samples": self.rollout, "decisions": self.rollout}

    def lengths(self) -> list[int]:
        """The learner's decisions in the last games that ended."""
        return [int(episode["l"]) for episode in self.model.ep_info_buffer]


class Ours:
    """sparring's PPO on a pool; `ceiling` gives it games that cost nothing."""

    def __init__(self, entry: Entry, settings: Settings) -> None:
        rules = Rules(GAME, {"skip_forced": int(entry.skip_forced)})
        lineup = Lineup((LEARNER, *[BOT] * (SEATS - 1)))
        self.threads, self.whole_game = settings.threads, DECISIONS
        self.ended: list[float] = []
        self.pool = Pool(
            rules, entry.games, seed=settings.seed, threads=self.threads, lineups=[lineup]
        )
        net = NetConfig(
            hidden=settings.hidden, shared=entry.shared, activation="tanh", sparse=entry.sparse
        )
        names = ("lr", "gamma", "gae_lambda", "clip", "value_weight", "entropy", "max_grad_norm")
        schedules = {name: Schedule.constant(getattr(settings, name)) for name in names}
        config = PPOConfig(
            epochs=settings.epochs,
            minibatch=settings.minibatch,
            target_kl=Schedule.constant(0.0),
            **schedules,
        )
        steps = settings.rollout // entry.games
        collect = CollectConfig(games=entry.games, steps=steps, **settings.ours)
        self.ppo = PPO(self.pool, collect, config, net, seed=settings.seed, threads=self.threads)
        self.net = self.ppo.net

    def iterate(self) -> dict[str, int]:
        """Collect and update; forced decisions of the learner's seat count as decisions."""
        stats = self.ppo.iterate(0.0)[0].stats
        games = int(stats["charts/games"])
        self.ended += [stats["charts/length"]] * games if games else []
        rollout = self.ppo.collector.rollout
        own = rollout.seat[..., None].astype(np.intp)
        forced = int(np.take_along_axis(rollout.skipped, own, axis=2).sum())
        samples = int(stats["learning/samples"])
        return {"samples": samples, "decisions": samples + forced}

    def ceiling(self) -> dict[str, int]:
        """The same on the rows of the last rollout, without games."""
        return {"samples": int(self.ppo.dry_run()[0].stats["learning/samples"])}

    def lengths(self) -> list[float]:
        """All seats' decisions in the games that ended, as the mean of each rollout."""
        return self.ended
