"""`sparring export`: a network as an ONNX file that is held equal to torch, or as a page."""

from __future__ import annotations

import importlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.commands.agent_file import check_page, print_page, write_page
from sparring.commands.export_memory import (
    AFTER,
    PROOF_STEPS,
    PlainRemembering,
    compare_steps,
    how_to_carry,
)
from sparring.commands.shared.players import tell_origin
from sparring.commands.shared.printing import ProgressBar, print_json
from sparring.config.commands import ExportConfig
from sparring.errors import ConfigError, SparringError
from sparring.factories import in_a_line
from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet
from sparring.nets.hierarchy import HierarchyNet, RoleTeller, nets_of
from sparring.nets.inputs import Inputs
from sparring.nets.layers import FirstLayer
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import MEMORY, POLICY, VALUE, Net, head_width
from sparring.nets.own import OwnNet
from sparring.nets.own_inputs import BYTES
from sparring.nets.policy import VALUES, Policy
from sparring.nets.sizes import count
from sparring.pools.foreign.again import check_same, is_own, made_again
from sparring.pools.foreign.rules import ForeignRules
from sparring.pools.native import Pool
from sparring.store.files import temp_name
from sparring.store.lookup import find_policy
from sparring.store.policies import load_policy
from sparring.targets import check_file

OPSET = 20
PROOF_ROWS = 256
TOLERANCE = 1e-4
TORCHSCRIPT = (".pt", ".pth", ".ts", ".torchscript")
NEEDED = ("onnx", "onnxscript", "onnxruntime")


def run(config: ExportConfig) -> int:
    """Write the files and say what is in them."""
    refuse_torchscript(config.onnx)
    if not config.onnx and not config.html:
        raise ConfigError(
            "what is to be written? Give --onnx agent.onnx, --html agent.html or both"
        )
    if config.onnx:
        check_file(config.onnx, "--onnx")
        require_extra()
    if config.html:
        check_page(Path(config.html))
    find_policy(config.policy)
    with ProgressBar("exporting", 1 + 2 * bool(config.onnx) + bool(config.html)) as steps:
        steps.next("loading")
        policy = load_policy(config.policy)
        tell_origin(config.policy, policy)
        network = count(policy.net)
        page: dict[str, Any] = {}
        if config.html:
            steps.next("page")
            page = write_page(policy, config.policy, Path(config.html))
        onnx = write_onnx(policy, Path(config.onnx), steps) if config.onnx else {}
    if config.json:
        size = {"parameters": network.parameters, "macs": network.macs}
        print_json(
            {"policy": policy.name, "network": size, **onnx, **({"html": page} if page else {})}
        )
        return 0
    print(f"{policy.name}: {network.line()}")
    if onnx:
        print_onnx(policy, onnx)
    if page:
        print_page(policy, page)
    return 0


def refuse_torchscript(name: str) -> None:
    """Refuse the name of a TorchScript file, which would hold something else."""
    if Path(name).suffix.lower() in TORCHSCRIPT:
        raise ConfigError(
            f"--onnx {name}: TorchScript is not written, as torch gives it up; name an ONNX file, "
            "such as agent.onnx, which C++ and Python read with onnxruntime"
        )


def write_onnx(policy: Policy, target: Path, steps: ProgressBar) -> dict[str, Any]:
    """Write the network and return what is to be said about it; one that differs is not written."""
    unproven = target.with_name(temp_name(target.name))
    try:
        steps.next("tracing")
        write(policy, unproven)
        steps.next("comparing")
        difference = compare(policy, unproven)
        if not difference <= TOLERANCE:
            raise SparringError(
                f"the exported network is {difference:.2g} away from torch on {PROOF_ROWS} "
                f"observations, more than {TOLERANCE:g}; no file was written. Please report it"
            )
        unproven.replace(target)
    finally:
        unproven.unlink(missing_ok=True)
    numbers = f"float32 [rows, {policy.memory_bytes // 4}]"
    before, after = ({MEMORY: numbers}, {AFTER: numbers}) if policy.memory_bytes else ({}, {})
    return {
        "file": str(target),
        "bytes": target.stat().st_size,
        "opset": OPSET,
        "inputs": {"obs": f"uint8 [rows, {policy.rules.obs_bytes}]"} | before,
        "outputs": {"logits": f"float32 [rows, {head_width(policy.rules)}]"}
        | ({"value": "float32 [rows]"} if has_values(policy) else {})
        | after,
        "observations_compared": PROOF_ROWS,
        **({"steps_compared": PROOF_STEPS} if after else {}),
        "max_abs_difference": difference,
    }


