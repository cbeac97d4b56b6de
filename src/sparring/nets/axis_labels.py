"""What the rows and columns of a network's tensors stand for: features, actions, hidden units.

Networks of other sizes, or for other flags of a game, have tensors of the same names and other
shapes. Places tell which of their numbers mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet, Layer
from sparring.nets.hierarchy import ROLES, nets_by_role
from sparring.nets.layers import FirstLayer, Normalizer
from sparring.nets.mlp import Perceptron
from sparring.nets.net import POLICY, Net
from sparring.nets.residual import ResidualNet

Places = Sequence[Hashable]
"""One for each row, or column, of a tensor; None stands for nothing, and is like no other."""
WEIGHTS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers whose weights are [outputs, inputs, ...]."""


@dataclass(frozen=True)
class Meaning:
    """Of one tensor: places by dimension where they are not just numbers, and which are inputs."""

    places: dict[int, Places]
    inputs: int | None = None
    """The dimension along which a weight is multiplied with what comes in; None: it is none."""


def axis_labels_of(net: Net) -> dict[str, Meaning]:
    """Return what places of a network's tensors stand for, by name; of others nothing is known."""
    if roles := nets_by_role(net):
        return {
            f"{ROLES}.{role}.{name}": meaning
            for role, own in roles
            for name, meaning in axis_labels_of(own).items()
        }
    found: dict[str, Meaning] = {}
    for name, module in net.named_modules():
        own = meanings_in(net, module, is_policy=name == f"{POLICY}_head")
        named = {f"{name}.{key}" if name else key: meaning for key, meaning in own.items()}
        found = {**named, **found}  # what a module says of those inside it counts
    if isinstance(net, ResidualNet):
        found |= on_board(net)
    return found


def meanings_in(net: Net, module: nn.Module, *, is_policy: bool) -> dict[str, Meaning]:
    """The same of a module's own tensors."""
    if isinstance(module, FirstLayer):
        columns = units_of(net, module.weight.shape[1])
        rows = seen_features(net, module.weight.shape[0])
        return {"weight": Meaning({0: rows, 1: columns}, 0), "bias": Meaning({0: columns})}
    if isinstance(module, Normalizer):
        known = Meaning({0: feature_names(net.inputs.rules)})
        return {"mean": known, "variance": known}
    held = dict(module.named_parameters(recurse=False))
    if "weight_hh" in held:  # gates lie one after the other
        hidden = held["weight_hh"].shape[1]
        gates = [(at // hidden, at % hidden) for at in range(held["weight_hh"].shape[0])]
        return {
            name: Meaning({0: gates}, 1 if one.ndim > 1 else None) for name, one in held.items()
        }
    if isinstance(module, Layer):
        each = [f"look.{name}" for name in ("weight", "bias")]
        looks = [
            (part, head, at)
            for part in ("query", "key", "value")
            for head in range(module.heads)
            for at in range(module.look.in_features // module.heads)
        ]
        return dict(zip(each, (Meaning({0: looks}, 1), Meaning({0: looks})), strict=True))
    if isinstance(module, WEIGHTS):
        places: dict[int, Places] = {0: logits_of(net)} if is_policy else {}
        return {"weight": Meaning(places, 1), "bias": Meaning(places)}
    return {}


def logits_of(net: Net) -> Places:
    """The actions whose logits a linear policy head gives."""
    names = action_names(net.inputs.rules)
    if not isinstance(net, AttentionNet):
        return names
    order = net.order.tolist()  # first those that refer to no thing
    return [names[order.index(place)] for place in range(net.policy_head.out_features)]


def on_board(net: ResidualNet) -> dict[str, Meaning]:
    """Of a residual tower: planes and numbers by their blocks, logits by their actions."""
    rules, at = net.inputs.rules, net.layout
    used = at.planes * at.squares
    planes = [block.name for block in rules.blocks[: at.planes]]
    actions = action_names(rules)
    maps = [actions[first] for first in range(0, len(actions), at.squares)]
    return {
        "stem.weight": Meaning({1: unique_names(planes)}, 1),
        "numbers.weight": Meaning({1: feature_names(rules)[used:]}, 1),
        "policy_head.weight": Meaning({0: maps}, 1),
        "policy_bias": Meaning({0: actions}),
    }


def units_of(net: Net, count: int) -> Places:
    """What a first layer gives: units of the trunk, tower by tower."""
    width = net.config.hidden[0] if isinstance(net, Perceptron) else count
    return [(at // width, at % width) for at in range(count)]


def seen_features(net: Net, count: int) -> Places:
    """What a first layer takes: features by name, those of earlier frames apart; None: unseen."""
    inputs = net.inputs
    names = feature_names(inputs.rules)
    if net.config.memory == "stack":
        frames = [(frame, name) for frame in range(1, net.config.frames) for name in names]
        names = [*names, *frames]
    names = [*names, *((MEMORY, at) for at in range(count - len(names)))]
    if inputs.seen is None:
        return names[:count]
    return [name if at in inputs.seen else None for at, name in enumerate(names[:count])]


MEMORY = "memory"
"""In front of numbers behind the observation that have no other name."""


def feature_names(rules: Rules) -> list[Hashable]:
    """The features of an observation, in order."""
    return unique_names(feature.name for feature in rules.features)


def action_names(rules: Rules) -> list[Hashable]:
    """What logits are of: actions, or means and then spreads of continuous ones."""
    if rules.box:
        return [(kind, at) for kind in ("mean", "spread") for at in range(rules.box)]
    return unique_names(rules.action_name(action) for action in range(rules.actions))


def unique_names(names: Iterable[str]) -> list[Hashable]:
    """Names of which no two are alike: a second one of a name has its number behind it."""
    found: list[Hashable] = []
    seen: Counter[str] = Counter()
    for name in names:
        found.append((name, seen[name]) if seen[name] else name)
        seen[name] += 1
    return found
