"""Error for an optional package that is not installed."""

from __future__ import annotations


def not_installed(extra: str, missing: ModuleNotFoundError) -> ImportError:
    package = (missing.name or extra).partition(".")[0]
    return ImportError(
        f'sparring.envs.{extra} needs {package}; pip install "sparring[{extra}]"', name=package
    )
