"""A torch module of somebody's own as a network."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.net import Net


class OwnNet(Net):
    """A torch module of somebody's own as a network."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        *,
        heads: Mapping[str, int] | None = None,
        memory: int = 0,
    ) -> None:
        raise ConfigError("net.kind module:Class is not there yet")
