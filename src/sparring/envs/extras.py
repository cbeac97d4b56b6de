"""What to say when an optional package is not there."""

from __future__ import annotations


def not_installed(extra: str, missing: ModuleNotFoundError) -> ImportError:
    """Return the error that names the package and how to get it."""
    package = (missing.name or extra).partition(".")[0]
    return ImportError(
        f'sparring.envs.{extra} needs {package}; pip install "sparring[{extra}]"', name=package
    )
