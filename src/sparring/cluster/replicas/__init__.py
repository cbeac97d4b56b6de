"""Replicas: data-parallel learners, which sum their gradients in every update."""
