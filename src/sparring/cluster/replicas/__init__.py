"""Replicas: learners that share the work of every update and learn as one."""
