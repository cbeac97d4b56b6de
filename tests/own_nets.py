"""Networks of somebody's own, as users would write them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sparring.nets.custom_inputs import NetInputs


class Plain(nn.Module):
    """A perceptron: a trunk, a policy and a value."""

    def __init__(self, inputs: NetInputs, width: int = 16, activation: str = "ReLU") -> None:
        super().__init__()
        act = getattr(nn, activation)
        self.trunk = nn.Sequential(
            nn.Linear(inputs.width, width), act(), nn.Linear(width, width), act()
        )
        self.policy = nn.Linear(width, inputs.policy)
        self.value = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.trunk(x)
        return self.policy(x), self.value(x)


class Towers(nn.Module):
    """Two towers of their own widths, written with functions."""

    def __init__(self, inputs: NetInputs, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        widths = [inputs.width] + [width] * depth
        self.actor = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.critic = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.policy, self.value = nn.Linear(width, inputs.policy), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Heads by name."""
        a = c = x
        for layer in self.actor:
            a = torch.tanh(layer(a))
        for layer in self.critic:
            c = torch.tanh(layer(c))
        return {"policy": self.policy(a), "value": self.value(c).squeeze(-1)}


class Blocks(nn.Module):
    """Reads named blocks, each through a layer of its own, with a bounded value."""

    reads = "blocks"

    def __init__(self, inputs: NetInputs, width: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(
            {name: nn.Linear(columns, width) for name, (_, columns) in inputs.blocks.items()}
        )
        self.policy, self.value = nn.Linear(width, inputs.policy), nn.Linear(width, 1)

    def forward(self, blocks: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """A sum over all rows of all blocks."""
        parts = [layer(blocks[name]).sum(1) for name, layer in self.layers.items()]
        hidden = torch.relu(torch.stack(parts).sum(0))
        return self.policy(hidden), torch.tanh(self.value(hidden))


class Bytes(nn.Module):
    """Reads bytes as indices of an embedding, with a table that is not learned."""

    reads = "bytes"

    def __init__(self, inputs: NetInputs, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.register_buffer("places", torch.rand(inputs.row_bytes, 1))
        self.norm = nn.LayerNorm(width)
        self.heads = nn.Linear(width, inputs.policy + 1)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """One layer for both heads."""
        hidden = self.norm((self.embed(obs.long()) * self.places).mean(1))
        said = self.heads(hidden)
        return said[:, :-1], said[:, -1]


class Wrong(nn.Module):
    """What cannot be a network, by name."""

    def __init__(self, inputs: NetInputs, how: str) -> None:
        super().__init__()
        self.how, self.inputs = how, inputs
        if how == "reads":
            self.reads = "pixels"
        if how == "making":
            raise ValueError("no such width")
        self.layer = nn.Linear(inputs.width, inputs.policy)
        self.value = nn.Linear(inputs.width, 1)
        self.norm: nn.Module = nn.BatchNorm1d(inputs.width) if how == "norm" else nn.Identity()
        self.register_buffer("seen", torch.zeros(()))
        if how == "frozen":
            self.layer.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Any:
        """Something that is wrong."""
        policy, value = self.layer(self.norm(x)), self.value(x)
        if self.how == "raises":
            return policy @ value
        if self.how == "random":
            policy = policy + torch.rand(())
        if self.how == "keeps":
            self.seen += 1
        said = {
            "policy": policy[:, :-1] if self.how == "narrow" else policy,
            "value": policy if self.how == "wide value" else value,
        }
        if self.how == "nan":
            said["value"] = value / 0 - value / 0
        if self.how == "no value":
            del said["value"]
        return policy if self.how == "alone" else said


class NotANetwork:
    """No module."""

    def __init__(self, inputs: NetInputs) -> None:
        self.inputs = inputs


class Gated(Plain):
    """A product of two layers."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.trunk(x)
        return self.policy(x * x), self.value(x)


class Deep(Plain):
    """A layer more for the value."""

    def __init__(self, inputs: NetInputs, width: int = 16) -> None:
        super().__init__(inputs, width)
        self.own = nn.Linear(width, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.trunk(x)
        return self.policy(x), self.value(torch.relu(self.own(x)))


class Detached(Plain):
    """Values teach the trunk nothing."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.trunk(x)
        return self.policy(x), self.value(x.detach())


class Choosing(Plain):
    """Looks at the numbers before it decides what to do, which no graph of a GPU can hold."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.trunk(x)
        if x.max() > 1e6:
            x = x.clamp(max=1e6)
        return self.policy(x), self.value(x)


class Mixed(Plain):
    """Two kinds of activations."""

    def __init__(self, inputs: NetInputs, width: int = 16) -> None:
        super().__init__(inputs, width)
        self.trunk[1] = nn.Tanh()


class Spare(Plain):
    """A layer that nobody asks."""

    def __init__(self, inputs: NetInputs, width: int = 16) -> None:
        super().__init__(inputs, width)
        self.spare = nn.Linear(width, 1)


class Clamped(Plain):
    """The same as its parent, written so that nobody recognizes it."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.trunk[0](x).clamp(min=0)
        x = self.trunk[2](x).clamp(min=0)
        return self.policy(x), self.value(x)


class Judging(Plain):
    """Says whatever it is asked."""

    def __init__(self, inputs: NetInputs, width: int = 16) -> None:
        super().__init__(inputs, width)
        names = [name for name in inputs.heads if name not in ("policy", "value")]
        self.others = nn.ModuleDict({name: nn.Linear(width, inputs.heads[name]) for name in names})

    def forward(self, x: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        """Heads by name."""
        x = self.trunk(x)
        others = {name: layer(x) for name, layer in self.others.items()}
        return {"policy": self.policy(x), "value": self.value(x), **others}


class Lying(Plain):
    """A perceptron for whoever traces it, and something else for rows of numbers."""

    def forward(self, x: Any) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        said = self.trunk(x)
        policy, value = self.policy(said), self.value(said)
        return policy if isinstance(x, torch.fx.Proxy) else policy + 3.0, value


class Squared(Judging):
    """Says whatever it is asked, by a product of layers that nobody recognizes."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        """Heads by name."""
        x = self.trunk(x)
        x = x * x
        others = {name: layer(x) for name, layer in self.others.items()}
        return {"policy": self.policy(x), "value": self.value(x), **others}
