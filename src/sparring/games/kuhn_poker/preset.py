"""Default training settings of Kuhn poker."""

from sparring.games.yardsticks import by_algorithm, gpu_preset, preset

# Next to the magnet an entropy bonus would draw the policy away from the equilibrium.
MAGNET = {"magnet": 0.4, "magnet_period": 20, "entropy": 0.0, "clip": 0.05, "lr": "0%:2e-3,100%:0"}
PRESET = preset(minutes=0.5, hidden=(64, 64), **MAGNET)
GPU_PRESET = gpu_preset(hidden=(64, 64))
ALGOS = by_algorithm(belief=1.0)