def print_onnx(policy: Policy, facts: dict[str, Any]) -> None:
    """Say what is in the file and how far it is from torch."""
    print(f"{facts['file']}: {policy.name}, {facts['bytes']:,} bytes, opset {OPSET}")
    value = ", value [rows]" if has_values(policy) else ""
    memory, steps = facts["inputs"].get(MEMORY), ""
    given = f", {MEMORY} {memory}" if memory else ""
    after = f", {AFTER}" if memory else ""
    inputs, outputs = facts["inputs"]["obs"] + given, facts["outputs"]["logits"] + value + after
    print(f"obs {inputs} -> logits {outputs}")
    print(how_to_choose(policy))
    if memory:
        print(how_to_carry(policy))
        steps = f", {PROOF_STEPS} decisions in a row"
    difference = facts["max_abs_difference"]
    print(f"largest difference from torch on {PROOF_ROWS} observations{steps}: {difference:.2g}")


def how_to_choose(policy: Policy) -> str:
    """Say what is to be done with the first output."""
    if policy.by_value:
        return (
            "The logits rank actions by their values: mask illegal ones and take the largest; "
            "never draw from them."
        )
    if not policy.rules.box:
        return "Mask illegal actions before choosing: the logits are those of all actions."
    bounds = "take their tanh" if policy.net.config.squash else "cut them off at -1 and 1"
    return f"The first {policy.rules.box} numbers are means: {bounds}. Log-spreads follow."


def require_extra() -> None:
    """Name what is missing, before anything takes time."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as missing:
            raise SparringError(
                f'export needs {missing.name}; pip install "sparring[export]"'
            ) from None


class PlainNet(nn.Module):
    """The network as one graph: bytes in, logits and values in units of reward out."""

    def __init__(self, rules: Rules, net: Net, *, valued: bool) -> None:
        """Copy a network. valued: whether its values are to come out too."""
        super().__init__()
        self.valued = valued
        self.net = make_net(rules, replace(net.config, sparse=False), heads=net.heads)
        self.net.load_state_dict(net.state_dict())
        if isinstance(self.net, Perceptron | AttentionNet):
            first = PlainFirstLayer(self.net.inputs, self.net.first)
            self.net.first = first  # type: ignore[assignment]
        if isinstance(self.net, OwnNet) and self.net.reads != BYTES:
            self.net.reader.widen = PlainWiden(self.net.inputs)

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        """Return logits [rows, actions], and values [rows] if the network has any."""
        heads = self.net(obs)
        logits = heads[POLICY]
        return (logits, self.net.true_values(heads)) if self.valued else (logits,)


class PlainHierarchy(nn.Module):
    """A network for every role as one graph: all of them answer, the row's own is taken."""

    def __init__(self, rules: Rules, net: HierarchyNet, *, valued: bool) -> None:
        super().__init__()
        self.teller = RoleTeller(rules)
        self.nets = nn.ModuleList(PlainNet(rules, own, valued=valued) for _, own in net.nets())

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        """Return logits [rows, actions], and values [rows] if the networks have any."""
        told = self.teller(obs)
        answers = [net(obs) for net in self.nets]
        chosen: tuple[Tensor, ...] = answers[-1]
        for role, said in enumerate(answers[:-1]):
            mine = told == role
            chosen = tuple(
                torch.where(mine if own.dim() == 1 else mine[:, None], own, other)
                for own, other in zip(said, chosen, strict=True)
            )
        return chosen


