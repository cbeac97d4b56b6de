"""Attention over the things that a game names: cards, players, animals."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.net import Net


class AttentionNet(Net):
    """Attention over the things that a game names: cards, players, animals."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        *,
        heads: Mapping[str, int] | None = None,
        memory: int = 0,
        threads: int = 1,
    ) -> None:
        raise ConfigError("net.kind attention is not there yet")
