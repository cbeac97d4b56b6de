"""Visit counts of both searches from the same positions, with the same evaluations.

The evaluator is a table of random logits and values, in which a position has the row that a sum
over its pieces leads to. Without noise a search is then a function of the position. A file says
what to search; `python -m searches.agreement SIDE FILE` prints visits and actions as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from searches.cases import Case

BOARDS = {"tic_tac_toe": (3, 3), "connect_four": (6, 7)}
ROWS = 1 << 16
"""Of the table."""


class Table:
    """Random evaluations, the same for the same seed."""

    def __init__(self, game: str, actions: int, seed: int) -> None:
        height, width = BOARDS[game]
        rng = np.random.default_rng(seed)
        self.weights = rng.integers(0, ROWS, (2, height * width), dtype=np.int32)
        self.logits = rng.normal(size=(ROWS, actions)).astype(np.float32)
        self.values = rng.uniform(-0.9, 0.9, ROWS).astype(np.float32)

    def row(self, own: Any, other: Any) -> Any:
        """Return the rows of positions [B, squares], which begin in the bottom left corner."""
        return ((own * self.weights[0]).sum(-1) + (other * self.weights[1]).sum(-1)) % ROWS


def ours(case: Case, moves: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Search every position with sparring."""
    from sparring import Rules, new_state
    from sparring.search.budget import Budget
    from sparring.search.search import Search, SearchConfig

    rules = Rules(case.game)
    table, squares = Table(case.game, rules.actions, case.seed), np.prod(BOARDS[case.game])

    def evaluate(obs: npt.NDArray[np.uint8]) -> Any:
        seen = obs.astype(np.int32)
        rows = table.row(seen[:, :squares], seen[:, squares : 2 * squares])
        return table.logits[rows], table.values[rows]

    config = SearchConfig(considered=case.considered, prove=False)
    search = Search(rules, evaluate, Budget(case.simulations), config=config)
    visits, actions = [], []
    for line in moves:
        state = new_state(rules)
        for move in line:
            state.apply(move)
        found = search.from_state(state)
        visits.append(found.visits[0].tolist())
        actions.append(int(found.action[0]))
    return {"visits": visits, "actions": actions}


def with_mctx(case: Case, moves: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Search every position with mctx."""
    import jax
    import jax.numpy as jnp
    import pgx

    from searches.with_mctx import Trees

    env = pgx.make(case.game)
    table = Table(case.game, env.num_actions, case.seed)
    logits, values = jnp.array(table.logits), jnp.array(table.values)

    def evaluate(_: Any, states: Any) -> Any:
        seen = states.observation.astype(jnp.int32)
        if case.game == "connect_four":
            seen = seen[:, ::-1]  # Pgx begins at the top
        seen = seen.reshape(len(seen), -1, 2)
        rows = table.row(seen[..., 0], seen[..., 1])
        return logits[rows], values[rows]

    trees = Trees(env, case, evaluate, noise=0.0)
    found = jax.jit(trees.grow)(None, jax.random.PRNGKey(0), played(env, moves))
    visits = found.search_tree.summary().visit_counts.astype(jnp.int32)
    return {"visits": visits.tolist(), "actions": found.action.tolist()}


def played(env: Any, moves: Sequence[Sequence[int]]) -> Any:
    """Return Pgx states after these moves."""
    import jax
    import jax.numpy as jnp

    step = jax.jit(env.step)
    states = []
    for line in moves:
        state = env.init(jax.random.PRNGKey(0))
        for move in line:
            state = step(state, jnp.int32(move))
        states.append(state)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def compare(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Count positions with the same visits and the same action; keep those that differ."""
    same = [a == b for a, b in zip(first["visits"], second["visits"], strict=True)]
    actions = [a == b for a, b in zip(first["actions"], second["actions"], strict=True)]
    return {
        "positions": len(same),
        "same_visits": sum(same),
        "same_actions": sum(actions),
        "different": [number for number, equal in enumerate(same) if not equal],
    }


def main() -> None:
    side, file = sys.argv[1:]
    given = json.loads(Path(file).read_text())
    work = {"sparring": ours, "mctx": with_mctx}[side]
    print(json.dumps(work(Case(**given["case"]), given["moves"])))


if __name__ == "__main__":
    main()
