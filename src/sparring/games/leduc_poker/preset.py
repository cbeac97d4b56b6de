"""Default training settings of Leduc poker."""

from sparring.games.yardsticks import BELIEVING, gpu_preset, preset

PRESET = preset(minutes=0.5, hidden=(128, 128), magnet=0.05, magnet_period=200)
GPU_PRESET = gpu_preset(hidden=(128, 128))
ALGOS = BELIEVING
