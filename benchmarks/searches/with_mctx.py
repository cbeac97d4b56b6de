"""mctx with the rules of Pgx: Gumbel AlphaZero as its own examples do it, for search_peers.py.

The embedding of a node is the Pgx state; `recurrent_fn` steps it and asks the network. Networks
are those of sparring, in plain JAX. Needs jax, mctx and pgx, and nothing of sparring.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx

from searches.cases import FREE, NETWORK, OPENING_MOVES, SEARCH, Case, serve

PIECES = (*range(14), *range(31, 45))
"""Planes of Shogi's 119 that sparring has too: the pieces of both."""
VALUE_CHANNELS, VALUE_HIDDEN = 8, 64
Evaluate = Callable[[Any, Any], tuple[jax.Array, jax.Array]]
"""Maps parameters and a batch of Pgx states to logits and values."""


class WithMctx:
    """Compiled searches of one case."""

    def __init__(self, case: Case) -> None:
        env = pgx.make(case.game)
        key = jax.random.PRNGKey(case.seed)
        states = jax.jit(partial(opening, env, case.batch))(key)
        make = residual if case.channels else perceptron
        params, network = make(case, env.num_actions, states.observation.shape, key)
        evaluate = in_precision(network, bf16=case.bf16)
        trees = Trees(env, case, evaluate)
        searches = {
            SEARCH: jax.jit(trees.decide),
            NETWORK: jax.jit(partial(network_alone, case, evaluate)),
            FREE: jax.jit(Trees(env, case, zeros).decide),
        }
        self.works = {
            name: partial(finished, work, params, key, states) for name, work in searches.items()
        }
        tree = jax.eval_shape(trees.grow, params, key, states).search_tree
        self.facts = {
            "versions": {name: version(name) for name in ("jax", "mctx", "pgx")},
            "device": str(jax.devices()[0]),
            "parameters": sum(leaf.size for leaf in jax.tree.leaves(params)),
            "rows": case.batch * (case.simulations + 1),
            "bytes_per_node": round(tree_bytes(tree) / (case.batch * (case.simulations + 1))),
        }


def finished(work: Any, *given: Any) -> Any:
    return jax.block_until_ready(work(*given))


