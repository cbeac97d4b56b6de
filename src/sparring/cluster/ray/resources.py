"""CPUs and GPUs that tasks and actors ask of a Ray cluster, and the line about a wait for them.

To Ray GPUs are numbers: from a process with some it hides the others by CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.errors import ConfigError

CPU, GPU = "CPU", "GPU"
WAIT_LINE_S, WAIT_LINE_AGAIN_S = 10.0, 300.0
"""Seconds without a place before the first line about it, and until the next one."""
MAX_SHOWN = 4
"""Kinds of machines that an error lists."""
Machines = Sequence[Mapping[str, float]]
"""CPUs, GPUs and other resources of every machine."""


@dataclass(frozen=True)
class ResourceRequest:
    """CPUs and GPUs of one task or actor, which has them on one machine."""

    cpus: int
    gpus: float = 0.0

    @property
    def options(self) -> dict[str, float]:
        """Options of Ray."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus}

    @property
    def amounts(self) -> dict[str, float]:
        return {name: n for name, n in ((CPU, self.cpus), (GPU, self.gpus)) if n}

    def __str__(self) -> str:
        return show(self.amounts)

    def count_on(self, machine: Mapping[str, float]) -> int:
        """How many fit on a machine at the same time."""
        return min(int(machine.get(name, 0) / n + 1e-6) for name, n in self.amounts.items())

    def count(self, machines: Machines) -> int:
        """How many fit into the cluster at the same time."""
        return sum(map(self.count_on, machines))


def show(amounts: Mapping[str, float]) -> str:
    """Show resources in words: 2 CPUs and 0.5 GPU."""
    return " and ".join(f"{n:g} {name}{'s' * (n > 1)}" for name, n in amounts.items())


def check_fits(machines: Machines, request: ResourceRequest, typed: str) -> None:
    """Refuse what no machine has, even if it is idle: Ray would wait for it forever."""
    if request.count(machines):
        return
    kinds = list(dict.fromkeys(show_machine(machine) for machine in machines))
    more = f" and {len(kinds) - MAX_SHOWN} other kinds" if len(kinds) > MAX_SHOWN else ""
    there = f"{'; '.join(kinds[:MAX_SHOWN])}{more}" if kinds else "nothing"
    raise ConfigError(
        f"{typed} needs {request} on one machine, and the cluster's have {there}; ask for less, or "
        "join a machine that has them with ray start --address"
    )


def show_machine(machine: Mapping[str, float]) -> str:
    return show({name: machine[name] for name in (CPU, GPU) if machine.get(name)}) or "no CPU"


def waiting_line(
    total: Mapping[str, float], free: Mapping[str, float], request: ResourceRequest, who: str
) -> str:
    """Say what something waits for, and who has it. who: such as `actor 1`."""
    there = []
    for name, amount in request.amounts.items():
        all_, left = total.get(name, 0.0), free.get(name, 0.0)
        state = f"{all_ - left:g} in use"
        if left >= amount:
            state += ", the free ones on several machines or already promised"
        there.append(f"{show({name: all_})}, {state}")
    return f"{who}: waiting for {request}: the cluster has {' and '.join(there)}"


class WaitLine:
    """When to say that something waits: after some seconds, and again after minutes."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._next = 0.0

    def due(self, waiting: bool) -> bool:
        """Whether to say it now. waiting: whether there is something to say."""
        now = time.monotonic()
        if not waiting:
            self._since = None
            return False
        if self._since is None:
            self._since, self._next = now, now + WAIT_LINE_S
        if now < self._next:
            return False
        self._next = now + WAIT_LINE_AGAIN_S
        return True

    def postpone(self) -> None:
        """Say nothing this time, and look again soon."""
        self._next = time.monotonic() + WAIT_LINE_S

    @property
    def waited_s(self) -> float:
        """Seconds since the waiting began, 0 if there is none."""
        return 0.0 if self._since is None else time.monotonic() - self._since


def is_placed(ray: Any, actor: Any) -> bool:
    """Whether Ray has a process for an actor; one without it waits for CPUs or GPUs.

    Ray has no public function for that without its dashboard. Where this one is missing, everything
    counts as placed and is late after `distributed.timeout_s`.
    """
    try:
        known = ray._private.state.actors(actor._actor_id.hex())
        return known.get("State") != "PENDING_CREATION" or bool(known["Address"]["Port"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return True


def is_wanting(ray: Any, request: ResourceRequest) -> bool:
    """Whether something in the cluster waits for such resources; if not, a process still starts.

    That is what Ray tells its autoscaler; where it cannot be asked, yes.
    """
    try:
        from ray import _raylet  # not public
        from ray.core.generated import autoscaler_pb2

        internals: Any = _raylet
        client = internals.GcsClient(address=ray.get_runtime_context().gcs_address)
        reply = autoscaler_pb2.GetClusterResourceStateReply()
        reply.ParseFromString(client.get_cluster_resource_state())
        unmet = reply.cluster_resource_state.pending_resource_requests
        return any(dict(one.request.resources_bundle) == request.amounts for one in unmet)
    except (ImportError, AttributeError, RuntimeError, OSError):
        return True


def names(what: str, numbers: Iterable[int]) -> str:
    """Name things in words: `actor 1`, `actors 0, 2 and 5`."""
    *first, last = map(str, numbers)
    return f"{what}s {', '.join(first)} and {last}" if first else f"{what} {last}"
