"""Models that Stable-Baselines3 and sb3-contrib saved, as weights and metadata of our perceptrons.

A policy that learned on `sparring.envs.sb3` reads the game's features and answers with its actions,
as ours do.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules, game_names
from sparring.nets.heads import POLICY, VALUE, head_width
from sparring.nets.policy import BY_VALUE, VALUES, describe_sizes
from sparring.pools.custom.cache import is_custom
from sparring.store.errors import CheckpointError
from sparring.store.sb3_file import activation_of, read_model_file

MAX_PADDED = 2**22
"""Weights that padding may make, however small the file is."""
UNUSED = ("critic.", "critic_target.", "q_net_target.")
"""Prefixes of weights that learn and do not play."""
LOGITS, GAUSSIAN, SQUASHED, ACTION_VALUES = "logits", "gaussian", "squashed", "values"
Linear = tuple[Tensor, Tensor]
"""Weight [out, in] and bias [out] of a layer."""


@dataclass(frozen=True)
class Model:
    """The layers that a model plays with, heads last."""

    kind: str
    """What the policy's head holds: LOGITS, GAUSSIAN, SQUASHED or ACTION_VALUES."""
    policy: list[Linear]
    value: list[Linear]
    """Empty: it has no values of positions."""
    activation: str

    @property
    def features(self) -> int:
        return self.policy[0][0].shape[1]

    @property
    def box(self) -> int:
        """Numbers per action; 0 for discrete actions."""
        return len(self.policy[-1][1]) // 2 if self.kind in (GAUSSIAN, SQUASHED) else 0

    @property
    def sizes(self) -> str:
        """The same in words as `describe_sizes` of a game."""
        actions = f"{len(self.policy[-1][1])} actions"
        return f"{self.features} features, " + (
            f"{self.box} numbers per action" if self.box else actions
        )

    def fits(self, rules: Rules) -> bool:
        wanted = len(rules.features), head_width(rules), rules.box
        return wanted == (self.features, len(self.policy[-1][1]), self.box)


