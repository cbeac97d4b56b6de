"""Checks of custom environments against the contract of their kind, on the raw env objects."""

from sparring.proof.contract.check import check_env
from sparring.proof.contract.findings import EnvFinding, EnvReport

__all__ = ["EnvFinding", "EnvReport", "check_env"]
