"""Attention over the entities that a game names: cards, players, animals.

Every thing that is there becomes a token, one more stands for the whole table. Layers of an encoder
let them look at each other. The token of the table says what a position is worth; an action that
refers to a thing is judged by that thing's token, so that whatever is learned about playing cards
holds wherever a card lies among the others.

Shapes never depend on what is seen and nothing waits for a device: a CUDA graph can hold all of it.
A test holds the network equal to loops over rows, entities and heads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.entities import (
    EntityActions,
    EntityPairActions,
    EntitySet,
    EntitySpec,
    entities_of,
)
from sparring.games.rules import Rules
from sparring.nets.layers import FirstLayer, orthogonal_
from sparring.nets.net import POLICY, VALUE, Asked, HeadOutputs, Net

WIDER = 2
"""Numbers of a token's hidden layer, in widths of a token."""
MAX_ROWS = 32768
"""Rows of one call on a GPU: its kernels number rows by a block index that ends at 65,535."""


def is_rounded(x: Tensor) -> bool:
    """Whether autocast rounds what products of x read."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def computed_in(x: Tensor) -> torch.dtype:
    """The type of products of x."""
    return torch.get_autocast_dtype(x.device.type) if is_rounded(x) else x.dtype


class Norm(nn.LayerNorm):
    """Layer norm that keeps the type of its input: autocast would widen all tokens to float32."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x centered and scaled, token by token."""
        if not is_rounded(x):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
            return functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class Layer(nn.Module):
    """Tokens look at each other, then a perceptron for each: it normalizes what it reads alone."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = Norm(width)
        self.look = nn.Linear(width, 3 * width)
        """Queries, keys and values in one product."""
        self.seen = nn.Linear(width, width)
        self.between = Norm(width)
        self.up = nn.Linear(width, WIDER * width)
        self.down = nn.Linear(WIDER * width, width)

    def initialize(self) -> None:
        """What is added to tokens is 0 to begin with."""
        for own in (self.look, self.up):
            orthogonal_(own.weight)
            nn.init.zeros_(own.bias)
        for own in (self.seen, self.down):
            nn.init.zeros_(own.weight)
            nn.init.zeros_(own.bias)

    def forward(self, x: Tensor, mask: Tensor | None, asked: int) -> Tensor:
        """Return the first `asked` of the tokens [rows, tokens, width], having looked at all.

        mask: added to the attention that each of them gets [rows, 1, 1, tokens].
        """
        normed = self.before(x)
        query, key, value = self.queries(normed, asked)
        x = x[:, :asked] + self.seen(attend(query, key, value, mask).transpose(1, 2).flatten(2))
        added: Tensor = self.down(functional.relu(self.up(self.between(x))))
        return x + added

    def queries(self, x: Tensor, asked: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the first tokens, keys and values of all [rows, heads, tokens, each]."""
        width = x.shape[2]
        if asked == x.shape[1]:
            query, key, value = self.look(x).chunk(3, dim=2)
        else:
            weight, bias = self.look.weight, self.look.bias
            query = functional.linear(x[:, :asked], weight[:width], bias[:width])
            key, value = functional.linear(x, weight[width:], bias[width:]).chunk(2, dim=2)
        return self.split(query), self.split(key), self.split(value)

    def split(self, x: Tensor) -> Tensor:
        """By head [rows, heads, tokens, each]."""
        rows, tokens, width = x.shape
        return x.view(rows, tokens, self.heads, width // self.heads).transpose(1, 2)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """What every token takes from those that it looks at [rows, heads, tokens, each]."""
    if not query.is_cuda or len(query) <= MAX_ROWS:
        return functional.scaled_dot_product_attention(query, key, value, mask)
    parts = [torch.split(one, MAX_ROWS) for one in (query, key, value)]
    masks = torch.split(mask, MAX_ROWS) if mask is not None else [None] * len(parts[0])
    return torch.cat(
        [
            functional.scaled_dot_product_attention(q, k, v, m)
            for q, k, v, m in zip(*parts, masks, strict=True)
        ]
    )


TABLE_WIDTH = 4
"""Numbers of the hidden layer in front of the table's token, in widths of a token."""
IDENTITY = 0.02
"""Size of what is special about an item, to begin with. Tokens of unlike size 1 hide what things
have in common, and cost a fifth of what is learned in so many steps (docs/attention.md)."""
MASK_STEP = 8
"""Rows of a mask begin at multiples of this many numbers, as fused kernels want them."""


class Tokens(nn.Module):
    """What a set of entities looks like to the encoder."""

    places: Tensor
    told: Tensor
    present: Tensor
    facts: Tensor

    def __init__(self, entities: EntitySet, feature_at: list[int], width: int) -> None:
        """Make tokens of one width. feature_at: where the number of every feature lies in a row."""
        super().__init__()
        self.entities = entities
        self.each = len(entities.features[0]) if entities.features else 0
        flat = list(chain.from_iterable(entities.features))
        at = [feature_at[place] if place is not None else 0 for place in flat]
        told = torch.tensor([float(place is not None) for place in flat])
        present = torch.tensor([feature_at[place] for place in entities.present], dtype=torch.long)
        self.register_buffer("places", torch.tensor(at, dtype=torch.long), persistent=False)
        self.register_buffer("told", told.view(-1, max(1, self.each)), persistent=False)
        self.register_buffer("present", present, persistent=False)
        self.register_buffer("facts", torch.tensor(entities.constants), persistent=False)
        self.identity = nn.Parameter(torch.empty(entities.items, width))
        """What is special about every item."""
        if entities.constants:
            self.known = nn.Linear(len(entities.constants[0]), width, bias=False)
        if self.each:
            self.seen = nn.Linear(self.each, width, bias=False)

    def initialize(self) -> None:
        """What is seen of an item counts for more than which one it is."""
        nn.init.normal_(self.identity, std=IDENTITY)
        for own in self.children():
            assert isinstance(own, nn.Linear)
            orthogonal_(own.weight)

    def items(self) -> Tensor:
        """What is always true of every item [items, width]."""
        if not self.entities.constants:
            return self.identity
        known: Tensor = self.known(self.facts)
        return self.identity + known

    def chosen(self, numbers: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return which item every token is, and which tokens are there.

        The first is 1 at [row, token, item] and 0 elsewhere, None if token i is always item i; the
        second is [rows, tokens], None if all always are. Items that are there come in order.
        """
        if not self.entities.present:
            return None, None
        there = numbers.index_select(1, self.present) != 0
        if not self.entities.selects_present:
            return None, there
        turn = torch.cumsum(there, 1, dtype=torch.int32)
        slots = torch.arange(1, self.entities.tokens + 1, dtype=torch.int32, device=numbers.device)
        which = (turn * there)[:, None, :] == slots[None, :, None]
        return which.to(computed_in(numbers)), slots <= turn[:, -1:]

    def forward(self, numbers: Tensor, which: Tensor | None) -> Tensor:
        """Return tokens [rows, tokens, width]."""
        items = self.items()
        if which is not None:
            items = which @ items
        if not self.each:
            return items if which is not None else items.expand(numbers.shape[0], -1, -1)
        seen = (
            numbers.index_select(1, self.places).view(-1, self.entities.items, self.each)
            * self.told
        )
        if which is not None:
            seen = which @ seen
        tokens: Tensor = self.seen(seen)
        return tokens + items.to(tokens.dtype)


class Pointer(nn.Module):
    """Logits of the actions that refer to the items of one set, or of two."""

    def __init__(self, points: EntityActions | EntityPairActions, width: int) -> None:
        super().__init__()
        self.points = points
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)

    def initialize(self) -> None:
        """Almost alike for all items to begin with."""
        orthogonal_(self.query.weight, 0.01)
        nn.init.zeros_(self.query.bias)
        orthogonal_(self.key.weight)

    def forward(self, asks: Tensor, tokens: Tensor) -> Tensor:
        """How well each of the tokens fits each of those that ask [rows, asking, tokens]."""
        query, key = self.query(asks), self.key(tokens)
        fit: Tensor = query @ key.transpose(1, 2)
        return fit / math.sqrt(key.shape[-1])


class AttentionNet(Net):
    """An encoder over the tokens of entities and one token of the table."""

    order: Tensor

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **asked: Unpack[Asked]
    ) -> None:
        super().__init__(rules, config, **asked)
        check(config)
        self.declared = sorted_by_need(entities_of(rules))
        width = config.token_width
        self.first = FirstLayer(
            self.inputs, TABLE_WIDTH * width, sparse=config.sparse, threads=threads
        )
        self.table = nn.Linear(TABLE_WIDTH * width, width)
        lies = {feature: at for at, feature in enumerate(self.inputs.byte_ranges()[1])}
        feature_at = [lies[feature] for feature in range(len(lies))]
        self.sets = nn.ModuleDict(
            {one.name: Tokens(one, feature_at, width) for one in self.declared.sets}
        )
        self.encoder = nn.ModuleList(
            Layer(width, config.token_heads) for _ in range(config.token_layers)
        )
        self.end = Norm(width)
        """Tokens that are asked, those of the table and of entities that actions refer to, lie in
        front; the others are not needed behind the last layer."""
        self.spans, self.asked = spans_of(self.declared)
        if POLICY in self.heads:
            self._make_policy(rules, width)
        for name, numbers in self.heads.items():
            if name != POLICY:
                self.add_module(f"{name}_head", nn.Linear(width, numbers))
        self._initialize()

    def _make_policy(self, rules: Rules, width: int) -> None:
        """Pointers, and a linear layer for the actions that refer to nothing."""
        self.pointers = nn.ModuleList(Pointer(one, width) for one in self.declared.pointers)
        items = {one.name: one.items for one in self.declared.sets}
        told: list[int | None] = []
        for one in self.declared.pointers:
            told += actions_of(one, items)
        others = [action for action in range(self.heads[POLICY]) if action not in told]
        if others:
            self.policy_head = nn.Linear(width, len(others))
        at = {action: place for place, action in enumerate([*others, *told]) if action is not None}
        order = torch.tensor([at[action] for action in range(self.heads[POLICY])])
        self.register_buffer("order", order, persistent=False)
        self.others = bool(others)

    def _initialize(self) -> None:
        """A policy almost alike for all rows and the value 0 to begin with."""
        orthogonal_(self.first.weight, math.sqrt(2))
        orthogonal_(self.table.weight)
        nn.init.zeros_(self.table.bias)
        for module in self.modules():
            if isinstance(module, Tokens | Layer | Pointer):
                module.initialize()
        for name in self.heads:
            head = getattr(self, f"{name}_head", None)
            if head is not None:
                nn.init.zeros_(head.bias)
                orthogonal_(head.weight, 0.01)
        if VALUE in self.heads:
            nn.init.zeros_(self.value_head.weight)

    def forward(self, obs: Tensor) -> HeadOutputs:
        numbers = self.first.widen(obs)
        sparse = self.first.sparse and obs.device.type == "cpu"
        hidden = self.first(obs) if sparse else self.first.of(numbers)
        tokens: list[Tensor] = [self.table(functional.relu(hidden))[:, None]]
        which: dict[str, Tensor | None] = {}
        there: list[Tensor | None] = [None]
        for name, own in self.sets.items():
            assert isinstance(own, Tokens)
            which[name], seen = own.chosen(numbers)
            there.append(seen)
            tokens.append(own(numbers, which[name]).to(tokens[0].dtype))
        x = torch.cat(tokens, dim=1)
        return self.answer(self.encode(x, self.absent(there, x)), which)

    def absent(self, there: list[Tensor | None], x: Tensor) -> Tensor | None:
        """What is added to the attention that a token gets [rows, 1, 1, tokens]."""
        if all(seen is None for seen in there):
            return None
        widths = [1, *(entities.tokens for entities in self.declared.sets)]
        wide = -(-sum(widths) // MASK_STEP) * MASK_STEP
        parts = [
            x.new_ones(x.shape[0], width, dtype=torch.bool) if seen is None else seen
            for seen, width in zip(there, widths, strict=True)
        ]
        parts.append(x.new_ones(x.shape[0], wide - sum(widths), dtype=torch.bool))
        mask = x.new_zeros(x.shape[0], wide).masked_fill(~torch.cat(parts, 1), -math.inf)
        return mask[:, None, None, : sum(widths)]

    def encode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Let tokens look at each other; returns those that are asked."""
        for at, layer in enumerate(self.encoder):
            x = layer(x, mask, self.asked if at == len(self.encoder) - 1 else x.shape[1])
        end: Tensor = self.end(x)
        return end

    def answer(self, x: Tensor, which: Mapping[str, Tensor | None]) -> HeadOutputs:
        """What heads say about tokens that are asked. which: item every token is, by set."""
        table = x[:, 0]
        heads: HeadOutputs = {}
        for name in self.heads:
            if name == POLICY:
                heads[name] = self.logits(x, which)
            else:
                heads[name] = getattr(self, f"{name}_head")(table)
        if VALUE in heads:
            heads[VALUE] = heads[VALUE].squeeze(-1)
        return heads

    def logits(self, x: Tensor, which: Mapping[str, Tensor | None]) -> Tensor:
        """A logit for every action; 0 for those that refer to what is not there."""
        parts = [self.policy_head(x[:, 0])] if self.others else []
        for pointer in self.pointers:
            assert isinstance(pointer, Pointer)
            points = pointer.points
            first = "" if isinstance(points, EntityActions) else points.first
            second = points.entity_set if isinstance(points, EntityActions) else points.second
            fit = pointer(x[:, self.spans[first]], x[:, self.spans[second]])
            if (lies := which.get(second)) is not None:
                fit = fit @ lies.to(fit.dtype)
            if (lies := which.get(first)) is not None:
                fit = lies.transpose(1, 2).to(fit.dtype) @ fit
            parts.append(fit.flatten(1))
        return torch.cat(parts, dim=1).index_select(1, self.order)


def check(config: NetConfig) -> None:
    if config.token_width % config.token_heads:
        fits = [n for n in range(1, config.token_heads) if config.token_width % n == 0]
        raise ConfigError(
            f"net.token_heads {config.token_heads} does not divide net.token_width "
            f"{config.token_width}; nearest: {fits[-1]}"
        )


def sorted_by_need(declared: EntitySpec) -> EntitySpec:
    """Put sets that actions refer to in front, and leave out pointers without actions."""
    used = tuple(one for one in declared.pointers if one.actions)
    needed = {name for one in used for name in one.entity_sets}
    sets = sorted(declared.sets, key=lambda entities: entities.name not in needed)
    return EntitySpec(tuple(sets), used)


def spans_of(declared: EntitySpec) -> tuple[dict[str, slice], int]:
    """Where tokens lie by set, that of the table as "", and how many of them are asked."""
    spans, at, asked = {"": slice(0, 1)}, 1, 1
    needed = {name for one in declared.pointers for name in one.entity_sets}
    for entities in declared.sets:
        spans[entities.name] = slice(at, at + entities.tokens)
        at += entities.tokens
        asked = at if entities.name in needed else asked
    return spans, asked


def actions_of(
    points: EntityActions | EntityPairActions, items: Mapping[str, int]
) -> list[int | None]:
    """The actions of all items, or of all pairs of them, in the order of a pointer's logits."""
    if isinstance(points, EntityActions):
        return [points.actions.get(item) for item in range(items[points.entity_set])]
    return [
        points.actions.get((i, j))
        for i in range(items[points.first])
        for j in range(items[points.second])
    ]
