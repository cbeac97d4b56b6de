"""Where a training's time goes: phases, sampled stacks, kernels, and what to do about it."""
