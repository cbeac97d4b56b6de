"""Learners of several processes have the members of the protocols that training asks for."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cluster.supervisors import settings, together
from cluster.test_replicas import config_of
from sparring.cluster.learners import with_replicas
from sparring.learn.acting import TakesOpponents
from sparring.learn.learner import Overridable, SupportsDryRun, closing_learner
from sparring.training.planning.plan import resolve

PROTOCOLS = (TakesOpponents, Overridable, SupportsDryRun)


def members(protocol: type) -> set[str]:
    return {name for base in protocol.__mro__[:-3] for name in vars(base) if name[0] != "_"}


def missing(learner: Any) -> list[str]:
    """Return what `isinstance` does not find since Python 3.12: what `__getattr__` gives."""
    absent = object()
    names = sorted(set().union(*map(members, PROTOCOLS)))
    assert {"iterate", "put", "apply_overrides", "dry_run"} <= set(names)
    return [name for name in names if inspect.getattr_static(learner, name, absent) is absent]


@pytest.mark.parametrize("kind", ["actors", "replicas"])
def test_nothing_of_the_protocols_is_left_to_getattr(kind: str) -> None:
    if kind == "actors":
        assert not missing(together(settings(actors=1)))
        return
    config = config_of()
    learner = with_replicas(config, resolve([config]))
    with closing_learner(learner):
        assert not missing(learner)
