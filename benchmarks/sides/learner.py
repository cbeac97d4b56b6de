"""A side's process: makes one learner from the sparring of a given source tree, and times it.

python benchmarks/sides/learner.py TREE      requests and answers are JSON objects, one per line

It imports nothing of this folder: everything but these lines comes from the tree, so that another
checkout is measured as it is. Trees without `sparring.speed` or, before it, `sparring.measuring`
are too old.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SIDE = "side"


def use_tree(tree: Path) -> None:
    """Let `import sparring` mean that tree, whatever is installed.

    One without a compiled extension in it can only be the one that is installed from there.
    """
    if any(tree.glob("sparring/_native*.so")):
        sys.path[0] = str(tree)
        sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
    import sparring

    found = Path(sparring.__file__).resolve().parents[1]
    if found != tree.resolve():
        raise SystemExit(
            f"{tree} holds no sparring with a compiled extension; {found} was found instead"
        )


HOMES = {
    "opened": ("speed.process", "measuring.process"),
    "timed": ("speed.process", "measuring.process"),
    "steady": ("speed.rounds", "measuring.steady"),
    "work_of": ("training.utilization.work", "training.meter.work", "meter.work"),
    "density_of": ("training.utilization.peaks", "training.meter.ceilings", "meter.stepping"),
    "ComputeDevice": ("training.utilization.peaks", "training.meter.ceilings", "meter.ceilings"),
    "torch_threads": ("training.utilization.peaks", "training.meter.ceilings", "meter.ceilings"),
    "matmul_rate": ("training.utilization.peaks", "training.meter.ceilings", "meter.ceilings"),
}
"""Modules that define a name: in the current tree first, then in older trees."""
OLD_NAMES = {"ComputeDevice": "Place", "torch_threads": "on_threads", "matmul_rate": "products"}
"""Names in older trees."""


def of_tree(name: str) -> Any:
    """Return the object that the tree has under a name."""
    for home in HOMES[name]:
        package, _, module = home.rpartition(".")
        if find_spec(f"sparring.{package}") and find_spec(f"sparring.{package}.{module}"):
            found = import_module(f"sparring.{home}")
            return getattr(found, name if hasattr(found, name) else OLD_NAMES[name])
    raise ImportError(f"the tree has no {name}")


class Side:
    """A learner, what it has to compute, and what this machine computes at best."""

    def __init__(self, request: dict[str, Any]) -> None:
        from sparring.machine import git_commit
        from sparring.training.planning.settings import written
        from sparring.training.train import complete

        changes = {**request["settings"], "threads": request["threads"], "device": "cpu"}
        config = of_tree("steady")(complete(request["game"], request["file"], changes))
        self.held: dict[str, Any] = {}
        asked = {"name": SIDE, "config": written(config), "warm_up": request["warm_up"]}
        of_tree("opened")(self.held, asked)
        plan, learner = self.held[SIDE].plan, self.held[SIDE].learner
        self.device = of_tree("ComputeDevice")("cpu", plan.threads)
        net, work_of = learner.policy().net, of_tree("work_of")
        density = density_in(plan) if plan.custom is None else 1.0
        self.work = work_of(plan, config.algo, net, density)
        self.dense = work_of(plan, config.algo, net, 1.0)
        assert self.work and self.dense
        self.facts = {
            "commit": git_commit(),
            "games": plan.collect.games,
            "steps": plan.collect.steps,
            "parameters": sum(one.numel() for one in net.parameters()),
            "density": density,
        }

    def time(self, seconds: float) -> dict[str, Any]:
        """Play and learn for a while; return rates, and products per second of the update."""
        asked = {"name": SIDE, "seconds": seconds, "least": 1}
        rounds = of_tree("timed")(self.held, asked)["rounds"]
        took = sum(one["seconds"] for one in rounds)
        update = sum(one["phases"].get("update", 0.0) for one in rounds)
        return {
            "seconds": took,
            "samples_per_s": sum(one["samples"] for one in rounds) / took,
            "decisions_per_s": sum(one["decisions"] for one in rounds) / took,
            "update_share": update / took,
            "cores": sum(one["cpu_s"] for one in rounds) / took,
            "gflops": self.gflops(rounds, self.work, update),
            "gflops_dense": self.gflops(rounds, self.dense, update),
            **{f"matmul_{name}": self.matmul(name) for name in ("float32", "bf16")},
        }

    def gflops(self, rounds: list[dict[str, Any]], work: Any, update_s: float) -> float | None:
        """Of the update alone; None where several roles share it, or nothing is timed."""
        macs = work.update if hasattr(work, "update") else work.learned  # older trees
        if len(macs) > 1 or update_s <= 0:
            return None
        (role,) = macs
        count = work.trained_samples if hasattr(work, "update") else work.passes_made
        trained = sum(count(role, one["samples"], one["optimizer_steps"]) for one in rounds)
        return float(2e-9 * trained * macs[role] / update_s)

    def matmul(self, precision: str, seconds: float = 0.3) -> float:
        """What `a @ b` reaches here and now, in GFLOP/s."""
        import torch

        with of_tree("torch_threads")(self.device), torch.no_grad():
            return float(2e-9 * of_tree("matmul_rate")(self.device, precision, seconds))


def density_in(plan: Any) -> float:
    """Share of what is observed that is not 0, the same on every machine and in every run."""
    from sparring.pools.native import Pool

    density_of = of_tree("density_of")
    pool = Pool(plan.rules, 256, lineups=plan.participants.lineups, mixes=plan.participants.mixes)
    pool.reset()
    found = []
    for _ in range(16):
        pool.run_random(16)
        found.append(density_of(plan.rules.widen(pool.batch().obs)))
    return sum(found) / len(found)


def main() -> None:
    """Make the learner that the first line asks for, then time it for as long as each line says."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    use_tree(Path(sys.argv[1]))
    warnings.simplefilter("ignore")
    from sparring.errors import SparringError

    def tell(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        side = Side(json.loads(sys.stdin.readline()))
        tell(side.facts)
        for line in sys.stdin:
            tell(side.time(float(line)))
    except (SparringError, ImportError) as wrong:  # such as a tree without its extension
        tell({"refused": str(wrong)})


if __name__ == "__main__":
    main()
