"""Shared by benchmarks that compare several sides: settings, cores, processes."""
