"""Renamed settings: an old name is an error that names the new one."""

from __future__ import annotations

from typing import Final

SECTIONS: Final = {"cloning": "imitation", "fleet": "distributed"}
RENAMED: Final = {
    "teach": "imitate",
    "teach_minutes": "imitate_minutes",
    "cloning.anchor": "imitation.kl_weight",
    "collect.slots": "collect.groups",
    "env.most_restarts": "env.max_restarts",
    "env.most_in_a_row": "env.max_restarts_in_a_row",
    "env.step_limit_s": "env.step_timeout_s",
    "env.start_limit_s": "env.start_timeout_s",
    "eval.limit_s": "eval.timeout_s",
    "fleet.batch": "distributed.actors_per_update",
    "fleet.lag": "distributed.max_lag",
    "fleet.limit_s": "distributed.timeout_s",
    "fleet.most_restarts": "distributed.max_restarts",
    "fleet.rho": "distributed.rho_clip",
    "fleet.trace": "distributed.c_clip",
    "fleet.trusted": "distributed.trusted_network",
    "from_policy": "kinds own",
    "league.choose": "league.sampling",
    "league.every": "league.every_decisions",
    "net.normalise": "net.normalize",
    "net.segment": "net.bptt_steps",
    "net.spread": "net.std",
    "replay.prioritised": "replay.prioritized",
    "sac.first_temperature": "sac.initial_temperature",
    "sac.target_share": "sac.target_entropy_share",
    "save_most": "save_max",
    "most": "max",
    "meter": "utilization",
}
"""Old path -> new path."""


def renamed(path: str) -> str:
    """Return the new name of a renamed setting, "" if it was not renamed."""
    section, dot, key = path.partition(".")
    if path in RENAMED:
        return RENAMED[path]
    return f"{SECTIONS[section]}{dot}{key}" if section in SECTIONS else ""