def tree_bytes(tree: Any) -> int:
    """Bytes of all arrays of the trees."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def opening(env: Any, batch: int, key: jax.Array) -> Any:
    """Return games after some random moves."""

    def move(number: jax.Array, states: Any) -> Any:
        legal = jnp.where(states.legal_action_mask, 0.0, -jnp.inf)
        actions = jax.random.categorical(jax.random.fold_in(key, number), legal)
        return jax.vmap(env.step)(states, actions)

    states = jax.vmap(env.init)(jax.random.split(key, batch))
    return jax.lax.fori_loop(0, OPENING_MOVES, move, states)


@dataclass(frozen=True)
class Trees:
    """Searches with the settings that sparring has for zero-sum games."""

    env: Any
    case: Case
    evaluate: Evaluate
    noise: float = 1.0

    def grow(self, params: Any, key: jax.Array, states: Any) -> Any:
        """Search from all states."""
        logits, value = self.evaluate(params, states)
        return mctx.gumbel_muzero_policy(
            params=params,
            rng_key=key,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            recurrent_fn=self.expand,
            num_simulations=self.case.simulations,
            invalid_actions=~states.legal_action_mask,
            qtransform=partial(
                mctx.qtransform_completed_by_mix_value, value_scale=1.0, rescale_values=False
            ),
            max_num_considered_actions=self.case.considered,
            gumbel_scale=self.noise,
        )

    def decide(self, params: Any, key: jax.Array, states: Any) -> Any:
        """Return actions and improved policies."""
        found = self.grow(params, key, states)
        return found.action, found.action_weights

    def expand(self, params: Any, _: Any, action: jax.Array, states: Any) -> Any:
        """Step the states of parents; values are those of the next mover, hence the discount -1."""
        mover = states.current_player
        states = jax.vmap(self.env.step)(states, action)
        logits, value = self.evaluate(params, states)
        step = mctx.RecurrentFnOutput(
            reward=jnp.take_along_axis(states.rewards, mover[:, None], axis=1)[:, 0],
            discount=jnp.where(states.terminated, 0.0, -1.0),
            prior_logits=jnp.where(states.legal_action_mask, logits, jnp.finfo(logits.dtype).min),
            value=jnp.where(states.terminated, 0.0, value),
        )
        return step, states


def network_alone(case: Case, evaluate: Evaluate, params: Any, _: Any, states: Any) -> Any:
    """Evaluate as often as a search does, each time after the one before."""

    def again(_: Any, total: jax.Array) -> jax.Array:
        seen = jnp.where(total > 1e30, ~states.observation, states.observation)
        logits, value = evaluate(params, states.replace(observation=seen))
        return total + value.sum() + logits.sum()

    return jax.lax.fori_loop(0, case.simulations + 1, again, jnp.float32(0))


def zeros(_: Any, states: Any) -> tuple[jax.Array, jax.Array]:
    """An evaluator that costs nothing."""
    mask = states.legal_action_mask
    return jnp.zeros(mask.shape), jnp.zeros(len(mask))


def in_precision(network: Any, *, bf16: bool) -> Evaluate:
    """Return a network whose products are in float32 or bfloat16; outputs are in float32."""
    kind = jnp.bfloat16 if bf16 else jnp.float32

    def evaluate(params: Any, states: Any) -> tuple[jax.Array, jax.Array]:
        weights = jax.tree.map(lambda leaf: leaf.astype(kind), params)
        logits, value = network(weights, states.observation.astype(kind))
        return logits.astype(jnp.float32), value.astype(jnp.float32)

    return evaluate


def normal(key: jax.Array, name: int, *shape: int, scale: float = 2.0) -> jax.Array:
    """Initial weights; all axes but the last are inputs."""
    size = math.sqrt(scale / math.prod(shape[:-1]))
    return size * jax.random.normal(jax.random.fold_in(key, name), shape)


def perceptron(case: Case, actions: int, shape: tuple[int, ...], key: jax.Array) -> Any:
    """Return parameters and function of hidden layers with relu and two heads."""
    sizes = (math.prod(shape[1:]), *case.hidden)
    layers = [
        (normal(key, i, *pair), jnp.zeros(pair[1]))
        for i, pair in enumerate(itertools.pairwise(sizes))
    ]
    head = normal(key, len(sizes), sizes[-1], actions + 1, scale=0.01), jnp.zeros(actions + 1)

    def network(params: Any, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
        layers, (weight, bias) = params
        x = obs.reshape(len(obs), -1)
        for layer, shift in layers:
            x = jax.nn.relu(x @ layer + shift)
        x = x @ weight + bias
        return x[:, :-1], x[:, -1]

    return (layers, head), network


def residual(case: Case, actions: int, shape: tuple[int, ...], key: jax.Array) -> Any:
    """Return parameters and function of a tower over the board, as sparring's `ResidualNet`."""
    squares, channels = math.prod(shape[1:3]), case.channels
    kernels = [(len(PIECES), channels), *[(channels, channels)] * (2 * case.blocks)]
    params = {
        "tower": [
            (normal(key, i, 3, 3, *pair), jnp.zeros(channels)) for i, pair in enumerate(kernels)
        ],
        "policy": normal(key, 90, channels, actions // squares, scale=0.01),
        "bias": jnp.zeros(actions),
        "map": (normal(key, 91, channels, VALUE_CHANNELS), jnp.zeros(VALUE_CHANNELS)),
        "hidden": (
            normal(key, 92, VALUE_CHANNELS * squares, VALUE_HIDDEN),
            jnp.zeros(VALUE_HIDDEN),
        ),
        "value": normal(key, 93, VALUE_HIDDEN, 1, scale=0.01),
    }

    def network(params: Any, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = obs[..., jnp.array(PIECES)]
        stem, *rest = params["tower"]
        x = jax.nn.relu(convolved(x, *stem))
        for first, second in zip(rest[::2], rest[1::2], strict=True):
            x = jax.nn.relu(x + convolved(jax.nn.relu(convolved(x, *first)), *second))
        x = x.reshape(len(x), squares, channels)
        logits = jnp.swapaxes(x @ params["policy"], 1, 2).reshape(len(x), -1) + params["bias"]
        (weight, shift), (hidden, bias) = params["map"], params["hidden"]
        seen = jax.nn.relu(x @ weight + shift).reshape(len(x), -1)
        return logits, (jax.nn.relu(seen @ hidden + bias) @ params["value"])[:, 0]

    return params, network


def convolved(x: jax.Array, kernel: jax.Array, bias: jax.Array) -> jax.Array:
    order = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=order) + bias


if __name__ == "__main__":
    serve(WithMctx)
