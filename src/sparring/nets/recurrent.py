"""A perceptron with a state of its own between a seat's decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.distribution import FIRST_LOG_SPREAD
from sparring.nets.first_layer import FirstLayer, Tanh
from sparring.nets.gru_steps import gates, unrolled
from sparring.nets.initial import orthogonal_
from sparring.nets.inputs import Inputs
from sparring.nets.memory import held
from sparring.nets.mlp import ACTIVATIONS, head_mask, initialise_seen, tower
from sparring.nets.net import MEMORY, POLICY, VALUE, Heads, Net
from sparring.nets.normaliser import Normaliser


class RecurrentNet(Net):
    """Layers over the observation, a GRU cell over what the seat remembers, and heads behind it.

    The state is read from the bytes behind the observation, so that a row is all that a decision
    depends on. It stays in float32, whatever products are computed in.
    """

    head_mask: Tensor

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        *,
        heads: Mapping[str, int] | None = None,
        memory: int = 0,
        threads: int = 1,
    ) -> None:
        super().__init__(rules, config, heads=heads, memory=memory)
        assert config.shared and not (config.policy_hidden or config.value_hidden)
        shown = Inputs(rules, 0, config.inputs)
        self.first = FirstLayer(
            shown,
            config.hidden[0],
            sparse=config.sparse,
            threads=threads,
            normalise=config.normalise,
        )
        first_norm = [nn.LayerNorm(config.hidden[0])] if config.norm else []
        self.trunk = nn.Sequential(
            *first_norm,
            self._make_activation(),
            *tower(config.hidden, self._make_activation, norm=config.norm),
        )
        self.cell = nn.GRUCell(config.hidden[-1], config.memory_width)
        for name, width in self.heads.items():
            self.add_module(f"{name}_head", nn.Linear(config.memory_width, width))
        self.register_buffer("head_mask", head_mask(rules, config), persistent=False)
        self._initialise(shown)

    def _make_activation(self) -> nn.Module:
        if self.config.activation == "tanh":
            return Tanh(self.first.native, fast=self.config.sparse)
        return ACTIVATIONS[self.config.activation]()

    def _initialise(self, shown: Inputs) -> None:
        """Orthogonal weights, those of the cell gate by gate; heads as a perceptron's."""
        gain = math.sqrt(2) if self.config.activation != "tanh" else 5 / 3
        initialise_seen(self.first.weight, shown, gain)
        for module in self.trunk.modules():
            if isinstance(module, nn.Linear):
                orthogonal_(module.weight, gain)
                nn.init.zeros_(module.bias)
        with torch.no_grad():
            for weight in (self.cell.weight_ih, self.cell.weight_hh):
                for gate in weight.chunk(3):
                    orthogonal_(gate)
        nn.init.zeros_(self.cell.bias_ih)
        nn.init.zeros_(self.cell.bias_hh)
        for name in self.heads:
            head = self._head(name)
            nn.init.zeros_(head.bias)
            if name == VALUE:
                nn.init.zeros_(head.weight)
            else:
                orthogonal_(head.weight, 0.01)
            if name == POLICY and self.box:
                nn.init.constant_(head.bias[self.box :], FIRST_LOG_SPREAD)

    def _head(self, name: str) -> nn.Linear:
        head = self.get_submodule(f"{name}_head")
        assert isinstance(head, nn.Linear)
        return head

    @property
    def normaliser(self) -> Normaliser | None:
        """What observations are normalised by, None if they are not."""
        return self.first.normaliser

    def take_in(self, obs: Tensor) -> None:
        """Add byte rows to what observations are normalised by."""
        self.first.take_in(obs)

    def forward(self, obs: Tensor) -> Heads:
        """Return what every head says about byte rows [rows, row_bytes], and the state after."""
        return self.step(obs, self._state(obs))

    def step(self, shown: Tensor, state: Tensor) -> Heads:
        """The same of rows as the first layer takes them, where this is remembered of seats."""
        return self._say(self._next(self._shown(shown), state))

    def unroll(self, obs: Tensor, fresh: Tensor) -> Heads:
        """Return what heads say about decisions in a row, as if they were made now.

        obs: [segments, steps, row_bytes]. The first row of a segment, and one where `fresh`
        [segments, steps] says that it does not go on from the one before, brings its state along
        as it was played; of all others it is what the step before has made of it. Answers are
        [segments * steps, ...], in the order of the rows.
        """
        segments, steps, width = obs.shape
        rows = obs.transpose(0, 1).reshape(steps * segments, width)
        states = unrolled(
            self._shown(rows).view(steps, segments, -1),
            self._state(rows).view(steps, segments, -1),
            fresh.bool().T.unsqueeze(-1),
            self.cell.weight_hh,
            self.cell.bias_hh,
        )
        return self._say(states.transpose(0, 1).reshape(segments * steps, -1))

    def _shown(self, obs: Tensor) -> Tensor:
        """What the gates are given by rows themselves."""
        return functional.linear(
            self.trunk(self.first(obs)), self.cell.weight_ih, self.cell.bias_ih
        )

    def _state(self, obs: Tensor) -> Tensor:
        """What is remembered of the seats of rows."""
        return held(self.inputs, obs)[:, : self.config.memory_width]

    def _next(self, shown: Tensor, state: Tensor) -> Tensor:
        """One step of the cell, as `nn.GRUCell` has it, in float32 behind the products."""
        kept = functional.linear(state, self.cell.weight_hh, self.cell.bias_hh).float()
        return gates(shown.float(), kept, state)[2]

    def _say(self, state: Tensor) -> Heads:
        """What heads read from states, and the states as they are remembered."""
        heads: Heads = {}
        for name in self.heads:
            head = self._head(name)
            weight = head.weight * self.head_mask if name == POLICY and self.box else head.weight
            heads[name] = functional.linear(state, weight, head.bias)
        if VALUE in heads:
            heads[VALUE] = heads[VALUE].squeeze(-1)
        filled = self.inputs.memory // 4 - state.shape[1]
        heads[MEMORY] = functional.pad(state, (0, filled)) if filled else state
        return heads
