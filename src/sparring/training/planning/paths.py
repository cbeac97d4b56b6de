"""Which path every network of a run is computed on, and what keeps it from a faster one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring.capabilities.refusals import feature_unsupported_reason, unsupported_reason
from sparring.config import HeadsConfig, NetConfig
from sparring.factories import is_factory
from sparring.learn.algos import LEARNERS
from sparring.learn.critic import critic_config
from sparring.learn.plan import CPU, ComputePath, Plan
from sparring.nets.critic_rows import CriticRows, rules_read
from sparring.nets.heads import AUXILIARY_HEADS, configured_heads, head_widths
from sparring.nets.inputs import Inputs
from sparring.nets.run.captured import CapturedNet
from sparring.nets.run.native import AUTO, BF16, FLOAT32, TORCH, resolve_cpu
from sparring.nets.run.trace import perceptron_config, trace_perceptron
from sparring.pools.custom.cache import pixels_of
from sparring.training.planning.algorithms import ROLLOUTS
from sparring.training.planning.custom import made_custom

NATIVE, KERNELS, CAPTURED, BY_TORCH = "native", "kernels", "captured graph", "torch"
BY_TORCH_SPEED = {FLOAT32: 0.56, BF16: 0.25}
"""PPO's perceptron by torch on a CPU, of native passes (docs/inside/native-layers.md)."""
CAPTURED_SPEED = {"mlp": 0.36, "residual": 0.66}
"""PPO's network in a captured graph on an H200, of kernels (docs/guides/gpu.md)."""
CAPTURED_MEMBERS, CAPTURED_MEMBERS_SPEED = 4, 0.23
"""The same of so many perceptrons side by side (docs/guides/gpu.md)."""


def paths_of(algo: str, plan: Plan, because: str) -> tuple[ComputePath, ...]:
    """Return the path of every network. because: why one on a GPU is not part of graphs there."""
    if algo not in LEARNERS:
        return ()
    nets = plan.role_nets or {"": plan.net}
    found = [replace(path_of(algo, plan, net, because), role=role) for role, net in nets.items()]
    return as_played(found)


def path_of(algo: str, plan: Plan, net: NetConfig, because: str) -> ComputePath:
    path = policy_path(algo, plan, net, because)
    if not net.full_critic:
        return path
    rows, critic = CriticRows(plan.rules), critic_config(net)
    widths = rows.used + len(plan.rules.features), *critic.hidden, 1
    network = f"{path.network}, critic {'-'.join(map(str, widths))}"
    own = policy_path(algo, replace(plan, heads=HeadsConfig()), critic, because)
    way = "" if own.name == path.name else f", critic by {own.name}"
    return replace(path, network=network, name=f"{path.name}{way}")


def policy_path(algo: str, plan: Plan, net: NetConfig, because: str) -> ComputePath:
    network, bf16 = shape_of(plan, net), plan.collect.bf16
    if plan.fused:
        return fused_path(algo, plan, net, network)
    if plan.device != CPU:
        name = f"{BY_TORCH} {BF16 if bf16 else FLOAT32}, step by step"
        return ComputePath(network, name, because)
    return host_path(algo, plan, net, network)


# On a CPU


def host_path(algo: str, plan: Plan, net: NetConfig, network: str) -> ComputePath:
    arithmetic = plan.collect.cpu
    if why := why_torch(algo, plan, net):
        rounded = arithmetic == BF16 and has_convolutions(plan, net)
        name = f"{BY_TORCH} {BF16 if rounded else FLOAT32}"
        return ComputePath(network, name, why, torch_speed(algo, net, arithmetic))
    name = f"{NATIVE} {arithmetic}"
    if getattr(plan.settings[0], "critic_norm", False):
        why = feature_unsupported_reason("native", "sac.critic_norm")
        return ComputePath(network, f"{name}, critics by torch", why)
    if algo in ("gumbel", "qrdqn", "redq", "td3") or (algo == "sac" and not plan.rules.box):
        return ComputePath(network, f"{name}, losses by torch")
    return ComputePath(network, name)


def torch_speed(algo: str, net: NetConfig, arithmetic: str) -> float | None:
    if algo != "ppo" or not net.perceptron or net.recurrent:
        return None
    return BY_TORCH_SPEED[resolve_cpu(AUTO) if arithmetic == TORCH else arithmetic]


def why_torch(algo: str, plan: Plan, net: NetConfig) -> str:
    """Say what keeps a network from being computed natively, "" if nothing does."""
    if plan.collect.cpu == TORCH:
        return "collect.cpu is torch"
    if getattr(plan.settings[0], "mode", "") == ROLLOUTS:
        return feature_unsupported_reason("native", "dqn.mode rollouts")
    if not is_factory(net.kind):
        return unsupported_reason("native", net)
    return unlike(
        trace_perceptron(made_custom(plan.rules, net, configured_heads(plan.rules, plan.heads)))
    )


def has_convolutions(plan: Plan, net: NetConfig) -> bool:
    """Whether most of a network's work is torch's convolutions."""
    return (
        net.kind == "residual"
        or net.reads_pixels
        or (is_factory(net.kind) and made_custom(plan.rules, net).has_convolutions)
    )