def read_sb3(path: Path, game: Rules | str | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights of a perceptron that plays as a model does, and its policy's metadata.

    game: what it plays, which its file does not say.
    """
    try:
        model = read_model(path)
        config, weights = as_perceptron(model)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CheckpointError(f"{path} is no model of Stable-Baselines3 to play: {error}") from None
    rules = game_of(path, model, game)
    meta: dict[str, Any] = {
        "game": rules.name,
        "rules_version": rules.rules_version,
        "game_config": rules.config,
        "net": asdict(config),
        "heads": {POLICY: head_width(rules), VALUE: 1},
        "memory": 0,
    }
    if model.kind == ACTION_VALUES:
        meta[BY_VALUE] = True
    elif not model.value:
        meta[VALUES] = False
    return weights, meta


def game_of(path: Path, model: Model, game: Rules | str | None) -> Rules:
    """Return the game that a model is to play; raises unless its numbers are the game's."""
    if not game:
        fitting = [name for name in game_names() if model.fits(Rules(name))]
        raise ConfigError(
            f"{path} does not say which game it plays ({model.sizes}); add --game "
            f"{' or --game '.join(fitting) or 'GAME'}, in Python game={(fitting or ['GAME'])[0]!r}"
        )
    rules = Rules(game) if isinstance(game, str) else game
    if is_custom(rules):
        raise ConfigError(
            f"{path} is a model of Stable-Baselines3, which plays the games of `sparring games`; "
            f"{rules.name} is a custom environment"
        )
    if not model.fits(rules):
        raise ConfigError(
            f"{path} has {model.sizes}; {rules.name} has {describe_sizes(rules)}; train it on this "
            "game by sparring.envs.sb3, or set the flags of its training"
        )
    return rules


# From the file to layers


def read_model(path: Path) -> Model:
    """Read a file; raises ValueError for what is no model with a perceptron, or cannot be known."""
    weights, settings = read_model_file(path)
    used = {name: one for name, one in weights.items() if not name.startswith(UNUSED)}
    kind, policy, value = take_stacks(used)
    if left := next(iter(used), None):
        raise ValueError(f"it has {left[:80]!r}, which no MlpPolicy has; only MlpPolicy is read")
    for layers in filter(None, (policy, value)):
        if len(layers) < 2:
            raise ValueError("its policy or value has no hidden layer")
        joints = [(before[1], after[0]) for before, after in pairwise(layers)]
        if any(len(bias) != weight.shape[1] for bias, weight in joints):
            raise ValueError("its layers do not fit each other")
    memory = [weight.untyped_storage().data_ptr() for weight, _ in (*policy, *value)]
    if len(set(memory)) < len(memory):  # a small file would make a large network
        raise ValueError("its layers share weights")
    if value and (value[0][0].shape[1], len(value[-1][1])) != (policy[0][0].shape[1], 1):
        raise ValueError("its value reads other numbers than its policy, or is several")
    default = "tanh" if value else "relu"
    return Model(kind, policy, value, activation_of(settings, default))


def take_stacks(weights: dict[str, Tensor]) -> tuple[str, list[Linear], list[Linear]]:
    """Take the layers of the policy and of the value out of weights; the names tell the kind."""
    if "action_net.weight" in weights:  # PPO, MaskablePPO, A2C, TRPO
        policy = take_layers(weights, "mlp_extractor.policy_net")
        value = take_layers(weights, "mlp_extractor.value_net")
        weight, bias = take_linear(weights, "action_net")
        value.append(take_linear(weights, "value_net"))
        if "log_std" not in weights:
            return LOGITS, [*policy, (weight, bias)], value
        log_std = weights.pop("log_std")
        if log_std.shape != bias.shape:
            raise ValueError(f"its log_std is {list(log_std.shape)}, not one number per action's")
        head = torch.cat([weight, torch.zeros_like(weight)]), torch.cat([bias, log_std])
        return GAUSSIAN, [*policy, head], value
    if "actor.mu.weight" in weights:  # SAC
        policy = take_layers(weights, "actor.latent_pi")
        mean, spread = (take_linear(weights, f"actor.{name}") for name in ("mu", "log_std"))
        if mean[0].shape != spread[0].shape:
            raise ValueError(
                f"its log_std is {list(spread[0].shape)}, its mu {list(mean[0].shape)}"
            )
        head = torch.cat([mean[0], spread[0]]), torch.cat([mean[1], spread[1]])
        return SQUASHED, [*policy, head], []
    if policy := take_layers(weights, "q_net.q_net"):  # DQN
        return ACTION_VALUES, policy, []
    raise ValueError(
        "its weights are not those of MaskablePPO, PPO, SAC or DQN with MlpPolicy, but begin with "
        f"{next(iter(weights), 'none')[:80]!r}"
    )


def take_layers(weights: dict[str, Tensor], prefix: str) -> list[Linear]:
    """Take the layers PREFIX.0, PREFIX.2 and so on, between which activations are."""
    names = (name.removeprefix(f"{prefix}.").removesuffix(".weight") for name in weights)
    numbers = sorted(int(name) for name in names if re.fullmatch(r"\d{1,3}", name, re.ASCII))
    return [take_linear(weights, f"{prefix}.{number}") for number in numbers]


def take_linear(weights: dict[str, Tensor], name: str) -> Linear:
    weight, bias = (weights.pop(f"{name}.{part}", None) for part in ("weight", "bias"))
    if weight is None or bias is None or weight.ndim != 2 or bias.shape != weight.shape[:1]:
        raise ValueError(f"its {name} is no linear layer")
    return weight, bias


# From layers to our perceptron


def as_perceptron(model: Model) -> tuple[NetConfig, dict[str, Tensor]]:
    """Return the settings and the weights of the same network as a `Perceptron`.

    Policy and value of equal widths are two towers. Of others the first layers are one trunk, and
    the layers behind it, each with weights of 0 for what the other one's first layer computes.
    """
    stacks = [model.policy, *([model.value] if model.value else [])]
    widths = [tuple(len(bias) for _, bias in stack[:-1]) for stack in stacks]
    trunk = len(set(widths)) > 1
    firsts = [each[0] for each in widths]
    if trunk:
        check_padding(stacks, sum(firsts))
    try:
        config = NetConfig(
            hidden=(sum(firsts),) if trunk else widths[0],
            shared=trunk or not model.value,
            activation=model.activation,
            policy_hidden=widths[0][1:] if trunk else (),
            value_hidden=widths[1][1:] if trunk else (),
            std="predicted" if model.kind == SQUASHED else "shared",
            squash=model.kind == SQUASHED,
        )
    except ConfigError as error:
        raise ValueError(str(error)) from None
    weights = {
        "first.weight": torch.cat([stack[0][0] for stack in stacks]).T.contiguous(),
        "first.bias": torch.cat([stack[0][1] for stack in stacks]),
        "value_head.weight": torch.zeros(1, config.hidden[-1]),
        "value_head.bias": torch.zeros(1),
        "value_scale": torch.ones(()),
    }
    for at, (head, stack) in enumerate(zip((POLICY, VALUE), stacks, strict=False)):
        layers = f"{head}_layers" if trunk else f"towers.{at}"
        names = [f"{layers}.{2 * number}" for number in range(len(stack) - 2)]
        for number, name in enumerate([*names, f"{head}_head"], 1):
            weight, bias = stack[number]
            if trunk and number == 1:
                weight = pad(weight, (sum(firsts[:at]), sum(firsts[at + 1 :])))
            weights |= {f"{name}.weight": weight, f"{name}.bias": bias}
    return config, weights


def check_padding(stacks: list[list[Linear]], trunk: int) -> None:
    """Raise ValueError if the zeros behind a trunk were far more than what the file holds."""
    held = sum(weight.numel() for stack in stacks for weight, _ in stack)
    padded = sum(len(stack[1][1]) * trunk for stack in stacks)
    if padded > max(4 * held, MAX_PADDED):
        raise ValueError(f"its policy and value differ too much: {padded:,} weights for {held:,}")
