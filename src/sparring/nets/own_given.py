"""Networks that a program brings along, under a name: a class, or a module as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch import nn

from sparring.errors import ConfigError
from sparring.factories import keep_factory, keep_object


def keep_net(given: Any, name: str = "") -> str:
    """Return what net.kind has to be for a class of networks, or for a network as it is.

    name: one that it had before, in a run that goes on.
    """
    if not isinstance(given, nn.Module) and not callable(given):
        raise ConfigError(
            f"net {given!r}: give a table of settings, a torch.nn.Module or its class"
        )
    make = copies_of(given) if isinstance(given, nn.Module) else given
    if name:
        return keep_object(make, name)
    kept = "" if isinstance(given, nn.Module) else keep_factory(make)
    kind = given if hasattr(given, "__name__") else type(given)
    return kept or keep_object(make, str(kind.__name__).strip("<>"))


def copies_of(module: nn.Module) -> Callable[..., nn.Module]:
    """What makes a network like this one, weights included, whenever one is wanted."""

    def make(inputs: Any, **named: Any) -> nn.Module:
        if named:
            raise ConfigError(
                f"net.set {' '.join(named)}: the network is there already; give its class"
            )
        return copy.deepcopy(module)

    return make
