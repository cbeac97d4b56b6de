"""Every default value, as frozen dataclasses. The line under a field is its help text."""

from sparring.config.algorithms import DQNConfig, PPOConfig, ReplayConfig, SACConfig
from sparring.config.learning import (
    CloningConfig,
    CollectConfig,
    EnvConfig,
    EvaluationConfig,
    FleetConfig,
    HeadsConfig,
    HierarchyConfig,
    HindsightConfig,
    LeagueConfig,
    NetConfig,
)
from sparring.config.runs import TrainConfig

__all__ = [
    "CloningConfig",
    "CollectConfig",
    "DQNConfig",
    "EnvConfig",
    "EvaluationConfig",
    "FleetConfig",
    "HeadsConfig",
    "HierarchyConfig",
    "HindsightConfig",
    "LeagueConfig",
    "NetConfig",
    "PPOConfig",
    "ReplayConfig",
    "SACConfig",
    "TrainConfig",
]
