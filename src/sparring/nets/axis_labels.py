"""Labels of the rows and columns of a network's tensors: features, actions, hidden units.

Networks of other sizes, or for other flags of a game, have tensors of the same names and other
shapes. Entries with equal labels have the same meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet, EncoderLayer
from sparring.nets.heads import MEMORY, POLICY, ROLES
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.layers import FirstLayer, Normalizer
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.residual import ResidualNet

Labels = Sequence[Hashable]
"""One for each row, or column, of a tensor; None matches no other label."""
WEIGHTS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers whose weights are [outputs, inputs, ...]."""


@dataclass(frozen=True)
class AxisLabels:
    """Labels of one tensor by dimension; a dimension without labels is matched by index."""

    labels: dict[int, Labels]
    inputs: int | None = None
    """The dimension of a weight's inputs; None: the tensor is no weight."""


def axis_labels_of(net: Net) -> dict[str, AxisLabels]:
    """Return the labels of a network's tensors by name; tensors without labels are left out."""
    if roles := nets_by_role(net):
        return {
            f"{ROLES}.{role}.{name}": labels
            for role, role_net in roles
            for name, labels in axis_labels_of(role_net).items()
        }
    found: dict[str, AxisLabels] = {}
    for name, module in net.named_modules():
        labeled = module_labels(net, module, is_policy=name == f"{POLICY}_head")
        named = {f"{name}.{key}" if name else key: labels for key, labels in labeled.items()}
        found = {**named, **found}  # labels from an outer module take precedence
    if isinstance(net, ResidualNet):
        found |= board_labels(net)
    return found


def module_labels(net: Net, module: nn.Module, *, is_policy: bool) -> dict[str, AxisLabels]:
    if isinstance(module, FirstLayer):
        columns = unit_labels(net, module.weight.shape[1])
        rows = input_labels(net, module.weight.shape[0])
        return {"weight": AxisLabels({0: rows, 1: columns}, 0), "bias": AxisLabels({0: columns})}
    if isinstance(module, Normalizer):
        known = AxisLabels({0: feature_names(net.inputs.rules)})
        return {"mean": known, "variance": known}
    parameters = dict(module.named_parameters(recurse=False))
    if "weight_hh" in parameters:  # the gates of a GRU, one after the other
        gate_rows, hidden = parameters["weight_hh"].shape
        gates = [(row // hidden, row % hidden) for row in range(gate_rows)]
        return {
            name: AxisLabels({0: gates}, 1 if one.ndim > 1 else None)
            for name, one in parameters.items()
        }
    if isinstance(module, EncoderLayer):
        projections = [
            (part, head, column)
            for part in ("query", "key", "value")
            for head in range(module.heads)
            for column in range(module.look.in_features // module.heads)
        ]
        return {
            "look.weight": AxisLabels({0: projections}, 1),
            "look.bias": AxisLabels({0: projections}),
        }
    if isinstance(module, WEIGHTS):
        labels: dict[int, Labels] = {0: logit_labels(net)} if is_policy else {}
        return {"weight": AxisLabels(labels, 1), "bias": AxisLabels(labels)}
    return {}


def logit_labels(net: Net) -> Labels:
    """Return the actions of a linear policy head's outputs."""
    names = action_names(net.inputs.rules)
    if not isinstance(net, AttentionNet):
        return names
    order = net.order.tolist()  # first the actions without an entity
    return [names[order.index(output)] for output in range(net.policy_head.out_features)]


def board_labels(net: ResidualNet) -> dict[str, AxisLabels]:
    """Label a residual tower: planes and numbers by their blocks, logits by their actions."""
    rules, board = net.inputs.rules, net.layout
    used = board.planes * board.squares
    planes = [block.name for block in rules.blocks[: board.planes]]
    labels = {
        "stem.weight": AxisLabels({1: unique_names(planes)}, 1),
        "numbers.weight": AxisLabels({1: feature_names(rules)[used:]}, 1),
    }
    if not board.actions:  # a dense head is labeled like any other
        return labels
    actions = action_names(rules)
    maps = [actions[first] for first in range(0, len(actions), board.squares)]
    return {
        **labels,
        "policy_head.weight": AxisLabels({0: maps}, 1),
        "policy_bias": AxisLabels({0: actions}),
    }


def unit_labels(net: Net, count: int) -> Labels:
    """Label the outputs of a first layer: (tower, unit)."""
    width = net.config.hidden[0] if isinstance(net, Perceptron) else count
    return [(unit // width, unit % width) for unit in range(count)]


def input_labels(net: Net, count: int) -> Labels:
    """Label the inputs of a first layer: feature names by frame; None: not read."""
    inputs = net.inputs
    names = feature_names(inputs.rules)
    if net.config.memory == "stack":
        frames = [(frame, name) for frame in range(1, net.config.frames) for name in names]
        names = [*names, *frames]
    names = [*names, *((MEMORY, index) for index in range(count - len(names)))]
    if inputs.used_features is None:
        return names[:count]
    used = inputs.used_features
    return [name if index in used else None for index, name in enumerate(names[:count])]


def feature_names(rules: Rules) -> list[Hashable]:
    return unique_names(feature.name for feature in rules.features)


def action_names(rules: Rules) -> list[Hashable]:
    """Label the outputs of a policy head: actions, or means and stds of continuous ones."""
    if rules.box:
        return [(kind, index) for kind in ("mean", "spread") for index in range(rules.box)]
    return unique_names(rules.action_name(action) for action in range(rules.actions))


def unique_names(names: Iterable[str]) -> list[Hashable]:
    """Number repeated names, so that no two are equal."""
    unique: list[Hashable] = []
    count: Counter[str] = Counter()
    for name in names:
        unique.append((name, count[name]) if count[name] else name)
        count[name] += 1
    return unique
