"""A perceptron with a state of its own between a seat's decisions."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.net import Net


class RecurrentNet(Net):
    """A perceptron with a state of its own between a seat's decisions."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        *,
        heads: Mapping[str, int] | None = None,
        memory: int = 0,
        threads: int = 1,
    ) -> None:
        raise ConfigError("net.memory gru is not there yet")
