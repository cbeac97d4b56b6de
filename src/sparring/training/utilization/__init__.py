"""Utilization: the peak rates of this machine, and the share of them that a run reaches."""
