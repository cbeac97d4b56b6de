"""Default training settings of Leduc poker."""

from sparring.games.yardsticks import by_algorithm, gpu_preset, preset

PRESET = preset(minutes=0.5, hidden=(128, 128), magnet=0.05, magnet_period=200)
GPU_PRESET = gpu_preset(hidden=(128, 128))
STEPS = {"eta": "0%:2,100%:0.2", "alpha": "0%:0.2,100%:0.02", "lr": "0%:2e-3,100%:0"}
ALGOS = by_algorithm(belief=1.0, **STEPS)
