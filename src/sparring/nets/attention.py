"""Transformer encoder over the entities that a game declares: cards, players, animals.

Every entity that is present becomes a token; one more token stands for the whole table. The value
reads the table's token; the logit of an action that refers to an entity reads that entity's token,
so that it does not depend on the entity's index.

Shapes never depend on the observation and nothing synchronizes with the device: a CUDA graph can
capture all of it. A test compares the network with loops over rows, entities and heads.
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
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.layers import FirstLayer, orthogonal_
from sparring.nets.net import HeadOutputs, Net, NetOptions

FEED_FORWARD_FACTOR = 2
"""Width of an encoder layer's hidden layer, in widths of a token."""
MAX_ROWS = 32768
"""Rows of one attention call on a GPU: the kernels' block index for rows ends at 65,535."""


def is_autocast(x: Tensor) -> bool:
    """Whether autocast changes the dtype of products of x."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def product_dtype(x: Tensor) -> torch.dtype:
    return torch.get_autocast_dtype(x.device.type) if is_autocast(x) else x.dtype


class Norm(nn.LayerNorm):
    """Layer norm that keeps the dtype of its input: autocast would convert tokens to float32."""

    def forward(self, x: Tensor) -> Tensor:
        if not is_autocast(x):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
            return functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network per token, each with layer norm before it.

    Its modules are named in saved policies: `look` is the projection to queries, keys and values,
    `seen` the output projection.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = Norm(width)
        self.look = nn.Linear(width, 3 * width)
        self.seen = nn.Linear(width, width)
        self.between = Norm(width)
        self.up = nn.Linear(width, FEED_FORWARD_FACTOR * width)
        self.down = nn.Linear(FEED_FORWARD_FACTOR * width, width)

    def initialize(self) -> None:
        """Initialize the layer to the identity: both residual branches are 0."""
        for layer in (self.look, self.up):
            orthogonal_(layer.weight)
            nn.init.zeros_(layer.bias)
        for layer in (self.seen, self.down):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, mask: Tensor | None, count: int) -> Tensor:
        """Return the first `count` of the tokens [rows, tokens, width]; all are attended to.

        mask: added to the attention scores of each token [rows, 1, 1, tokens].
        """
        normed = self.before(x)
        query, key, value = self.project(normed, count)
        x = x[:, :count] + self.seen(attend(query, key, value, mask).transpose(1, 2).flatten(2))
        added: Tensor = self.down(functional.relu(self.up(self.between(x))))
        return x + added

    def project(self, x: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries of the first tokens, keys and values of all, split by head."""
        width = x.shape[2]
        if count == x.shape[1]:
            query, key, value = self.look(x).chunk(3, dim=2)
        else:
            weight, bias = self.look.weight, self.look.bias
            query = functional.linear(x[:, :count], weight[:width], bias[:width])
            key, value = functional.linear(x, weight[width:], bias[width:]).chunk(2, dim=2)
        return self.split(query), self.split(key), self.split(value)

    def split(self, x: Tensor) -> Tensor:
        """Split by head: [rows, heads, tokens, width / heads]."""
        rows, tokens, width = x.shape
        return x.view(rows, tokens, self.heads, width // self.heads).transpose(1, 2)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Return the attention output [rows, heads, tokens, width / heads], in chunks of rows."""
    if not query.is_cuda or len(query) <= MAX_ROWS:
        return functional.scaled_dot_product_attention(query, key, value, mask)
    parts = [torch.split(tensor, MAX_ROWS) for tensor in (query, key, value)]
    masks = torch.split(mask, MAX_ROWS) if mask is not None else [None] * len(parts[0])
    return torch.cat(
        [
            functional.scaled_dot_product_attention(q, k, v, m)
            for q, k, v, m in zip(*parts, masks, strict=True)
        ]
    )


TABLE_WIDTH = 4
"""Width of the hidden layer before the table's token, in widths of a token."""
IDENTITY_STD = 0.02
"""Initial std of an item's embedding. Embeddings of size 1 hide what entities have in common and
cost a fifth of the progress in the same number of steps (docs/guides/networks.md)."""
MASK_STEP = 8
"""Rows of a mask are padded to multiples of this many numbers, as fused kernels need them."""


class Tokens(nn.Module):
    """Embeds one set of entities. `identity`, `known` and `seen` are named in saved policies."""

    columns: Tensor
    exists: Tensor
    present: Tensor
    facts: Tensor

    def __init__(self, entities: EntitySet, feature_at: list[int], width: int) -> None:
        """Make tokens of this width. feature_at: column of every feature in the first layer."""
        super().__init__()
        self.entities = entities
        self.features_each = len(entities.features[0]) if entities.features else 0
        features = list(chain.from_iterable(entities.features))
        columns = [feature_at[index] if index is not None else 0 for index in features]
        exists = torch.tensor([float(index is not None) for index in features])
        present = torch.tensor([feature_at[index] for index in entities.present], dtype=torch.long)
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.long), persistent=False)
        exists = exists.view(-1, max(1, self.features_each))
        self.register_buffer("exists", exists, persistent=False)
        self.register_buffer("present", present, persistent=False)
        self.register_buffer("facts", torch.tensor(entities.constants), persistent=False)
        self.identity = nn.Parameter(torch.empty(entities.items, width))
        """Learned embedding of every item."""
        if entities.constants:
            self.known = nn.Linear(len(entities.constants[0]), width, bias=False)
        if self.features_each:
            self.seen = nn.Linear(self.features_each, width, bias=False)

    def initialize(self) -> None:
        """Initialize embeddings small, so that features outweigh an item's identity."""
        nn.init.normal_(self.identity, std=IDENTITY_STD)
        for layer in self.children():
            assert isinstance(layer, nn.Linear)
            orthogonal_(layer.weight)

    def items(self) -> Tensor:
        """Return the embedding of every item with its constant facts [items, width]."""
        if not self.entities.constants:
            return self.identity
        facts: Tensor = self.known(self.facts)
        return self.identity + facts

    def assign(self, numbers: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return the item of every token, and which tokens are present.

        The first is one-hot [row, token, item], None if token i is always item i; the second is
        [rows, tokens], None if all tokens always are. Items that are present come in order.
        """
        if not self.entities.present:
            return None, None
        present = numbers.index_select(1, self.present) != 0
        if not self.entities.selects_present:
            return None, present
        count = torch.cumsum(present, 1, dtype=torch.int32)
        tokens = torch.arange(1, self.entities.tokens + 1, dtype=torch.int32, device=numbers.device)
        one_hot = (count * present)[:, None, :] == tokens[None, :, None]
        return one_hot.to(product_dtype(numbers)), tokens <= count[:, -1:]

    def forward(self, numbers: Tensor, one_hot: Tensor | None) -> Tensor:
        """Return tokens [rows, tokens, width]. one_hot: from `assign`."""
        items = self.items()
        if one_hot is not None:
            items = one_hot @ items
        if not self.features_each:
            return items if one_hot is not None else items.expand(numbers.shape[0], -1, -1)
        features = numbers.index_select(1, self.columns)
        features = features.view(-1, self.entities.items, self.features_each) * self.exists
        if one_hot is not None:
            features = one_hot @ features
        tokens: Tensor = self.seen(features)
        return tokens + items.to(tokens.dtype)


class Pointer(nn.Module):
    """Logits of the actions that refer to the items of one set, or of two."""

    def __init__(self, points: EntityActions | EntityPairActions, width: int) -> None:
        super().__init__()
        self.points = points
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)

    def initialize(self) -> None:
        """Initialize to logits that are nearly equal for all items."""
        orthogonal_(self.query.weight, 0.01)
        nn.init.zeros_(self.query.bias)
        orthogonal_(self.key.weight)

    def forward(self, queries: Tensor, tokens: Tensor) -> Tensor:
        """Return the scores of all pairs of query tokens and tokens [rows, queries, tokens]."""
        query, key = self.query(queries), self.key(tokens)
        scores: Tensor = query @ key.transpose(1, 2)
        return scores / math.sqrt(key.shape[-1])


class AttentionNet(Net):
    """An encoder over the tokens of entities and one token of the table."""

    order: Tensor

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **options: Unpack[NetOptions]
    ) -> None:
        super().__init__(rules, config, **options)
        check_token_heads(config)
        self.declared = sorted_by_need(entities_of(rules))
        width = config.token_width
        self.first = FirstLayer(
            self.inputs, TABLE_WIDTH * width, sparse=config.sparse, threads=threads
        )
        self.table = nn.Linear(TABLE_WIDTH * width, width)
        column_of = {feature: at for at, feature in enumerate(self.inputs.byte_ranges()[1])}
        feature_at = [column_of[feature] for feature in range(len(column_of))]
        self.sets = nn.ModuleDict(
            {one.name: Tokens(one, feature_at, width) for one in self.declared.sets}
        )
        self.encoder = nn.ModuleList(
            EncoderLayer(width, config.token_heads) for _ in range(config.token_layers)
        )
        self.end = Norm(width)
        """Layer norm after the encoder."""
        self.spans, self.output_tokens = spans_of(self.declared)
        """Tokens that heads read come first: the table's, and those that actions refer to. The last
        layer does not compute the others."""
        if POLICY in self.heads:
            self._make_policy(rules, width)
        for name, numbers in self.heads.items():
            if name != POLICY:
                self.add_module(f"{name}_head", nn.Linear(width, numbers))
        if not self.first.weight.is_meta:  # where drawing would load torch's compiler, for nothing
            self._initialize()

    def _make_policy(self, rules: Rules, width: int) -> None:
        """Make pointers, and a linear layer for the actions that refer to no entity."""
        self.pointers = nn.ModuleList(Pointer(one, width) for one in self.declared.pointers)
        items = {one.name: one.items for one in self.declared.sets}
        pointed: list[int | None] = []
        for one in self.declared.pointers:
            pointed += actions_of(one, items)
        others = [action for action in range(self.heads[POLICY]) if action not in pointed]
        if others:
            self.policy_head = nn.Linear(width, len(others))
        outputs = enumerate([*others, *pointed])
        output_of = {action: output for output, action in outputs if action is not None}
        order = torch.tensor([output_of[action] for action in range(self.heads[POLICY])])
        self.register_buffer("order", order, persistent=False)
        self.has_other_actions = bool(others)

    def _initialize(self) -> None:
        """Initialize to a policy that is nearly equal for all rows, and the value 0."""
        orthogonal_(self.first.weight, math.sqrt(2))
        orthogonal_(self.table.weight)
        nn.init.zeros_(self.table.bias)
        for module in self.modules():
            if isinstance(module, Tokens | EncoderLayer | Pointer):
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
        hidden = self.first(obs) if sparse else self.first.forward_numbers(numbers)
        tokens: list[Tensor] = [self.table(functional.relu(hidden))[:, None]]
        items: dict[str, Tensor | None] = {}
        present: list[Tensor | None] = [None]
        for name, embedding in self.sets.items():
            assert isinstance(embedding, Tokens)
            items[name], is_present = embedding.assign(numbers)
            present.append(is_present)
            tokens.append(embedding(numbers, items[name]).to(tokens[0].dtype))
        x = torch.cat(tokens, dim=1)
        return self.head_outputs(self.encode(x, self.attention_mask(present, x)), items)

    def attention_mask(self, present: list[Tensor | None], x: Tensor) -> Tensor | None:
        """Return 0 for present tokens and -inf for others [rows, 1, 1, tokens]; None: all are."""
        if all(is_present is None for is_present in present):
            return None
        widths = [1, *(entities.tokens for entities in self.declared.sets)]
        padded = -(-sum(widths) // MASK_STEP) * MASK_STEP
        parts = [
            x.new_ones(x.shape[0], width, dtype=torch.bool) if is_present is None else is_present
            for is_present, width in zip(present, widths, strict=True)
        ]
        parts.append(x.new_ones(x.shape[0], padded - sum(widths), dtype=torch.bool))
        mask = x.new_zeros(x.shape[0], padded).masked_fill(~torch.cat(parts, 1), -math.inf)
        return mask[:, None, None, : sum(widths)]

    def encode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Run the encoder; return the tokens that heads read."""
        last = len(self.encoder) - 1
        for number, layer in enumerate(self.encoder):
            x = layer(x, mask, self.output_tokens if number == last else x.shape[1])
        normed: Tensor = self.end(x)
        return normed

    def head_outputs(self, x: Tensor, items: Mapping[str, Tensor | None]) -> HeadOutputs:
        """Return the outputs of all heads. items: one-hot items of the tokens, by set."""
        table = x[:, 0]
        outputs: HeadOutputs = {}
        for name in self.heads:
            if name == POLICY:
                outputs[name] = self.logits(x, items)
            else:
                outputs[name] = getattr(self, f"{name}_head")(table)
        if VALUE in outputs:
            outputs[VALUE] = outputs[VALUE].squeeze(-1)
        return outputs

    def logits(self, x: Tensor, items: Mapping[str, Tensor | None]) -> Tensor:
        """Return a logit for every action; 0 for actions that refer to an absent entity."""
        parts = [self.policy_head(x[:, 0])] if self.has_other_actions else []
        for pointer in self.pointers:
            assert isinstance(pointer, Pointer)
            points = pointer.points
            first = "" if isinstance(points, EntityActions) else points.first
            second = points.entity_set if isinstance(points, EntityActions) else points.second
            scores = pointer(x[:, self.spans[first]], x[:, self.spans[second]])
            if (one_hot := items.get(second)) is not None:
                scores = scores @ one_hot.to(scores.dtype)
            if (one_hot := items.get(first)) is not None:
                scores = one_hot.transpose(1, 2).to(scores.dtype) @ scores
            parts.append(scores.flatten(1))
        return torch.cat(parts, dim=1).index_select(1, self.order)


def check_token_heads(config: NetConfig) -> None:
    if config.token_width % config.token_heads:
        fits = [n for n in range(1, config.token_heads) if config.token_width % n == 0]
        raise ConfigError(
            f"net.token_heads {config.token_heads} does not divide net.token_width "
            f"{config.token_width}; nearest: {fits[-1]}"
        )


def sorted_by_need(declared: EntitySpec) -> EntitySpec:
    """Move sets that actions refer to to the front, and drop pointers without actions."""
    used = tuple(one for one in declared.pointers if one.actions)
    needed = {name for one in used for name in one.entity_sets}
    sets = sorted(declared.sets, key=lambda entities: entities.name not in needed)
    return EntitySpec(tuple(sets), used)


def spans_of(declared: EntitySpec) -> tuple[dict[str, slice], int]:
    """Return the tokens of each set, of the table as "", and how many tokens heads read."""
    spans, end, output_tokens = {"": slice(0, 1)}, 1, 1
    needed = {name for one in declared.pointers for name in one.entity_sets}
    for entities in declared.sets:
        spans[entities.name] = slice(end, end + entities.tokens)
        end += entities.tokens
        output_tokens = end if entities.name in needed else output_tokens
    return spans, output_tokens


def actions_of(
    points: EntityActions | EntityPairActions, items: Mapping[str, int]
) -> list[int | None]:
    """Return the actions of a pointer's logits: of all items, or of all pairs of items."""
    if isinstance(points, EntityActions):
        return [points.actions.get(item) for item in range(items[points.entity_set])]
    return [
        points.actions.get((i, j))
        for i in range(items[points.first])
        for j in range(items[points.second])
    ]
