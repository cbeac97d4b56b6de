"""Default training settings of Kuhn poker for three."""

from sparring.games.yardsticks import by_algorithm, gpu_preset, preset

PRESET = preset(minutes=0.5, hidden=(64, 64))
GPU_PRESET = gpu_preset(hidden=(64, 64))
ALGOS = by_algorithm(belief=1.0)
