"""Every default value, as frozen dataclasses. The line under a field is its help text."""

from sparring.config.algorithms import DQNConfig, PPOConfig, ReplayConfig, SACConfig
from sparring.config.commands import (
    ArenaConfig,
    BenchPoolConfig,
    BenchTrainConfig,
    CheckConfig,
    DoctorConfig,
    EvalConfig,
    ExploitConfig,
    ExportConfig,
    GamesConfig,
    LeagueShowConfig,
    PlayConfig,
    RenderConfig,
    UsiConfig,
)
from sparring.config.learning import (
    CollectConfig,
    EvaluationConfig,
    HierarchyConfig,
    HindsightConfig,
    LeagueConfig,
    NetConfig,
)
from sparring.config.runs import (
    CompareConfig,
    PlotConfig,
    ResumeConfig,
    RunsConfig,
    TrainConfig,
)

__all__ = [
    "ArenaConfig",
    "BenchPoolConfig",
    "BenchTrainConfig",
    "CheckConfig",
    "CollectConfig",
    "CompareConfig",
    "DQNConfig",
    "DoctorConfig",
    "EvalConfig",
    "EvaluationConfig",
    "ExploitConfig",
    "ExportConfig",
    "GamesConfig",
    "HierarchyConfig",
    "HindsightConfig",
    "LeagueConfig",
    "LeagueShowConfig",
    "NetConfig",
    "PPOConfig",
    "PlayConfig",
    "PlotConfig",
    "RenderConfig",
    "ReplayConfig",
    "ResumeConfig",
    "RunsConfig",
    "SACConfig",
    "TrainConfig",
    "UsiConfig",
]
