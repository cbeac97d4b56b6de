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
    PortConfig,
    UsiConfig,
)
from sparring.config.learning import (
    CollectConfig,
    EnvConfig,
    EvaluationConfig,
    FleetConfig,
    HierarchyConfig,
    HindsightConfig,
    LeagueConfig,
)
from sparring.config.networks import CloningConfig, HeadsConfig, NetConfig
from sparring.config.runs import (
    CompareConfig,
    PlotConfig,
    ResumeConfig,
    RunsConfig,
    TrainConfig,
)
from sparring.config.shown import RenderConfig, ReplayFileConfig
from sparring.config.tools import (
    BenchConfigsConfig,
    BenchScalingConfig,
    CompletionConfig,
    ProfileConfig,
    SweepConfig,
    TuneConfig,
)
from sparring.config.web import ServeConfig

__all__ = [
    "ArenaConfig",
    "BenchConfigsConfig",
    "BenchPoolConfig",
    "BenchScalingConfig",
    "BenchTrainConfig",
    "CheckConfig",
    "CloningConfig",
    "CollectConfig",
    "CompareConfig",
    "CompletionConfig",
    "DQNConfig",
    "DoctorConfig",
    "EnvConfig",
    "EvalConfig",
    "EvaluationConfig",
    "ExploitConfig",
    "ExportConfig",
    "FleetConfig",
    "GamesConfig",
    "HeadsConfig",
    "HierarchyConfig",
    "HindsightConfig",
    "LeagueConfig",
    "LeagueShowConfig",
    "NetConfig",
    "PPOConfig",
    "PlayConfig",
    "PlotConfig",
    "PortConfig",
    "ProfileConfig",
    "RenderConfig",
    "ReplayConfig",
    "ReplayFileConfig",
    "ResumeConfig",
    "RunsConfig",
    "SACConfig",
    "ServeConfig",
    "SweepConfig",
    "TrainConfig",
    "TuneConfig",
    "UsiConfig",
]
