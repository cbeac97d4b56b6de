"""What environments of somebody's own raise, told in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sparring.errors import USER_CODE_ERRORS, ConfigError, EnvError, SparringError
from sparring.factories import describe_error


@contextmanager
def told(doing: str, advice: str = "") -> Iterator[None]:
    """Turn whatever an environment raises into an `EnvError`, `sys.exit` too.

    doing: what has failed then, the beginning of the line. advice: its end.
    """
    try:
        yield
    except (ConfigError, EnvError):
        raise
    except SparringError as wrong:  # what the environment answered was refused
        raise EnvError(str(wrong)) from wrong
    except USER_CODE_ERRORS as wrong:
        raise EnvError(f"{doing}: {describe_error(wrong)}{advice}") from wrong


@contextmanager
def same_folder() -> Iterator[None]:
    """Come back to the folder that this program is in, where an environment leaves it."""
    try:
        here = os.open(os.curdir, os.O_RDONLY)
    except OSError:  # it is gone, or may not be read
        yield
        return
    try:
        yield
    finally:
        os.fchdir(here)
        os.close(here)


def no_choice(where: str, seat: object) -> EnvError:
    """Say that a mask is all zeros where somebody has to choose; no policy could answer that."""
    return EnvError(
        f"{where}: seat {seat} is to act and its action mask allows nothing; end the episode "
        "there, or allow an action that passes"
    )


def first_line(wrong: BaseException) -> str:
    """What the environment itself raised, or what was refused of it."""
    raised = wrong.__cause__ if isinstance(wrong, EnvError) and wrong.__cause__ else wrong
    return str(raised) if isinstance(raised, SparringError) else describe_error(raised)
