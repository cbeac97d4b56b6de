"""Learning on a GPU as CUDA graphs: games, rollout and update without waiting in between."""

from sparring.learn.fused.games import MIN_SLOTS, DeviceGames, Games, HostGames
from sparring.learn.fused.ppo import FusedPPO

__all__ = ["MIN_SLOTS", "DeviceGames", "FusedPPO", "Games", "HostGames"]
