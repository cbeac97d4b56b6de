"""Ways of running networks: native code on a CPU; kernels or captured torch on a GPU."""
