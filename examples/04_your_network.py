"""4. Your own network: convolutions for Connect Four, as an ordinary torch module.

You learn: what a network gets and what it has to return, and how to compare it with the one that
comes along, after the same number of games, from the same seed.

    python examples/04_your_network.py
    sparring train connect_four --net.kind examples/04_your_network.py:BoardNet

It takes 15 s of processor time (README.md says where) and prints (seconds are those of a clock, and
the machine was busy):

    convolutions  22,824 parameters,  251 s for 49,988 decisions, 88.7% against random play
    perceptron    10,184 parameters,   24 s for 49,992 decisions, 87.9% against random play
    convolutions against the perceptron: 52.4% (49.7% to 55.2%)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import sparring

ROWS, COLUMNS = 6, 7


class BoardNet(nn.Module):
    """Two convolutions over the board, then a linear layer for each head.

    reads: with "blocks" the network gets the observation as tensors by name; the default, "floats",
    is one row of numbers. `sparring games connect_four` lists blocks and their columns.
    """

    reads = "blocks"

    def __init__(self, inputs: Any, channels: int = 8) -> None:
        """Build the layers. inputs: sizes of observation and actions."""
        super().__init__()
        self.first = nn.Conv2d(2, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        flat = channels * ROWS * COLUMNS
        self.body = nn.Linear(flat, 64)
        self.policy = nn.Linear(64, inputs.policy)  # a logit for every action, legal or not
        self.value = nn.Linear(64, 1)  # a linear layer of its own: returns are scaled for it

    def forward(self, blocks: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return logits and values. Illegal actions are masked afterwards, by sparring."""
        own, other = (blocks[name].reshape(-1, 1, ROWS, COLUMNS) for name in ("own", "other"))
        board = torch.cat([own, other], dim=1)
        board = torch.relu(self.second(torch.relu(self.first(board))))
        hidden = torch.relu(self.body(board.flatten(1)))
        return self.policy(hidden), self.value(hidden)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train both networks and let them play; return the share of the one in this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=25, help="rollouts to learn from")
    parser.add_argument("--games", type=int, default=1000, help="of the match")
    given = parser.parse_args(arguments)

    # `net=BoardNet` is the class; `net={"kind": BoardNet, "set": {"channels": 32}}` has arguments
    # for it. A table without a kind is the perceptron that comes along.
    networks: dict[str, Any] = {"convolutions": BoardNet, "perceptron": {"hidden": (64, 64)}}
    agents = {}
    for name, net in networks.items():
        agents[name] = agent = sparring.train(
            "connect_four",
            net=net,
            updates=given.updates,
            seed=1,
            quiet=True,
            eval={"off": True},
            collect={"games": 64},
            threads=1,  # compared on one core each
        )
        parameters = sum(one.numel() for one in agent.policy.net.parameters())
        match = agent.evaluate("random", games=given.games)["random"].first
        print(
            f"{name:12} {parameters:7,} parameters, {60 * agent.minutes:4.0f} s for "
            f"{agent.decisions:,} decisions, {match.win_share:.1%} against random play"
        )

    match = agents["convolutions"].evaluate(agents["perceptron"].policy, games=given.games)
    (result,) = match.values()
    low, high = result.first.win_interval
    share = result.first.win_share
    print(f"convolutions against the perceptron: {share:.1%} ({low:.1%} to {high:.1%})")
    return share


if __name__ == "__main__":
    main()
