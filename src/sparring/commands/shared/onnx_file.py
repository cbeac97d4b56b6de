"""A policy's network as an ONNX file, checked against torch."""

from __future__ import annotations

import importlib
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.commands.shared.plain_nets import has_values, plain_net
from sparring.commands.shared.printing import ProgressBar
from sparring.errors import SparringError
from sparring.factories import describe_error
from sparring.games.rules import Rules
from sparring.nets.custom import CustomNet
from sparring.nets.heads import MEMORY, POLICY, VALUE, head_width
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.pixels import PixelNet
from sparring.nets.policy import Policy
from sparring.pools.custom.cache import cached_pool, check_same, is_custom
from sparring.pools.custom.rules import CustomRules
from sparring.pools.native import Pool
from sparring.store.files import temp_name

OPSET = 20
PROOF_ROWS = 256
PROOF_STEPS = 5
"""Consecutive decisions that compare a file with memory with torch."""
TOLERANCE = 1e-4
NEEDED = ("onnx", "onnxscript", "onnxruntime")
AFTER = "next_memory"
"""Output name of the memory; inputs and outputs need different names."""
Numbers = dict[str, npt.NDArray[Any]]
"""Inputs or outputs of a file, by name."""


def write_onnx(policy: Policy, target: Path, steps: ProgressBar) -> dict[str, Any]:
    """Write the network and return facts about it; nothing is written if it differs from torch."""
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
    held = memory_of(policy)
    numbers = f"{held.dtype} [rows, {held.shape[1]}]"
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


def memory_of(policy: Policy, rows: int = 1) -> npt.NDArray[Any]:
    """Return empty memory in the form of the file: floats, or bytes of pixels."""
    empty = policy.initial_memory(rows)
    return empty if isinstance(policy.net, PixelNet) else empty.view(np.float32)


def print_onnx(policy: Policy, facts: dict[str, Any]) -> None:
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
    if policy.is_value_based:
        return (
            "The logits rank actions by their values: mask illegal ones and take the largest; "
            "never draw from them."
        )
    if not policy.rules.box:
        return "Mask illegal actions before choosing: the logits are those of all actions."
    bounds = "take their tanh" if policy.net.config.squash else "cut them off at -1 and 1"
    others = "The others are not used" if policy.is_greedy else "Log-spreads follow"
    return f"The first {policy.rules.box} numbers are means: {bounds}. {others}."


def require_extra() -> None:
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as missing:
            raise SparringError(
                f'export needs {missing.name}; pip install "sparring[export]"'
            ) from None


def how_to_carry(policy: Policy) -> str:
    return (
        f"{MEMORY}: {memory_of(policy).shape[1]} zeros where a game begins; then give every "
        f"decision of a seat the {AFTER} of its decision before."
    )


def write(policy: Policy, path: Path) -> None:
    """Trace the network and write it, with metadata for users of the file."""
    rules = policy.rules
    example = [torch.zeros(2, rules.obs_bytes, dtype=torch.uint8)]
    example += [torch.from_numpy(memory_of(policy, 2))] if policy.memory_bytes else []
    names = ["obs", MEMORY][: len(example)]
    rows = torch.export.Dim("rows")
    # The exporter warns about deprecations and packages that this network does not need.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), custom_net_errors(policy):
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
            "memory": str(memory_of(policy).shape[1]),
            "squash": str(int(policy.net.config.squash)),
            "choose": "largest legal logit"
            if policy.is_value_based
            else "draw, or largest legal logit",
        }
    )
    program.save(str(path), external_data=False)


@contextmanager
def custom_net_errors(policy: Policy) -> Iterator[None]:
    """Raise a one-line error if the exporter cannot handle a custom network."""
    try:
        yield
    except Exception as error:
        if not isinstance(policy.net, CustomNet):
            raise
        first = error
        while first.__cause__ is not None and isinstance(first.__cause__, Exception):
            first = first.__cause__
        raise SparringError(
            f"{policy.net.setting} cannot be written as ONNX: {describe_error(first)}"
        ) from error


def compare(policy: Policy, path: Path) -> float:
    """Return the largest difference between the file and torch, on games played at random."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    obs, names = real_observations(policy.rules, PROOF_ROWS), outputs_of(policy)

    def run(given: Numbers) -> Numbers:
        return dict(zip(names, session.run(names, given), strict=True))

    return max(compare_steps(policy, run, obs[rows]) for rows in (slice(None), slice(0, 1)))


@torch.no_grad()
def compare_steps(
    policy: Policy, run: Callable[[Numbers], Numbers], obs: npt.NDArray[np.uint8]
) -> float:
    """Return the largest difference between a file and torch; run: the file.

    Where something is remembered, over several decisions in a row, each going on with what it
    memory that it wrote. Values may be hundreds of points: they are compared in network units.
    """
    net, rows, memory = policy.net, len(obs), policy.memory_bytes
    units = [one for _, one in nets_by_role(net)] or [net]
    scale = max(1.0, *(float(one.value_scale) for one in units)) if VALUE in net.heads else 1.0
    mine, worst = policy.initial_memory(rows), 0.0
    theirs = memory_of(policy, rows)
    for step in range(PROOF_STEPS if memory else 1):
        seen = np.roll(obs, step, axis=0)
        whole = policy.rows(seen, mine)
        said = policy.evaluate(whole)
        mine = policy.next_memory(whole, said)
        found = run({"obs": seen, **({MEMORY: theirs} if memory else {})})
        wanted = {"logits": said.heads[POLICY]}
        if memory:
            theirs, wanted[AFTER] = found[AFTER], mine.view(theirs.dtype)
        if "value" in found and said.values is not None:
            wanted["value"] = said.values
        for name, ours in wanted.items():
            gap = np.abs(found[name] - ours).max() / (scale if name == "value" else 1.0)
            worst = max(worst, float(gap))
    return worst


def outputs_of(policy: Policy) -> list[str]:
    values = ["value"] if has_values(policy) else []
    return ["logits", *values, *([AFTER] if policy.memory_bytes else [])]


def real_observations(rules: Rules, rows: int) -> npt.NDArray[np.uint8]:
    games = 32
    if is_custom(rules):
        return custom_observations(rules, rows)
    pool = Pool(rules, games, seed=0, threads=1)
    batch = pool.reset()
    parts: list[npt.NDArray[np.uint8]] = []
    while len(parts) * games * rules.rows < rows:
        parts.append(batch.obs.copy())
        for _ in range(7):
            batch = pool.step(pool.sample_actions())
    return np.concatenate(parts)[:rows]


def custom_observations(rules: Rules, rows: int) -> npt.NDArray[np.uint8]:
    """Return observations of a custom environment, played at random.

    Random numbers of all sizes replace them if the environment was given as an object.
    """
    assert isinstance(rules, CustomRules)
    if not rules.factory:
        rng = np.random.default_rng(0)
        size = 10.0 ** rng.integers(-2, 3, (rows, 1))
        return rules.pack(rng.normal(size=(rows, rules.numbers)) * size)
    pool = cached_pool(rules.factory, 1)
    check_same("the policy", rules, pool.rules)
    parts = [pool.reset().obs.copy()]
    while sum(map(len, parts)) < rows:
        parts.append(pool.step(pool.sample_actions()).obs.copy())
    return np.concatenate(parts)[:rows]