def plain_net(policy: Policy) -> nn.Module:
    """Return a policy's network as one graph."""
    net, valued = policy.net, has_values(policy)
    if isinstance(net, HierarchyNet):
        return PlainHierarchy(policy.rules, net, valued=valued)
    if policy.memory_bytes:
        return PlainRemembering(policy.rules, net, PlainFirstLayer, valued=valued)
    return PlainNet(policy.rules, net, valued=valued)


class PlainWiden(nn.Module):
    """Bytes as numbers without reading them as another type, which ONNX runtimes do not know."""

    divisor: Tensor
    powers: Tensor

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.parts, _, divisors = inputs.stretches()
        self.register_buffer("divisor", torch.tensor(divisors))
        exponents = torch.arange(256, dtype=torch.float64).clamp(min=1) - 150
        self.register_buffer("powers", torch.exp2(exponents).float())

    def forward(self, obs: Tensor) -> Tensor:
        """Return the numbers, in the order in which their bytes lie."""
        return self.widen(obs)

    def widen(self, obs: Tensor) -> Tensor:
        """Return the numbers, in the order in which their bytes lie."""
        numbers = [self.number(obs, dtype, a, b) for dtype, a, b in self.parts]
        return torch.cat(numbers, dim=1) / self.divisor

    def number(self, obs: Tensor, dtype: torch.dtype, start: int, end: int) -> Tensor:
        """Add up little-endian bytes to the numbers that they stand for."""
        size = dtype.itemsize
        byte = [obs[:, start + at : end : size].float() for at in range(size)]
        if dtype == torch.uint8:
            return byte[0]
        negative = (byte[-1] >= 128).float()
        if dtype == torch.int8:
            return byte[0] - 256 * negative
        if dtype == torch.int16:
            return byte[0] + 256 * byte[1] - 65536 * negative
        high = torch.floor(byte[2] / 128)
        exponent = 2 * (byte[3] - 128 * negative) + high
        mantissa = byte[0] + 256 * byte[1] + 65536 * (byte[2] - 128 * high)
        mantissa = mantissa + 2.0**23 * (exponent > 0).float()
        return (1 - 2 * negative) * mantissa * self.powers[exponent.long()]


class PlainFirstLayer(PlainWiden):
    """The first layer likewise."""

    weight: Tensor
    sparse = False

    def __init__(self, inputs: Inputs, first: FirstLayer) -> None:
        super().__init__(inputs)
        _, order, _ = inputs.stretches()
        self.bias = first.bias
        self.normaliser = first.normaliser
        self.register_buffer("weight", first.weight.detach()[torch.tensor(order)])

    def forward(self, obs: Tensor) -> Tensor:
        """Return [rows, width] for byte rows [rows, obs_bytes]."""
        return self.of(self.widen(obs))

    def of(self, numbers: Tensor) -> Tensor:
        """The same of rows that are widened already."""
        if self.normaliser is not None:
            numbers = self.normaliser(numbers)
        return torch.addmm(self.bias, numbers, self.weight)


