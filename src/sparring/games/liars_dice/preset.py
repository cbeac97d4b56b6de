"""Default training settings of liar's dice."""

from sparring.games.yardsticks import by_algorithm, gpu_preset, preset

PRESET = preset(minutes=1.0, hidden=(128, 128))
GPU_PRESET = gpu_preset(hidden=(128, 128))
ALGOS = by_algorithm(belief=1.0)
