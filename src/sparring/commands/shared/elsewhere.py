"""Who plays the matches of a command: this process, or tasks of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sparring.commands.shared.printing import say
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.round_robin import PairingRunner, PairingTables, RoundRobinSettings
from sparring.pools.custom.cache import is_custom


def check_elsewhere(cluster: str, device: str, save_games: str) -> None:
    """Refuse options that hold for this process alone."""
    if cluster and save_games:
        raise ConfigError("--save-games keeps games of this machine; leave it or --cluster out")
    if cluster and device != "cpu":
        raise ConfigError("--device moves networks of this process; leave it or --cluster out")


@contextmanager
def pairing_runner(
    address: str,
    rules: Rules,
    settings: RoundRobinSettings,
    *,
    threads: int,
    same_deals: bool = False,
) -> Iterator[PairingRunner | None]:
    """Join a cluster and yield what plays pairings there; None without an address.

    threads: of each; 0 is an equal share. same_deals: see `play_pairings`.
    """
    if not address:
        yield None
        return
    if is_custom(rules):
        raise ConfigError(
            f"cluster {address}: {rules.name} is a custom environment, which is measured on this "
            "machine; leave it out"
        )
    from sparring.cluster.ray.matches import play_pairings
    from sparring.cluster.ray.session import connect

    with connect(address) as cluster:

        def elsewhere(tables: PairingTables) -> Any:
            options: dict[str, Any] = {"threads": threads, "same_deals": same_deals, "tell": say}
            return play_pairings(cluster, rules, tables, settings, **options)

        yield elsewhere