def write(policy: Policy, path: Path) -> None:
    """Trace the network and write it, with what a user of the file has to know."""
    rules = policy.rules
    example = [torch.zeros(2, rules.obs_bytes, dtype=torch.uint8)]
    example += [torch.zeros(2, policy.memory_bytes // 4)] if policy.memory_bytes else []
    names = ["obs", MEMORY][: len(example)]
    rows = torch.export.Dim("rows")
    # The exporter reports its own deprecations and packages that this network does not need.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), own_errors(policy):
        warnings.simplefilter("ignore")
        program: Any = torch.onnx.export(
            plain_net(policy).eval(),
            tuple(example),
            input_names=names,
            output_names=outputs_of(policy),
            dynamic_shapes={name: {0: rows} for name in names},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props.update(
        {
            "policy": policy.name,
            "game": rules.name,
            "rules_version": str(rules.rules_version),
            "game_config": json.dumps(rules.config),
            "actions": json.dumps([rules.action_name(a) for a in range(rules.actions)]),
            "box": str(rules.box),
            "memory": str(policy.memory_bytes // 4),
            "squash": str(int(policy.net.config.squash)),
            "choose": "largest legal logit" if policy.by_value else "draw, or largest legal logit",
        }
    )
    program.save(str(path), external_data=False)


@contextmanager
def own_errors(policy: Policy) -> Iterator[None]:
    """Say in a line what the exporter does not understand of somebody's own network."""
    try:
        yield
    except Exception as wrong:
        if not isinstance(policy.net, OwnNet):
            raise
        first = wrong
        while first.__cause__ is not None and isinstance(first.__cause__, Exception):
            first = first.__cause__
        raise SparringError(
            f"{policy.net.what} cannot be written as ONNX: {in_a_line(first)}"
        ) from wrong


def compare(policy: Policy, path: Path) -> float:
    """Return the largest difference between the file and torch, on games played at random."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    obs = real_observations(policy.rules, PROOF_ROWS)
    net, names = policy.net, outputs_of(policy)
    if policy.memory_bytes:

        def run(given: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
            return dict(zip(names, session.run(names, given), strict=True))

        return max(compare_steps(policy, run, obs[rows]) for rows in (slice(None), slice(0, 1)))
    with torch.no_grad():
        heads = net(torch.from_numpy(obs).to(policy.device))
    wanted, scales = [heads[POLICY].cpu().numpy()], [1.0]
    if has_values(policy):
        # Values may be hundreds of points; what counts is the difference in the network's own unit.
        wanted.append(net.true_values(heads).cpu().numpy())
        units = [one for _, one in nets_of(net)] or [net]
        scales.append(max(1.0, *(float(one.value_scale) for one in units)))
    worst = 0.0
    for rows in (slice(None), slice(0, 1)):
        found = session.run(names, {"obs": obs[rows]})
        for ours, theirs, scale in zip(wanted, found, scales, strict=True):
            worst = max(worst, float(np.abs(theirs - ours[rows]).max()) / scale)
    return worst


def outputs_of(policy: Policy) -> list[str]:
    """What the file gives for every row."""
    values = ["value"] if has_values(policy) else []
    return ["logits", *values, *([AFTER] if policy.memory_bytes else [])]


def has_values(policy: Policy) -> bool:
    """Whether the value head says what a row is worth.

    One by value is worth its best legal action, and the file knows no masks.
    """
    trained = policy.meta.get(VALUES, True) and not policy.by_value
    return VALUE in policy.net.heads and trained


def real_observations(rules: Rules, rows: int) -> npt.NDArray[np.uint8]:
    """Return observations from all over games that are played at random."""
    games = 32
    if is_own(rules):
        return own_observations(rules, rows)
    pool = Pool(rules, games, seed=0, threads=1)
    batch = pool.reset()
    parts: list[npt.NDArray[np.uint8]] = []
    while len(parts) * games * rules.rows < rows:
        parts.append(batch.obs.copy())
        for _ in range(7):
            batch = pool.step(pool.sample_actions())
    return np.concatenate(parts)[:rows]


def own_observations(rules: Rules, rows: int) -> npt.NDArray[np.uint8]:
    """Return observations of an environment of somebody's own, played at random.

    Of one that was given as an object nobody knows any: numbers of all sizes stand for them.
    """
    assert isinstance(rules, ForeignRules)
    if not rules.factory:
        rng = np.random.default_rng(0)
        size = 10.0 ** rng.integers(-2, 3, (rows, 1))
        return rules.pack(rng.normal(size=(rows, rules.numbers)) * size)
    pool = made_again(rules.factory, 1)
    check_same("the policy", rules, pool.rules)
    parts = [pool.reset().obs.copy()]
    while sum(map(len, parts)) < rows:
        parts.append(pool.step(pool.sample_actions()).obs.copy())
    return np.concatenate(parts)[:rows]
