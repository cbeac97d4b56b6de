"""A toy learner, REINFORCE with returns to go: named as learn.reinforce:make, nothing else needed.

It has a policy without a value, learns from each rollout once, and reads the same links as PPO.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from sparring.config import CollectConfig
from sparring.games.rules import Rules
from sparring.learn.collect import Collector, Sampling
from sparring.learn.forward import Forward
from sparring.learn.learner import Learner, Report, Snapshot
from sparring.learn.plan import Plan
from sparring.learn.transitions import NOT_A_SAMPLE, TO_NEXT
from sparring.nets.distribution import evaluate_actions
from sparring.nets.heads import POLICY, head_width
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.phases import Timing


def make(plan: Plan) -> Learner:
    """What `--algo learn.reinforce:make` calls."""
    return Reinforce(plan)


class Reinforce:
    """Raises the probability of what paid more than the mean."""

    def __init__(self, plan: Plan) -> None:
        torch.manual_seed(plan.seed)
        self.lr = float(plan.options.get("lr", 1e-3))
        heads = {POLICY: head_width(plan.rules)}
        self.net = make_net(plan.rules, plan.net, heads=heads, threads=plan.threads)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.lr)
        self.phases, self.updates, self.samples = Timing(), 0, 0
        forward = Forward(self.net, torch.device("cpu"), CollectConfig())
        actor = Sampling(forward, plan.seed)
        self.collector = Collector(plan.host_pool(), plan.collect, actor, (), self.phases)

    @property
    def rules(self) -> Rules:
        """The game."""
        return self.collector.pool.rules

    @property
    def exact(self) -> bool:
        """Whether a resumed run repeats."""
        return self.collector.exact

    def iterate(self, progress: float) -> list[Report]:
        """Play, then one step up the gradient of what was earned."""
        collector = self.collector
        stats = collector.collect(self.updates)
        samples = collector.link(gamma=1.0)
        gain = self._returns()[samples]
        gain = torch.from_numpy((gain - gain.mean()) / (gain.std() + 1e-8))
        with self.phases("update"):
            rows = {
                name: torch.from_numpy(a[samples]) for name, a in collector.rollout.rows().items()
            }
            log_prob, _ = evaluate_actions(
                self.net(rows["obs"])[POLICY], rows["mask"], rows["action"]
            )
            loss = -(log_prob * gain).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        collector.keep_pending()
        self.updates, self.samples = self.updates + 1, self.samples + len(samples)
        stats["losses/policy_loss"] = float(loss.detach())
        return [Report(stats, collector.decisions, self.samples, collector.opponent_rows)]

    def _returns(self) -> npt.NDArray[np.float32]:
        """What was paid from each decision on, as far as this rollout knows; last place first."""
        links = self.collector.transitions
        returns = links.paid.copy()
        for place in links.samples()[::-1]:
            following = links.next[place]
            if links.end[place] == TO_NEXT and links.end[following] != NOT_A_SAMPLE:
                returns[place] += links.discount[place] * returns[following]
        return returns

    def snapshot(self, member: int = 0) -> Snapshot:
        """Weights, games and open decisions; plain SGD has no memory."""
        rows, blobs = self.collector.state()
        net = {name: value.detach().clone() for name, value in self.net.state_dict().items()}
        counts = {"decisions": self.collector.decisions, "samples": self.samples}
        counts["opponent_rows"] = self.collector.opponent_rows
        meta = {"update": self.updates, **counts, **self.net.describe()}
        return Snapshot({"net": net, "carried": rows}, blobs, meta)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Go on from a snapshot."""
        self.net.load_state_dict(snapshot.tensors["net"])
        self.collector.load_state(snapshot.tensors["carried"], snapshot.blobs, snapshot.meta)
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]

    def policy(self, member: int = 0) -> Policy:
        """What plays."""
        return Policy(self.rules, self.net.cpu_copy(), name=f"update {self.updates}")
