#!/bin/bash
# Several processes on one machine, without a cluster: bash examples/cluster/processes.sh
set -euo pipefail

# Four actors play a slow environment, and this process learns.
sparring train my_game:make_env --actors 4 --minutes 10
# Four learners share the games and sum their gradients.
sparring train skull_king --replicas 4 --threads 4 --minutes 10
# Two processes step the environments, one network answers them.
sparring train my_game:make_env --workers 2 --minutes 10
# Two GPUs learn as one; torchrun may start their processes as well.
sparring train skull_king --devices 0,1 --minutes 10