def as_played(paths: Sequence[ComputePath]) -> tuple[ComputePath, ...]:
    """Say of roles that learn natively that torch plays them, if it does with any other."""
    if not any(path.name.startswith(BY_TORCH) for path in paths):
        return tuple(paths)
    why = "another role's network has no native passes"
    return tuple(
        replace(path, name=f"{path.name}, played by {BY_TORCH}", because=why)
        if path.name.startswith(NATIVE) and not path.because
        else path
        for path in paths
    )


# On a GPU


def fused_path(algo: str, plan: Plan, net: NetConfig, network: str) -> ComputePath:
    why = why_captured(plan, net)
    name = f"{CAPTURED if why else KERNELS} {BF16 if plan.collect.bf16 else FLOAT32}"
    if algo in ("sac", "redq"):
        name = f"{name}, critics by captured graph"
    if plan.games_on == CPU:
        name, why = f"{name}, games on the CPU", why or "pool is cpu"
    return ComputePath(network, name, why, captured_speed(algo, plan, net) if why else None)


def why_captured(plan: Plan, net: NetConfig) -> str:
    if plan.heads.asked or not is_factory(net.kind):
        return unsupported_reason("kernels", net, heads=shown_heads(plan.heads), memory=plan.memory)
    ours = perceptron_config(made_custom(plan.rules, net), net)
    return unsupported_reason("kernels", ours) if isinstance(ours, NetConfig) else unlike(ours)


def shown_heads(heads: HeadsConfig) -> list[str]:
    return [f"heads.{name}" for name in AUXILIARY_HEADS if any(getattr(heads, name).values)]


def captured_speed(algo: str, plan: Plan, net: NetConfig) -> float | None:
    members = len(plan.seeds)
    if algo != "ppo" or net.recurrent or plan.games_on == CPU:
        return None
    if members == 1:
        return CAPTURED_SPEED.get(net.kind)
    many = net.kind == "mlp" and members >= CAPTURED_MEMBERS
    return CAPTURED_MEMBERS_SPEED if many else None


# Networks


def shape_of(plan: Plan, net: NetConfig) -> str:
    """Return what a network is; of a perceptron with all widths, from numbers to heads."""
    if is_factory(net.kind):
        module, _, name = net.kind.rpartition(":")
        return f"{Path(module).name}:{name}"
    if net.kind == "residual":
        return f"residual net of {several(net.blocks, 'block')} with {net.channels} channels"
    if net.kind == "attention":
        return f"attention net of {several(net.token_layers, 'layer')} with width {net.token_width}"
    if net.reads_pixels and (pixels := pixels_of(plan.rules)):
        frames = f", {net.frames} frames" if net.memory else ""
        shape = " x ".join(map(str, (*pixels.size, pixels.channels)))
        return f"{net.kind} net over {shape} pixels{frames}"
    state = net.recurrent
    inputs = Inputs(rules_read(plan.rules, net), 0 if state else plan.memory, net.inputs)
    numbers = len(inputs.features if inputs.used_features is None else inputs.used_features)
    cell = (net.memory_width,) if state else ()
    widths = (
        numbers,
        *net.hidden,
        *cell,
        sum(head_widths(plan.rules, plan.heads, plan.quantiles).values()),
    )
    return f"{'recurrent ' * state}perceptron {'-'.join(map(str, widths))}"


def several(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def unlike(found: Any) -> str:
    """Say why a module of somebody's own is no perceptron, "" if it is one."""
    if not isinstance(found, str):
        return ""
    return f"it is no plain perceptron ({found.partition(' is run by torch: ')[2] or found})"


def paths_taken(plan: Plan, learner: Any) -> tuple[ComputePath, ...]:
    """Return the paths as they are once the learner is made.

    They are those of the plan, but for modules of somebody's own: what passes of ours say is held
    against the module itself, and a graph is tried with it.
    """
    nets = plan.role_nets.values() or [plan.net]
    if not any(is_factory(net.kind) for net in nets):
        return plan.paths
    return as_played([path_taken(path, learner) for path in plan.paths])


def path_taken(path: ComputePath, learner: Any) -> ComputePath:
    """Return the path that a learner has taken, with a module of somebody's own among others."""
    part = learner.learners[path.role] if path.role else learner
    if forward := getattr(part, "forward", None):
        if not path.name.startswith(NATIVE) or forward.native is not None:
            return path
        return replace(path, name=f"{BY_TORCH} {FLOAT32}", because=forward.why_torch())
    if eager := learner.net.eager_reason:
        name = f"{path.name.replace(CAPTURED, BY_TORCH)}, launched step by step"
        return replace(path, name=name, because=f"no graph can hold it ({eager})", speed=None)
    flat = learner.net.roles[path.role] if path.role else learner.net
    if path.name.startswith(KERNELS) and isinstance(flat, CapturedNet):
        name = path.name.replace(KERNELS, CAPTURED)
        return replace(path, name=name, because="kernels do not say what it says itself")
    return path
