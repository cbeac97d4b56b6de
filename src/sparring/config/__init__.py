"""Every default value, as frozen dataclasses. The line under a field is its help text."""

from sparring.config.algorithms import (
    DQNConfig,
    GumbelConfig,
    PPOConfig,
    QRDQNConfig,
    REDQConfig,
    ReplayConfig,
    SACConfig,
    TD3Config,
)
from sparring.config.learning import (
    CollectConfig,
    DistributedConfig,
    EnvConfig,
    EvaluationConfig,
    HeadsConfig,
    HierarchyConfig,
    HindsightConfig,
    ImitationConfig,
    LeagueConfig,
    NetConfig,
)
from sparring.config.runs import TrainConfig

__all__ = [
    "CollectConfig",
    "DQNConfig",
    "DistributedConfig",
    "EnvConfig",
    "EvaluationConfig",
    "GumbelConfig",
    "HeadsConfig",
    "HierarchyConfig",
    "HindsightConfig",
    "ImitationConfig",
    "LeagueConfig",
    "NetConfig",
    "PPOConfig",
    "QRDQNConfig",
    "REDQConfig",
    "ReplayConfig",
    "SACConfig",
    "TD3Config",
    "TrainConfig",
]
